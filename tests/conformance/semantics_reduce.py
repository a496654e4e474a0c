"""Reductions, sorting and search, softmax, products, losses; sequences and recurrent layouts; generated tensors."""

import numpy as np

from single_node import Case, RNG, ints, normal, whole

EXACT = {"rtol": 0, "atol": 0}
INF, NAN = np.inf, np.nan
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def reductions():
    for kind in REDUCTIONS:
        op = f"Reduce{kind}"
        x = {"x": np.abs(normal(2, 3, 4)) + np.float32(0.5) if "Log" in kind else normal(2, 3, 4)}
        for opset in (7, 11, 13, 18, 20):
            as_input = opset >= (13 if kind == "Sum" else 18)
            for keep in (0, 1):
                for axes in (None, [0], [-1, 1] if opset >= 11 else [1, 2]):
                    given = {"a": ints(*axes)} if as_input and axes else {}
                    more = {"axes": axes} if axes and not as_input else {}
                    yield Case(f"{op}-{opset}-{axes and len(axes)}-keep{keep}", op, ["x", *given], x, given, opset=opset, keepdims=keep,
                               oracle="onnx" if opset == 20 and kind not in ("Max", "Min") else "ort", **more)
        for keep in (0, 1):
            for noop in (0, 1):
                yield Case(f"{op}-18-noop{noop}-keep{keep}", op, ["x"], x, opset=18, keepdims=keep, noop_with_empty_axes=noop,
                           oracle="onnx" if noop and kind not in ("Max", "Min", "Mean", "Prod", "Sum") else "ort")
                yield Case(f"{op}-18-empty{noop}-keep{keep}", op, ["x", "a"], x, {"a": np.zeros(0, np.int64)}, opset=18, keepdims=keep, noop_with_empty_axes=noop,
                           oracle="onnx" if noop and kind not in ("Max", "Min", "Mean", "Prod", "Sum") else "ort")
        yield Case(f"{op}-scalar", op, ["x"], {"x": np.float32(2.5)}, opset=13)
        for dtype in (np.int32, np.int64, np.float64):
            if dtype is np.float64 or kind not in ("L2", "LogSum", "LogSumExp"):
                yield Case(f"{op}-{np.dtype(dtype).name}", op, ["x", "a"], {"x": whole(dtype, -4, 5, 2, 3)}, {"a": ints(1)}, opset=18, out_type=dtype, rtol=1e-6)
    empty = {"x": np.zeros((2, 0, 3), np.float32)}
    for kind, value in (("Sum", 0), ("Prod", 1), ("L1", 0), ("L2", 0), ("SumSquare", 0), ("LogSum", -INF), ("LogSumExp", -INF), ("Max", -INF), ("Min", INF)):
        yield Case(f"Reduce{kind}-empty", f"Reduce{kind}", ["x", "a"], empty, {"a": ints(1)}, opset=20, oracle=[np.full((2, 1, 3), value, np.float32)])
    special = {"x": np.array([[1, NAN, 2], [INF, 1, 2], [-INF, 1, INF], [-INF, -INF, -INF], [1000, 1000, 1000], [-1000, -1000, -1000]], np.float32)}
    for kind in ("Sum", "Max", "Min", "LogSumExp"):  # ONNX Runtime's Max and Min ignore a NaN or not, by their place
        yield Case(f"Reduce{kind}-special", f"Reduce{kind}", ["x", "a"], special, {"a": ints(1)}, opset=18, oracle="onnx" if kind in ("Max", "Min") else "ort")
    for op in ("ReduceMax", "ReduceMin"):
        for dtype in (np.uint8, np.int8, np.bool_, np.float16):
            yield Case(f"{op}-{np.dtype(dtype).name}", op, ["x", "a"], {"x": whole(dtype, 0, 2, 3, 4)}, {"a": ints(1)}, opset=20, out_type=dtype,
                       oracle="onnx", **EXACT)


