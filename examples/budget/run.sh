#!/bin/sh
# What a program takes, whether it is within a budget, and what a change makes of it, for a pull request.
# ETC: the etc command.
. "$(dirname "$0")/../common.sh"
model=$here/../digits/digits.onnx samples=$here/../digits/images.npy
lower() { etc lower "$model" --dim batch=1 --backend xnnpack "$@"; }

# Quantized, the network is within its budget; in floats the weights are too large for the flash.
lower --quantize int8 --calibrate "$samples" --budget "$here/budget.yaml" --size -o new.pte
etc size new.pte | tee size.txt
says "flash: " size.txt
sed '/^sqnr/d' "$here/budget.yaml" >floats.yaml
refused 1 "note: file              64.0 KiB    " "$ETC" lower "$model" --dim batch=1 --backend xnnpack --budget floats.yaml -o bad.pte
says "classifier.1.weight" refused.err

# Without the delegate, kernels are named that the runtime would need.
refused 1 "outside           0           " "$ETC" lower "$model" --dim batch=1 --budget floats.yaml -o bad.pte
says "/features/features.0/Conv" refused.err

# A program that is there is checked against the same limits, but for those that only lowering measures.
etc size new.pte --budget "$here/budget.yaml" | tee checked.txt
says "only 'etc lower' knows it" checked.txt

# Each method has limits of its own, beside those of the program. Weights that methods share are there once, and count for each.
cat >two.yaml <<END
methods:
  single: {model: $model, dim: batch=1}
  many: {model: $model, dim: batch=8}
END
printf '%s\n' 'constants: 160K' 'methods: {single: {constants: 160K, arena: 16K}, many: {constants: 160K, arena: 16K}}' >methods.yaml
refused 1 "note: many: arena.total   16.0 KiB    128.0 KiB" "$ETC" lower --recipe two.yaml --budget methods.yaml -o bad.pte
says "note: many: constants     160.0 KiB   151.1 KiB   ok" refused.err

# What the change makes of the program: text, JSON, and Markdown for a comment.
lower -o old.pte
etc diff old.pte old.pte
etc diff old.pte new.pte && fail "the programs do not differ" || [ $? = 1 ]
etc diff old.pte new.pte --md >comment.md || [ $? = 1 ]
cat comment.md
says '| size | before | after | change |' comment.md
says '| `XnnpackBackend Conv2d qint8` | - | 3 | added |' comment.md
echo "budget: ok"
