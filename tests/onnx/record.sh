#!/bin/sh
# Writes what ctest knows of models anew: of the packed cases cases/*.nodes and the hashes of records/*.txt, of broken models what etc says,
# bad/*.said. Their difference is part of the change that made it: look whether it has the cases that you expect, and no others.
#
#   tests/onnx/record.sh [build/release]
#
# What differs in a record: `onnx_cases [--backend xnnpack:min-ops=1] -k NAME --keep FOLDER --record /dev/null --update FILE.gz` with the program of
# before and with the new one, to two folders; diff -r.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cases=${1:-$here/../../build/release}/tests/onnx/onnx_cases
for packed in "$here"/cases/*.gz; do
  name=$(basename "$packed" .gz)
  "$cases" --record "$here/records/$name.txt" --update "$packed"
  set -- --backend xnnpack:min-ops=1 --record "$here/records/$name-xnnpack.txt"
  nodes=$here/cases/$name.nodes
  [ -e "$nodes" ] && set -- "$@" --nodes "$nodes"
  "$cases" "$@" --update "$packed"
done
for name in xnnpack models; do
  "$cases" --backend xnnpack:min-ops=1,cpu=avx2 --record "$here/records/$name-avx2.txt" --update "$here/cases/$name.gz"
done
for row in xnnpack:int8 xnnpack:int8-dynamic models:int8-dynamic graphs:int8 chosen:int8 chosen:int4-weight-only; do
  name=${row%:*} scheme=${row#*:}
  "$cases" --backend xnnpack --quantize "$scheme" --record "$here/records/$name-$scheme.txt" --update "$here/cases/$name.gz"
done
bad_models=$(dirname "$cases")/bad_models
etc=$(cd "$(dirname "$cases")/../.." && pwd)/etc
"$bad_models" "$etc" --update "$here"/bad/*.txt
