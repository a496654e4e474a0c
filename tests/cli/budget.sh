# --budget: limits, what passes them, and that nothing is written then.
dims="--dim n=1 --dim past=0..4 --dim total=1..5"
cat >all.yaml <<END
# sizes in any unit
file: 4K
constants: 0.25K
arena: {total: 200, 1: 1KiB, sram: 96}
kernels: {different: 4, calls: 10}
delegates: {count: 1, code: 1 KiB, memory: 2K}
outside: 5
time: 20 ms
END
grep -v sram all.yaml >plain.yaml
printf 'arena: 128\n' >>plain.yaml
t lower $data/decoder.onnx $dims -o no.pte --budget plain.yaml -MD --map map.json
t lower $data/decoder.onnx $dims -o no.pte --budget all.yaml
t lower $data/decoder.onnx $dims -o no.pte --budget all.yaml --backend xnnpack:min-ops=1 --memory sram=1K,dram=4K --external-weights no.ptd -MD
t lower $data/decoder.onnx $dims -o no.pte --budget plain.yaml --diagnostics=json
t lower $data/decoder.onnx $dims -o - --budget plain.yaml -q
ls

# What holds: the same bytes as without, and the table with -v.
printf 'file: 8K\narena: {total: 1K}\nkernels: 20\noutside: 14\nsqnr: 3\n' >held.yaml
t lower $data/decoder.onnx $dims -o a.pte --budget held.yaml
grep -v sqnr held.yaml >some.yaml
t lower $data/decoder.onnx $dims -o a.pte --budget some.yaml -v
t lower $data/decoder.onnx $dims -o b.pte -q
cmp a.pte b.pte && echo same
t size a.pte --budget held.yaml
t size a.pte --budget plain.yaml
t size a.pte --budget plain.yaml --json | tail -n 75
t lower $data/decoder.onnx $dims -o a.pte --budget plain.yaml -q
cmp a.pte b.pte && echo "the old file is there"
t lower $data/decoder.onnx $dims -o /dev/null --budget some.yaml

# In a recipe, relative to it.
mkdir there
printf 'budget: some.yaml\ndim: {n: 1, past: 0..4, total: 1..5}\n' >there/recipe.yaml
printf 'file: 1K\n' >there/some.yaml
t lower $data/decoder.onnx --recipe there/recipe.yaml -o no.pte
t lower $data/decoder.onnx --recipe there/recipe.yaml --budget some.yaml -o c.pte

# SQNR, on the samples of --calibrate.
printf 'sqnr: 90dB\n' >sqnr.yaml
calib=$data/calib
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
t lower net.etir --quantize int8 --calibrate $calib/relu.npz -o no.pte --budget sqnr.yaml
t lower net.etir --quantize int8-weight-only -o no.pte --budget sqnr.yaml
printf 'sqnr: 20\n' >sqnr.yaml
t lower net.etir --quantize int8 --calibrate $calib/relu.npz -o q.pte --budget sqnr.yaml
t lower net.etir --quantize int8 --calibrate $calib/relu.npz -o r.pte -q
cmp q.pte r.pte && echo "measuring changes nothing"
t lower net.etir --quantize int8 --calibrate $calib/relu.npz --max-drop 30 -o q.pte --budget sqnr.yaml -v

# Limits of one method, beside those of the program.
cat >methods.yaml <<END
arena: 1K
methods:
  a: {arena: 64, kernels: {different: 1, calls: 1}, outside: 1, time: 1ms}
  b:
    arena: {total: 4, 1: 48}
    delegates: {count: 0, code: 0, memory: 0}
END
two="lower --method a=$data/relu.onnx --method b=$data/add.onnx --dim batch=2"
t $two -o two.pte --budget methods.yaml
sed -i 's/total: 4/total: 4K/; s/1: 48/1: 4K/' methods.yaml
t $two -o two.pte --budget methods.yaml -v
t size two.pte --budget methods.yaml
t size two.pte --budget methods.yaml --json | tail -n 30
t $two --backend xnnpack:min-ops=1 -o no.pte --budget methods.yaml
printf 'methods: {c: {arena: 1K}}\n' >methods.yaml
t $two -o no.pte --budget methods.yaml
printf 'methods: {a: {arena: {dram: 1K}}}\n' >methods.yaml
t $two -o no.pte --budget methods.yaml

