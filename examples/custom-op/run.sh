#!/bin/sh
# Operators of one's own: a plug-in that translates them, and a kernel for the runtime.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx; CXX: a C++ compiler (c++).
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/model.py"
plugin "$here/operators.c"
refused 1 "operator 'com.example.SoftClip'" "$ETC" lower model.onnx --dim batch=1..4 -o bad.pte

etc ops --plugin ./operators.so >ops.txt
says "com.example.SoftClip" ops.txt
etc lower model.onnx --plugin ./operators.so --dim batch=1..4 -o model.pte
etc inspect model.pte >model.txt
says "my_ops::softclip.out" model.txt
etc verify model.pte --plugin ./operators.so
etc run model.pte --plugin ./operators.so --input 0=x.npy --output out
"$PYTHON" -c 'import numpy; numpy.testing.assert_allclose(numpy.load("out/y.npy"), numpy.load("expected.npy"), 1e-5, 1e-6)'

# XNNPACK takes what is around the op, which stays a kernel call.
etc lower model.onnx --plugin ./operators.so --dim batch=1..4 --backend xnnpack:min-ops=1 -o xnnpack.pte

# The kernel, in a library that registers it with the runtime of the Python package.
executorch=$("$PYTHON" -c 'import executorch; print(list(executorch.__path__)[0])')
"${CXX:-c++}" -std=c++17 -O2 -shared -fPIC -DC10_USING_CUSTOM_GENERATED_MACROS -I"$executorch/include" \
  -I"$executorch/include/executorch/runtime/core/portable_type/c10" "$here/kernel.cpp" -o kernel.so
"$PYTHON" "$here/check.py" ./kernel.so model.pte xnnpack.pte 2>check.log || { cat check.log >&2; fail "it does not run"; }
echo "custom-op: ok"
