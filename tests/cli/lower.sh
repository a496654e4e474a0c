# Outputs and failures of lower.
t lower $data/add.onnx -o add.pte
t verify add.pte
t lower $data/add.onnx -o add2.pte --plan naive --threads 1 --fsync --verify-each --roundtrip -v
t lower $data/add.onnx --output=add3.pte
cmp add.pte add3.pte && echo "same bytes"
t lower $data/relu.onnx -o relu.pte
t lower $data/relu.onnx -o relu.pte --dim bach=1
t lower $data/relu.onnx -o relu.pte --dim batch=1..8
t lower $data/unknown.onnx -o no.pte
t lower $data/unknown.onnx -o no.pte --diagnostics=json
t lower $data/strings.onnx -o no.pte
t lower missing.onnx -o no.pte
t lower . -o no.pte
t lower $data/add.onnx -o missing/no.pte
t lower add.pte -o no.pte
cp $data/add.onnx copy.onnx
t lower copy.onnx -o copy.onnx
cmp copy.onnx $data/add.onnx
mkdir folder
t lower $data/add.onnx -o folder
: >empty.onnx
t lower empty.onnx -o no.pte
ls
