# Artifacts of every stage go on behind that stage, with the options of the run, to the same program and the same map.
same() { # NAME OPTION...
  name=$1
  shift
  "$ETC" lower "$@" -o whole.pte --map whole.json --artifacts stages -q || return
  for stage in stages/*.etir; do
    case $stage in *.delegate-*) continue ;; esac # part of a program
    "$ETC" lower "$stage" -o again.pte --map again.json -q && cmp whole.pte again.pte && cmp whole.json again.json &&
      echo "$name: $(basename "$stage") goes on to the same bytes"
    rm -f again.pte again.json
  done
}
same plain $data/add.onnx --plan naive
same delegates $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1,skip=tanh
same state $data/grow.onnx --dim p=0..4 --state 'past.*:present.*'
same methods --method one=$data/accumulate.onnx --method two=$data/add.onnx --state h:hn
head -1 stages/04-core.etir
same shared --method one=$data/accumulate.onnx --method two=$data/accumulate.onnx --state h:hn --share-state h
head -1 stages/04-core.etir
same constants $data/add.onnx --constant n=3 --constant list=1.5,-2.0 --constant "text=\"a, b\"" --constant on=true
head -1 stages/07-to_executorch.etir
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1,skip=tanh -o d.pte --artifacts stages
head -1 stages/06-to_backend.etir

# Files that a recipe names are found from where the artifact is lowered, not only from the recipe's folder.
mkdir project
cp $data/calib/relu.npz $data/relu.onnx project
cat >project/r.yaml <<EOF
model: relu.onnx
dim: {batch: 1}
quantize: int8
calibrate: relu.npz
backend: xnnpack
EOF
same quantized --recipe project/r.yaml
head -1 stages/02-source.etir
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1,skip=tanh -o d.pte --artifacts stages -q

# What comes too late is said.
t lower stages/06-to_backend.etir --backend xnnpack --pass canonicalize@core -o w.pte
t lower stages/05-edge.etir --backend xnnpack:skip=tanh -o w.pte

# What a file says of itself is checked.
sed '1s/after(to_backend)/after(core)/' stages/06-to_backend.etir >wrong.etir
t lower wrong.etir -o w.pte
sed '1s/after(to_backend)/after(nowhere)/' stages/06-to_backend.etir >wrong.etir
t lower wrong.etir -o w.pte
sed '1s/"backend=xnnpack[^"]*"/"backend=nobody"/' stages/06-to_backend.etir >wrong.etir
t lower wrong.etir -o w.pte
sed '1s/"backend=xnnpack[^"]*"/"plugin=x.so"/' stages/06-to_backend.etir >wrong.etir
t lower wrong.etir -o w.pte
rm -r stages
# A textual graph of the last level, as print writes it of a model and of a program.
"$ETC" lower $data/relu.onnx --dim batch=1 -o whole.pte -q
"$ETC" print $data/relu.onnx --dim batch=1 --stage to_executorch --full-constants -o last.etir
t lower last.etir -o last.pte -q
"$ETC" print whole.pte --full-constants -o program.etir
t lower program.etir -o program.pte -q
cmp last.pte whole.pte && cmp program.pte whole.pte
