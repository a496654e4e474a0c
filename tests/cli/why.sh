# What became of an operator: with a backend, and on portable kernels.
model="$data/why.onnx --backend xnnpack:min-ops=1"
for node in conv norm product twin dead choice adds call t fixed same never; do t why $model $node; done
for node in norm erf flatten sum; do t why $data/why.onnx $node; done
# Of a value: an output, an input, initializers whose bytes are packed, computed with, or read at import
for value in y x weight scale rows unused always; do t why $model $value; done
t why $data/why.onnx weight
t why $model erf --json
t why $model norm --json
t why $model never --json
t why $model two --json
t why $data/why.onnx sum --memory fast=300,slow=4K --json
# Several may be meant; none is
t why $model inner
t why $model "choice(subgraph)/inner"
t why $model "choice(subgraph):inner"
t why $model "choice(subgraph)/innex"
t why $model then
t why $model corv
t why $model nothing-like-it
t why $model Conv
t why $data/why.onnx
t why conv
t why $data/why.onnx conv more
t why $data/relu.onnx the_relu
t why $data/accumulate.onnx h --state h:hn
t why $data/accumulate.onnx h --state h:hn --json
# Every operator, and several methods; a textual graph; nothing is written
t why $data/relu.onnx --dim batch=2 --all
t why --method a=$data/relu.onnx --method b=$data/add.onnx --dim batch=2 the_add
"$ETC" print $data/why.onnx --stage core --full-constants -o why.etir
t why why.etir erf
printf 'methods:\n  forward:\n    model: why.etir\nartifacts: there\nmap: map.json\ndepfile: d\n' >why.yaml
t why --recipe why.yaml erf
ls
# A name as it is printed.
cat >tab.etir <<'END'
graph @f level(aten) {
  %0: f32[2] = input "x"
  %1: f32[2] = aten::relu(%0) "a\tb"
  output %1 "a\tb"
}
END
t why tab.etir 'a\tb'
