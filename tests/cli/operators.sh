# Ops and translators of operators that plug-ins bring.
plugin="--plugin $plugins/operators.so"

echo "## an operator of com.example"
t lower $data/magic.onnx --dim batch=2 -o no.pte
t ops $plugin | grep -e Magic -e example::
t ops $plugin --json | grep -e Magic -e '"example::scale.out"'
t lower $data/magic.onnx $plugin --dim batch=1..3 -o magic.pte --artifacts stages
t print $data/magic.onnx $plugin --dim batch=2 --stage to_executorch --no-locations
cp "$data/x24.npy" x.npy
t run $data/magic.onnx $plugin --input x=x.npy
t run magic.pte $plugin --input 0=x.npy
t verify magic.pte $plugin
t inspect magic.pte
t verify magic.pte
t inspect $data/magic.onnx $plugin
t lower stages/04-core.etir $plugin -o again.pte -q
cmp magic.pte again.pte
t lower stages/04-core.etir -o no.pte
t lower $data/magic.onnx $plugin --dim batch=2 --backend xnnpack:min-ops=1 -o mixed.pte --explain -v
t why $data/magic.onnx the_magic $plugin --dim batch=2

echo "## a kernel by its schema"
kernel='example::double.out(Tensor x, float factor=2, int[]? sizes=None, *, Tensor(a!) out, Tensor(b!) rest) -> (Tensor(a!), Tensor(b!))'
t lower $data/magic.onnx --custom-op "com.example.Magic=$kernel" --dim batch=1..3 -o kernel.pte
t inspect kernel.pte
t verify kernel.pte --custom-op "com.example.Magic=$kernel"
t print kernel.pte --custom-op "com.example.Magic=$kernel" --no-locations
t inspect $data/magic.onnx --custom-op "com.example.Magic=$kernel"
printf 'model: %s\ndim: {batch: 1..3}\ncustom-op: {com.example.Magic: "%s"}\n' "$data/magic.onnx" "$kernel" >kernel.yaml
t lower --recipe kernel.yaml -o again.pte -q
cmp kernel.pte again.pte
t lower $data/magic.onnx --custom-op "com.example.Magic=$kernel" $plugin --dim batch=2 -o no.pte
t lower $data/magic.onnx --custom-op "com.example.Magic=$kernel" --custom-op "com.example.Magic=$kernel" --dim batch=2 -o no.pte
for schema in '' '(Tensor x' 'mine::a.out(Tensor x) -> Tensor' 'mine::a.out(Tensor x, *, Tensor(a!) out) -> (Tensor(a!), Tensor(b!))' \
  'mine::a.out(Scalar x, *, Tensor(a!) out) -> Tensor(a!)' 'mine::b.out(float factor, Tensor x, *, Tensor(a!) out) -> Tensor(a!)' \
  'mine::c.out(Tensor x, bool[] factor, *, Tensor(a!) out) -> Tensor(a!)' 'aten::relu.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)' \
  'mine::d.out(Tensor x, int factor, *, Tensor(a!) out) -> Tensor(a!)' 'mine::e.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)' \
  'mine::f.out(Tensor x, Tensor y, float factor, *, Tensor(a!) out) -> Tensor(a!)' 'mine::g.out(Tensor x, float factor, str mode, *, Tensor(a!) out) -> Tensor(a!)'; do
  t lower $data/magic.onnx --custom-op "com.example.Magic=$schema" --dim batch=2 -o no.pte
done
t lower $data/magic.onnx --custom-op "Relu=$kernel" --dim batch=2 -o no.pte
t lower $data/magic.onnx --custom-op "ai.onnx.Relu=$kernel" --dim batch=2 -o no.pte

echo "## a backend says what it computes in integers"
cat >net.etir <<'END'
graph @forward level(aten) {
  %0: f32[2, 4] = input "x"
  %1: f32[4, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0, -1.0, 2.0, 3.0, 4.0, 5.0, -6.0, 7.0, 9.0]
  %2: f32[2, 4] = aten::linear(%0, %1, none) loc("first", "Gemm", 0)
  %3: f32[2, 4] = aten::add.Tensor(%2, %2, 1) loc("sum", "Add", 1)
  %4: f32[2, 4] = aten::add.Tensor(%3, %2, 1) loc("sum2", "Add", 2)
  %5: f32[2, 4] = aten::linear(%4, %1, none) loc("second", "Gemm", 3)
  output %5 "y"
}
END
t opt net.etir --pass annotate --quantize int8 --no-locations
t opt net.etir $plugin --backend linears --pass annotate --quantize int8 --no-locations
t opt net.etir $plugin --backend linears --backend xnnpack --pass annotate --quantize int8 --no-locations

echo "## what is refused when it is read"
for FAULT in "no schema" schema "schema ends" "schema goes on" default "schema name" overload written "scalar result" "list result" "no result" "op there" "no kernel" \
  "kernel there" "no shape" "no doc" trait domain operator function versions "operator of etc" twice; do
  export FAULT
  echo "# $FAULT"
  t lower $data/magic.onnx $plugin --dim batch=2 -o no.pte
done

echo "## faults of what it does"
for FAULT in "shape fails in silence" "shape refuses" "no type" "one type" "fails in silence" refuses "no output"; do
  export FAULT
  echo "# $FAULT"
  t lower $data/magic.onnx $plugin --dim batch=2 -o no.pte
done
for FAULT in exits "unknown op"; do
  export FAULT
  echo "# $FAULT"
  t lower $data/magic.onnx $plugin --dim batch=2 -o no.pte | sed 's/\.c:[0-9]*/.c:LINE/'
done
for FAULT in "no reference kernel" "kernel refuses"; do
  export FAULT
  echo "# $FAULT"
  t run magic.pte $plugin --input 0=x.npy
done
unset FAULT
