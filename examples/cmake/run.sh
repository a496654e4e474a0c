#!/bin/sh
. "$(dirname "$0")/../common.sh"

cp "$here/CMakeLists.txt" "$here/host.c" "$here/quantized.yaml" "$here/../digits/digits.onnx" .
"$PYTHON" "$here/../mlp.py" model.onnx
"$PYTHON" -c 'import numpy; numpy.savez("samples.npz", x=numpy.random.default_rng(0).standard_normal((8, 4, 64)).astype("f"))'

cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_INSTALL_PREFIX="$PWD/installed"
cmake --build build
cmake --install build
etc verify installed/share/models/tiny.pte installed/share/models/quantized.pte
./build/host

# Nothing has changed: nothing is lowered.
cmake --build build >again.txt
! grep Lowering again.txt || fail "lowered again for no reason"

# Other samples, other ranges: the quantized program is made anew, the other one is not.
"$PYTHON" -c 'import numpy; numpy.savez("samples.npz", x=numpy.full((8, 4, 64), 3, "f"))'
cmake --build build >samples.txt
says "Lowering quantized" samples.txt
! grep "Lowering tiny" samples.txt || fail "lowered again, though it does not read the samples"

# A model that cannot be lowered stops the build.
printf 'no model' >model.onnx
! cmake --build build >failed.txt 2>&1 || fail "the build goes on without a model"
says "model.onnx: error[" failed.txt
echo "cmake: ok"
