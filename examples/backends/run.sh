#!/bin/sh
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/../backend/model.py"
plugin "$here/../backend/demo.c"

# The demo has the first product and sum, XNNPACK the rest but sub.
etc lower f.onnx --plugin ./demo.so --backend demo:skip=@mm2+@add2 --backend xnnpack:min-ops=1,skip=@sub --explain=table -o f.pte 2>table.txt
cat table.txt
grep -qx "  aten::mm  *1  *1  *0" table.txt || fail "mm is not delegated as it should be"
grep -qx "  aten::sub.Tensor  *0  *0  *1" table.txt || fail "sub is delegated"
etc inspect f.pte --plugin ./demo.so -v >inspect.txt
says "delegate 'BackendWithCompilerDemo'" inspect.txt
says "delegate 'XnnpackBackend'" inspect.txt
etc run f.pte --plugin ./demo.so --input 0=a.npy --input 1=x.npy --input 2=b.npy --output out
"$PYTHON" -c 'import glob, numpy; numpy.testing.assert_allclose(numpy.load(glob.glob("out/*.npy")[0]), numpy.load("z.npy"), 1e-5)'

# The other order: XNNPACK takes all that it is not told to leave.
etc lower f.onnx --plugin ./demo.so --backend xnnpack:min-ops=1 --backend demo -o x.pte
etc inspect x.pte -v >x.txt
if grep -q BackendWithCompilerDemo x.txt; then fail "the demo has something left"; fi

# Reasons, by node and rule.
etc lower f.onnx --plugin ./demo.so --backend demo:skip=@mm2 --explain -v -o why.pte 2>why.txt
says "demo leaves 'aten::mm' (setting-skip): it is among 'skip'" why.txt
says "demo leaves 'aten::sub.Tensor' (op)" why.txt
etc lower f.onnx --plugin ./demo.so --backend demo:ops=add --explain=json -o json.pte 2>json.txt
says '"rule":"setting-ops"' json.txt

# The same as a recipe.
cat >f.yaml <<'END'
model: f.onnx
plugin: demo.so
backend:
  demo: {skip: ["@mm2", "@add2"]}
  xnnpack: {min-ops: 1, skip: ["@sub"]}
END
etc lower --recipe f.yaml -o recipe.pte
same f.pte recipe.pte
refused 2 "given twice" "$ETC" lower f.onnx --plugin ./demo.so --backend demo --backend demo -o bad.pte
echo "backends: ok"
