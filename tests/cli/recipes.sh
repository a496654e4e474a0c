# etc recipe; --recipe of other commands; sections and includes; what is refused.
t recipe list
t recipe show xnnpack
t recipe show xnpack
t recipe check portable
t recipe
t recipe lisst
t recipe list more
t recipe check
mkdir sub sub/deep
cp $data/add.onnx sub/add.onnx
cp $data/relu.onnx sub/relu.onnx
printf 'include: [portable, deep/more.yaml]\nmodel: add.onnx\nstate: {}\n' >sub/a.yaml
printf 'include: xnnpack\nfold-limit: 4096\n' >sub/deep/more.yaml
t recipe check sub/a.yaml
printf 'include: [xnnpack, portable]\nmodel: add.onnx\n' >sub/alone.yaml
t recipe check sub/alone.yaml
printf 'methods: {decode: {dim: {batch: 4}}, encode: {plan: naive}}\nplan: greedy\n' >sub/sections.yaml
t recipe check sub/sections.yaml
cat >sub/two.yaml <<END
plan: naive
methods:
  one: {model: add.onnx, plan: greedy}
  two: {model: relu.onnx, dim: {batch: 1..3}, backend: {xnnpack: {whole: true}}}
END
t recipe check sub/two.yaml
t lower --recipe sub/two.yaml -o two.pte
t lower --recipe xnnpack $data/relu.onnx --dim batch=2 -o shipped.pte
t lower --recipe xnpack $data/relu.onnx -o no.pte
t print --recipe sub/two.yaml --stage edge --no-locations
t run --recipe sub/two.yaml --method two --random
t run --recipe xnnpack
t inspect sub/relu.onnx --recipe sub/two.yaml

bad() {
  printf '%b' "$1" >sub/bad.yaml
  t recipe check sub/bad.yaml
}
bad 'methods: {one: {modell: add.onnx}}\n'
bad 'methods: {one: {model: add.onnx}, one: {model: add.onnx}}\n'
bad 'methods: {one: add.onnx}\n'
bad 'methods: one\n'
bad 'methods: {one: {methods: {}}}\n'
bad 'methods: {one: {model: add.onnx, output: a.pte}}\n'
bad 'methods: {one: {plan: naive}}\n'
bad 'model: add.onnx\nmethods: {one: {}}\n'
bad 'include: bad.yaml\n'
printf 'include: bad.yaml\n' >sub/back.yaml
bad 'plan: naive\ninclude: [back.yaml]\n'
bad 'include: ../sub/bad.yaml\n'
bad 'include: [missing.yaml]\n'
# What takes several values in one, and what takes one.
printf 'kernels: [portable, quantized]\nmemory: {small: 64, large: 4M}\n' >sub/joined.yaml
t recipe check sub/joined.yaml
t recipe show sub/joined.yaml
bad 'plan: [greedy, best]\n'
bad 'werror: {a: b}\n'
bad 'model: [a.onnx, b.onnx]\n'
bad 'include: portabel\n'
bad 'include: {a: b}\n'
bad 'model: [add.onnx, relu.onnx]\n'
bad 'model: missing.onnx\n'
bad 'plugin: missing.so\n'
bad 'pass: {canonicalize: edgy}\n'
bad 'pass: {canonicalise: edge}\n'
bad 'backend: {xnnpack: {whole: maybe}}\n'
bad 'backend: {xnnpack: {hole: true}}\n'
bad 'quiet: yes\n'
bad 'quantize: int8\ncalibrate: missing.npz\nbundle: none.npz\n'
bad 'model: add.onnx\nquantize: int8\nranges: missing.json\n'
ls
# Each include is read: ten levels of two are a thousand.
i=1
while [ $i -lt 11 ]; do
  echo "include: [level$((i + 1)).yaml, level$((i + 1)).yaml]" >level$i.yaml
  i=$((i + 1))
done
echo "dim: {batch: 2}" >level11.yaml
t recipe check level1.yaml
# What is overruled is not shown: of constant methods, too.
echo "constant-methods: {get_version: 1, get_name: base}" >sub/base.yaml
printf 'include: [base.yaml, base.yaml]\nconstant-methods: {get_version: 2}\n' >sub/over.yaml
t recipe check sub/over.yaml
# Hints are in the words of recipes.
bad 'state: [h]\n'
bad 'dim: {batch: 0}\n'
bad 'kernels: quantized\n'
# All that a recipe says is shown: of the program, and of each method.
: >sub/x.npz
cat >sub/full.yaml <<END
output: out.pte
depfile: out.d
cache: kept
fsync: true
verbose: false
report: [a.json, b.html]
werror: true
constant-methods: {get_version: 3}
plan: greedy
methods:
  one: {model: add.onnx, bundle: x.npz, bound: {n: 7}, value: {y: 1}}
  two: {model: relu.onnx, quantize: int8, calibrate: x.npz}
  three: {model: relu.onnx, quantize: int4-weight-only, calibrate: random}
include: more.yaml
END
printf 'output: other.pte\nthreads: 2\nmap: map.json\n' >sub/more.yaml
t recipe check sub/full.yaml
# What is given for a method, but is of another one.
cat >other.yaml <<END
methods:
  one: {model: $data/add.onnx, dim: {batch: 2}, value: {z: 1}}
  two: {model: $data/relu.onnx, dim: {batch: 2}}
END
t lower --recipe other.yaml -o no.pte
t lower $data/add.onnx --derive llm:context=8,eos=1,eos=2 -o no.pte
# One method without the backend of the others; a list without anything; a name that its mark would end.
cat >apart.yaml <<END
backend: {xnnpack: {min-ops: 1}}
methods:
  one: {model: $data/relu.onnx, dim: {batch: 2}}
  two: {model: $data/relu.onnx, dim: {batch: 2}, backend: portable}
END
t lower --recipe apart.yaml -o apart.pte -q --explain
bad 'backend: []\n'
bad 'constant-methods: {"a=b": 1}\n'
bad 'constant-methods: {a: []}\n'
bad 'constant-methods: {a: 1, b: missing.npy}\n'
bad 'budget: missing.yaml\n'
bad 'methods:\n  one: {model: missing.onnx}\n'
bad "methods:\n  one: {model: $data/add.onnx, include: more.yaml}\n"
