#!/bin/sh
. "$(dirname "$0")/../common.sh"

mkdir project
cp "$here/model.yaml" "$here/common.yaml" project
"$PYTHON" "$here/model.py" project/mlp.onnx

# The recipes that come with etc, and what a recipe of one's own says.
etc recipe list >list.txt
says xnnpack-int8 list.txt
etc recipe show xnnpack >show.txt
says "backend: xnnpack" show.txt
etc recipe check project/model.yaml >check.txt
says "method 'forward' from project/mlp.onnx" check.txt
says "dim=batch=1..8" check.txt

# A recipe is the same as the options that it stands for.
etc lower --recipe project/model.yaml -o recipe.pte
etc lower project/mlp.onnx --dim batch=1..8 --plan greedy --backend xnnpack:min-ops=1,skip=@relu -o options.pte
same recipe.pte options.pte

# The command line wins.
etc lower --recipe project/model.yaml --dim batch=2 -o two.pte
etc inspect two.pte >two.txt
says "f32[2, 8]" two.txt

# The same recipe for other commands.
etc print --recipe project/model.yaml --stage to_backend >graph.txt
says XnnpackBackend graph.txt
"$PYTHON" -c 'import numpy; numpy.save("x.npy", numpy.ones((3, 8), numpy.float32))'
etc run --recipe project/model.yaml --input x=x.npy >y.txt
says "y  f32[3, 4]" y.txt
etc inspect project/mlp.onnx --recipe project/model.yaml >inspect.txt
says "lowers with:" inspect.txt

# Errors have a place and a hint.
bad() { # CODE TEXT RECIPE
  printf '%b' "$3" >project/bad.yaml
  refused "$1" "$2" "$ETC" lower --recipe project/bad.yaml -o bad.pte
}
bad 2 "project/bad.yaml:2:1" 'model: mlp.onnx\nbackendd: xnnpack\n'
bad 2 "did you mean 'backend'?" 'model: mlp.onnx\nbackendd: xnnpack\n'
bad 2 "did you mean 'xnnpack'?" 'model: mlp.onnx\ninclude: xnpack\n'
bad 2 "includes itself" 'include: bad.yaml\n'
bad 2 "aliases" 'plan: &p greedy\nmodel: *p\n'
bad 2 "twice" 'model: mlp.onnx\nmodel: mlp.onnx\n'
bad 1 "missing.yaml" 'include: missing.yaml\n'
bad 1 "missing.onnx" 'model: missing.onnx\n'
bad 2 "expected" 'methods: [a, b]\n'
bad 2 "whole program" 'methods: {a: {model: mlp.onnx, output: a.pte}}\n'
echo "recipes: ok"
