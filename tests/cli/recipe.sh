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

# Paths are relative to the recipe; every option of lower is a key.
mkdir there
cp $data/grow.onnx $data/x23.npy $data/mixed.onnx $data/external.onnx there
ln -s "../$data/external weights.bin" "there/external weights.bin"
cat >there/r.yaml <<EOF
model: grow.onnx
dim: {p: 0..4}
state: {past.0: present.0=x23.npy}
output: g.pte
fsync: true
verify-each: false
depfile: g.d
time-passes: false
EOF
t lower --recipe there/r.yaml
cat there/g.d
cat >there/nested.yaml <<EOF
model: mixed.onnx
dim: {batch: 2}
backend: {xnnpack: {min-ops: 1, skip: [tanh, "@dec/softmax"]}}
EOF
t lower --recipe there/nested.yaml -o nested.pte
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1,skip=tanh+@dec/softmax -o flat.pte
cmp nested.pte flat.pte && echo "same bytes"
printf 'backend: {xnnpack: {}}\n' >there/plain.yaml
t lower there/mixed.onnx --dim batch=2 --recipe there/plain.yaml -o plain.pte
printf 'model: external.onnx\nallow-linked-data: true\noutput: ignored.pte\n' >there/linked.yaml
t lower --recipe there/linked.yaml -o linked.pte
ls there

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
bad 'dim: {batch: 010}\n'
bad 'dim: {batch: -010}\n'
printf 'dim: {batch: "010"}\n' >quoted.yaml
t lower $data/mixed.onnx --recipe quoted.yaml -o quoted.pte
bad 'dim: {batch: {size: 1}}\n'
bad 'dim: [batch=1, batch=2]\n'
bad 'skip-pass: [[a]]\n'
bad 'skip-pass: decompose\n'
bad 'plan:\n'
bad 'plan: {greedy: 1}\n'
bad 'state: {g: hn}\n'
bad 'recipe: a.yaml\n'
bad 'fsync: maybe\n'
bad 'backend: {xnnpack: {min-ops: {a: 1}}}\n'
bad 'backend: {xnnpack: {min-opps: 2}}\n'
bad 'quantize: int8\n'
bad 'a: &x 1\nplan: *x\n'
bad 'plan: *x\n'
bad 'plan: greedy\n---\nplan: naive\n'
bad 'plan: "a\\0b"\n'
bad '\377\376 garbage \001'
printf 'kernels: ' >deep.yaml; head -c 200000 /dev/zero | tr '\0' '[' >>deep.yaml
t lower $data/add.onnx --recipe deep.yaml -o no.pte
head -c 2000000 /dev/zero | tr '\0' ' ' >large.yaml
t lower $data/add.onnx --recipe large.yaml -o no.pte
t lower $data/add.onnx --recipe missing.yaml -o no.pte
t lower $data/add.onnx --recipe . -o no.pte
ls

# Sections, what they win over, and recipes that include others.
cat >base.yaml <<EOF
plan: naive
methods:
  one: {model: $data/accumulate.onnx}
  two:
    model: $data/accumulate.onnx
    state: {h: hn}
EOF
cat >top.yaml <<EOF
include: base.yaml
methods:
  one: {state: {h: hn}, plan: greedy}
pass: {canonicalize: edge}
EOF
t lower --recipe top.yaml -o sections.pte -MD
cat sections.pte.d
t lower --recipe top.yaml --time-passes -o sections.pte 2>&1 | grep -c "edge .*canonicalize"
t lower $data/add.onnx --recipe xnnpack -o shipped.pte
for text in "methods: [one]" "methods: {one: add.onnx}" "methods: {one: {model: $data/add.onnx, fsync: true}}" "methods: {one: {include: base.yaml}}" \
  "methods: {one: {modell: x.onnx}}" "include: loop.yaml" "include: [none.yaml]" "pass: {canonicalize: egde}" \
  "methods: {one: {model: $data/add.onnx}, other: {plan: naive}}" "pass: [canonicalize@core:before-decompos]"; do
  echo "$text" >loop.yaml
  t lower --recipe loop.yaml -o never.pte
done
bad 'dim: {batch: [1, 3]}\n'
bad 'state: {h: [hn]}\n'
# A list of mappings is what people write, too; a tab, and an alias, are not YAML or not supported.
printf 'model: %s\nmethods:\n  two:\n    model: %s\n    state:\n      - h: hn\n' $data/add.onnx $data/accumulate.onnx >pairs.yaml
t recipe check pairs.yaml
bad 'include:\n  - base: yaml\n'
bad 'dim:\n\tbatch: 1\n'
bad 'plan: &p naive\nmemory: *p\n'
printf 'report: r.html\ncache: c\n' >report.yaml
t recipe check report.yaml
