#!/usr/bin/env python3
"""Operators of com.microsoft on the real runtime, against ONNX Runtime.

    tests/conformance/contrib.py [-k PATTERN,...] [-v]

Where ONNX Runtime has no kernel on the CPU a formula in numpy, written after its documents, says what is right.
Models and values are made here, from a seed. The cases of quantized weights are in contrib_quantized.py.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import etc_command  # noqa: E402

RNG = np.random.default_rng(11)
F32, F16 = np.float32, np.float16


def normal(*shape, dtype=F32):
    return RNG.standard_normal(shape).astype(dtype)


def whole(dtype, low, high, *shape):
    return RNG.integers(low, high, shape).astype(dtype)


def declare(name, out):
    if isinstance(out, onnx.TypeProto):
        return helper.make_value_info(name, out)
    dtype, shape = out if isinstance(out, tuple) else (out, None)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)


class Case:
    """One node. `inputs` are names, "" for an absent one; `feeds` one set of values or several; `constants` are
    initializers. `reference` computes the outputs from all values instead of ONNX Runtime. `out` are dtypes; an entry
    may be None for an output that is not wanted, a pair of dtype and declared shape, or an ONNX type. Strings that
    ONNX Runtime gives become their index in `labels`, maps from labels to scores the scores."""

    def __init__(self, name, op, inputs, feeds, constants=None, out=(F32,), reference=None, dims=None, shapes=None, domain="com.microsoft",
                 rtol=1e-3, atol=1e-4, compare=None, opset=17, ml=3, labels=(), **attributes):
        self.name, self.reference, self.dims, self.rtol, self.atol = name, reference, dims or {}, rtol, atol
        self.feeds = feeds if isinstance(feeds, list) else [feeds]
        self.labels = list(labels)
        self.constants, self.compare = {k: np.asarray(v) for k, v in (constants or {}).items()}, compare
        inputs = inputs.split() if isinstance(inputs, str) else inputs
        inputs = ["" if i == "-" else i for i in inputs]
        outputs = ["" if o is None else f"y{i}" for i, o in enumerate(out)]
        values = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), (shapes or {}).get(k, v.shape))
                  for k, v in self.feeds[0].items()]
        declared = [declare(n, o) for n, o in zip(outputs, out) if n]
        node = helper.make_node(op, inputs, outputs, domain=domain, name="n0", **attributes)
        graph = helper.make_graph([node], "contrib", values, declared,
                                  initializer=[numpy_helper.from_array(v, k) for k, v in self.constants.items()])
        self.model = helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", ml)])


# --- products and activations ---

def erf(x):
    import math
    return np.vectorize(math.erf)(x)


def gelu(x):
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def product_cases():
    for a, b in (((2, 3, 4), (2, 4, 5)), ((3, 4), (4, 5)), ((2, 2, 3, 4), (4, 5)), ((1, 3, 4), (2, 4, 5))):
        yield Case(f"FusedMatMul_{len(a)}_{len(b)}", "FusedMatMul", "a b", {"a": normal(*a), "b": normal(*b)}, alpha=0.5)
    for ta, tb in ((1, 0), (0, 1), (1, 1)):
        a, b = (2, 4, 3) if ta else (2, 3, 4), (2, 5, 4) if tb else (2, 4, 5)
        yield Case(f"FusedMatMul_trans{ta}{tb}", "FusedMatMul", "a b", {"a": normal(*a), "b": normal(*b)}, transA=ta, transB=tb)
        yield Case(f"TransposeMatMul_{ta}{tb}", "TransposeMatMul", "a b", {"a": normal(*a), "b": normal(*b)}, transA=ta, transB=tb, alpha=2.0)
        for ba, bb in ((1, 0), (0, 1), (1, 1)):
            a, b = normal(2, 6, 3, 4), normal(2, 6, 4, 5)  # batches 2 and 6, matrices 3 x 4 and 4 x 5
            a, b = np.swapaxes(a, 2, 3) if ta else a, np.swapaxes(b, 2, 3) if tb else b
            a, b = np.moveaxis(a, -2, 0) if ba else a, np.moveaxis(b, -2, 0) if bb else b
            yield Case(f"FusedMatMul_batch{ba}{bb}_{ta}{tb}", "FusedMatMul", "a b", {"a": a.copy(), "b": b.copy()},
                       transA=ta, transB=tb, transBatchA=ba, transBatchB=bb)
    yield Case("FusedMatMul_double", "FusedMatMul", "a b", {"a": normal(2, 3, 4, dtype=np.float64), "b": normal(2, 4, 5, dtype=np.float64)},
               out=(np.float64,), alpha=0.5)
    for activation, more in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {}), ("Sigmoid", {}),
                             ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Elu", {"activation_alpha": 0.7}),
                             ("Softplus", {}), ("ThresholdedRelu", {"activation_alpha": 0.5}), ("Selu", {"activation_alpha": 1.6, "activation_gamma": 1.1})):
        yield Case(f"FusedGemm_{activation}", "FusedGemm", "a b c", {"a": normal(3, 4)}, {"b": normal(5, 4), "c": normal(5)},
                   activation=activation, transB=1, **more)
    def matmul_activated(a, b, f, alpha=1.0):
        return [f(alpha * np.swapaxes(a, -1, -2) @ b).astype(F32)]
    for activation, f, more in (("Relu", lambda y: np.maximum(y, 0), {}), ("Elu", lambda y: np.where(y > 0, y, 0.7 * np.expm1(y)), {"activation_alpha": 0.7}),
                                ("HardSigmoid", lambda y: np.clip(0.3 * y + 0.4, 0, 1), {"activation_alpha": 0.3, "activation_beta": 0.4})):
        yield Case(f"FusedMatMulActivation_{activation}", "FusedMatMulActivation", "a b", {"a": normal(2, 4, 3), "b": normal(2, 4, 5)},
                   reference=lambda a, b, f=f: matmul_activated(a, b, f, 0.5), activation=activation, transA=1, alpha=0.5, **more)
    yield Case("FusedGemm_scaled", "FusedGemm", "a b c", {"a": normal(4, 3), "b": normal(4, 5), "c": normal(3, 1)}, activation="Relu", transA=1,
               alpha=0.5, beta=2.0)
    conv = {"w": normal(4, 3, 3, 3), "c": normal(4)}
    for activation, params in (("Relu", None), ("LeakyRelu", [0.2]), ("Tanh", None), ("Sigmoid", None), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": params} if params else {}
        yield Case(f"FusedConv_{activation}", "FusedConv", "x w c", {"x": normal(2, 3, 6, 7)}, conv, activation=activation, pads=[1, 0, 1, 0],
                   strides=[2, 1], **more)
    yield Case("FusedConv_sum", "FusedConv", "x w c z", {"x": normal(2, 3, 6, 7), "z": normal(2, 4, 4, 5)}, conv, activation="Relu")
    yield Case("FusedConv_sum_only", "FusedConv", "x w - z", {"x": normal(2, 3, 6, 7), "z": normal(2, 4, 4, 5)}, {"w": conv["w"]})
    for op, relu in (("NhwcConv", False), ("NhwcFusedConv", True)):
        def conv_nhwc(x, w, c, relu=relu):
            import torch
            y = torch.conv2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(w if relu else w.transpose(0, 3, 1, 2)), torch.tensor(c), padding=1)
            return [(torch.relu(y) if relu else y).permute(0, 2, 3, 1).contiguous().numpy()]
        yield Case(op, op, "x w c", {"x": normal(1, 5, 6, 3)}, {"w": normal(4, 3, 3, 3), "c": normal(4)}, reference=conv_nhwc, pads=[1, 1, 1, 1],
                   **({"activation": "Relu"} if relu else {}))
    x, g = {"a": normal(2, 3, 8)}, {"g": normal(8)}
    yield Case("Gelu", "Gelu", "a", x)
    yield Case("QuickGelu", "QuickGelu", "a", x, alpha=1.3)
    yield Case("QuickGelu_default", "QuickGelu", "a", x)
    yield Case("BiasGelu", "BiasGelu", "a g", x, g)
    yield Case("FastGelu", "FastGelu", "a", x)
    yield Case("FastGelu_bias", "FastGelu", "a g", x, g)
    yield Case("GemmFastGelu", "GemmFastGelu", "a w g", {"a": normal(2, 3, 8)}, {"w": normal(8, 5), "g": normal(5)},
               reference=lambda a, w, g: [fast_gelu(a @ w + g).astype(F32)])
    yield Case("BiasSplitGelu", "BiasSplitGelu", "a g", x, g,
               reference=lambda a, g: [((a + g)[..., :4] * gelu((a + g)[..., 4:])).astype(F32)])
    yield Case("BiasAdd", "BiasAdd", "a g s", {"a": normal(2, 3, 8), "s": normal(2, 3, 8)}, g, reference=lambda a, s, g: [a + g + s])
    yield Case("BiasDropout", "BiasDropout", "a g s", {"a": normal(2, 3, 8), "s": normal(2, 3, 8)}, g, reference=lambda a, s, g: [a + g + s])
    yield Case("ScaledSiLU", "ScaledSiLU", "a", x, alpha=1.5)
    yield Case("GatedAdd", "GatedAdd", "a s g", {"a": normal(2, 3, 8), "s": normal(2, 3, 8), "g": normal(2, 3, 1)})
    for inner in (0, 1):
        bias = normal(2, 1, 5) if inner else normal(1, 3, 5)
        yield Case(f"BiasSoftmax_{inner}", "BiasSoftmax", "a g", {"a": normal(2, 3, 5), "g": bias}, reference=lambda a, g: [softmax(a + g)],
                   axis=2, is_inner_broadcast=inner)


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# --- normalisations ---

def group_norm(x, gamma, beta, groups=2, last=True, silu=False, eps=1e-5):
    x = x.astype(np.float64)
    x = np.moveaxis(x, -1, 1) if last else x
    parts = x.reshape(x.shape[0], groups, -1)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + eps)
    y = parts.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    y = y / (1 + np.exp(-y)) if silu else y
    return np.ascontiguousarray(np.moveaxis(y, 1, -1) if last else y).astype(F32)


def skip_with_statistics(a, b, g, t=0.0, centred=True):
    """With the statistics for training, which ONNX Runtime leaves unset."""
    x = (a + b).astype(np.float64)
    mean = x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-12 if centred else (x * x).mean(-1, keepdims=True) + 1e-12)
    y = (x - mean if centred else x) * inverse * g + t
    return [v.astype(F32) for v in (y, mean, inverse, x)]


def norm_cases():
    row = {"g": normal(8), "t": normal(8), "c": normal(8)}
    for dtype, tolerance in ((F32, {}), (F16, {"rtol": 2e-2, "atol": 2e-2})):
        pair = {"a": normal(2, 3, 8, dtype=dtype), "b": normal(2, 3, 8, dtype=dtype)}
        rows, kind = {k: v.astype(dtype) for k, v in row.items()}, np.dtype(dtype).name
        yield Case(f"SkipLayerNormalization_{kind}", "SkipLayerNormalization", "a b g t c", pair, rows, out=(dtype, None, None, dtype), epsilon=1e-5,
                   **tolerance)
        yield Case(f"SkipSimplifiedLayerNormalization_{kind}", "SkipSimplifiedLayerNormalization", "a b g c", pair, {k: rows[k] for k in "gc"},
                   out=(dtype, None, None, dtype), **tolerance)
        yield Case(f"SimplifiedLayerNormalization_{kind}", "SimplifiedLayerNormalization", "a g", {"a": pair["a"]}, {"g": rows["g"]}, out=(dtype,),
                   domain="", epsilon=1e-5, **tolerance)
    pair = {"a": normal(2, 3, 8), "b": normal(2, 3, 8)}
    yield Case("SkipLayerNormalization_plain", "SkipLayerNormalization", "a b g", pair, {"g": row["g"]})
    yield Case("SkipLayerNormalization_skip_row", "SkipLayerNormalization", "a b g t", {"a": pair["a"], "b": normal(3, 8)}, {k: row[k] for k in "gt"})
    yield Case("SkipLayerNormalization_2d", "SkipLayerNormalization", "a b g t", {"a": normal(6, 8), "b": normal(6, 8)}, {k: row[k] for k in "gt"})
    yield Case("SimplifiedLayerNormalization_axis", "SimplifiedLayerNormalization", "a g", {"a": normal(2, 3, 8)}, {"g": normal(3, 8)}, domain="",
               axis=1, out=(F32, F32))
    yield Case("LayerNormalization_16", "LayerNormalization", "a g t", {"a": normal(2, 3, 8)}, {k: row[k] for k in "gt"}, domain="", opset=16)
    for last in (1, 0):
        for activation in (0, 1):
            shape = (2, 3, 5, 8) if last else (2, 8, 3, 5)
            yield Case(f"GroupNorm_{last}_{activation}", "GroupNorm", "x g t", {"x": normal(*shape)}, {k: row[k] for k in "gt"}, groups=2,
                       channels_last=last, activation=activation,
                       reference=lambda x, g, t, last=last, activation=activation: [group_norm(x, g, t, 2, last, activation)])
            for skip in (shape, (2, 1, 1, 8) if last else (2, 8, 1, 1), (2, 8)):
                def skip_norm(x, s, g, t, c, last=last, activation=activation):
                    wide = s.reshape(2, 1, 1, 8) if last and s.ndim == 2 else s.reshape(2, 8, 1, 1) if s.ndim == 2 else s
                    total = x + wide + (c if last else c[:, None, None])
                    return [group_norm(total, g, t, 4, last, activation), total]
                if last or len(skip) == 2 or skip == shape:
                    yield Case(f"SkipGroupNorm_{last}_{activation}_{len(skip)}{skip[1]}", "SkipGroupNorm", "x g t s c",
                               {"x": normal(*shape), "s": normal(*skip)}, row, groups=4, channels_last=last, activation=activation, out=(F32, F32),
                               reference=skip_norm)
    embed = {"word": normal(20, 8), "place": normal(10, 8), "segment": normal(2, 8), "g": row["g"], "t": row["t"]}
    ids = {"ids": whole(np.int32, 0, 20, 2, 5), "parts": whole(np.int32, 0, 2, 2, 5)}
    i32 = np.int32
    yield Case("EmbedLayerNormalization", "EmbedLayerNormalization", "ids parts word place segment g t", ids, embed, out=(F32, i32))
    yield Case("EmbedLayerNormalization_mask", "EmbedLayerNormalization", "ids parts word place segment g t mask",
               {**ids, "mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], i32)}, embed, out=(F32, i32, F32), epsilon=1e-5)
    less = {k: v for k, v in embed.items() if k != "segment"}
    yield Case("EmbedLayerNormalization_no_segment", "EmbedLayerNormalization", "ids - word place - g t", {"ids": ids["ids"]}, less, out=(F32, i32))
    for rows in (1, 2):
        yield Case(f"EmbedLayerNormalization_places_{rows}", "EmbedLayerNormalization", "ids parts word place segment g t - at",
                   {**ids, "at": whole(i32, 0, 10, rows, 5)}, embed, out=(F32, None, F32))
    own = np.random.default_rng(9)
    a, b, g, t = (own.standard_normal(s).astype(F32) for s in ((2, 3, 8), (2, 3, 8), 8, 8))
    yield Case("SkipLayerNormalization_statistics", "SkipLayerNormalization", "a b g t", {"a": a, "b": b}, {"g": g, "t": t}, out=(F32,) * 4,
               reference=skip_with_statistics)
    yield Case("SkipSimplifiedLayerNormalization_statistics", "SkipSimplifiedLayerNormalization", "a b g", {"a": a, "b": b}, {"g": g},
               out=(F32,) * 4, reference=lambda a, b, g: skip_with_statistics(a, b, g, centred=False))


# --- attention ---

def heads_of(x, n):
    return x.reshape(x.shape[0], x.shape[1], n, -1).transpose(0, 2, 1, 3)


def plain_attention(q, k, v, bias=0, scale=None):
    """q, k, v [B, heads, length, size] -> [B, length, heads * size]"""
    scores = q @ np.swapaxes(k, 2, 3) * (scale or 1 / np.sqrt(q.shape[-1])) + bias
    y = softmax(scores) @ v
    return np.ascontiguousarray(y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)).astype(F32)


def attention_cases():
    i32 = np.int32
    base = {"w": normal(8, 24) / 2, "c": normal(24)}
    x, n = normal(2, 5, 8), {"num_heads": 2}
    square = whole(i32, 0, 2, 2, 5, 5) | np.eye(5, dtype=i32)
    masks = {"ends": np.array([3, 5], i32), "begins": np.array([4, 5, 1, 0], i32), "keys": np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], i32),
             "none": np.array([[0, 0, 0, 0, 0], [1, 1, 0, 1, 1]], i32), "square": square}
    yield Case("Attention", "Attention", "x w c", {"x": x}, base, **n)
    yield Case("Attention_scale", "Attention", "x w c", {"x": x}, base, scale=0.3, **n)
    yield Case("Attention_no_bias", "Attention", "x w", {"x": x}, {"w": base["w"]}, **n, reference=lambda x, w: [
        plain_attention(*(heads_of(part, 2) for part in np.split(x @ w, 3, -1)))])  # ONNX Runtime 1.31 crashes on it
    yield Case("Attention_present", "Attention", "x w c", {"x": x}, base, out=(F32, F32), unidirectional=1, **n)
    for kind, mask in masks.items():
        for causal in (0, 1):
            yield Case(f"Attention_{kind}_{causal}", "Attention", "x w c m", {"x": x, "m": mask}, base, unidirectional=causal, **n)
    yield Case("Attention_filter", "Attention", "x w c m", {"x": x, "m": masks["none"]}, base, mask_filter_value=-1e4 / 3, **n)
    yield Case("Attention_sizes", "Attention", "x w c", {"x": x}, {"w": normal(8, 28) / 2, "c": normal(28)}, qkv_hidden_sizes=[8, 8, 12], **n)
    for heads in (1, 2):
        for batch in (1, 2):
            yield Case(f"Attention_added_{batch}_{heads}", "Attention", "x w c - - r", {"x": x, "r": normal(batch, heads, 5, 5)}, base, **n)
    past = {"p": normal(2, 2, 2, 3, 4)}
    grown = {"m": np.array([[0, 1, 1, 1, 1, 1, 1, 1], [1] * 8], i32)}
    yield Case("Attention_past", "Attention", "x w c - p", {"x": x, **past}, base, out=(F32, F32), unidirectional=1, **n)
    yield Case("Attention_past_mask", "Attention", "x w c m p", {"x": x, **past, **grown}, base, out=(F32, F32), unidirectional=1, **n)
    yield Case("Attention_past_square", "Attention", "x w c m p", {"x": x, **past, "m": whole(i32, 0, 2, 2, 5, 8)}, base, out=(F32, F32), **n)

    def four(x, m, w, c):
        q, k, v = (heads_of(part, 2) for part in np.split(x @ w + c, 3, -1))
        return [plain_attention(q, k, v, np.where(m[:, :, :5, :5] > 0, 0, F32(-10000)))]
    yield Case("Attention_4d", "Attention", "x w c m", {"x": x, "m": np.tril(np.ones((2, 1, 9, 9), i32))}, base, reference=four, **n)
    length = [{"x": normal(b, s, 8), "m": whole(i32, 0, 2, b, s) | np.eye(1, s, dtype=i32)} for b, s in ((2, 5), (1, 1), (3, 7))]
    yield Case("Attention_dynamic", "Attention", "x w c m", length, base, dims={"batch": "1..4", "length": "1..8"},
               shapes={"x": ["batch", "length", 8], "m": ["batch", "length"]}, **n)


def multi_head_cases():
    i32, n = np.int32, {"num_heads": 2}
    qkv = {"q": normal(2, 3, 8), "k": normal(2, 5, 8), "v": normal(2, 5, 12)}
    op = "MultiHeadAttention"
    yield Case("MultiHeadAttention", op, "q k v", qkv, **n)
    yield Case("MultiHeadAttention_bias", op, "q k v c", qkv, {"c": normal(28)}, scale=0.2, **n)
    yield Case("MultiHeadAttention_qk", op, "q k v", qkv, out=(F32, None, None, F32), **n)
    yield Case("MultiHeadAttention_qk_mask", op, "q k v - m", {**qkv, "m": whole(i32, 0, 2, 2, 5)}, out=(F32, None, None, F32), **n)
    for kind, mask in (("keys", np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]], i32)), ("square", whole(i32, 0, 2, 2, 3, 5)), ("ends", np.array([3, 5], i32))):
        yield Case(f"MultiHeadAttention_{kind}", op, "q k v - m", {**qkv, "m": mask}, mask_filter_value=-5000.0, **n)
    for batch, heads in ((1, 1), (1, 2), (2, 1), (2, 2)):
        yield Case(f"MultiHeadAttention_added_{batch}{heads}", op, "q k v c - r", {**qkv, "r": normal(batch, heads, 3, 5)}, {"c": normal(28)}, **n)
    same = {k: normal(2, 3, 8) for k in "qkv"}
    past = {"pk": normal(2, 2, 4, 4), "pv": normal(2, 2, 4, 4)}
    yield Case("MultiHeadAttention_causal", op, "q k v", same, unidirectional=1, **n)
    yield Case("MultiHeadAttention_past", op, "q k v c - - pk pv", {**same, **past}, {"c": normal(24)}, out=(F32, F32, F32), **n)
    yield Case("MultiHeadAttention_past_causal", op, "q k v - - - pk pv", {**same, **past}, out=(F32, F32, F32), unidirectional=1, **n)
    for queries in (1, 2):
        yield Case(f"MultiHeadAttention_causal_{queries}_of_4", op, "q k v", {"q": normal(2, queries, 8), "k": normal(2, 4, 8), "v": normal(2, 4, 8)},
                   unidirectional=1, **n)
    yield Case("MultiHeadAttention_past_mask", op, "q k v - m r pk pv", {**same, **past, "m": whole(i32, 0, 2, 2, 7), "r": normal(1, 2, 3, 7)},
               out=(F32, F32, F32), **n)
    yield Case("MultiHeadAttention_cross", op, "q k v c", {"q": normal(2, 3, 8), "k": normal(2, 2, 5, 4), "v": normal(2, 2, 5, 4)}, {"c": normal(24)}, **n)
    yield Case("MultiHeadAttention_packed_qkv", op, "x", {"x": normal(2, 3, 2, 3, 4)}, **n,
               reference=lambda x: [plain_attention(*(x[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)))])
    yield Case("MultiHeadAttention_packed_qkv_bias", op, "x - - c", {"x": normal(2, 3, 2, 3, 4)}, {"c": normal(24)}, **n, reference=lambda x, c: [
        plain_attention(*(x[:, :, :, i].transpose(0, 2, 1, 3) + c[8 * i:8 * i + 8].reshape(2, 1, 4) for i in range(3)))])
    yield Case("MultiHeadAttention_packed_kv", op, "q x", {"q": normal(2, 3, 8), "x": normal(2, 5, 2, 2, 4)}, **n,
               reference=lambda q, x: [plain_attention(heads_of(q, 2), *(x[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2)))])
    one, op = {k: normal(2, 1, 8) for k in "qkv"}, "DecoderMaskedMultiHeadAttention"

    def decode(q, k, v, pk, pv, m=None, r=0, c=np.zeros(24, F32)):
        """ONNX Runtime's kernel takes self attention only with a cache that past and present share."""
        q, k, v = (heads_of(x + part, 2) for x, part in zip((q, k, v), np.split(c, 3)))
        keys, values = np.concatenate([pk, k], 2), np.concatenate([pv, v], 2)
        bias = r + (0 if m is None else np.where(m > 0, 0, F32(-10000))[:, None, None])
        return [plain_attention(q, keys, values, bias), keys, values]
    more = {"reference": decode, "out": (F32, F32, F32), **n}
    yield Case("DecoderMasked", op, "q k v - - pk pv", {**one, **past}, **more)
    yield Case("DecoderMasked_mask", op, "q k v m r pk pv", {**one, **past, "m": whole(i32, 0, 2, 2, 5), "r": normal(1, 2, 1, 5)}, **more)
    yield Case("DecoderMasked_bias", op, "q k v - - pk pv - - - c", {**one, **past}, {"c": normal(24)}, **more)
    yield Case("DecoderMasked_cross", op, "q k v m", {"q": normal(2, 1, 8), "k": normal(2, 2, 5, 4), "v": normal(2, 2, 5, 4), "m": whole(i32, 0, 2, 2, 5)}, **n)


