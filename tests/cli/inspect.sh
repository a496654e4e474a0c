t lower $data/add.onnx -o add.pte
t inspect add.pte
t inspect add.pte -v
# Models: what is in them, whether they lower and how; one command to paste, which works.
t inspect $data/add.onnx
t inspect $data/dims.onnx
t inspect $data/dims.onnx --dim m=2..10
t inspect $data/window.onnx
# Sizes for which a loop takes steps, and lists are long enough.
t inspect $data/frames.onnx
t inspect $data/size.onnx
t inspect $data/unknown.onnx $data/external.onnx
t inspect $data/relu.onnx --json
"$ETC" inspect $data/dims.onnx | sed -n 's/^  etc/"$ETC" -q/p' | sed 's/-q lower/lower -q/' >command
. ./command && ls
# Several files; what is no program.
t inspect add.pte missing.pte $data/relu.onnx
# Names without a suffix, as caches of downloads have them.
cp $data/relu.onnx model
cp add.pte program
echo nonsense >text
t inspect model
t diff model $data/relu.onnx
t diff program add.pte
t inspect text
# Files of other formats, of which some read as models with unknown fields alone.
printf '\211HDF\r\n\032\nxxxx' >keras.h5
printf '\011\0\0\0\0\0\0\0{"w": {}}' >w.safetensors
"$ETC" lower $data/mixed.onnx --dim batch=1 --external-weights w.ptd -o w.pte -q
t inspect keras.h5 w.safetensors
t lower w.ptd -o no.pte
# Results may be empty.
cat >found.etir <<END
graph @forward level(aten) {
  sym s0 "u0" in [0, 6] unbacked
  %0: f32[6] = input "x"
  %1: i64[s0, 1] = aten::nonzero(%0)
  output %1 "y"
}
END
"$ETC" lower found.etir -o found.pte -q
"$ETC" inspect found.pte | grep put
# Several files as JSON are one document.
for files in "add.pte model" "missing.pte add.pte" "add.pte missing.pte" "missing.pte missing.pte"; do
  "$ETC" inspect $files --json 2>/dev/null | grep '^[^ ]\|"file"\|"model"'
done
t verify add.pte dims.pte
t verify $data/add.onnx add.pte
t verify $data/x23.npy
head -c 300 add.pte >short.pte
t verify short.pte
t inspect short.pte
t run short.pte
# Memory by the size of each dim: even ones only fit, and q has twice the size of x.
t lower $data/dims.onnx -q --dim batch=1..8 --dim n=1..12 --dim m=2..10 -o dims.pte
t inspect dims.pte
"$ETC" inspect dims.pte --json | sed -n '/"by_dim"/,/"by_dim_left_out"/p'
# With a kernel that is not known there are no sizes.
sed 's/aten::add/aten::adx/' dims.pte >strange.pte
t inspect strange.pte
# Textual graphs, and standard input.
"$ETC" print $data/dims.onnx --dim batch=4 --dim n=4 --dim m=8..40 -q >dims.etir
t inspect dims.etir
"$ETC" print $data/relu.onnx --dim batch=1..8 >relu.etir
t inspect relu.etir
t inspect dims.etir --json
t inspect - <dims.etir
t inspect - <add.pte
cat $data/relu.onnx | "$ETC" inspect -
t inspect - - <$data/relu.onnx
t inspect - </dev/null
echo nonsense >bad.etir
t inspect bad.etir
# What a selective build of the runtime must have, for one program and for two.
"$ETC" lower $data/mixed.onnx --dim batch=1 --backend xnnpack:min-ops=1 -q -o mixed.pte
t inspect add.pte --kernels=yaml
t inspect add.pte mixed.pte --kernels=cmake
sed 's/aten::add/a";#${}()/' add.pte >strange.pte
t inspect strange.pte --kernels=cmake
t inspect strange.pte --kernels=yaml
sed 's/XnnpackBackend/X"#$Backend()./' mixed.pte >strange.pte
t inspect strange.pte --kernels=cmake
"$ETC" lower $data/relu.onnx --constant n=1 --dim batch=1 --backend xnnpack:min-ops=1 -q -o none.pte
t inspect none.pte --kernels=yaml
t inspect none.pte --kernels=cmake
t inspect add.pte --kernels=make
t inspect add.pte --kernels
t inspect add.pte --kernels=yaml --json
t inspect add.pte missing.pte --kernels=yaml
t inspect $data/add.onnx --kernels=yaml
# Its view is read behind the product: the first tensor stays in use though no call names it in between.
cat >view.etir <<'END'
graph @forward level(edge) {
  %0: f32[4, 4] = input "x"
  %1: f32[4, 4] = aten::exp(%0)
  %2: f32[4, 4] = aten::sin(%1)
  %3: f32[4, 4] = aten::mm(%2, %2)
  %4: f32[16] = aten::view_copy(%1, [16])
  %5: f32[16] = aten::view_copy(%3, [16])
  %6: f32[16] = aten::add.Tensor(%4, %5)
  output %6 "y"
}
END
t lower view.etir -o view.pte
t inspect view.pte

# Sizes are of models: a program has its own.
t lower $data/relu.onnx --dim batch=2 -q -o sized.pte
t inspect sized.pte --dim batch=3

# A program without inputs is no list of constants, as long as it computes something.
cat >fixed.etir <<EOF
graph @forward level(edge) {
  %0: f32[2] = aten::full([2], 1.5, f32)
  output %0 "y"
}
EOF
t lower fixed.etir --skip-pass fold_constants -q -o fixed.pte
t inspect fixed.pte --json
echo
# What it says to paste is one word a name, whatever is in it.
cp $data/relu.onnx "it's \$HOME \"a\".onnx"
"$ETC" inspect "it's \$HOME \"a\".onnx" | tail -n 1 | tee command
PATH=$(dirname "$ETC"):$PATH sh command && rm "it's \$HOME \"a\".pte"

# What the runtime has no kernel for does not lower, though all passes take it.
t inspect $data/u64.onnx
