# What is in a delegate, whether it is right, and what it computes; a wrong one is no file.
t lower $data/mixed.onnx --dim batch=2 -o m.pte --backend xnnpack:min-ops=1
t inspect m.pte
t verify m.pte

# Sizes of results follow from those of the inputs: in its text, which can be lowered, and in what inspect says of memory
t lower $data/mixed.onnx --dim batch=1..4 -o d.pte --backend xnnpack:min-ops=1
t inspect d.pte
"$ETC" print d.pte --no-locations -o d.etir
grep -o 'sym .*\|f32.*delegate("[A-Za-z]*"' d.etir
t lower d.etir -o again.pte -q
t diff d.pte again.pte
t verify again.pte
# A cache for a stream: the last columns of what the delegate has joined
cat >stream.etir <<EOF
graph @forward level(edge) {
  sym s0 "T" in [1, 17]
  %0: f32[1, 6, s0] = input "x"
  %1: f32[1, 6, 4] = input "cache"
  %2: f32[1, 6, s0 + 4] = aten::cat([%1, %0], 2)
  %3: f32[1, 6, 4] = aten::slice_copy.Tensor(%2, 2, s0, s0 + 4, 1)
  %4: f32[1, 6, s0 + 4] = aten::exp(%2)
  output %4 "y", %3 "new_cache"
}
EOF
t lower stream.etir -o stream.pte --backend xnnpack:min-ops=1 -q
t verify stream.pte
rm d.etir d.pte again.pte stream.etir stream.pte