def query(batch, steps, past=0, total=None, packed=False, size=16, lengths=None, dtype=F32):
    """Inputs of GroupQueryAttention with 4 heads and 2 groups."""
    total = total or past + steps
    feed = {"q": normal(batch, steps, (8 if packed else 4) * size, dtype=dtype)}
    if not packed:
        feed.update({k: normal(batch, steps, 2 * size, dtype=dtype) for k in "kv"})
    if past:
        feed.update({k: normal(batch, 2, past, size, dtype=dtype) for k in ("pk", "pv")})
    feed["at"] = np.array(lengths or [total] * batch, np.int32) - 1
    feed["total"] = np.array(total, np.int32)
    return feed


def group_query_cases():
    n, op = {"num_heads": 4, "kv_num_heads": 2}, "GroupQueryAttention"
    apart, packed = "q k v {} {} at total".format, "q - - {} {} at total".format
    three = (F32, F32, F32)
    half = {"rtol": 2e-2, "atol": 1e-2}

    def rotary(dtype=F32, size=16):
        angle = np.arange(40)[:, None] / 100 ** (np.arange(size // 2) / (size // 2))
        return {"cos": np.cos(angle).astype(dtype), "sin": np.sin(angle).astype(dtype)}
    turn = " cos sin"
    for batch in (1, 2):
        yield Case(f"GroupQuery_prompt_{batch}", op, apart("-", "-"), query(batch, 5), out=three, **n)
        yield Case(f"GroupQuery_packed_{batch}", op, packed("-", "-") + turn, query(batch, 5, packed=True), rotary(), out=three, do_rotary=1, **n)
        yield Case(f"GroupQuery_grow_{batch}", op, apart("pk", "pv") + turn, query(batch, 1, 6), rotary(), out=three, do_rotary=1, **n)
        yield Case(f"GroupQuery_grow_packed_{batch}", op, packed("pk", "pv") + turn, query(batch, 1, 6, packed=True), rotary(), out=three, do_rotary=1,
                   rotary_interleaved=1, **n)
    yield Case("GroupQuery_steps", op, apart("pk", "pv") + turn, query(1, 4, 6), rotary(), out=three, do_rotary=1, **n)
    yield Case("GroupQuery_half", op, packed("pk", "pv") + turn, query(1, 1, 6, packed=True, dtype=F16), rotary(F16), out=(F16,) * 3, do_rotary=1, **n, **half)

    def resident(lengths):
        """Compares the outputs and, of the cache, what is in use."""
        def compare(outputs):
            y, *cache = outputs
            for c in cache:
                for b, length in enumerate(lengths):
                    c[b, :, length:] = 0
            return [y, *cache]
        return compare
    shape = (F32, (2, 2, 12, 16))
    for total in ([5, 9], [12, 2]):
        yield Case(f"GroupQuery_buffer_{total[0]}", op, apart("pk", "pv") + turn, query(2, 1, 12, max(total), lengths=total), rotary(),
                   out=(F32, shape, shape), do_rotary=1, compare=resident(total), **n)
    yield Case("GroupQuery_buffer_prompt", op, apart("pk", "pv") + turn, query(2, 6, 12, 6), rotary(), out=(F32, shape, shape), do_rotary=1,
               compare=resident([6, 6]), **n)
    yield Case("GroupQuery_buffer_steps", op, apart("pk", "pv") + turn, query(1, 3, 12, 8), rotary(), out=(F32, (F32, (1, 2, 12, 16)), (F32, (1, 2, 12, 16))),
               do_rotary=1, compare=resident([8]), **n)
    yield Case("GroupQuery_grow_ragged", op, apart("pk", "pv") + turn, query(2, 1, 6, 7, lengths=[7, 4]), rotary(), out=three, do_rotary=1,
               compare=resident([7, 4]), **n)
    for window in (1, 2, 3):
        yield Case(f"GroupQuery_window_{window}", op, apart("-", "-"), query(1, 6), out=three, local_window_size=window, **n)
        yield Case(f"GroupQuery_window_past_{window}", op, apart("pk", "pv"), query(1, 1, 6), out=three, local_window_size=window, **n)
    yield Case("GroupQuery_softcap", op, apart("-", "-"), query(1, 5), out=three, softcap=0.7, **n)
    yield Case("GroupQuery_smooth", op, apart("pk", "pv"), query(2, 1, 6), out=three, smooth_softmax=1, **n)
    yield Case("GroupQuery_sink", op, apart("-", "-") + " - - - - sink", query(1, 5), {"sink": normal(4)}, out=three, **n)
    yield Case("GroupQuery_scale", op, apart("-", "-"), query(1, 5), out=three, scale=0.1, **n)
    yield Case("GroupQuery_both", op, apart("-", "-"), query(1, 5), out=three, causal=0, **n)
    yield Case("GroupQuery_added", op, apart("-", "-") + " - - - r", {**query(1, 5), "r": normal(1, 4, 5, 5)}, out=three, **n)
    yield Case("GroupQuery_positions", op, apart("pk", "pv") + turn + " at2", {**query(1, 1, 6), "at2": np.array([[6]])}, rotary(), out=three, do_rotary=1, **n)
    yield Case("GroupQuery_partial", op, apart("-", "-") + turn, query(1, 5, size=32), rotary(), out=three, do_rotary=1, **n)

    def normed(q, k, v, at, total, qn, kn):
        def rms(x, w):
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w
        heads, keys, values = rms(heads_of(q, 4), qn), rms(heads_of(k, 2), kn), heads_of(v, 2)
        future = np.where(np.tril(np.ones((5, 5))), 0, -np.inf)
        return [plain_attention(heads, np.repeat(keys, 2, 1), np.repeat(values, 2, 1), future), keys.astype(F32), np.ascontiguousarray(values)]
    yield Case("GroupQuery_norm", op, apart("-", "-") + " - - - - - - - qn kn", query(1, 5), {"qn": normal(16), "kn": normal(16)}, out=three,
               reference=normed, **n)
    grown = (F32, ["batch", 2, "total", 16])
    for name, batch, bounds in (("one", 1, "1"), ("batch", 2, "1..3")):
        feeds = [query(b if batch > 1 else 1, s, p) for b, s, p in ((2, 1, 6), (1, 1, 1), (3, 1, 9))]
        yield Case(f"GroupQuery_dynamic_{name}", op, apart("pk", "pv") + turn, feeds, rotary(), out=(F32, grown, grown), do_rotary=1,
                   dims={"batch": bounds, "past": "1..16"}, **n, shapes={
                       **{k: ["batch", 1, d] for k, d in (("q", 64), ("k", 32), ("v", 32))}, **{k: ["batch", 2, "past", 16] for k in ("pk", "pv")}, "at": ["batch"]})
    feeds = [query(1, s) for s in (5, 1, 8)]
    yield Case("GroupQuery_dynamic_prompt", op, apart("-", "-") + turn, feeds, rotary(), out=three, do_rotary=1, dims={"steps": "1..9"}, **n,
               shapes={k: [1, "steps", d] for k, d in (("q", 64), ("k", 32), ("v", 32))})


def rotary_cases():
    cache = {"cos": normal(10, 4), "sin": normal(10, 4)}
    op, names = "RotaryEmbedding", "x p cos sin"
    each, first = np.array([[0, 1, 2], [3, 4, 5]]), np.array([2])
    for mode in (0, 1):
        yield Case(f"RotaryEmbedding_each_{mode}", op, names, {"x": normal(2, 3, 16), "p": each}, cache, interleaved=mode)
        yield Case(f"RotaryEmbedding_first_{mode}", op, names, {"x": normal(2, 3, 16), "p": first}, cache, interleaved=mode)
        yield Case(f"RotaryEmbedding_heads_{mode}", op, names, {"x": normal(2, 2, 3, 8), "p": each}, cache, interleaved=mode)
        yield Case(f"RotaryEmbedding_heads_first_{mode}", op, names, {"x": normal(2, 2, 3, 8), "p": first}, cache, interleaved=mode)
        yield Case(f"RotaryEmbedding_partial_{mode}", op, names, {"x": normal(2, 3, 24), "p": each}, cache, interleaved=mode, num_heads=2,
                   rotary_embedding_dim=8)
        yield Case(f"RotaryEmbedding_f16_{mode}", op, names, {"x": normal(2, 3, 16, dtype=F16), "p": each}, {k: v.astype(F16) for k, v in cache.items()},
                   out=(F16,), interleaved=mode, rtol=1e-2, atol=1e-2)
    feeds = [{"x": normal(b, s, 16), "p": np.arange(b * s).reshape(b, s) % 10} for b, s in ((2, 3), (1, 1), (3, 5))]
    yield Case("RotaryEmbedding_dynamic", op, names, feeds, cache, dims={"batch": "1..4", "steps": "1..6"},
               shapes={"x": ["batch", "steps", 16], "p": ["batch", "steps"]})


# --- beside the standard ---

def other_cases():
    x = {"x": normal(2, 3, 5)}
    yield Case("Trilu", "Trilu", "x k", x, {"k": np.int64(1)})
    yield Case("Trilu_lower", "Trilu", "x", x, upper=0)
    yield Case("Range", "Range", "a b c", {}, {"a": F32(1), "b": F32(7), "c": F32(1.5)})
    yield Case("Pad", "Pad", "x p v", x, {"p": np.array([0, 1, 0, 0, 2, 1]), "v": F32(3)})
    yield Case("Pad_reflect", "Pad", "x p", x, {"p": np.array([0, 1, 2, 0, 2, 1])}, mode="reflect")
    yield Case("ExpandDims", "ExpandDims", "x a", x, {"a": np.int32(1)})
    yield Case("ExpandDims_last", "ExpandDims", "x a", x, {"a": np.int32(-1)})
    yield Case("SampleOp", "SampleOp", "x", x)
    yield Case("GatherND", "GatherND", "x i", x, {"i": np.array([[0, 1], [1, 2]])})
    yield Case("UnfoldTensor", "UnfoldTensor", "x", x, dim=2, size=3, step=2)
    yield Case("UnfoldTensor_first", "UnfoldTensor", "x", x, dim=1, size=2)
    yield Case("TorchEmbedding", "TorchEmbedding", "x i", {"x": normal(6, 4), "i": np.array([[0, 5], [2, 2]])},
               reference=lambda x, i: [x[i]])
    for metric in ("euclidean", "sqeuclidean"):
        yield Case(f"CDist_{metric}", "CDist", "a b", {"a": normal(4, 6), "b": normal(3, 6)}, metric=metric)
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            yield Case(f"GridSample_{mode}_{padding}", "GridSample", "x g", {"x": normal(1, 2, 4, 5), "g": normal(1, 3, 3, 2)}, mode=mode,
                       padding_mode=padding, align_corners=1)
    for activation in ("silu", "sigmoid"):
        for wide in (8, 4):
            yield Case(f"GatedRMSNorm_{activation}_{wide}", "GatedRMSNorm", "x s g", {"x": normal(2, 3, 8), "g": normal(2, 3, 8)}, {"s": normal(wide)},
                       activation=activation)
    qkv = {"q": normal(1, 4, 8), "k": normal(1, 4, 8) / 3, "v": normal(1, 4, 8)}
    two = {"q_num_heads": 2, "kv_num_heads": 2, "out": (F32, F32)}
    yield Case("LinearAttention", "LinearAttention", "q k v", qkv, update_rule="linear", **two)
    yield Case("LinearAttention_gated", "LinearAttention", "q k v s d b", {**qkv, "s": normal(1, 2, 4, 4), "d": -np.abs(normal(1, 4, 2)),
               "b": np.abs(normal(1, 4, 2))}, **two)
    yield Case("CausalConvWithState", "CausalConvWithState", "x w c s", {"x": normal(2, 3, 6), "s": normal(2, 3, 3)},
               {"w": normal(3, 1, 4), "c": normal(3)}, out=(F32, F32), activation="silu")
    def grouped(x, w):
        import torch
        y = torch.conv2d(torch.tensor(x).permute(0, 3, 1, 2), torch.tensor(w.transpose(0, 3, 1, 2)), stride=(2, 1), groups=2)
        return [y.permute(0, 2, 3, 1).contiguous().numpy()]
    yield Case("NhwcConv_groups", "NhwcConv", "x w", {"x": normal(2, 7, 6, 4)}, {"w": normal(6, 3, 2, 2)}, reference=grouped, kernel_shape=[3, 2],
               strides=[2, 1], group=2)


def vision_and_language_cases():
    own = np.random.default_rng(19)

    def random(*shape, dtype=F32):
        return own.standard_normal(shape).astype(dtype)

    for n in (1, 2, 5, 9):
        x = random(2, 3, n, n)
        x[0, 0] = np.roll(np.eye(n, dtype=F32) * 2, 1, 1)  # no pivot stands where it belongs
        yield Case(f"Inverse_{n}", "Inverse", "x", {"x": x}, rtol=1e-3, atol=1e-3)
    yield Case("Inverse_f16", "Inverse", "x", {"x": random(3, 3, dtype=F16) + 3 * np.eye(3, dtype=F16)}, out=(F16,), rtol=1e-2, atol=1e-2)
    yield Case("Inverse_dynamic", "Inverse", "x", [{"x": random(3, 4, 4)}, {"x": random(1, 4, 4)}], shapes={"x": ["batch", 4, 4]}, dims={"batch": "1..4"})
    rois = np.array([[0, 0, 1, 1], [0.2, 0.7, 0.6, 0.1], [-0.3, 0.1, 0.9, 1.4], [0.5, 0.5, 0.5, 0.5]], F32)
    feed = {"x": random(2, 3, 7, 9), "r": rois, "b": np.array([0, 1, 1, 0], np.int32)}
    for mode in ("bilinear", "nearest"):
        for size, outside in (((4, 5), 0.0), ((1, 3), 2.5), ((15, 1), -1.0)):
            yield Case(f"CropAndResize_{mode}_{size[0]}", "CropAndResize", "x r b s", feed, {"s": np.array(size, np.int32)}, mode=mode, extrapolation_value=outside)
    yield Case("CropAndResize_dynamic", "CropAndResize", "x r b s", [feed, {**feed, "r": rois[:1], "b": feed["b"][:1]}], {"s": np.array([4, 5], np.int32)},
               shapes={"r": ["n", 4], "b": ["n"]}, dims={"n": "1..5"})
    angle = own.random((12, 8)) * 6
    cache = {"cos": np.cos(angle).astype(F32), "sin": np.sin(angle).astype(F32)}
    at = own.integers(0, 12, (3, 2, 5))
    for layout, section in ((0, [2, 3, 3]), (1, [3, 3, 2]), (1, [6, 1, 1])):
        for interleaved in (0, 1):
            name, form = f"MRotaryEmbedding_{layout}_{section[0]}_{interleaved}", {"mrope_section": section, "mrope_layout": layout, "interleaved": interleaved}
            yield Case(name, "MRotaryEmbedding", "x p cos sin", {"x": random(2, 5, 32), "p": at}, cache, num_heads=2, **form)
            yield Case(f"{name}_heads", "MRotaryEmbedding", "x p cos sin", {"x": random(2, 3, 5, 16), "p": at}, cache, **form)
    yield Case("MRotaryEmbedding_partial", "MRotaryEmbedding", "x p cos sin", {"x": random(2, 5, 48), "p": at}, cache, mrope_section=[2, 3, 3], num_heads=2,
               rotary_embedding_dim=16, scale=0.5)
    gates = {"a": 4 * random(2, 5, 3), "b": random(2, 5, 3)}
    weights = {"t": random(3), "s": -np.abs(random(3))}
    yield Case("LinearAttentionGate", "LinearAttentionGate", "a t s b", gates, weights, out=(F32, F32))
    yield Case("LinearAttentionGate_decay", "LinearAttentionGate", "a t s", {"a": gates["a"]}, weights)
    yield Case("LinearAttentionGate_f16", "LinearAttentionGate", "a t s b", {k: v.astype(F16) for k, v in gates.items()}, weights, out=(F16, F16))
    for size in (1, 2, 3, 5, 12):
        ids = own.integers(0, 4, (3, 11))
        ids[1] = 2
        yield Case(f"NGramRepeatBlock_{size}", "NGramRepeatBlock", "i s", {"i": ids, "s": random(3, 6)}, ngram_size=size)
    yield Case("NGramRepeatBlock_dynamic", "NGramRepeatBlock", "i s", [{"i": ids, "s": random(3, 6)}, {"i": ids[:, :3], "s": random(3, 6)}],
               shapes={"i": [3, "n"]}, dims={"n": "3..20"}, ngram_size=3)
    yield Case("Unique_in_order", "Unique", "x", {"x": np.floor(3 * random(17))}, out=(F32, np.int64, np.int64))


ALL = (product_cases, norm_cases, attention_cases, multi_head_cases, group_query_cases, rotary_cases, other_cases, vision_and_language_cases)


def expected(case, feed, path):
    if case.reference:
        return [np.asarray(y) for y in case.reference(**feed, **case.constants)]
    return [as_tensor(y, case.labels) for y in cases.ort_session(path).run(None, feed)]


def as_tensor(y, labels):
    """What a program gives for what ONNX Runtime gives."""
    if isinstance(y, list):
        return np.array([[scores[label] for label in labels] for scores in y], F32)
    if y.dtype != object:
        return y
    return np.array([labels.index(label) for label in y.ravel()], np.int64).reshape(y.shape)


def check(case, args, server, work):
    """None, or what is wrong."""
    source, target, bundle = (os.path.join(work, x) for x in ("model.onnx", "model.pte", "data.pkl"))
    onnx.save(case.model, source)
    try:
        wanted = [expected(case, feed, source) for feed in case.feeds]
    except Exception as error:  # noqa: BLE001
        return f"the reference failed: {str(error).strip()[-300:]}"
    stage, code, message, _ = etc_command.lower(args.etc, source, target, case.dims, args.extra, args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    for feed, want in zip(case.feeds, wanted):
        arrays.save_bundle(bundle, list(feed.values()), want)
        request = {"pte": target, "bundle": bundle, "rtol": case.rtol, "atol": case.atol, "save": work}
        answer = server.run(request, args.timeout)
        message = answer["message"]
        if case.compare and answer["stage"] in ("ok", "mismatch"):
            got = [np.load(os.path.join(work, f"got_{i}.npy")) for i in range(len(want))]
            message = arrays.compare_all(case.compare(got), case.compare(want), case.rtol, case.atol)
        if message or answer["stage"] not in ("ok", "mismatch"):
            return f"{answer['stage']}: {message}"
    return None


def main():
    return cases.run([case for table in ALL for case in table()], check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
