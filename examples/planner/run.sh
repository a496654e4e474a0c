#!/bin/sh
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/../recipes/model.py" mlp.onnx
"$PYTHON" -c 'import numpy; numpy.save("x.npy", numpy.ones((4, 8), numpy.float32))'
plugin "$here/stack.c"
plugin "$here/bad.c"

etc lower mlp.onnx --dim batch=4 --plugin ./stack.so --plan stack -o stack.pte
etc lower mlp.onnx --dim batch=4 --plan greedy -o greedy.pte
etc verify stack.pte
etc run stack.pte --input 0=x.npy >stack.txt
etc run greedy.pte --input 0=x.npy >greedy.txt
same stack.txt greedy.txt

refused 1 "planner 'bad' of plug-in 'bad'" "$ETC" lower mlp.onnx --dim batch=4 --plugin ./bad.so --plan bad -o bad.pte
refused 2 "did you mean 'stack'?" "$ETC" lower mlp.onnx --dim batch=4 --plugin ./stack.so --plan stak -o bad.pte
echo "planner: ok"
