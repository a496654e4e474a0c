t explain E0317
t explain dim_unbound
t explain 317
t explain e317
t explain W317
t explain I0804
t explain E0318x
t explain nonsense
# Each line on standard error is an object, whatever else is asked for.
lines() { "$ETC" lower "$@" --diagnostics=json -o a.pte 2>&1 >/dev/null | python3 -c 'import json, sys
for line in sys.stdin: o = json.loads(line); print(o.get("id") or ("pass" if "pass" in o else "backend" if "backend" in o else sorted(o)[0]))' | uniq; }
lines $data/add.onnx --explain=json
lines $data/add.onnx --explain=json --backend xnnpack
lines $data/add.onnx --time-passes=json
lines $data/add.onnx --size=json
lines $data/add.onnx --explain=json --time-passes=json -v