def searches():
    x = {"x": whole(np.float32, 0, 4, 3, 4, 5)}
    for op in ("ArgMax", "ArgMin"):
        for opset in (7, 11, 12, 13):
            for axis in (0, 1, -1) if opset >= 11 else (0, 2):
                for keep in (0, 1):
                    for last in (0, 1) if opset >= 12 else (None,):
                        more = {} if last is None else {"select_last_index": last}
                        yield Case(f"{op}-{opset}-{axis}-{keep}-{last}", op, ["x"], x, opset=opset, axis=axis, keepdims=keep, out_type=np.int64, **more)
        for dtype in (np.int32, np.int8, np.uint8, np.float64):
            yield Case(f"{op}-{np.dtype(dtype).name}", op, ["x"], {"x": whole(dtype, 0, 4, 3, 4)}, opset=13, axis=1, out_type=np.int64)
    for axis in (0, 1, -1):
        size = x["x"].shape[axis]
        yield Case(f"TopK-1-{axis % 3}", "TopK", ["x"], x, outputs=2, out_type=[np.float32, np.int64], opset=7, axis=axis % 3, k=2)
        yield Case(f"TopK-10-{axis % 3}", "TopK", ["x", "k"], x, {"k": ints(size)}, outputs=2, out_type=[np.float32, np.int64], opset=10, axis=axis % 3)
        for largest in (0, 1):
            for k in (1, 3, size, 0):
                yield Case(f"TopK-11-{axis}-{largest}-{k}", "TopK", ["x", "k"], x, {"k": ints(k)}, outputs=2, out_type=[np.float32, np.int64], opset=11,
                           axis=axis, largest=largest)
    for dtype in (np.int32, np.int64, np.float64):
        yield Case(f"TopK-{np.dtype(dtype).name}", "TopK", ["x", "k"], {"x": whole(dtype, -3, 4, 3, 7)}, {"k": ints(4)}, outputs=2, out_type=[dtype, np.int64])
    # Equal elements, signs, and zeros of both signs, which are equal.
    signed = whole(np.float32, -2, 3, 3, 40) * np.where(np.arange(40) % 2, np.float32(1), np.float32(-1)) * np.float32(1e-30)
    for dtype in (np.float32, np.float64, np.int8, np.int32):
        for largest in (0, 1):
            for k in (9, 40):
                yield Case(f"TopK-signs-{np.dtype(dtype).name}-{largest}-{k}", "TopK", ["x", "k"], {"x": (signed * (1e30 if np.dtype(dtype).kind == "i" else 1)).astype(dtype)},
                           {"k": ints(k)}, outputs=2, out_type=[dtype, np.int64], largest=largest)
    extremes = np.array([[np.inf, -np.inf, 3e38, -3e38, 1e-45, -1e-45, 0, -0.0, 1, -1]], np.float32)
    for largest in (0, 1):
        yield Case(f"TopK-extremes-{largest}", "TopK", ["x", "k"], {"x": extremes}, {"k": ints(10)}, outputs=2, out_type=[np.float32, np.int64], largest=largest)
    for dtype in (np.float32, np.uint8, np.int64):  # computed when lowering
        yield Case(f"TopK-constant-{np.dtype(dtype).name}", "TopK", ["x", "k"], {}, {"x": whole(dtype, 0, 4, 2, 6), "k": ints(3)}, outputs=2,
                   out_type=[dtype, np.int64])
    values = whole(np.float32, 0, 3, 4, 3)
    for axis in (None, 0, 1, -1):
        for order in (0, 1):
            more = {} if axis is None else {"axis": axis}
            yield Case(f"Unique-{axis}-{order}", "Unique", ["x"], {"x": values}, outputs=4, out_type=[np.float32] + [np.int64] * 3, sorted=order, **more)
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [1, 101, 0, 100]]], np.float32)
    scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3], [0.1, 0.9, 0.9, 0.2, 0.2, 0.8]]], np.float32)
    for opset in (10, 11):
        for centre in (0, 1):
            for limit, overlap, least in ((3, 0.5, 0.0), (9, 0.0, 0.4), (1, 0.9, 0.55), (0, 0.5, 0.0), (2, 0.5, 2.0)):
                yield Case(f"NonMaxSuppression-{opset}-{centre}-{limit}-{least}", "NonMaxSuppression", ["b", "s", "m", "i", "t"], {"b": boxes, "s": scores},
                           {"m": ints(limit), "i": np.array([overlap], np.float32), "t": np.array([least], np.float32)}, out_type=np.int64, opset=opset,
                           center_point_box=centre)


def softmaxes():
    x = {"x": normal(2, 3, 4)}
    special = {"x": np.array([[1, 2, INF], [1, -INF, 2], [-INF, -INF, -INF], [NAN, 1, 2], [1e4, 1e4, -1e4]], np.float32)}
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for opset in (7, 11, 13):
            for axis in (0, 1, 2) + ((-1, -2) if opset >= 11 else ()):
                yield Case(f"{op}-{opset}-{axis}", op, ["x"], x, opset=opset, axis=axis)
            yield Case(f"{op}-{opset}-default", op, ["x"], x, opset=opset)
        if op != "Hardmax":
            yield Case(f"{op}-special", op, ["x"], special, axis=1)
        for dtype in (np.float64, np.float16):
            if op != "Hardmax":
                yield Case(f"{op}-{np.dtype(dtype).name}", op, ["x"], {"x": normal(3, 4, dtype=dtype)}, out_type=dtype, oracle="onnx", rtol=2e-3, atol=1e-3)


