# Inputs that become constants, and dims of one name and different sizes.
t lower $data/add.onnx --value y=$data/ones23.npy -o y.pte
t run y.pte -i x=$data/x23.npy
t run y.pte -i 0=$data/x23.npy
t print $data/add.onnx --value y=$data/ones23.npy --no-locations
t run $data/add.onnx --value x=$data/x23.npy -i 0=$data/ones23.npy
t run $data/add.onnx --value x=$data/x23.npy -i x=$data/ones23.npy
t lower $data/add.onnx --value y=$data/x24.npy -o y.pte
t lower $data/add.onnx --value y=$data/f64.npy -o y.pte
t lower $data/add.onnx --value y=1 -o y.pte
t lower $data/add.onnx --value yy -o y.pte
t lower $data/accumulate.onnx --value hh=$data/ones23.npy -o y.pte
t lower --method one=$data/add.onnx --method two=$data/accumulate.onnx --value h=$data/ones23.npy -o two.pte
t lower --method one=$data/add.onnx --method two=$data/accumulate.onnx --value q=1 -o two.pte
cat >value.yaml <<EOF
model: $data/add.onnx
value: {y: $data/x24.npy, x: $data/x23.npy}
EOF
t lower --recipe value.yaml --value y=$data/ones23.npy -o r.pte
t run r.pte
t run $data/names.onnx -i x=$data/x24.npy -i z=$data/x44.npy
t run $data/names.onnx -i x=$data/x24.npy --value z=$data/x44.npy
t lower $data/names.onnx -o n.pte
t lower $data/names.onnx --dim n=2 --dim '?=4' -o n.pte
t lower $data/names.onnx --dim n=2 --dim z:0=1..4 --dim x:1=4 --dim z:1=4 -o n.pte
t run n.pte -i x=$data/x24.npy -i z=$data/x34.npy
# A textual graph has its inputs as they are.
"$ETC" print $data/add.onnx >plain.etir
t lower plain.etir --value foo=3 -o plain.pte
