#!/bin/sh
. "$(dirname "$0")/../common.sh"

cp "$here/model.yaml" .
"$PYTHON" "$here/model.py"

etc lower --recipe model.yaml -o both.pte
etc verify both.pte
etc inspect both.pte -v >both.txt
says "method 'encode'" both.txt
says "method 'decode'" both.txt
says "delegate 'XnnpackBackend'" both.txt

# Each has the sizes of its section.
etc run both.pte --method encode --input 0=x3.npy >encode.txt
says "f32[3, 256]" encode.txt
etc run both.pte --method decode --input 0=x1.npy >decode.txt
says "f32[1, 256]" decode.txt
refused 1 "takes f32[1, 256], the array is f32[3, 256]" "$ETC" run both.pte --method decode --input 0=x3.npy

# The matrix is there once: 256 KiB and not 512.
etc lower encode.onnx --backend xnnpack --dim batch=1..4 -o encode.pte
[ "$(wc -c <both.pte)" -lt $(($(wc -c <encode.pte) + 65536)) ] || fail "the weights are not shared"

# The same without a recipe: options of the command line are for all methods.
etc lower --method encode=encode.onnx --method decode=decode.onnx --dim batch=1 -o plain.pte

refused 2 "twice" "$ETC" lower --method a=encode.onnx --method a=decode.onnx --dim batch=1 -o bad.pte
printf 'methods: {a: {model: encode.onnx}, a: {model: decode.onnx}}\n' >twice.yaml
refused 2 "twice" "$ETC" lower --recipe twice.yaml --dim batch=1 -o bad.pte
refused 2 "no method 'encoder'" "$ETC" run both.pte --method encoder --input 0=x1.npy
echo "methods: ok"
