# --kernels: what the runtime's library `quantized` has kernels for stays a call; names of libraries that are none.
cat >net.etir <<'END'
graph @forward level(aten) {
  %0: f32[2, 4] = input "x"
  %1: f32[2, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0] "w"
  %2: f32[2, 2] = aten::linear(%0, %1, none) loc("first", "Gemm", 0)
  %3: i8[2, 2] = quantized_decomposed::quantize_per_tensor(%2, 0.5, 3, -128, 127, i8) loc("q", "QuantizeLinear", 1)
  output %3 "y"
}
END
t lower net.etir -o a.pte --quantize int8-weight-only --kernels portable,quantized --artifacts parts
grep -c 'quantized_decomposed::.*\.out' parts/07-to_executorch.etir
t verify a.pte
t inspect a.pte --kernels=yaml
t lower parts/05-edge.etir -o b.pte -q
cmp a.pte b.pte && echo same
t lower net.etir -o c.pte --quantize int8-weight-only --kernels portable
t inspect c.pte --kernels=yaml
t lower net.etir -o a.pte --kernels quantized
t lower net.etir -o a.pte --kernels portable,fast
t lower net.etir -o a.pte --kernels quantized,portable, -q
t lower net.etir -o a.pte --kernels ''
