#!/bin/sh
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/model.py"
plugin "$here/swap.c"
plugin "$here/broken.c"

etc passes --plugin ./swap.so >passes.txt
says "relu_to_sigmoid" passes.txt

etc lower model.onnx --plugin ./swap.so --pass relu_to_sigmoid@edge -o model.pte
etc inspect model.pte >model.txt
says "aten::sigmoid.out" model.txt
etc run model.pte --input 0=x.npy --output out
"$PYTHON" -c 'import glob, numpy; numpy.testing.assert_allclose(numpy.load(glob.glob("out/*.npy")[0]), numpy.load("expected.npy"), 1e-6)'

# Within a stage, before one of its passes; and from a recipe.
etc lower model.onnx --plugin ./swap.so --pass relu_to_sigmoid@to_executorch:before-eliminate_views -o before.pte
same model.pte before.pte
printf 'model: model.onnx\nplugin: swap.so\npass: {relu_to_sigmoid: edge}\n' >model.yaml
etc lower --recipe model.yaml -o recipe.pte
same model.pte recipe.pte

# A pass with a fault is named, and nothing is written.
refused 1 "pass 'break_relu' of plug-in 'broken'" "$ETC" lower model.onnx --plugin ./broken.so --pass break_relu@edge -o bad.pte

# What is no plug-in of this etc.
sed 's/ETC_PLUGIN_ABI/"another build"/' "$here/swap.c" >other.c
plugin other.c
refused 2 "compiled for another build" "$ETC" lower model.onnx --plugin ./other.so -o bad.pte
echo 'int nothing;' >empty.c
plugin empty.c
refused 2 "no 'etc_plugin'" "$ETC" lower model.onnx --plugin ./empty.so -o bad.pte
refused 2 "there is a pass 'relu_to_sigmoid' already" "$ETC" lower model.onnx --plugin ./swap.so --plugin ./swap.so -o bad.pte
refused 2 "missing.so" "$ETC" lower model.onnx --plugin ./missing.so -o bad.pte
refused 2 "level" "$ETC" lower model.onnx --plugin ./swap.so --pass relu_to_sigmoid@source -o bad.pte
echo "pass: ok"
