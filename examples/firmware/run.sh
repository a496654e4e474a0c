#!/bin/sh
# A program in flash, all memory static: embedded, its kernels listed, and run by a host in C++ on the released runtime.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx; CC, CXX: the compilers.
. "$(dirname "$0")/../common.sh"
"$PYTHON" "$here/../mlp.py" model.onnx

# The device has two banks. The header has a macro for the bytes of each, and for those that the runtime needs.
etc lower model.onnx --memory sram=3K,dram=64K -o model.pte
etc embed model.pte -o model.S -MD
grep -e ARENA -e _BYTES model.h
says '#define MODEL_PTE_FORWARD_ARENA_1 ' model.h
says 'model.pte' model.S.d

# What the runtime has to be built with.
etc inspect model.pte --kernels=cmake | tee kernels.cmake
says 'set(EXECUTORCH_SELECT_OPS_LIST "aten::add.out,' kernels.cmake
cmake -P kernels.cmake
etc inspect model.pte --kernels=yaml >selected_operators.yaml

# On a device the objects are linked with executorch_core and the kernels. Here the runtime is the one of the wheel, which has its headers
# and is a module of Python: the host becomes a library that Python loads, and whose main() it calls.
package=$("$PYTHON" -c 'import importlib.util; print(importlib.util.find_spec("executorch").submodule_search_locations[0])')
runtime=$(ls "$package"/extension/pybindings/_portable_lib.*.so)
"${CC:-cc}" -c model.S -o model.o
"${CXX:-c++}" -std=c++17 -O2 -fPIC -Wall -Wextra -Werror -DC10_USING_CUSTOM_GENERATED_MACROS -I. -isystem "$package/include" \
  -isystem "$package/include/executorch/runtime/core/portable_type/c10" -c "$here/host.cpp" -o host.o
nm -u host.o >undefined
! grep -e malloc -e _Znw -e _Zna undefined || fail "the host uses a heap"
"${CXX:-c++}" -shared host.o model.o -o host.so -L"$(dirname "$runtime")" -l:"$(basename "$runtime")"
"$PYTHON" "$here/load.py" ./host.so >host.txt || { cat host.txt; fail "the host failed"; }

"$PYTHON" "$here/input.py" x.npy
etc run model.pte --input 0=x.npy --output out
"$PYTHON" "$here/input.py" host.txt out/*.npy
echo "firmware: ok"