# Which transposes are in it, where, and what for
cat >layouts.etir <<EOF
graph @forward level(edge) {
  %0: f32[1, 2, 4, 4] = input "x"
  %1: f32[2, 2, 1, 1] = const [1.0, 2.0, 3.0, 4.0]
  %2: f32[1, 2, 4, 4] = aten::convolution(%0, %1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) loc("stem", "Conv", 0)
  %3: f32[1, 4, 2, 4] = aten::permute_copy(%2, [0, 2, 1, 3]) loc("heads", "Transpose", 1)
  %4: f32[1, 4, 2, 4] = aten::_softmax(%3, 2, false) loc("choice", "Softmax", 2)
  %5: f32[1, 4, 2, 4] = aten::exp(%4) loc("exp", "Exp", 3)
  output %5 "y", %2 "z"
}
EOF
t lower layouts.etir -o layouts.pte --backend xnnpack --explain
t lower layouts.etir -o layouts.pte --backend xnnpack --explain=json
t inspect layouts.pte
t inspect layouts.pte --json
rm layouts.etir
# Views around products are left out: what is there before them has the same elements
cat >heads.etir <<EOF
graph @forward level(edge) {
  %0: f32[1, 2, 3, 4] = input "q"
  %1: f32[1, 2, 4, 3] = input "k"
  %2: f32[3, 5] = const [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
  %3: f32[2, 3, 4] = aten::view_copy(%0, [2, 3, 4])
  %4: f32[2, 4, 3] = aten::view_copy(%1, [2, 4, 3])
  %5: f32[2, 3, 3] = aten::bmm(%3, %4)
  %6: f32[1, 2, 3, 3] = aten::view_copy(%5, [1, 2, 3, 3])
  %7: f32[1, 2, 3, 3] = aten::_softmax(%6, 3, false)
  %8: f32[6, 3] = aten::view_copy(%7, [6, 3])
  %9: f32[6, 5] = aten::mm(%8, %2)
  %10: f32[1, 2, 3, 5] = aten::view_copy(%9, [1, 2, 3, 5])
  output %10 "y"
}
EOF
t lower heads.etir -o heads.pte --backend xnnpack
t inspect heads.pte

# Which nodes compute on codes of 8 bits, and which of them not
cat >codes.etir <<EOF
graph @forward level(edge) {
  %0: f32[2, 4] = input "x"
  %1: i8[2, 4] = quantized_decomposed::quantize_per_tensor(%0, 0.0625, 3, -128, 127, i8)
  %2: f32[2, 4] = quantized_decomposed::dequantize_per_tensor(%1, 0.0625, 3, -128, 127, i8, none)
  %3: i8[4, 3] = const [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
  %4: f32[4, 3] = quantized_decomposed::dequantize_per_tensor(%3, 0.0078125, 0, -128, 127, i8, none)
  %5: f32[2, 3] = aten::mm(%2, %4)
  %6: i8[2, 3] = quantized_decomposed::quantize_per_tensor(%5, 0.03125, 0, -128, 127, i8)
  %7: f32[2, 3] = quantized_decomposed::dequantize_per_tensor(%6, 0.03125, 0, -128, 127, i8, none)
  %8: f32[2, 3] = aten::mm(%0, %4)
  %9: f32[2, 3] = aten::_softmax(%7, 1, false)
  output %9 "y", %8 "z"
}
EOF
t lower codes.etir -o codes.pte --backend xnnpack:min-ops=1
t inspect codes.pte
t inspect codes.pte -v
"$ETC" inspect codes.pte --json | sed -n '/"nodes_on_8_bits"/p; /"name": "FullyConnected"/,/}/p'
rm codes.etir

# Long rows are summed up in pieces: a column for all of one would be packed sixteenfold
cat >rows.etir <<EOF
graph @forward level(edge) {
  sym s0 "batch" in [1, 4]
  %0: f32[s0, 4, 65536] = input "x"
  %1: f32[s0, 4, 65536], %2: f32[s0, 2], %3: f32[s0, 2] = aten::native_group_norm(%0, none, none, s0, 4, 65536, 2, 0.00001)
  output %1 "y"
}
EOF
t lower rows.etir -o rows.pte --backend xnnpack
rm rows.etir

# Equal parts are one delegate: its weights are counted once, each call is checked and run
cat >repeats.etir <<EOF
graph @forward level(edge) {
  %0: f32[1, 2] = input "x"
  %1: f32[2, 2] = const [1.0, -2.0, 0.5, 1.0]
  %2: f32[1, 2] = aten::linear(%0, %1)
  %3: f32[1, 2] = aten::tanh(%2)
  %4: f32[1, 2] = aten::linear(%3, %1)
  %5: f32[1, 2] = aten::tanh(%4)
  output %5 "y"
}
EOF
for bytes in 16 17; do
  t lower repeats.etir -o repeats.pte --backend xnnpack:min-ops=1,min-shared=$bytes
  t inspect repeats.pte
  t verify repeats.pte
  t run repeats.pte --random --seed 1
done
t lower repeats.etir -o repeats.pte --backend xnnpack:min-ops=1,min-shared=0
"$ETC" lower repeats.etir -q -o repeats.pte --backend xnnpack:min-ops=1,min-shared=1
t inspect -v repeats.pte
"$ETC" inspect --json repeats.pte | sed -n '/"calls"/p; /"packed_bytes_estimate"/p'
rm repeats.etir repeats.pte

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

# Which nodes of the model an instruction is of.
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1,skip=tanh --map map.json -o mapped.pte
cat map.json
t lower $data/mixed.onnx --dim batch=2 --map none/map.json -o mapped.pte

# What follows a length that data decide is in a delegate, too, when that length is 1 or more
t lower $data/regulator.onnx --bound places=90 -o regulator.pte --backend xnnpack:min-ops=1
t verify regulator.pte

# Graphs of delegates as artifacts change nothing in the program; a dequantized weight that two partitions read is in both
cat >shared.etir <<EOF
graph @forward level(aten) {
  %0: f32[4, 2] = input "x"
  %1: f32[2, 2] = const [1.0, 2.0, 3.0, 4.0] "w"
  %2: f32[4, 2] = aten::linear(%0, %1, none) loc("first", "Gemm", 0)
  %3: f32[4, 2] = aten::relu(%2) loc("relu", "Relu", 1)
  %4: f32[4, 2] = aten::cumsum(%3, 0) loc("sum", "CumSum", 2)
  %5: f32[4, 2] = aten::linear(%4, %1, none) loc("second", "Gemm", 3)
  %6: f32[4, 2] = aten::relu(%5) loc("relu2", "Relu", 4)
  output %6 "y"
}
EOF
t lower shared.etir --quantize int8-weight-only --backend xnnpack:min-ops=1 -o plain.pte -q
t lower shared.etir --quantize int8-weight-only --backend xnnpack:min-ops=1 --artifacts parts -o kept.pte -q
cmp plain.pte kept.pte && ls parts | grep delegate
grep -h dequantize parts/*delegate-?.etir
# Sizes that a delegate gives are symbols of their own when the program is read: what follows from them may seem larger than it can get
cat >crop.etir <<EOF
graph @forward level(aten) {
  sym s0 "h" in [1, 8]
  %0: f32[1, 2, s0, 3] = input "x"
  %1: f32[2, 2, 3, 1] = const [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0] "w"
  %2: f32[1, 2, s0*2 + 1, 3] = aten::convolution(%0, %1, none, [2, 1], [0, 0], [1, 1], true, [0, 0], 1) loc("up", "ConvTranspose", 0)
  %3: f32[1, 2, s0*2 - 1, 3] = aten::slice_copy.Tensor(%2, 2, 1, s0*2, 1) loc("crop", "Slice", 1)
  %4: f32[1, 2, s0*2 - 1, 3] = aten::cumsum(%3, 3) loc("sum", "CumSum", 2)
  output %4 "y"
}
EOF
t lower crop.etir -o crop.pte --backend xnnpack:min-ops=1 -q
t verify crop.pte

# A product that quantizes its operand at run time, and is left out, gets the floats of the delegate before it
cat >skipped.etir <<EOF
graph @forward level(aten) {
  %0: f32[2, 4] = input "x"
  %1: f32[3, 4] = const [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0] "w"
  %2: f32[2, 4] = aten::sigmoid(%0) loc("gate", "Sigmoid", 0)
  %3: f32[2, 3] = aten::linear(%2, %1, none) loc("head", "Gemm", 1)
  output %3 "y"
}
EOF
t lower skipped.etir -o skipped.pte --backend xnnpack:min-ops=1,skip=linear --quantize int8-dynamic
t verify skipped.pte
t run skipped.pte --random
rm skipped.etir

# The first row of a value of unknown length, added to a row in its place: read again, it may have no element, and none is written then
cat >first.etir <<EOF
graph @forward level(aten) {
  sym s0 "h" in [1, 8]
  %0: f32[s0, 2] = input "x"
  %1: f32[1, 2] = input "z"
  %2: f32[s0, 2] = aten::exp(%0) loc("exp", "Exp", 0)
  %3: f32[1, 2] = aten::slice_copy.Tensor(%2, 0, 0, 1, 1) loc("first", "Slice", 1)
  %4: f32[1, 2] = aten::cumsum(%1, 1) loc("sum", "CumSum", 2)
  %5: f32[1, 2] = aten::add.Tensor(%4, %3, 1) loc("add", "Add", 3)
  %6: f32[1, 2] = aten::cumsum(%5, 1) loc("last", "CumSum", 4)
  output %6 "y"
}
EOF
t lower first.etir -o first.pte --backend xnnpack:min-ops=1,ops=exp -q
t verify first.pte
rm first.etir
