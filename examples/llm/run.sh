#!/bin/sh
# Makes a small language model, lowers it, and lets ExecuTorch's runner generate with it. Checks the text against ONNX Runtime.
#   ETC=build/release/etc PYTHON=.venv/bin/python examples/llm/run.sh [FOLDER]
set -eu
ETC=${ETC:-etc} PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
[ -f "$work/model.onnx" ] || "$PYTHON" "$here/make.py" "$work"
"$ETC" lower "$work/model.onnx" --recipe "$here/recipe.yaml" -o "$work/model.pte"
"$ETC" lower "$work/model.onnx" --recipe "$here/recipe.yaml" --quantize int4-weight-only -o "$work/int4.pte"
"$ETC" verify "$work/model.pte" "$work/int4.pte" >/dev/null
"$ETC" run "$work/model.pte" --method get_vocab_size
"$PYTHON" "$here/generate.py" "$work" model.pte int4.pte
echo "llm: ok"
