# etc size: flash by layer, SRAM by what is in use.
t lower $data/decoder.onnx --dim n=1 --dim past=0..4 --dim total=1..5 -o d.pte -q
t size d.pte
t size d.pte -v
t lower $data/accumulate.onnx --state h:hn --memory fast=48,slow=4K -o banks.pte -q
t size banks.pte
t size banks.pte --json
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1 -o x.pte -q
t size x.pte
t lower $data/decoder.onnx --dim n=1 --dim past=0..4 --dim total=1..5 --external-weights d.ptd -o e.pte -q
t size e.pte

# Each byte of the file is one thing.
for program in d banks x e; do
  $ETC size $program.pte --json | tr -d ' ,"' |
    awk -F: '/^bytes:/ && !whole { whole = $2 } /^(program|constant|state|delegate_code|delegate_data|unused|padding)_bytes:/ { sum += $2 }
             END { print whole == sum ? "whole" : whole " is not " sum }'
done

# While lowering, with the names of the model.
cat >net.etir <<'END'
graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %1: f32[2, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0]
  %2: f32[1, 2] = aten::linear(%0, %1, none) loc("first", "Gemm", 0)
  %3: f32[1, 2] = aten::relu(%2)
  %4: f32[2, 2] = const [1.0, 2.0, 3.0, 4.0]
  %5: f32[1, 2] = aten::linear(%3, %4, none) loc("second", "Gemm", 1)
  output %5 "y"
}
END
t lower net.etir -o o.pte --size
t lower net.etir -o o.pte --size=json | head -n 24
t lower $data/decoder.onnx --dim n=1 --dim past=0..4 --dim total=1..5 --backend xnnpack:min-ops=1 -o y.pte --size
t lower net.etir -o o.pte --size=yaml
t lower net.etir -o /dev/null --size

t size
t size d.pte banks.pte
t size $data/decoder.onnx
t size no.pte
head -c 100 d.pte >cut.pte
t size cut.pte

# --map: the names that `etc lower --size` has.
for backend in '' '--backend xnnpack:min-ops=1'; do
  "$ETC" lower $data/why.onnx $backend -o m.pte --map m.json --size >lowered 2>&1
  "$ETC" size m.pte --map m.json >read
  grep -v '^wrote\|^  also wrote\|^  arena .*weights\|hint:' lowered | cmp - read && echo same
done
t size m.pte --map m.json
printf 'file: 1K\nkernels: 1\n' >small.yaml
t size m.pte --map m.json --budget small.yaml
"$ETC" lower --method a=$data/add.onnx --method b=$data/relu.onnx --dim batch=2 --constant c=3 -q -o two.pte --map two.json
t size two.pte --map two.json
# What is no map, or another program's.
t size m.pte --map two.json
t size two.pte --map m.json
t lower $data/add.onnx -q -o add.pte --map add.json
t size two.pte --map add.json
sed 's/"index": 1,/"index": 2,/' m.json >order.json
t size m.pte --map order.json
sed '/"call"/s/aten::[a-z]*/aten::other/' m.json >other.json
t size m.pte --map other.json
head -c 300 m.json >cut.json
t size m.pte --map cut.json
t size m.pte --map $data/add.onnx
: >empty.json
t size m.pte --map empty.json
t size m.pte --map none.json
t size m.pte --map .
t size m.pte --map
