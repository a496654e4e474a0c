#!/usr/bin/env python3
"""Mixtures of experts of com.microsoft on the real runtime, against ONNX Runtime.

    tests/conformance/experts.py [-k PATTERN,...] [-v]

Forms that the schema has and ONNX Runtime's kernel for the CPU has not are compared with a formula in numpy.
"""

import sys

import numpy as np

import contrib
from contrib import F16, F32, Case, cases, normal, softmax



def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x), "identity": lambda x: x}
NO_BIAS = np.zeros((1, 1))


def experts(x, r, w1, w2, b1=NO_BIAS, b2=NO_BIAS, w3=None, b3=NO_BIAS, *, k, activation_type="relu", swiglu_fusion=0):
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
    return [(each * (softmax(r) * chosen)[..., None]).sum(1).reshape(x.shape).astype(x.dtype)]


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


def main():
    return cases.run([*float_cases()], contrib.check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
