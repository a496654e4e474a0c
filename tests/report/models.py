"""Graphs in the textual form for the tests of reports."""


def layers(count):
    """A network without weights of that many nodes, in blocks, with edges over up to twelve of them."""
    lines = ["graph @forward level(aten) {", '  %0: f32[1, 64] = input "x"']
    for i in range(1, count + 1):
        other = max(0, i - 1 - i * 7919 % 13)
        call = f"aten::relu(%{i - 1})" if i % 3 == 1 else f"aten::{'add' if i % 3 else 'mul'}.Tensor(%{i - 1}, %{other})"
        lines.append(f'  %{i}: f32[1, 64] = {call} loc("/blocks.{i // 12}/layer.{i % 12}/Op", "Op", {i})')
    return "\n".join([*lines, f'  output %{count} "y"', "}", ""])


# Delegated but for the part in f64; a weight without a name, and a node with one that is no good HTML; products that can be quantized.
MIXED = """graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %1: f32[4, 4] = const [1.0, 2.0, 3.0, -4.0, 0.3, 0.1, 0.7, 0.8, 1.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
  %2: f32[4, 4] = const [0.5, 0.6, 0.7, 0.8, 1.0, 2.0, 3.0, -4.0, 0.3, 0.1, 0.7, 0.8, 1.0, 0.2, 0.3, 0.4] "second.weight"
  %3: f32[1, 4] = aten::linear(%0, %1, none) loc("/first/Gemm", "Gemm", 0)
  %4: f32[1, 4] = aten::relu(%3) loc("/first/Relu", "Relu", 1)
  %5: f32[1, 4] = aten::linear(%4, %2, none) loc("/second/Gemm", "Gemm", 2)
  %6: f64[1, 4] = aten::_to_copy(%5, f64, false, none) loc("/tail/Cast", "Cast", 3)
  %7: f64[1, 4] = aten::exp(%6) loc("/tail/<img src=x onerror=alert(1)>", "Exp", 4)
  output %7 "y"
}
"""

# The same layer before and behind an operator that XNNPACK does not have, with another one at the end: two delegates, three calls.
TWICE = """graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %1: f32[4, 4] = const [1.0, 2.0, 3.0, -4.0, 0.3, 0.1, 0.7, 0.8, 1.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8] "weight"
  %2: f32[1, 4] = aten::linear(%0, %1, none) loc("/first/Gemm", "Gemm", 0)
  %3: f32[1, 4] = aten::erf(%2) loc("/Erf", "Erf", 1)
  %4: f32[1, 4] = aten::linear(%3, %1, none) loc("/second/Gemm", "Gemm", 2)
  %5: f32[1, 4] = aten::erf(%4) loc("/Erf_1", "Erf", 3)
  %6: f32[1, 4] = aten::sigmoid(%5) loc("/Sigmoid", "Sigmoid", 4)
  output %6 "y"
}
"""
