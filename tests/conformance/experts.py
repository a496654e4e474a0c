#!/usr/bin/env python3
"""Mixtures of experts of com.microsoft on the real runtime, against ONNX Runtime.

    tests/conformance/experts.py [-k PATTERN,...] [-v]

Forms that the schema has and ONNX Runtime's kernel for the CPU has not are compared with a formula in numpy.
"""

import sys

import numpy as np

import contrib
from contrib import F16, F32, Case, cases, normal, softmax
from contrib_quantized import U8, pack


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x), "identity": lambda x: x}
NO_BIAS = np.zeros((1, 1))


def experts(x, r, w1, w2, b1=NO_BIAS, b2=NO_BIAS, w3=None, b3=NO_BIAS, *, k, activation_type="relu", swiglu_fusion=0, share=None, among=False):
    """What the schema says, for the forms that ONNX Runtime's kernel for the CPU does not take: a third layer, swiglu but with pairs."""
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    first = np.einsum("th,eih->eti", rows, w1) + b1[:, None]
    if swiglu_fusion:
        first, gate = np.split(first, 2, -1)
    else:
        gate = 1 if w3 is None else np.einsum("th,eih->eti", rows, w3) + b3[:, None]
    inner = ACTIVATIONS["silu" if activation_type == "swiglu" else activation_type](first) * gate
    each = np.einsum("eti,ehi->teh", inner, w2) + b2
    chosen = np.argsort(np.argsort(-r, -1), -1) < k
    share = (softmax(r.astype(np.float64)) if share is None else share) * chosen
    share = share / share.sum(-1, keepdims=True) if among else share
    return [(each * share[..., None]).sum(1).reshape(x.shape).astype(x.dtype)]


def float_cases():
    op, names = "MoE", "x r w1 b1 w2 b2"
    w = {"w1": normal(4, 12, 8), "b1": normal(4, 12), "w2": normal(4, 8, 12) / 2, "b2": normal(4, 8)}
    pairs = {**w, "w2": w["w2"][..., :6]}
    gate = {"w3": normal(4, 12, 8), "b3": normal(4, 12)}
    x = {"x": normal(5, 8), "r": normal(5, 4)}
    for activation in ("relu", "gelu", "silu", "identity"):
        for normalize in (0, 1):
            yield Case(f"MoE_{activation}_{normalize}", op, names, x, w, activation_type=activation, k=2, normalize_routing_weights=normalize)
    swiglu = {"activation_type": "swiglu", "k": 2}
    for name, more in (("", {}), ("_alpha", {"activation_alpha": 1.7, "activation_beta": 1.0}), ("_limit", {"swiglu_limit": 0.5})):
        yield Case(f"MoE_swiglu{name}", op, names, x, pairs, swiglu_fusion=1, **swiglu, **more)
    yield Case("MoE_one", op, names, x, w)
    yield Case("MoE_all", op, names, x, w, k=4, normalize_routing_weights=1)
    yield Case("MoE_no_bias", op, "x r w1 - w2", x, {k: w[k] for k in ("w1", "w2")}, k=2)
    yield Case("MoE_batch", op, names, {"x": normal(2, 3, 8), "r": normal(6, 4)}, w, k=2)
    ties = np.array([[0, 0, 0, 0], [1, 2, 2, 2], [2, 1, 2, 0], [3, 3, 0, 0], [0, 1, 0, 0]], F32)
    for k in (1, 2, 3):
        yield Case(f"MoE_ties_{k}", op, names, {**x, "r": ties}, w, k=k)
    yield Case("MoE_weights_as_inputs", op, names, {**x, **w}, k=2)
    feeds = [{"x": normal(b, s, 8), "r": normal(b * s, 4)} for b, s in ((2, 3), (1, 1), (3, 5))]
    yield Case("MoE_dynamic", op, names, feeds, w, k=2, dims={"batch": "1..4", "steps": "1..6", "tokens": "1..24"},
               shapes={"x": ["batch", "steps", 8], "r": ["tokens", 4]})

    def by_schema(name, names, feed, constants, out=(F32,), rtol=1e-3, atol=1e-4, **attributes):
        return Case(f"MoE_{name}", op, names, feed, constants, out=out, rtol=rtol, atol=atol, **attributes,
                    reference=lambda **values: experts(**values, **attributes))
    for activation in ("relu", "silu", "swiglu"):
        yield by_schema(f"gate_{activation}", f"{names} w3 b3", x, {**w, **gate}, activation_type=activation, k=2)
    yield by_schema("gate_no_bias", "x r w1 - w2 - w3", x, {k: {**w, **gate}[k] for k in ("w1", "w2", "w3")}, activation_type="silu", k=2)
    yield by_schema("swiglu_halves", names, x, pairs, swiglu_fusion=2, **swiglu)
    half = [{k: v.astype(F16) for k, v in group.items()} for group in (x, w)]
    yield by_schema("half", names, *half, out=(F16,), rtol=2e-2, atol=2e-2, activation_type="silu", k=2)


