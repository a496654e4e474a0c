# What is in a delegate, whether it is right, and what it computes; a wrong one is no file.
t lower $data/mixed.onnx --dim batch=2 -o m.pte --backend xnnpack:min-ops=1
t inspect m.pte
t verify m.pte

# Code that is wrong: our own fault, since nobody else makes it
cat >wrong.etir <<EOF
graph @forward level(edge) {
  %0: f32[4] = input "x"
  %1: u8[8] = const [0, 0, 0, 0, 88, 72, 48, 48]
  %2: f32[4] = higher_order::executorch_call_delegate("XnnpackBackend", "", %1, [], [%0], [6], [1], [4])
  output %2 "y"
}
EOF
t lower wrong.etir -o wrong.pte
t explain E0609
ls
