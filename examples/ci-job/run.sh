#!/bin/sh
. "$(dirname "$0")/../common.sh"

# A folder of models, one with a recipe of its own.
mkdir -p models/sub
"$PYTHON" "$here/../mlp.py" models/mlp.onnx
cp "$here/../digits/digits.onnx" models/sub
printf 'dim: {batch: 1}\nbackend: {xnnpack: {min-ops: 1}}\n' >models/sub/digits.yaml

export ETC CACHE="$work/cache"
sh "$here/lower-models" models out --backend xnnpack >first.txt
says "2 models, 0 failed, 0 from the cache" first.txt
etc verify out/mlp.pte out/sub/digits.pte

# In the next run, elsewhere, nothing is lowered that did not change.
mkdir next
cp -r models next/models
sh "$here/lower-models" next/models next/out --backend xnnpack >second.txt
says "2 models, 0 failed, 2 from the cache" second.txt
same out/mlp.pte next/out/mlp.pte
says "| mlp.onnx | ok | " next/out/summary.md
says "| hit |" next/out/summary.md

# What fails, whatever it is called, is in the report and has no program.
"$PYTHON" "$here/hostile.py" models
cp out/mlp.pte out/broken.pte
! sh "$here/lower-models" models out --backend xnnpack >third.txt || fail "failures are not seen"
says "6 models, 4 failed, 2 from the cache" third.txt
[ "$(find out -name '*.pte' | wc -l)" = 2 ] || fail "a program of a model that failed is there"
"$PYTHON" "$here/check.py" out/junit.xml out/summary.md

# An entry of the cache that is damaged is a failure, and nothing is made of it.
for program in cache/*.pte; do printf 'x' | dd of="$program" bs=1 seek=64 conv=notrunc 2>dd.err; done
rm -rf models
cp -r next/models models
! sh "$here/lower-models" models damaged --backend xnnpack >fourth.txt || fail "damage is not seen"
says "an entry of the cache is damaged" damaged/junit.xml
[ ! -e damaged/mlp.pte ] || fail "a damaged program came out of the cache"
echo "ci-job: ok"
