# etc quantize-report: what each layer costs, and all that is wrong with its options and data.
calib=$data/calib
cat >net.etir <<'END'
graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %1: f32[2, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0]
  %2: f32[2, 2] = const [1.0, 2.0, 3.0, 4.0]
  %3: f32[1, 2] = aten::linear(%0, %1, none) loc("first", "Gemm", 0)
  %4: f32[1, 2] = aten::relu(%3) loc("limit", "Relu", 1)
  %5: f32[1, 2] = aten::linear(%4, %2, none) loc("second", "Gemm", 2)
  %6: f32[1, 2] = aten::add.Tensor(%5, %4) loc("sum", "Add", 3)
  %7: f32[1, 2] = aten::relu(%6) loc("limit_sum", "Relu", 4)
  %8: f32[1, 2] = aten::linear(%7, %2, none) loc("third", "Gemm", 5)
  %9: f32[1, 2] = aten::_softmax(%8, -1, false) loc("share", "Softmax", 6)
  output %8 "y", %9 "share"
}
END
t quantize-report net.etir --quantize int8 --calibrate $calib/relu.npz
t quantize-report net.etir --quantize int8 --calibrate $calib/relu.npz --json -j1
t quantize-report net.etir --quantize int8-weight-only --data $calib/relu.npz
t quantize-report net.etir --quantize int8-dynamic --data $calib/relu.npz
# A clamp is part of its node; what stays in floats costs nothing.
printf 'float: ["@first", "@sum"]\n' >config.yaml
t quantize-report net.etir --quantize int8 --calibrate $calib/relu.npz --quantize-config config.yaml
# Rows of a table are compared, values in branches are not.
cat >parts.etir <<'END'
graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %12: f32[3, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.1, 8.0, 0.3, 0.2, 0.1, 0.4]
  %13: f32[200, 4] = aten::full([200, 4], 0.5, f32)
  %1: f32[203, 4] = aten::cat([%12, %13], 0)
  %2: f32[4, 4] = const [1.0, 2.0, 3.0, -4.0, 0.3, 0.1, 0.7, 0.8, 1.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
  %3: f32[1, 4] = aten::clamp(%0, 0, 2)
  %4: i64[1, 4] = aten::_to_copy(%3, i64, false, none)
  %5: f32[1, 4, 4] = aten::embedding(%1, %4) loc("table", "Gather", 0)
  %6: f32[1, 4, 4] = aten::linear(%5, %2, none) loc("before", "Gemm", 1)
  %7: bool[1, 4] = aten::ge.Scalar(%0, -9.0)
  %11: bool[] = aten::any(%7)
  control::if(%11)
  %8: f32[1, 4, 4] = aten::linear(%6, %2, none) loc("within", "Gemm", 2)
  control::else()
  %9: f32[1, 4, 4] = control::endif([%8], [%6])
  %10: f32[1, 4, 4] = aten::linear(%9, %2, none) loc("behind", "Gemm", 3)
  output %10 "y"
}
END
t quantize-report parts.etir --quantize int8 --calibrate $calib/relu.npz
t quantize-report parts.etir --quantize int4-weight-only --data $calib/relu.npz
# More rows than are shown.
{
  echo 'graph @forward level(aten) {'
  echo '  %0: f32[1, 4] = input "x"'
  echo '  %1: f32[4, 4] = const [1.0, 2.0, 3.0, -4.0, 0.3, 0.1, 0.7, 0.8, 1.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]'
  for i in 2 3 4 5 6 7 8 9 10 11 12 13; do
    last=$((i - 1)); [ $last = 1 ] && last=0
    echo "  %$i: f32[1, 4] = aten::linear(%$last, %1, none) loc(\"layer$i\", \"Gemm\", $i)"
  done
  echo '  output %13 "y"'
  echo '}'
} >deep.etir
t quantize-report deep.etir --quantize int8 --calibrate $calib/relu.npz
t quantize-report deep.etir --quantize int8 --calibrate $calib/relu.npz -v
# No node that is quantized: a model all the same.
t quantize-report $data/relu.onnx --dim batch=1 --quantize int8 --calibrate $calib/relu.npz
t quantize-report $data/relu.onnx --quantize int8-weight-only --data $calib/folder
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz -o relu.stats
t quantize-report $data/relu.onnx --dim batch=1 --quantize int8 --ranges relu.stats --data $calib/relu.npz
# Usage.
t quantize-report
t quantize-report net.etir net.etir --quantize int8 --calibrate $calib/relu.npz
t quantize-report net.etir --calibrate $calib/relu.npz
t quantize-report net.etir --quantize int9 --data $calib/relu.npz
t quantize-report net.etir --quantize int8
t quantize-report net.etir --quantize int8 --data $calib/relu.npz
t quantize-report net.etir --quantize int8-dynamic
t quantize-report net.etir --quantize int8-dynamic --calibrate $calib/relu.npz
t quantize-report net.etir --quantize int8 --ranges relu.stats
t quantize-report net.etir --quantize int8 --ranges relu.stats --data $calib/relu.npz
t quantize-report net.etir --quantize int8 --calibrate $calib/relu.npz --output x
sed 's/level(aten)/level(core)/' net.etir >core.etir
t quantize-report core.etir --quantize int8 --calibrate $calib/relu.npz
t lower $data/relu.onnx --dim batch=1 -o a.pte -q
t quantize-report a.pte --quantize int8 --calibrate $calib/relu.npz
t quantize-report missing.onnx --quantize int8 --calibrate $calib/relu.npz
# Data.
for bad in missing nan name shape type empty cut; do
  t quantize-report net.etir --quantize int8-dynamic --data $calib/$bad.npz