# --- weights as codes ---

QNAMES = "x r w1 s1 b1 w2 s2 b2 w3 s3 b3 z1 z2 z3 rw"


class Codes:
    """A layer of 3 experts: `given` are the inputs of a model, `real` the weights that they stand for."""

    def __init__(self, own, number, rows, columns, bits, block=0, zeros=False, bias=True):
        blocks = columns // block if block else 1
        codes, middle = own.integers(0, 1 << bits, (3, rows, columns)), 1 << (bits - 1)
        scales = ((own.random((3, rows, blocks)) + 0.5) / (1 << bits)).astype(F32)
        zero = own.integers(0, 1 << bits, (3, rows, blocks)) if zeros else np.full((3, rows, blocks), middle)
        self.given = {f"w{number}": pack(codes, bits), f"s{number}": scales if block else scales[..., 0]}
        if bias:
            self.given[f"b{number}"] = own.standard_normal((3, rows)).astype(F32)
        self.real = {**self.given, f"w{number}": (codes - zero.repeat(columns // blocks, -1)) * scales.repeat(columns // blocks, -1)}
        if zeros:
            self.given[f"z{number}"] = pack(zero if block else zero[..., 0], bits)


def network(own, hidden=32, inner=16, rows=1, gate=False, **more):
    parts = [Codes(own, 1, rows * inner, hidden, **more), Codes(own, 2, hidden, inner, **more)] + ([Codes(own, 3, inner, hidden, **more)] if gate else [])
    given, real = ({k: v for part in parts for k, v in getattr(part, kind).items()} for kind in ("given", "real"))
    return given, {k: v for k, v in real.items() if k[0] in "wb"}


def names_of(*values):
    names = ["-" if all(n not in v for v in values) else n for n in QNAMES.split()]
    while names[-1] == "-":
        names.pop()
    return " ".join(names)


def code_cases():
    own = np.random.default_rng(3)

    def real(*shape):
        return own.standard_normal(shape).astype(F32)

    def case(name, given, x, **attributes):
        return Case(f"QMoE_{name}", "QMoE", names_of(x, given), x, given, **{"k": 2, **attributes})
    x = {"x": real(2, 32), "r": real(2, 3)}
    for bits in (2, 4, 8):
        for block in (0, 16):
            for zeros in (False, True):
                given, weights = network(own, bits=bits, block=block, zeros=zeros)
                exact = {} if bits < 8 or not block else {  # there ONNX Runtime quantizes the rows, too
                    "reference": lambda x, r, weights=weights, **_: experts(x, r, **weights, k=2, activation_type="silu", among=True)}
                yield case(f"{bits}_{block}{'_zeros' * zeros}", given, x, expert_weight_bits=bits, activation_type="silu",
                           **({"block_size": block} if block else {}), **exact)
    four, _ = network(own, bits=4, block=16)
    for activation in ("relu", "gelu", "identity"):
        yield case(f"{activation}", four, x, activation_type=activation, block_size=16)
    pairs, _ = network(own, rows=2, bits=4, block=16, zeros=True)
    swiglu = {"activation_type": "swiglu", "activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 0.5}
    yield case("swiglu", pairs, x, block_size=16, swiglu_fusion=1, **swiglu)
    rows, _ = network(own, rows=2, bits=4, zeros=True)
    yield case("swiglu_rows", rows, x, swiglu_fusion=1, **swiglu)
    plain, _ = network(own, bits=4, bias=False)
    yield case("no_bias", plain, x)
    odd, _ = network(own, hidden=10, inner=6, bits=4, zeros=True)
    yield case("odd", odd, {"x": real(2, 3, 10), "r": real(6, 3)}, k=1)
    yield case("normalized", four, x, block_size=16, normalize_routing_weights=1)
    for normalize in (0, 1):
        yield case(f"weights_{normalize}", four, {**x, "rw": np.abs(real(2, 3))}, block_size=16, normalize_routing_weights=normalize)
    yield case("ties", four, {"x": real(3, 32), "r": np.array([[0, 0, 0], [1, 2, 2], [2, 1, 2]], F32)}, block_size=16, k=1)
    blocks, _ = network(own, hidden=16, inner=48, bits=4, block=16, zeros=True)
    yield case("odd_blocks", blocks, {"x": real(2, 16), "r": real(2, 3)}, block_size=16)
    half = [{k: v if v.dtype == U8 else v.astype(F16) for k, v in group.items()} for group in (four, x)]
    yield case("half", *half, out=(F16,), block_size=16, rtol=2e-2, atol=2e-2)
    feeds = [{"x": real(n, 32), "r": real(n, 3)} for n in (2, 1, 5)]
    yield Case("QMoE_dynamic", "QMoE", names_of(x, four), feeds, four, k=2, block_size=16, dims={"tokens": "1..8"},
               shapes={"x": ["tokens", 32], "r": ["tokens", 3]})

    def by_schema(name, given, weights, widths=None, **attributes):
        more = {"k": 2, "activation_type": "silu", **attributes}
        keys = {k: v for k, v in more.items() if k in ("k", "activation_type", "swiglu_fusion")}
        return case(name, given, {**x, "rw": real(2, 3)}, **more, **(widths or {}),
                    reference=lambda x, r, rw, **_: experts(x, r, **weights, share=rw, **keys))
    yield by_schema("gate", *network(own, bits=4, gate=True, zeros=True))
    yield by_schema("gate_swiglu", *network(own, bits=4, gate=True, block=16), block_size=16, activation_type="swiglu")
    yield by_schema("halves", *network(own, rows=2, bits=4, zeros=True, block=16), block_size=16, activation_type="swiglu", swiglu_fusion=2)
    (first, real1), (second, real2) = network(own, bits=8, zeros=True), network(own, bits=2, zeros=True)
    mixed = [{k: v for a, n in ((one, "1"), (two, "2")) for k, v in a.items() if k[1:] == n} for one, two in ((first, second), (real1, real2))]
    yield by_schema("widths", *mixed, widths={"fc1_expert_weight_bits": 8, "fc2_expert_weight_bits": 2})


def byte_cases():
    """With accuracy_level 4 rows may be quantized, which ONNX Runtime and XNNPACK do each in its own way."""
    own = np.random.default_rng(4)
    x = {"x": own.standard_normal((2, 32)).astype(F32), "r": own.standard_normal((2, 3)).astype(F32)}
    for zeros in (False, True):
        given, _ = network(own, hidden=32, inner=32, bits=4, block=32, zeros=zeros)
        yield Case(f"QMoE_bytes{'_zeros' * zeros}", "QMoE", names_of(x, given), x, given, k=2, block_size=32, accuracy_level=4, rtol=0, atol=0.1)


def branch_cases():
    """Experts so large that each is a branch, which runs when some token goes through it."""
    own = np.random.default_rng(5)
    names, wide = "x r w1 b1 w2 b2", 128

    def real(*shape):
        return (own.standard_normal(shape) / np.sqrt(wide if len(shape) > 2 else 1)).astype(F32)

    def feed(tokens, count=4):
        return {"x": real(tokens, wide), "r": real(tokens, count)}
    w = {"w1": real(4, wide, wide), "b1": real(4, wide), "w2": real(4, wide, wide), "b2": real(4, wide)}
    pairs = {**w, "w2": w["w2"][..., :64].copy()}
    gate = {**w, "w3": real(4, wide, wide), "b3": real(4, wide)}

    def case(name, inputs, feeds, constants, **attributes):
        return Case(f"MoE_branches_{name}", "MoE", inputs, feeds, constants, **attributes)

    def by_schema(name, inputs, constants, **attributes):
        keys = {"k": 2, **attributes}
        return case(name, inputs, feed(3), constants, **keys, reference=lambda **values: experts(**values, **keys))
    for k in (1, 2):
        yield case(f"{k}", names, feed(1), w, k=k, activation_type="silu", normalize_routing_weights=k - 1)
        yield case(f"{k}_tokens", names, feed(3), w, k=k)
    yield case("no_bias", "x r w1 - w2", feed(2), {k: w[k] for k in ("w1", "w2")}, k=2)
    yield case("swiglu", names, feed(3), pairs, k=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.7)
    yield case("batch", names, {"x": real(2, 2, wide) * 8, "r": real(4, 4)}, w, k=1)
    yield case("weights_as_inputs", names, {**feed(2), **w}, {}, k=2)
    feeds = [{"x": real(b, s, wide) * 8, "r": real(b * s, 4)} for b, s in ((1, 1), (2, 3), (3, 5))]
    yield case("dynamic", names, feeds, w, k=2, dims={"batch": "1..4", "steps": "1..6", "tokens": "1..24"},
               shapes={"x": ["batch", "steps", wide], "r": ["tokens", 4]})
    yield by_schema("gate", f"{names} w3 b3", gate, activation_type="swiglu")
    yield by_schema("halves", names, pairs, activation_type="swiglu", swiglu_fusion=2)
    for name, settings in (("", {}), ("_zeros", {"zeros": True}), ("_swiglu", {"rows": 2})):
        given, _ = network(own, hidden=wide, inner=wide, bits=4, block=32, **settings)
        more = {"activation_type": "swiglu", "swiglu_fusion": 1} if name == "_swiglu" else {"activation_type": "relu"}
        x = feed(2, 3)
        for level in (1, 4):  # with 4 rows may be quantized, as in byte_cases
            bounds = {"rtol": 0, "atol": 2.0} if level == 4 else {}
            yield Case(f"QMoE_branches{name}_{level}", "QMoE", names_of(x, given), x, given, k=1, block_size=32, accuracy_level=level, **more, **bounds)


ALL = (float_cases, code_cases, byte_cases, branch_cases)


def main():
    return cases.run([case for table in ALL for case in table()], contrib.check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
