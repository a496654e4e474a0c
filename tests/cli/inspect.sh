t lower $data/add.onnx -o add.pte
t inspect add.pte
t inspect $data/add.onnx
t verify $data/x23.npy
head -c 300 add.pte >short.pte
t verify short.pte
t inspect short.pte
t run short.pte
# Memory by the size of each dim: even ones only fit, and q has twice the size of x.
t lower $data/dims.onnx -q --dim batch=1..8 --dim n=1..12 --dim m=2..10 -o dims.pte
t inspect dims.pte
"$ETC" inspect dims.pte --json | sed -n '/"by_dim"/,/"by_dim_left_out"/p'
# With a kernel that is not known there are no sizes.
sed 's/aten::add/aten::adx/' dims.pte >strange.pte
t inspect strange.pte
