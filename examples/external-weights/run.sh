#!/bin/sh
# Weights in a file of their own (.ptd): run on the runtime and on etc; missing and other data are refused.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx.
set -eu
ETC=${ETC:-etc} PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$PYTHON" "$here/model.py" model.onnx
"$ETC" lower model.onnx -o model.pte --external-weights model.ptd
"$ETC" inspect model.ptd | tee tensors.txt
grep -q "'w1' f32\[64, 256\]" tensors.txt
"$ETC" verify model.pte --data model.ptd
if "$ETC" verify model.pte 2>missing.txt; then exit 1; fi
grep E0611 missing.txt
"$PYTHON" -c 'import numpy; numpy.save("x.npy", numpy.random.default_rng(1).standard_normal((4, 64)).astype("f"))'
"$ETC" run model.pte --data model.ptd -i x=x.npy -o out
"$PYTHON" "$here/check.py" model.onnx model.pte model.ptd
echo "external-weights: ok"
