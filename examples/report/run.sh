#!/bin/sh
# A report on a lowering: the page, and the same facts read by a script of one's own.
# ETC: the etc command; PYTHON: a Python with numpy and onnx.
. "$(dirname "$0")/../common.sh"
"$PYTHON" "$here/../mlp.py" model.onnx

etc lower model.onnx --backend xnnpack:min-ops=1,skip=tanh -o model.pte --report report.html --report report.json
"$PYTHON" "$here/peak.py" report.json | tee peak.txt
says "2 delegates" peak.txt
says "in use at the peak" peak.txt
says "1 x setting-skip" peak.txt

# One file, which asks for nothing else.
says "default-src 'none'" report.html
if grep -E '(src|href)="?(https?:)?//' report.html; then fail "the page asks the network"; fi

# Neither a program nor half a report where the report is a folder.
mkdir folder
refused 1 "the report 'folder' is a folder" "$ETC" lower model.onnx -o bad.pte --report folder
[ -z "$(ls folder)" ] || fail "something is in the folder"
echo "report: ok"
