# --quantize and what goes with it: marks, quantized graphs, and all that is wrong with the options.
calib=$data/calib
cat >net.etir <<'END'
graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %1: f32[2, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0]
  %2: f32[1, 2] = aten::linear(%0, %1, none) loc("first", "Gemm", 0)
  %3: f32[1, 2] = aten::relu(%2)
  %4: f32[2, 2] = const [1.0, 2.0, 3.0, 4.0]
  %5: f32[1, 2] = aten::linear(%3, %4, none) loc("second", "Gemm", 1)
  output %5 "y"
}
END
t opt net.etir --pass annotate --quantize int8 --no-locations
t opt net.etir --pass annotate,observe,convert --quantize int8 --calibrate $calib/relu.npz --calibrate-method min-max --no-locations
t opt net.etir --pass annotate,convert --quantize int8-weight-only --no-locations
t opt net.etir --pass annotate,convert --quantize int8-dynamic --no-locations
printf 'float: ["@first"]\nweight-only: [linear, relu]\n' >config.yaml
t opt net.etir --pass annotate --quantize int8 --quantize-config config.yaml --no-locations
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz
# Samples that cannot be meant, which nothing else tells.
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/zeros.npz
sed 's/aten::linear(%0,/aten::linear(%8,/; /input "x"/a\  %7: f32[] = const 16.0\n  %8: f32[1, 4] = aten::div.Tensor(%0, %7)' net.etir >scaled.etir
t lower scaled.etir -o a.pte --quantize int8 --calibrate $calib/zeros.npz
# An archive whose directory has 64-bit numbers.
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --backend xnnpack -q
t lower net.etir -o b.pte --quantize int8 --calibrate $calib/zip64.npz --backend xnnpack -q
cmp a.pte b.pte && echo the same
# Nothing to quantize: no product with constant weights, or not in float32; the samples are not read.
sed 's/f32/f64/g' net.etir >f64.etir
t lower f64.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --backend xnnpack
sed 's/f32/bf16/g' net.etir >bf16.etir
t lower bf16.etir -o a.pte --quantize int8-weight-only
t lower bf16.etir -o a.pte --bundle $calib/relu.npz
sed 's/\[1, /[2, /' bf16.etir >rows.etir
t run rows.etir -i x=$data/x24.npy
t lower $data/add.onnx -o a.pte --quantize int8-weight-only
t lower $data/add.onnx -o a.pte --quantize int4-weight-only
printf 'float: ["@*"]\n' >config.yaml
t lower net.etir -o a.pte --quantize int8-dynamic --quantize-config config.yaml --backend xnnpack -Werror
# One calibration serves later runs, and gives the same program.
t lower $data/relu.onnx --dim batch=1 -o a.pte --quantize int8 --calibrate $calib/relu.npz -q
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz -o relu.stats
t lower $data/relu.onnx --dim batch=1 -o b.pte --quantize int8 --ranges relu.stats -q
cmp a.pte b.pte && echo the same
rm -f a.pte b.pte
# Samples make other codes of 4 bits, the same on any number of threads.
{
  echo 'graph @forward level(aten) {'
  echo '  %0: f32[1, 4] = input "x"'
  echo '  %1: f32[1, 32] = aten::repeat(%0, [1, 8])'
  printf '  %%2: f32[2, 32] = const [0.3, 1.9'
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31; do
    printf ', %s.3, -%s.4' $((i * i % 7)) $((i * 5 % 8))
  done
  echo ']'
  echo '  %3: f32[1, 2] = aten::linear(%1, %2, none) loc("small", "Gemm", 0)'
  echo '  %4: f32[1, 2] = aten::relu(%3)'
  echo '  output %4 "y"'
  echo '}'
} >small.etir
t quantize-report small.etir --quantize int4-weight-only --data $calib/relu.npz
t quantize-report small.etir --quantize int4-weight-only --calibrate $calib/relu.npz
t lower small.etir -o a.pte --quantize int4-weight-only -q
t lower small.etir -o b.pte --quantize int4-weight-only --calibrate $calib/relu.npz -q -j1
t lower small.etir -o c.pte --quantize int4-weight-only --calibrate $calib/relu.npz -q -j3
cmp -s a.pte b.pte || echo different
cmp b.pte c.pte && echo the same
rm -f a.pte b.pte c.pte
t lower small.etir -o d.pte --quantize int4-weight-only --calibrate random -q -j1
t lower small.etir -o e.pte --quantize int4-weight-only --calibrate random -j3
cmp d.pte e.pte && echo the same
cmp -s a.pte d.pte || echo other codes than the nearest
t lower small.etir -o a.pte --quantize int4-weight-only
# An index that random samples do not keep within its table: row 1 + 5 of 6.
sed -e 's/^  %0: .*/&\n  %7: i64[1] = input "row"\n  %8: i64[1] = aten::add.Scalar(%7, 5, 1)\n  %9: f32[6, 2] = input "table"\n  %6: f32[1, 2] = aten::index_select(%9, 0, %8)/' \
  -e 's/output .*/&, %6 "z"/' small.etir >off.etir
