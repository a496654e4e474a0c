# etc run: inputs, outputs, what is refused.
t lower $data/add.onnx -o add.pte
for model in $data/add.onnx add.pte; do
  t run $model
  t run $model -i x=$data/x23.npy
  t run $model -i x=$data/x23.npy -i y=$data/ones23.npy
  t run $model -i 0=$data/fortran.npy -i 1=$data/big.npy
  t run $model -i x=$data/x23.npy -i 0=$data/ones23.npy
  t run $model -i z=$data/x23.npy
  t run $model -i 2=$data/x23.npy
  t run $model -i x=
  t run $model -i x
  t run $model -i x=$data/f64.npy -i y=$data/ones23.npy
  t run $model -i x=$data/x24.npy -i y=$data/ones23.npy
  t run $model -i x=$data/x2.npy -i y=$data/ones23.npy
  t run $model -i x=missing.npy -i y=$data/ones23.npy
  t run $model -i x=$data/add.onnx -i y=$data/ones23.npy
done
t run add.pte -i x=$data/x23.npy -i y=$data/ones23.npy --output out
ls out
od -A n -t f4 -j 128 out/out_sum.npy
t run add.pte -i x=$data/x23.npy -i y=$data/ones23.npy --output -
t run $data/two_outputs.onnx -i x=$data/x2.npy --output names
ls names
t run add.pte -i x=$data/x23.npy -i y=$data/ones23.npy --output missing/folder
t lower $data/relu.onnx --dim batch=1..8 -o relu.pte
t run relu.pte -i x=$data/x24.npy
t run relu.pte -i x=$data/x94.npy
t run relu.pte -i x=$data/x94.npy --method backward
t run $data/relu.onnx -i x=$data/x24.npy
t run $data/relu.onnx -i x=$data/x94.npy --dim batch=1..4
t run $data/relu.onnx

# Names that are wrong are said before sizes that are missing.
t run $data/relu.onnx -i z=$data/x34.npy

# Made up inputs are the same each time; only those that are not given.
t run $data/add.onnx --random
t run $data/add.onnx --random --seed 0 -i 0=$data/ones23.npy
t run $data/add.onnx --random --seed 7
t run $data/relu.onnx --random --dim batch=2..3
t run $data/relu.onnx --random
t run $data/add.onnx --random --seed x
t run $data/add.onnx --seed x -i x=missing.npy
t run $data/add.onnx --seed 3 -i x=missing.npy
t run $data/add.onnx --random --repeat 0
"$ETC" run $data/accumulate.onnx --state h:hn -i x=$data/ones23.npy -i x=$data/x23.npy --repeat 3 | sed 's/ [0-9.]* ms/ T ms/g'
t run $data/dims.onnx --dim batch=1..4 --dim n=2..4 --dim m=8..40 --random -Werror
t run $data/relu.onnx --dim batch=2 --random -Werror
# When each node ran.
t run $data/mixed.onnx --dim batch=2 --random --repeat 2 --profile trace.json -q >/dev/null
grep -o '"ph":"X","name":"[^"]*"' trace.json
grep -o '"node of the model":"[^"]*","results":"[^"]*"' trace.json | head -n 2
t run $data/mixed.onnx --dim batch=2 --random --profile .
t run $data/mixed.onnx --random --profile none.json
[ -e none.json ] || echo "no file"
# Files that are no array, no number or for no input; a file in place of the folder; ranges of sizes.
t run $data/relu.onnx -i $data/x24.npy
t run $data/relu.onnx -i x=
t run $data/relu.onnx -i x=$data/calib/relu.npz
python3 - <<'END'
for name, descr in ("object", "|O"), ("text", "<U4"):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': (1,), }" % descr).ljust(117) + "\n"
    with open(name + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00v\x00" + head.encode() + bytes(16))
END
t run $data/relu.onnx -i x=object.npy
t run $data/relu.onnx -i x=text.npy
t run $data/relu.onnx --dim batch=2 --random -o y.npy
"$ETC" lower $data/relu.onnx --dim batch=1..8 -q -o range.pte
t run range.pte
t run range.pte -i x=$data/x23.npy
ls
# An official program (torch 2.13, ExecuTorch 1.4.1) whose methods 'forward' and 'second' return numbers and None beside a tensor:
# one method that is not supported does not keep another from running.
t run $data/scalars.pte --method get_name
t run $data/scalars.pte --method get_t
t run $data/scalars.pte --method second --random
t run $data/scalars.pte --method nowhere
t verify $data/scalars.pte
