# Lists: their form, not what is in them, which changes with every op and pass.
"$ETC" ops | grep -c 'aten::relu  *aten::relu.out '
"$ETC" ops | grep '^Relu '
"$ETC" ops --onnx | grep -c '^Relu '
"$ETC" ops --onnx | grep -c 'aten::' || true
"$ETC" ops --onnx --json | tr -d ' \n' | cut -c1-40
"$ETC" ops --md | grep '^| Relu | '
"$ETC" ops --json | tr -d ' \n' | grep -c '"op":"aten::relu","schema":"aten::relu(Tensorself)->Tensor","kernel":"aten::relu.out"'
"$ETC" passes | grep -c '^  plan_memory  *! '
"$ETC" passes | grep '^[a-z]' | awk '{ print $1, $2 }'
"$ETC" passes --json | tr -d ' \n' | grep -c '{"pass":"plan_memory","from":"executorch","to":"executorch","skippable":false'
"$ETC" lower $data/add.onnx -o a.pte --bisect-limit 1 2>&1 | head -n 3
"$ETC" lower $data/add.onnx -o a.pte --bisect-limit -1 2>&1 | grep -c NOT
"$ETC" lower $data/add.onnx -o a.pte --time-passes 2>&1 | awk '/plan_memory/ { print $2, $3, $5, $6, $7 } /total/ { print $1 }'
"$ETC" lower $data/add.onnx -o a.pte --time-passes=json 2>&1 | tr -d ' \n' | grep -c '"pass":"plan_memory","stage":"to_executorch","method":"forward","seconds":'
t lower $data/add.onnx -o b.pte --skip-pass eliminate_dead --skip-pass fold_constants
cmp a.pte b.pte && echo "same bytes"
# A word that is no code: what there is about it.
t explain dimension
t explain budget
t explain nonsense-word
