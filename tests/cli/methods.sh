# Several methods in one program; dependency files.
t lower --method first=$data/add.onnx --method second=$data/relu.onnx --dim batch=2 -o two.pte -MD
t verify two.pte
cat two.pte.d
t run two.pte -i 0=$data/x24.npy
t run two.pte --method secnd -i 0=$data/x24.npy
t run two.pte --method second -i 0=$data/x24.npy
t lower $data/external.onnx -o 'ext $1.pte' -MF deps
cat deps
cp $data/add.onnx 'a model.onnx'
t lower 'a model.onnx' -o m.pte -MD -MF other.d
cat other.d
ls
# A method that cannot be read hides no other one.
"$ETC" lower --method one=$data/add.onnx --method two=$data/accumulate.onnx -o known.pte -q
LC_ALL=C sed 's/aten::mul/aten::mux/' known.pte >unknown.pte
for method in one two nix; do
  t run unknown.pte --random --method $method | sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g'
done
t run unknown.pte --random
t verify unknown.pte
