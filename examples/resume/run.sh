#!/bin/sh
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/../recipes/model.py" mlp.onnx
"$PYTHON" -c 'import numpy; numpy.save("x.npy", numpy.ones((2, 8), numpy.float32))'
options="--dim batch=2 --plan naive --backend xnnpack:min-ops=1,skip=@relu"

# shellcheck disable=SC2086
etc lower mlp.onnx $options --artifacts stages -o whole.pte
for stage in 01-import 02-source 03-quantize 04-core 05-edge 06-to_backend 07-to_executorch; do
  etc lower "stages/$stage.etir" -o again.pte
  same whole.pte again.pte
  rm again.pte
done

# What a delegate was made from, as a graph that runs, and its bytes.
etc inspect stages/06-to_backend.delegate-1.etir >delegate.txt
says "aten::addmm" delegate.txt
etc inspect whole.pte --extract 1=delegate.bin >/dev/null
[ -s delegate.bin ] || fail "the delegate has no bytes"

# A pass between two stages.
etc opt stages/05-edge.etir --pass canonicalize,eliminate_dead --full-constants -o between.etir
# shellcheck disable=SC2086
etc lower between.etir --plan naive --backend xnnpack:min-ops=1,skip=@relu -o between.pte
etc run whole.pte --input 0=x.npy >whole.txt
etc run between.pte --input 0=x.npy >between.txt
same whole.txt between.txt
echo "resume: ok"
