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
printf 'not a model' >some.text
t lower - -o no.pte <some.text
t lower . -o no.pte
t lower $data/add.onnx -o missing/no.pte
t lower add.pte -o no.pte
cp $data/add.onnx copy.onnx
t lower copy.onnx -o copy.onnx
cmp copy.onnx $data/add.onnx
t lower $data/dims.onnx --dim batch=1..4 --dim n=2..4 --dim m=8..40 -o no.pte -Werror
t lower $data/dims.onnx --dim batch=1..4 --dim n=2..4 --dim m=8..40 -o no.pte -Werror -q --diagnostics=json
t lower $data/relu.onnx --dim batch=0..0 -o zero.pte -Werror
t lower $data/relu.onnx --dim batch=2 -qv -ojoined.pte -MFjoined.d -MTtarget
cat joined.d
"$ETC" print joined.pte >joined.etir
t lower joined.etir --dim batch=2 -o no.pte
t run joined.pte --dim batch=2
t -V | sed 's/ ([^)]*)$//'
mkdir cache
cp $data/external.onnx cache
ln -s "../$data/external weights.bin" "cache/external weights.bin"
t lower cache/external.onnx -o no.pte
t lower cache/external.onnx -o linked.pte --allow-linked-data
t inspect cache/external.onnx --allow-linked-data | tail -2
t lower $data/external.onnx -o unlinked.pte
cmp linked.pte unlinked.pte && echo "same bytes"
mkdir folder
t lower $data/add.onnx -o folder
: >empty.onnx
t lower empty.onnx -o no.pte
ls
