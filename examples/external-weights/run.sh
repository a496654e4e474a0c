#!/bin/sh
# Weights in a file of their own (.ptd): run on the runtime and on etc; missing and other data are refused.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx.
. "$(dirname "$0")/../common.sh"
"$PYTHON" "$here/../mlp.py" model.onnx
etc lower model.onnx -o model.pte --external-weights model.ptd
etc inspect model.ptd | tee tensors.txt
grep -q "'w1' f32\[64, 256\]" tensors.txt
etc verify model.pte --data model.ptd
refused 1 E0611 "$ETC" verify model.pte
"$PYTHON" -c 'import numpy; numpy.save("x.npy", numpy.random.default_rng(1).standard_normal((4, 64)).astype("f"))'
etc run model.pte --data model.ptd -i x=x.npy -o out
"$PYTHON" "$here/check.py" model.onnx model.pte model.ptd
echo "external-weights: ok"
