# Recipes: what they set, what the command line sets instead, and what is refused.
cat >good.yaml <<EOF
# keys in any order
plan: naive
state: {h: hn}
skip-pass: [recover_norm, recover_softmax]
method:
  one: $data/accumulate.onnx
  "two": $data/accumulate.onnx
EOF
t lower --recipe good.yaml -o a.pte
t lower --method one=$data/accumulate.onnx --method two=$data/accumulate.onnx --state h:hn --plan naive -o b.pte
cmp a.pte b.pte && echo "same bytes"
t lower --recipe good.yaml --plan greedy --method two=$data/add.onnx -o c.pte -MD
t inspect c.pte
cat c.pte.d
cat >grow.yaml <<EOF
model: $data/grow.onnx
dim: [p=0..4]
state: {past.*: present.*}
EOF
t lower --recipe grow.yaml -o g.pte
t lower --recipe grow.yaml --dim p=0..9 --state "past.*:present.0" -o s.pte
t lower --recipe grow.yaml --dim p=0..9 -o h.pte
t run h.pte -i x=$data/ones23.npy -i x=$data/ones23.npy -i x=$data/ones23.npy -i x=$data/ones23.npy

bad() {
  printf '%b' "$1" >bad.yaml
  t lower $data/add.onnx --recipe bad.yaml -o no.pte
}
bad ''
bad 'plan'
bad '- plan: greedy\n'
bad 'plan: greedy\nplann: naive\n'
bad 'plan: greedy\nplan: naive\n'
bad 'dim: {batch: 1}\n  plan: x'
bad 'plan: fastest\n'
bad 'dim: {batch: many}\n'
bad 'dim: {batch: {size: 1}}\n'
bad 'dim: [batch=1, batch=2]\n'
bad 'skip-pass: [[a]]\n'
bad 'skip-pass: decompose\n'
bad 'plan:\n'
bad 'plan: {greedy: 1}\n'
bad 'state: {g: hn}\n'
bad 'output: a.pte\n'
bad 'quantize: int8\n'
bad 'a: &x 1\nplan: *x\n'
bad 'plan: *x\n'
bad 'plan: greedy\n---\nplan: naive\n'
bad 'plan: "a\\0b"\n'
bad '\377\376 garbage \001'
printf 'plan: ' >deep.yaml; head -c 200000 /dev/zero | tr '\0' '[' >>deep.yaml
t lower $data/add.onnx --recipe deep.yaml -o no.pte
head -c 2000000 /dev/zero | tr '\0' ' ' >large.yaml
t lower $data/add.onnx --recipe large.yaml -o no.pte
t lower $data/add.onnx --recipe missing.yaml -o no.pte
t lower $data/add.onnx --recipe . -o no.pte
ls