# What a method needs of the file: the tables, and its own weights, also those that it shares with another method. Of
# SQNR its own, too; the limit on the whole program is that of the worst method.
sed 's/@forward/@other/; s/5.0, 6.0/5.0, 60.0/' net.etir >other.etir
cat >flash.yaml <<END
constants: 64
methods:
  forward: {file: 1K, constants: 40}
  other: {file: 1K, constants: 40}
END
printf 'methods: {forward: {model: net.etir}, other: {model: other.etir}}\n' >both.yaml
t lower --recipe both.yaml -o no.pte --budget flash.yaml
t lower --recipe both.yaml -o no.pte --external-weights no.ptd --budget flash.yaml
t lower --recipe both.yaml -o no.pte --backend xnnpack:min-ops=1 --budget flash.yaml
sed -i 's/64/6400/; s/40/400/; s/1K/10K/' flash.yaml
t lower --recipe both.yaml -o both.pte --backend xnnpack:min-ops=1 --budget flash.yaml -v
t size both.pte --budget flash.yaml | tail -n 6
cat >flash.yaml <<END
sqnr: 60
methods:
  forward: {sqnr: 60}
  other: {sqnr: 20dB}
END
cp $calib/relu.npz more.npz
cat >both.yaml <<END
methods:
  forward: {model: net.etir, quantize: int8, calibrate: $calib/relu.npz}
  other: {model: other.etir, quantize: int8, calibrate: more.npz}
END
t lower --recipe both.yaml -o no.pte --budget flash.yaml
sed -i '/other:/s/int8, .*/int8-weight-only}/' both.yaml
t lower --recipe both.yaml -o no.pte --budget flash.yaml

# What is no budget.
bad() {
  printf '%b' "$1" >bad.yaml
  t lower $data/add.onnx --budget bad.yaml -o no.pte
}
bad 'file: 3 parsecs\n'
bad 'file: 1KB\n'
bad 'file: -1\n'
bad 'file: 0\n'
bad 'file: 0K\n'
bad 'file: 1.5\n'
bad 'files: 1\n'
bad 'weights: 1\n'
bad '\nkernels: {call: 1}\n'
bad 'kernels: 1.5\n'
bad 'delegates: {nodes: 1}\n'
bad 'sqnr: 20ms\n'
bad 'time: soon\n'
bad 'file: {total: 3}\n'
bad 'sram: 3K\n'
bad 'flash: 3K\n'
bad 'method: {forward: {arena: 3K}}\n'
bad 'methods: 3\n'
bad 'methods: [forward]\n'
bad 'methods: {forward: 3K}\n'
bad 'methods: {forward: {sqnr: 30}}\n'
bad 'methods: {forward: {file: 30 dB}}\n'
bad 'methods: {forward: {methods: {forward: {arena: 3}}}}\n'
bad 'methods: {forward: {arena: 3 apples}}\n'
bad 'methods: {forward: {arena: 3K, arena: 4K}}\n'
bad 'methods: {forward: {arena: 3K}}\nmethods: {forward: {arena: 4K}}\n'
bad 'methods: {forward: {}}\n'
bad 'arena: [1, 2]\n'
bad 'arena: {1: 3K, 1: 4K}\n'
bad 'arena: {total: 3K}\narena: 4K\n'
bad 'arena: {dram: 3K}\n'
bad 'file: *x\n'
bad 'file: 3\n---\nfile: 4\n'
bad '- file\n'
bad '{}\n'
bad ''
t lower $data/add.onnx --budget none.yaml -o no.pte
t size b.pte --budget bad.yaml
ls no.* 2>/dev/null || echo "nothing was written"
bad 'time: 20\n'
bad 'file: 512K\narena: 3\377K\n'

# What an operator became: its nodes and tensors are one item.
cat >named.etir <<EOF
graph @forward level(edge) {
  %0: f32[64] = input "x"
  %1: f32[64] = aten::exp(%0) loc("three", "Three", 0)
  %2: f32[64] = aten::sin(%0) loc("three", "Three", 0)
  %3: f32[64] = aten::cos(%0) loc("three", "Three", 0)
  %4: f32[192] = aten::cat([%1, %2, %3], 0) loc("cat", "Concat", 1)
  output %4 "y"
}
EOF
printf 'arena: 64\ntime: 0.0001ms\n' >items.yaml
t lower named.etir -o no.pte --budget items.yaml
t lower named.etir -o no.pte --max-arena 64
