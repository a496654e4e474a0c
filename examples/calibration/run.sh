#!/bin/sh
. "$(dirname "$0")/../common.sh"

# Its path may have spaces.
mkdir "a folder"
ln -s "$ETC" "a folder/etc"
ETC="$work/a folder/etc"

cp "$here/../digits/digits.onnx" "$here/../digits/images.npy" .
etc calibrate digits.onnx --data images.npy -o whole.stats

# Four shards, made by make in any order, add up to the bytes of one run.
make -f "$here/Makefile" -j2 ETC="$ETC" MODEL=digits.onnx DATA=images.npy SHARDS=4 >make.log
same model.stats whole.stats

# A shard that is gone is made again, and nothing else; one that is missing is not guessed.
rm shard-2.stats
refused 1 shard etc calibrate --merge shard-?.stats -o bad.pte
make -f "$here/Makefile" -j2 ETC="$ETC" MODEL=digits.onnx DATA=images.npy SHARDS=4 >make.log
[ "$(grep -c -- --shard make.log)" = 1 ] || fail "make runs more than the missing shard"
same model.stats whole.stats

etc lower digits.onnx --dim batch=1 --quantize int8 --ranges model.stats --backend xnnpack -o digits.pte
etc verify digits.pte
echo "calibration: ok"
