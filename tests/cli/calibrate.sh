# etc calibrate: data sets, shards and merging, and all that is wrong with them.
calib=$data/calib
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz -o whole.stats
head -n 8 whole.stats
for set in relu_deflated.npz folder; do
  t calibrate $data/relu.onnx --dim batch=1 --data $calib/$set -o other.stats -j1
  sed 1,3d whole.stats >whole; sed 1,3d other.stats >other
  cmp whole other && echo the same
done
for shards in 2 7 64; do
  for i in $(seq 0 $((shards - 1))); do
    "$ETC" calibrate -q $data/relu.onnx --dim batch=1 --data $calib/relu.npz --shard $i/$shards -o $shards-$i.stats
  done
  "$ETC" calibrate --merge $shards-*.stats -o merged.stats
  cmp merged.stats whole.stats && echo $shards shards: the same
done
t calibrate --merge whole.stats -o merged.stats
# Sizes that are not given come from the data: one sample at a time.
t calibrate $data/relu.onnx --data $calib/relu.npz -o other.stats
cmp other.stats whole.stats && echo the same
t calibrate --merge 7-0.stats 7-1.stats 7-2.stats 7-3.stats 7-5.stats 7-6.stats -o x
t calibrate --merge 2-0.stats 2-1.stats 2-1.stats -o x
t calibrate --merge 2-0.stats 7-1.stats -o x
t calibrate $data/relu.onnx --dim batch=2 --data $calib/folder --shard 1/2 -o other.stats
t calibrate --merge 2-0.stats other.stats -o x
t calibrate $data/add.onnx --data $calib/rows.npz --shard 1/2 -o other.stats
t calibrate --merge 2-0.stats other.stats -o x
t calibrate --merge 2-0.stats $calib/relu.npz -o x
head -n 7 whole.stats >cut.stats
t calibrate --merge cut.stats -o x
t calibrate --merge missing.stats -o x
t calibrate --merge -o x
t calibrate --merge whole.stats --data $calib/relu.npz -o x
for bad in nan infinite name shape type bytes object empty none fortran cut damaged; do
  t calibrate $data/relu.onnx --dim batch=1 --data $calib/$bad.npz -o x
done
t calibrate $data/add.onnx --data $calib/add.npz -o x
t calibrate $data/add.onnx --data $calib/rows.npz -o x
t calibrate $data/add.onnx --data $data/x23.npy -o x
t calibrate $data/relu.onnx --dim batch=1 --data $data -o x
t calibrate $data/relu.onnx --dim batch=1 --data missing -o x
t calibrate $data/relu.onnx --dim batch=1 --data /dev/null -o x
t calibrate $data/relu.onnx --dim batch=1 -o x
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz --shard 2/2 -o x
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz --shard 1 -o x
t calibrate --data $calib/relu.npz -o x
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz -o missing/x
ls x missing 2>&1 || true
# What is there and is something else stays.
"$ETC" lower $data/relu.onnx --dim batch=1 -q -o there.pte && cp there.pte before.pte
t calibrate $data/relu.onnx --dim batch=1 --data $calib/relu.npz -o there.pte
t calibrate --merge whole.stats -o there.pte
cmp there.pte before.pte
: >empty.stats
t calibrate --merge whole.stats -o empty.stats
# Samples that say nothing.
t calibrate $data/relu.onnx --dim batch=1 --data $calib/zeros.npz -o x
# What to do about files that are not as the inputs are.
mkdir both && cp $calib/relu.npz $data/x24.npy both/
t calibrate $data/relu.onnx --dim batch=1 --data both -o no.stats
cat >image.etir <<EOF
graph @forward level(aten) {
  %0: f32[1, 1, 2, 2] = input "x"
  %1: f32[1, 4] = aten::view_copy(%0, [1, 4])
  %2: f32[1, 4] = const [1, 2, 3, 4]
  %3: f32[1, 1] = aten::linear(%1, %2, none)
  output %3 "y"
}
EOF
t lower image.etir --quantize int8 --calibrate $data/x24.npy -o no.pte
# Images with the channels last, and as bytes.
cat >channels.etir <<EOF
graph @forward level(aten) {
  %0: f32[1, 2, 3, 3] = input "x"
  %1: f32[1, 18] = aten::view_copy(%0, [1, 18])
  %2: f32[1, 18] = const [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]
  %3: f32[1, 1] = aten::linear(%1, %2, none)
  output %3 "y"
}
EOF
python3 - <<'END'
for name, descr, shape, size in ("last", "<f4", "5, 3, 3, 2", 360), ("bytes", "|u1", "5, 2, 3, 3", 90):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, shape)).ljust(117) + "\n"
    with open(name + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00v\x00" + head.encode() + bytes(size))
END
t lower channels.etir --quantize int8 --calibrate last.npy -o no.pte
t lower channels.etir --quantize int8 --calibrate bytes.npy -o no.pte
