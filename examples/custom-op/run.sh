#!/bin/sh
# Operators of one's own: a kernel of the runtime by its schema, and a plug-in that translates them.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx; CXX: a C++ compiler (c++).
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/model.py"
refused 1 "operator 'com.example.SoftClip'" "$ETC" lower softclip.onnx --dim batch=1..4 -o bad.pte

# The result is like the input: the schema of the kernel is all that is needed.
kernel='my_ops::softclip.out(Tensor x, float limit, *, Tensor(a!) out) -> Tensor(a!)'
etc lower softclip.onnx --custom-op "com.example.SoftClip=$kernel" --dim batch=1..4 -o softclip.pte
etc inspect softclip.pte >softclip.txt
says "my_ops::softclip.out" softclip.txt

# A plug-in that knows both operators, and what the kernel computes.
plugin "$here/operators.c"
etc ops --plugin ./operators.so >ops.txt
says "com.example.Blend" ops.txt
etc lower softclip.onnx --plugin ./operators.so --dim batch=1..4 -o same.pte
same softclip.pte same.pte
etc lower model.onnx --plugin ./operators.so --dim batch=1..4 -o model.pte
etc verify model.pte --plugin ./operators.so
etc run model.pte --plugin ./operators.so --input 0=x.npy --output out
"$PYTHON" -c 'import numpy; numpy.testing.assert_allclose(numpy.load("out/y.npy"), numpy.load("model.npy"), 1e-5, 1e-6)'

# XNNPACK takes what is around the op, which stays a kernel call.
etc lower model.onnx --plugin ./operators.so --dim batch=1..4 --backend xnnpack:min-ops=1 -o xnnpack.pte

# The kernel, in a library that registers it with the runtime of the Python package.
executorch=$("$PYTHON" -c 'import executorch; print(list(executorch.__path__)[0])')
"${CXX:-c++}" -std=c++17 -O2 -shared -fPIC -DC10_USING_CUSTOM_GENERATED_MACROS -I"$executorch/include" \
  -I"$executorch/include/executorch/runtime/core/portable_type/c10" "$here/kernel.cpp" -o kernel.so
check() { "$PYTHON" "$here/check.py" ./kernel.so "$@" 2>check.log || { cat check.log >&2; fail "it does not run"; }; }
check softclip.npy softclip.pte
check model.npy model.pte xnnpack.pte
echo "custom-op: ok"