done
t quantize-report net.etir --quantize int8 --calibrate $calib/nan.npz --data $calib/relu.npz
t quantize-report $data/relu.onnx --quantize int8 --calibrate $calib/relu.npz --data $calib/missing.npz
printf 'float: ["@nowhere"]\n' >nowhere.yaml
t quantize-report net.etir --quantize int8 --calibrate $calib/relu.npz --quantize-config nowhere.yaml

# --max-drop: nodes stay in floats until the outputs are near enough.
t lower deep.etir -o deep.pte --quantize int8 --calibrate $calib/relu.npz -q
for drop in 20 30 40 300; do
  t lower deep.etir -o drop.pte --quantize int8 --calibrate $calib/relu.npz --max-drop $drop
  [ $drop = 20 ] && cmp deep.pte drop.pte && echo the same
done
t lower deep.etir -o drop.pte --quantize int8 --calibrate $calib/relu.npz --max-drop 150 --diagnostics=json
t lower parts.etir -o parts.pte --quantize int8 --calibrate $calib/relu.npz --max-drop 150
# Outputs that are no floats are not compared.
sed '/softmax/d; s/output %8 .*/%9: i64[1] = aten::argmax(%8, 1, false)\n  output %9 "y"/' net.etir >classes.etir
t quantize-report classes.etir --quantize int8 --calibrate $calib/relu.npz
t lower classes.etir -o drop.pte --quantize int8 --calibrate $calib/relu.npz --max-drop 30
t lower deep.etir -o drop.pte --quantize int8 --calibrate $calib/relu.npz --max-drop nan
t lower deep.etir -o drop.pte --quantize int8-dynamic --max-drop 30
t lower $data/relu.onnx --dim batch=1 -o drop.pte --quantize int8 --ranges relu.stats --max-drop 30
t lower deep.etir -o drop.pte --max-drop 30
# Other samples than those of --calibrate, and schemes that calibrate nothing.
for scheme in int8-dynamic int8-weight-only; do
  t lower deep.etir -o drop.pte --quantize $scheme --compare $calib/relu.npz --max-drop 45
  t lower deep.etir -o drop.pte --quantize $scheme --compare $calib/relu.npz --report drop.json
  python3 -c 'import json; q = json.load(open("drop.json"))["methods"][0]["quantization"]; print(q["samples"], q["outputs"])'
done
t lower $data/relu.onnx --dim batch=1 -o drop.pte --quantize int8 --ranges relu.stats --compare $calib/relu.npz --max-drop 150
t lower deep.etir -o drop.pte --quantize int8 --calibrate $calib/relu.npz --compare $calib/missing.npz --max-drop 30
t lower deep.etir -o drop.pte --compare $calib/relu.npz
t lower deep.etir -o drop.pte --quantize int8 --calibrate $calib/nan.npz --max-drop 30

ls