t lower off.etir -o a.pte --quantize int4-weight-only --calibrate random
# The same from a file: which sample
sed -e 's/^  %0: .*/  %7: i64[1] = input "row"\n  %9: f32[3, 4] = aten::full([3, 4], 0.5, f32)\n  %0: f32[1, 4] = aten::index_select(%9, 0, %7)/' small.etir >table.etir
t lower table.etir -o a.pte --quantize int4-weight-only --calibrate $calib/index.npz
t calibrate table.etir --data $calib/index.npz -o table.stats
# What is quantized already
cat >quantized.etir <<'END'
graph @forward level(aten) {
  %0: f32[2] = input "x"
  %1: i8[2] = quantized_decomposed::quantize_per_tensor(%0, 0.5, 0, -128, 127, i8)
  %2: f32[2] = quantized_decomposed::dequantize_per_tensor(%1, 0.5, 0, -128, 127, i8, none)
  output %2 "y"
}
END
t lower quantized.etir -o a.pte --quantize int8-dynamic
# Symbols that must fit each other though nothing says so: smaller sizes are tried
sed -e 's/^graph .*/&\n  sym s0 "new" in [1, 5]\n  sym s1 "past" in [0, 30]\n  sym s2 "total" in [2, 31]/' \
  -e 's/^  %0: .*/&\n  %7: f32[s0, 2] = input "row"\n  %8: f32[s1, 2] = input "cache"\n  %9: f32[s2, 2] = input "mask"\n  %10: i64[] = aten::scalar_tensor(s0 + s1 - 1, i64)\n  %11: i64[1] = aten::view_copy(%10, [1])\n  %6: f32[1, 2] = aten::index_select(%9, 0, %11)/' \
  -e 's/output .*/&, %6 "z"/' small.etir >fit.etir
t lower fit.etir -o a.pte --quantize int4-weight-only --calibrate random
t lower small.etir -o a.pte --quantize int8 --calibrate random
t lower small.etir -o a.pte --quantize int8-dynamic --calibrate random
t lower small.etir -o a.pte --quantize int4-weight-only --calibrate random --ranges relu.stats
t lower small.etir -o a.pte --quantize int4-weight-only --calibrate $calib/nan.npz
t lower small.etir -o a.pte --quantize int4-weight-only --ranges relu.stats
# Usage.
t lower net.etir -o a.pte --quantize int9 --calibrate $calib/relu.npz
t lower net.etir -o a.pte --quantize int8
t lower net.etir -o a.pte --quantize int4-weight-only:0
t lower net.etir -o a.pte --quantize int4-weight-only:48
t lower net.etir -o a.pte --quantize int8-dynamic:32
t lower net.etir -o a.pte --quantize int8-dynamic --calibrate $calib/relu.npz
t lower net.etir -o a.pte --calibrate $calib/relu.npz
t lower net.etir -o a.pte --ranges relu.stats
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --ranges relu.stats
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --calibrate-method median
t lower net.etir -o a.pte --calibrate-method mse
t lower net.etir -o a.onnx
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --calibrate-method percentile:0
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --calibrate-method mse:3
# Data.
for bad in missing nan name shape type empty cut; do
  t lower net.etir -o a.pte --quantize int8 --calibrate $calib/$bad.npz
done
t lower net.etir -o a.pte --quantize int8 --ranges relu.stats
t lower $data/add.onnx -o a.pte --quantize int8 --ranges relu.stats
# Configurations.
bad() { printf "$1" >bad.yaml; t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --quantize-config bad.yaml; }
bad 'exclude: [linear]\n'
bad 'float: [liner]\n'
bad 'float: []\nfloat: x\n'
bad 'float: {linear: 1}\n'
bad 'linear\n'
bad 'float: [linear\n'
bad 'float: "@"\n'
bad 'float: ["", add]\n'
bad 'float:\n'
bad ''
bad 'float: [@first]\n'
bad 'float: ["@nowhere"]\n'
bad 'float: ["@frist"]\n'
# Operators of ONNX: nodes of none here, and a lower case one.
bad 'float: [Relu, LSTM]\n'
bad 'float: [linear]\n'
bad 'float: [conv]\n'
bad 'float: [Convolve]\n'
t lower net.etir -o a.pte --quantize int8 --calibrate $calib/relu.npz --quantize-config missing.yaml
ls
