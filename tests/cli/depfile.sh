# The depfile names every file that the program depends on, each once: samples and their folder, statistics, configurations, values.
calib=$data/calib
cat >net.etir <<'END'
graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %1: f32[2, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0]
  %2: f32[1, 2] = aten::linear(%0, %1, none)
  %3: f32[1, 2] = aten::relu(%2)
  %4: f32[2, 2] = const [1.0, 2.0, 3.0, 4.0]
  %5: f32[1, 2] = aten::linear(%3, %4, none)
  output %5 "y"
}
END
t lower net.etir --quantize int8 --calibrate $calib/folder --backend xnnpack -q -o folder.pte -MD
cat folder.pte.d
echo 'float: tanh' >config.yaml
t lower net.etir --quantize int8 --calibrate $calib/relu.npz --quantize-config config.yaml -q -o config.pte -MF config.d
cat config.d
"$ETC" calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz -o ranges.stats -q
t lower $data/relu.onnx --dim batch=1 --quantize int8 --ranges ranges.stats -q -o ranges.pte -MF ranges.d
cat ranges.d
t lower --method a=$data/relu.onnx --method b=$data/relu.onnx --dim batch=1 --constant table=$data/ones23.npy -q -o twice.pte -MF twice.d
cat twice.d
t lower $data/external.onnx -q -o external.pte -MF external.d
cat external.d