def products():
    for label, a, b in (("2x2", (3, 4), (4, 5)), ("batch", (2, 3, 4), (2, 4, 5)), ("broadcast", (2, 1, 3, 4), (5, 4, 2)), ("vector", (4,), (4,)),
                        ("left", (4,), (2, 4, 3)), ("right", (2, 3, 4), (4,)), ("empty", (0, 4), (4, 3)), ("inner", (3, 0), (0, 2))):
        yield Case(f"MatMul-{label}", "MatMul", ["a", "b"], {"a": normal(*a), "b": normal(*b)})
    for dtype in (np.int32, np.int64, np.float64):
        yield Case(f"MatMul-{np.dtype(dtype).name}", "MatMul", ["a", "b"], {"a": whole(dtype, -4, 5, 3, 4), "b": whole(dtype, -4, 5, 4, 2)}, out_type=dtype)
    for opset in (6, 7, 9, 11, 13):
        for c in ((3, 5), (5,), (1, 5), (3, 1), (), (1,)) if opset >= 7 else ((3, 5),):
            for trans in ((0, 0), (1, 0), (0, 1), (1, 1)):
                a, b = normal(*((4, 3) if trans[0] else (3, 4))), normal(*((5, 4) if trans[1] else (4, 5)))
                bias = np.asarray(RNG.standard_normal(c), np.float32)
                want = 0.5 * (a.T if trans[0] else a) @ (b.T if trans[1] else b) + 2 * bias
                yield Case(f"Gemm-{opset}-{'x'.join(map(str, c))}-{trans[0]}{trans[1]}", "Gemm", ["a", "b", "c"], {"a": a, "b": b, "c": bias}, opset=opset,
                           transA=trans[0], transB=trans[1], alpha=0.5, beta=2.0, oracle=[want.astype(np.float32)])
    for equation, *shapes in (("ij,jk->ik", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("...ii->...i", (2, 3, 3)), ("ij->", (2, 3)), ("ij->ji", (2, 3)),
                              ("i,j", (2,), (3,)), ("...ij,...jk->...ik", (2, 2, 3), (2, 3, 4)), ("bij,bjk,bkl->bil", (2, 3, 4), (2, 4, 5), (2, 5, 2)),
                              ("i...->...", (3, 2, 4)), ("ij,ij->ij", (2, 3), (2, 3)), ("aij,ajk", (1, 3, 4), (2, 4, 5)), ("iji->j", (3, 2, 3)),
                              ("i j , j k -> k i", (2, 3), (3, 4)), ("...,...", (2, 3), (2, 3)), ("ba", (2, 3))):
        names = "xyz"[:len(shapes)]
        feed = {n: normal(*s) for n, s in zip(names, shapes)}
        yield Case(f"Einsum-{equation.replace(' ', '')}", "Einsum", list(names), feed, equation=equation,
                   oracle=[np.einsum(equation, *feed.values()).astype(np.float32)] if "ii" in equation or "iji" in equation else "ort")
    for size in (1, 2, 3, 4, 5):
        yield Case(f"Det-{size}", "Det", ["x"], {"x": normal(2, size, size)})
    yield Case("Det-singular", "Det", ["x"], {"x": np.ones((4, 4), np.float32)})
    yield Case("Det-pivot", "Det", ["x"], {"x": np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], np.float32)})


def losses():
    target = whole(np.int64, 0, 4, 2, 5)
    skipped = np.where(whole(np.int64, 0, 3, 2, 5) == 0, 9, target)
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        for reduction in ("none", "mean", "sum"):
            for weighted in (0, 1):
                for ignore in (None, 2, 9, -1):
                    t = skipped if ignore == 9 else np.where(skipped == 9, -1, skipped) if ignore == -1 else target
                    names = ["x", "t"] + ["w"] * weighted
                    more = {} if ignore is None else {"ignore_index": ignore}
                    yield Case(f"{op}-{reduction}-{weighted}-{ignore}", op, names, {"x": normal(2, 4, 5), "t": t},
                               {"w": np.abs(normal(4))} if weighted else {}, opset=13, reduction=reduction, **more)


def recurrent():
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for opset in (7, 14, 22):
            for layout in (0, 1) if opset >= 14 else (None,):
                directions, hidden, width, steps, batch = 2, 3, 2, 4, 2
                x = normal(batch, steps, width) if layout else normal(steps, batch, width)
                constants = {"w": normal(directions, gates * hidden, width), "r": normal(directions, gates * hidden, hidden),
                             "b": normal(directions, 2 * gates * hidden)}
                state = (batch, directions, hidden) if layout else (directions, batch, hidden)
                feed = {"x": x, "h": normal(*state)}
                # ONNX Runtime refuses layout 1: transposing is what it means.
                case = Case(f"{op}-{opset}-{layout}", op, ["x", "w", "r", "b", "", "h"], feed, constants, outputs=2, opset=opset, hidden_size=hidden,
                            direction="bidirectional", **({} if layout is None else {"layout": layout}))
                if layout:
                    plain = Case("plain", op, ["x", "w", "r", "b", "", "h"], {k: v.swapaxes(0, 1) for k, v in feed.items()}, constants, outputs=2,
                                 opset=opset, hidden_size=hidden, direction="bidirectional")
                    y, last = plain.computed()
                    case.oracle = [y.transpose(2, 0, 1, 3), last.swapaxes(0, 1)]
                yield case


