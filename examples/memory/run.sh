#!/bin/sh
# Memory banks and inputs in memory of the host: lowered, looked at, and run on the runtime.
# ETC: the etc command; PYTHON: a Python with executorch, numpy and onnx.
. "$(dirname "$0")/../common.sh"
"$PYTHON" "$here/../mlp.py" model.onnx

# Two banks: 3 KiB of fast memory, the rest in a large one. Then what does not fit is named.
etc lower model.onnx -o banks.pte --memory sram=3K,dram=64K
etc inspect banks.pte | tee banks.txt
grep -q "arena 1 'sram': .* of 3.0 KiB" banks.txt
etc verify banks.pte
refused 1 E0516 "$ETC" lower model.onnx -o bad.pte --memory sram=1K,dram=1K

# Inputs and outputs stay where the host has them; each tensor begins at a multiple of 64.
etc lower model.onnx -o host.pte --plan greedy:inputs=no,outputs=no,align=64
etc verify host.pte
"$PYTHON" "$here/check.py" model.onnx banks.pte host.pte
echo "memory: ok"
