#!/bin/sh
. "$(dirname "$0")/../common.sh"

cp "$here/Makefile" "$here"/*.c "$here/../digits/digits.onnx" .
PATH=$(dirname "$ETC"):$PATH
LD_LIBRARY_PATH=$(pkg-config --variable=libdir etc):${LD_LIBRARY_PATH:-}
export PATH LD_LIBRARY_PATH
make >make.log

# From a file to a file, with an option; the same bytes as by the command.
etc lower digits.onnx --dim batch=2 -o command.pte
./lower digits.onnx lower.pte batch=2
same lower.pte command.pte

# From memory to memory, four sessions in four threads.
./memory digits.onnx batch 1.pte 2.pte 3.pte 4.pte
same 2.pte command.pte
etc verify 1.pte 3.pte 4.pte

# Errors come as a status and a message; no program is written.
refused 2 batches ./lower digits.onnx bad.pte batches=2
head -c 1000 digits.onnx >no.onnx
refused 1 E0201 ./memory no.onnx batch bad.pte
echo "library: ok"