def generated():
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for size in (1, 2, 7, 8):
            for periodic in (0, 1):
                if size > 1 or periodic:
                    yield Case(f"{op}-{size}-{periodic}", op, ["n"], {}, {"n": np.int32(size)}, periodic=periodic)
        yield Case(f"{op}-double", op, ["n"], {}, {"n": np.int64(6)}, output_datatype=11, out_type=np.float64)
    for bins, size, rate, low, high in ((8, 16, 8192, 0, 4096), (5, 32, 16000, 20, 7600), (3, 8, 100, 0.0, 50)):
        yield Case(f"MelWeightMatrix-{bins}", "MelWeightMatrix", list("bsrlh"), {}, {
            "b": np.int64(bins), "s": np.int64(size), "r": np.int64(rate), "l": np.float32(low), "h": np.float32(high)})
    signal = {"x": normal(2, 16, 1)}
    for onesided in (0, 1):
        frame = {"s": np.int64(4), "w": np.abs(normal(8)), "n": np.int64(8)}
        yield Case(f"STFT-{onesided}", "STFT", ["x", "s", "w", "n"], signal, frame, onesided=onesided)
        yield Case(f"STFT-{onesided}-bare", "STFT", ["x", "s", "", "n"], signal, {k: frame[k] for k in "sn"}, onesided=onesided)
        for inverse in (0, 1):
            for axis in (1, 2, -2):
                for length in (None, 4, 9):
                    complex_input = inverse or not onesided
                    if inverse and onesided:
                        continue
                    x = {"x": normal(2, 6, 5, 2 if complex_input else 1)}
                    names, constants = (["x"], {}) if length is None else (["x", "n"], {"n": np.int64(length)})
                    if axis > 0:
                        yield Case(f"DFT-17-{onesided}{inverse}-{axis}-{length}", "DFT", names, x, constants, opset=17, axis=axis, inverse=inverse, onesided=onesided,
                                   oracle="onnx")
                    yield Case(f"DFT-20-{onesided}{inverse}-{axis}-{length}", "DFT", ["x", "n" if length else "", "a"], x, {**constants, "a": np.int64(axis)},
                               opset=20, inverse=inverse, onesided=onesided, oracle="onnx")
    yield Case("Dropout-7", "Dropout", ["x"], {"x": normal(3, 4)}, opset=7, ratio=0.4)
    for opset in (10, 12, 13, 22):
        kinds = [np.float32, np.bool_]
        x = normal(3, 4)
        yield Case(f"Dropout-{opset}", "Dropout", ["x"], {"x": x}, opset=opset, outputs=2, out_type=kinds, oracle=[x, np.ones((3, 4), np.bool_)])
    yield Case("Dropout-12-training-zero", "Dropout", ["x", "r", "t"], {"x": normal(3, 4)}, {"r": np.float32(0), "t": np.bool_(True)}, outputs=2,
               out_type=[np.float32, np.bool_])
    for dtype in (np.uint8, np.int8):
        for opset in (10, 13, 19, 21):
            yield Case(f"QuantizeLinear-{opset}-{np.dtype(dtype).name}", "QuantizeLinear", ["x", "s", "z"], {"x": 40 * normal(4, 9)},
                       {"s": np.float32(0.5), "z": dtype(3)}, opset=opset, out_type=dtype, **EXACT)
    ties = np.array([0.25, 0.75, 1.25, -0.25, -0.75, -1.25, 1e9, -1e9, INF, -INF], np.float32)
    yield Case("QuantizeLinear-ties", "QuantizeLinear", ["x", "s", "z"], {"x": ties}, {"s": np.float32(0.5), "z": np.int8(0)}, out_type=np.int8, **EXACT)
    for axis in (0, 1):
        yield Case(f"TfIdf-{axis}", "TfIdfVectorizer", ["x"], {"x": whole(np.int64, 0, 5, 3, 6)} if axis else {"x": whole(np.int32, 0, 5, 6)}, mode="TFIDF",
                   min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3, 4], pool_int64s=[1, 2, 3, 1, 2, 3, 4],
                   weights=[1.0, 2.0, 0.5, 3.0, 1.5])


def cases():
    for group in (reductions, searches, softmaxes, products, losses, recurrent, generated):
        yield from group()
