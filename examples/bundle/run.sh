#!/bin/sh
# A program with test cases (.bpte), checked by the runtime's own verifier; a wrong expectation must fail there.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx.
. "$(dirname "$0")/../common.sh"
"$PYTHON" "$here/../mlp.py" model.onnx
"$PYTHON" -c 'import numpy; numpy.savez("inputs.npz", x=numpy.random.default_rng(1).standard_normal((5, 4, 64)).astype("f"))'
etc lower model.onnx -o model.pte --bundle inputs.npz
etc verify model.bpte
etc run model.bpte
"$PYTHON" "$here/check.py" model.onnx model.bpte inputs.npz
echo "bundle: ok"
