#!/bin/sh
# Memory banks and inputs in memory of the host: lowered, looked at, and run on the runtime.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx.
set -eu
ETC=${ETC:-etc} PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$PYTHON" "$here/model.py" model.onnx

# Two banks: 3 KiB of fast memory, the rest in a large one. Then what does not fit is named.
"$ETC" lower model.onnx -o banks.pte --memory sram=3K,dram=64K
"$ETC" inspect banks.pte | tee banks.txt
grep -q "arena 1 'sram': .* of 3.0 KiB" banks.txt
"$ETC" verify banks.pte
if "$ETC" lower model.onnx -o no.pte --memory sram=1K,dram=1K 2>full.txt; then exit 1; fi
grep "E0516" full.txt

# Inputs and outputs stay where the host has them; each tensor begins at a multiple of 64.
"$ETC" lower model.onnx -o host.pte --plan greedy:inputs=no,outputs=no,align=64
"$ETC" verify host.pte
"$PYTHON" "$here/check.py" model.onnx banks.pte host.pte
echo "memory: ok"
