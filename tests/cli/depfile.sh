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
# Make reads every name that it can read at all: it goes on when the program is there, and makes it anew when the model changes.
for name in 'a b' 'a\b' 'a\\b' 'a\ b' 'a#b' 'a\#b' 'a:b' 'a\:b' 'a$b' 'a*b'; do
  cp $data/add.onnx "$name.onnx"
  "$ETC" lower "$name.onnx" -q -o made.pte -MF made.d
  printf 'made.pte:\n\techo make >>log\n\ttouch made.pte\ninclude made.d\n' >Makefile
  make -s && ! [ -e log ] || echo "$name: made in vain"
  touch -d '1 hour ago' made.pte
  make -s && [ "$(cat log)" = make ] || echo "$name: not made"
  rm -f log "$name.onnx"
  make -s || echo "$name: it is gone"
  rm -f log
done
# What it cannot read is a warning.
for name in 'lr=0.1' '50%.onnx' 'a;b' 'a|b' 'a
b'; do
  cp $data/add.onnx "$name"
  t lower "$name" -o made.pte -MF made.d
done
t lower $data/add.onnx -o made.pte -MD -MT 'dir\'
t lower $data/add.onnx -o made.pte -MT target
rm made.pte
t lower 'a;b' -o made.pte -MD -Werror
ls made.pte 2>/dev/null
t lower $data/add.onnx -q -o 'a=b.pte'
t embed a=b.pte -o made.c -MD
