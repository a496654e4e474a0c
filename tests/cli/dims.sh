# Dimensions left open: what is found about them, and inputs that do not fit.
dims="--dim batch=1..8 --dim n=1..12 --dim m=2..10"
t lower $data/dims.onnx -o dims.pte
t lower $data/dims.onnx $dims -o dims.pte
t lower $data/dims.onnx -v --dim batch=2..4 --dim n=2..4 --dim m=4..8 -o dims.pte
t print $data/dims.onnx -q --no-locations $dims
t lower $data/dims.onnx --dim batch=1..3 --dim n=4..12 --dim m=2..10 -o dims.pte
t lower $data/dims.onnx --dim batch=3 --dim n=3 --dim m=6 -o dims.pte
t lower $data/dims.onnx --dim batch=4..8 --dim n=1..12 --dim m=2..6 -o dims.pte
"$ETC" print $data/dims.onnx -q --dim batch=1..8 --dim n=1..12 --dim m=2..10 -o dims.etir
for model in dims.etir dims.pte; do
  t run $model -i 0=$data/x24.npy -i 1=$data/x24.npy -i 2=$data/x44.npy
  t run $model -i 0=$data/x24.npy -i 1=$data/x44.npy -i 2=$data/x44.npy
  t run $model -i 0=$data/x24.npy -i 1=$data/x24.npy -i 2=$data/x64.npy
  t run $model -i 0=$data/x34.npy -i 1=$data/x34.npy -i 2=$data/x64.npy
  t run $model -i 0=$data/x94.npy -i 1=$data/x94.npy -i 2=$data/x64.npy
done
t run $data/dims.onnx -i x=$data/x24.npy -i z=$data/x44.npy -i q=$data/x44.npy
t run $data/dims.onnx -i x=$data/x34.npy -i z=$data/x34.npy -i q=$data/x64.npy
# Bounds that nothing asks for, of a value that is not there, and that are no bounds.
t lower $data/dims.onnx $dims --bound sum:0=3 -o dims.pte
t lower $data/dims.onnx $dims -q --bound prodct=3 -o dims.pte
t lower $data/dims.onnx $dims --bound product=0 -o dims.pte
t lower $data/dims.onnx $dims --bound product -o dims.pte
# Sizes of outputs that follow from those of inputs.
t lower $data/dims.onnx --dim batch=4 --dim n=4 --dim m=8 --dim p=2 --dim m2=7 -o dims.pte
t lower $data/dims.onnx --dim batch=1..8 --dim n=1..12 --dim m=2..10 --dim p=9..12 -o dims.pte
# More than 32 bits: said before the memory that it would need.
t lower $data/grow.onnx --dim p=0..2147483648 -o no.pte
t lower $data/grow.onnx --dim p=0..2147483647 -o no.pte
# Stated equalities.
t lower $data/dims.onnx --dim batch=2..4 --dim n=batch --dim m=4..8 -v -o same.pte
t run same.pte -i 0=$data/x24.npy -i 1=$data/x24.npy -i 2=$data/x44.npy
t run same.pte -i 0=$data/x24.npy -i 1=$data/x44.npy -i 2=$data/x44.npy
t run $data/dims.onnx --dim n=batch -i x=$data/x24.npy -i z=$data/x44.npy -i q=$data/x44.npy
t lower $data/dims.onnx --dim batch=2..4 --dim n=2..4 --dim m=batch -o no.pte
t lower $data/dims.onnx --dim k=2..4 --dim n=k --dim batch=n --dim m=4..8 -o k.pte
t lower --method a=$data/dims.onnx --method b=$data/relu.onnx --dim k=2..4 --dim n=k --dim batch=k --dim m=4..8 -v -o km.pte
t lower --method a=$data/dims.onnx --method b=$data/relu.onnx --dim batch=4 --dim n=4 --dim m=8 --dim bathc=4 --dim q=7 -o bad.pte
t lower $data/dims.onnx --dim batch=2..4 --dim n=bath --dim m=4..8 -o no.pte
t lower $data/dims.onnx --dim batch=n --dim n=batch --dim m=4..8 -o no.pte
t lower $data/dims.onnx --dim batch=batch -o no.pte
t lower $data/dims.onnx --dim batch=2 --dim n=batch --dim m=4 --value z=$data/x44.npy -o no.pte
cat >dims.yaml <<END
model: $data/dims.onnx
dim: {batch: 2..4, n: batch, m: 4..8}
END
t lower --recipe dims.yaml -o r.pte

# They are said as they were given, not as a size of 0.
t inspect $data/dims.onnx --dim batch=2..4 --dim n=batch --dim m=4..8
printf 'model: %s\ndim: {batch: 2..4, n: batch, m: 0..3}\n' "$data/dims.onnx" >equal.yaml
t recipe check equal.yaml
# A name that no model has is said beside the size that is missing for it, also of several models.
t lower --method one=$data/relu.onnx --method two=$data/add.onnx --dim bath=2 -o no.pte
t lower --method one=$data/relu.onnx --method two=missing.onnx --dim bath=2 -o no.pte
t lower $data/dims.onnx --dim batch=1 --dim n=2 --dim m=batch+n -o no.pte
# Sizes beyond what the format has.
t lower $data/relu.onnx --dim batch=99999999999999999999 -o no.pte
t lower $data/relu.onnx --dim batch=9999999999 -o no.pte
