# Backends: their settings, what they take, and why they leave the rest.
mixed="$data/mixed.onnx --dim batch=1..8 -o m.pte"
t backends
t lower $data/mixed.onnx --dim batch=1..3 -o m.pte --backend xnnpack --explain=json
t lower $mixed --backend xnnpack:min-ops=1 --explain
t lower $mixed --backend xnnpack:min-ops=1 --explain -v
t lower $mixed --explain
t lower $mixed --backend xnnpack:min-ops=1 --explain=json
t lower $data/mixed.onnx --dim batch=0..8 -o m.pte --backend xnnpack:min-ops=1 --explain

# Settings
t lower $mixed --backend xnnpack:min-ops=3 --explain
t lower $mixed --backend xnnpack:min-ops=1,ops=exp+aten::mul.Tensor --explain
t lower $mixed --backend "xnnpack:min-ops=1,skip=tanh+@enc/m*" --explain
t lower $mixed --backend "xnnpack:ops=@dec/*,skip=@dec/tanh,min-ops=1" --explain
t lower $mixed --backend "xnnpack:min-ops=1,skip=@dek/*+@enc/exp" --explain=json
t lower $mixed --backend "xnnpack:min-ops=1,skip=Tanh" --explain

# What the settings cannot be
for settings in min=3 min-ops min-ops= min-ops=0 min-ops=-1 min-ops=3+4 min-ops=1,min-ops=2 ops= ops=tahn ops=aten::ad.Tensor skip=softmax \
  skip=cumsum skip=Tahn skip=@ skip=+ cpu= cpu=avx "cpu=avx2|avx512" nonsense=1 =1; do
  t lower $data/mixed.onnx -o no.pte --backend "xnnpack:$settings"
done
t lower $data/mixed.onnx -o no.pte --backend xnnpack --explain=yaml

# Recipes
cat >good.yaml <<EOF
dim: {batch: 1..8}
backend: "xnnpack:skip=@dec/*,min-ops=2"
explain: json
EOF
t lower $data/mixed.onnx --recipe good.yaml -o r.pte
t lower $mixed --backend "xnnpack:skip=@dec/*,min-ops=2"
cmp r.pte m.pte && echo "same bytes"
t lower $data/mixed.onnx --recipe good.yaml -o r.pte --backend xnnpack:min-ops=1,ops=exp --explain=text
printf 'backend: [xnnpack:skip=tahn]\n' >bad.yaml
t lower $data/mixed.onnx --recipe bad.yaml -o no.pte
ls
