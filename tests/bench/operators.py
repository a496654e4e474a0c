#!/usr/bin/env python3
"""Single operators beside ONNX Runtime: which kernels of the runtime are slow, and whether etc finds better ones.

  operators.py [--etc build/release/etc] [--against ETC] [-k PATTERN,...] [--above RATIO] [--share SECONDS]

Each row becomes a model of one operator on some 65,000 elements, which is lowered without a backend and with XNNPACK. Both programs
and ONNX Runtime, on one thread, run in turn in this process, and the fastest run of each counts. A program copies its outputs for
Python, which ONNX Runtime does not: of operators that take a few microseconds a ratio below 3 means nothing. --against shows
another etc in the same run, for what a change gains.

Prints the operators whose better program takes more than --above times the time of ONNX Runtime, the worst first. Fails when a
result is wrong.
"""
import argparse
import fnmatch
import os
import pathlib
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("zoo", "lib", "conformance", "bench")]

import latency  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

RTOL, ATOL = 1e-3, 1e-4
F32, I64, U8, BOOL = np.float32, np.int64, np.uint8, bool
ROWS, COLUMNS = 64, 1024
MATRIX, PLANES, IMAGE = (ROWS, COLUMNS), (8, 64, 32, 32), (1, 16, 64, 64)


class Draw:
    """An input: shape, and how it is drawn. A constant when `known`."""

    def __init__(self, shape, kind="normal", most=0, known=False):
        self.shape, self.kind, self.most, self.known = shape, kind, most, known

    def array(self, rng):
        if self.kind == "ids":
            return rng.integers(0, self.most, self.shape)
        if self.kind == "bytes":
            return rng.integers(0, 256, self.shape).astype(U8)
        if self.kind == "bools":
            return rng.random(self.shape) < 0.5
        if self.kind == "positive":
            return np.abs(rng.normal(size=self.shape)).astype(F32) + F32(1.1)
        if self.kind == "inner":
            return rng.uniform(-0.9, 0.9, self.shape).astype(F32)
        return rng.normal(size=self.shape).astype(F32)


def ids(most, *shape):
    return Draw(shape, "ids", most)


def weights(*shape):
    return Draw(shape, known=True)


class Tuples(Draw):
    """Places of so many elements or rows, [count, rank]."""

    def __init__(self, count, *sizes):
        self.count, self.sizes, self.known = count, sizes, False

    def array(self, rng):
        return np.stack([rng.integers(0, size, self.count) for size in self.sizes], 1)


def unary_rows():
    inner, above = Draw(MATRIX, "inner"), Draw(MATRIX, "positive")
    for op in ("Abs Asinh Atan Ceil Cos Cosh Erf Exp Floor Neg Reciprocal Round Sigmoid Sign Sin Sinh Tan Tanh Relu LeakyRelu Elu Selu Celu HardSigmoid "
               "HardSwish Softplus Softsign ThresholdedRelu Mish IsNaN IsInf Gelu Shrink").split():
        yield op, f"{op} (x)", {"x": Draw(MATRIX)}
    for op in "Acos Asin Atanh".split():
        yield op, f"{op} (x)", {"x": inner}
    for op in "Acosh Log Sqrt".split():
        yield op, f"{op} (x)", {"x": above}
    for to, name in ((7, "int64"), (6, "int32"), (11, "double"), (9, "bool"), (10, "float16"), (2, "uint8")):
        yield f"Cast to {name}", f"Cast <to={to}> (x)", {"x": above}
    for kind in ("ids", "bytes", "bools"):
        yield f"Cast from {kind}", "Cast <to=1> (x)", {"x": Draw(MATRIX, kind, 9)}
    yield "Clip", "Clip (x, a, b)", {"x": Draw(MATRIX), "a": F32(-1), "b": F32(1)}
    yield "Not", "Not (x)", {"x": Draw(MATRIX, "bools")}


def binary_rows():
    for op in "Add Sub Mul Div Max Min Equal Less GreaterOrEqual".split():
        yield op, f"{op} (a, b)", {"a": Draw(MATRIX), "b": Draw(MATRIX)}
        yield f"{op} row", f"{op} (a, b)", {"a": Draw(MATRIX), "b": Draw((COLUMNS,))}
        yield f"{op} int64", f"{op} (a, b)", {"a": ids(99, *MATRIX), "b": Draw(MATRIX, "ids", 9) if op != "Div" else np.int64(7)}
    yield "Pow", "Pow (a, b)", {"a": Draw(MATRIX, "positive"), "b": Draw(MATRIX)}
    yield "Mod", "Mod <fmod=1> (a, b)", {"a": Draw(MATRIX), "b": Draw(MATRIX)}
    for op in "And Or Xor".split():
        yield op, f"{op} (a, b)", {"a": Draw(MATRIX, "bools"), "b": Draw(MATRIX, "bools")}
    yield "Where", "Where (c, a, b)", {"c": Draw(MATRIX, "bools"), "a": Draw(MATRIX), "b": Draw(MATRIX)}
    yield "Where number", "Where (c, a, b)", {"c": Draw(MATRIX, "bools"), "a": Draw(MATRIX), "b": F32(0)}
    yield "Sum", "Sum (a, b, c)", {n: Draw(MATRIX) for n in "abc"}


def reduce_rows():
    for op in "Sum Mean Max Min Prod L1 L2 LogSum LogSumExp SumSquare".split():
        for name, draw, axes in (("last", MATRIX, [1]), ("first", MATRIX, [0]), ("planes", PLANES, [2, 3])):
            if op != "Prod" or name == "last":
                yield f"Reduce{op} {name}", f"Reduce{op} (x, a)", {"x": Draw(draw, "inner" if op == "Prod" else "positive"), "a": np.array(axes)}
    for axis in (1, 0):
        yield f"ArgMax {axis}", f"ArgMax <axis={axis}> (x)", {"x": Draw(MATRIX)}
        yield f"CumSum {axis}", "CumSum (x, a)", {"x": Draw(MATRIX), "a": np.array(axis)}
        yield f"Softmax {axis}", f"Softmax <axis={axis}> (x)", {"x": Draw(MATRIX)}
    yield "LogSoftmax", "LogSoftmax (x)", {"x": Draw(MATRIX)}
    yield "Hardmax", "Hardmax (x)", {"x": Draw(MATRIX)}
    for k in (10, COLUMNS):
        yield f"TopK {k}", "y, z = TopK (x, k)", {"x": Draw(MATRIX), "k": np.array([k])}


def move_rows():
    yield "Transpose", "Transpose <perm=[1,0]> (x)", {"x": Draw(MATRIX)}
    yield "Transpose planes", "Transpose <perm=[0,2,3,1]> (x)", {"x": Draw(PLANES)}
    yield "Concat", "Concat <axis=1> (a, b)", {"a": Draw(MATRIX), "b": Draw(MATRIX)}
    yield "Split", "y, z = Split <axis=1> (x, s)", {"x": Draw(MATRIX), "s": np.array([512, 512])}
    yield "Slice", "Slice (x, s, e, a)", {"x": Draw(PLANES), "s": np.array([2, 3]), "e": np.array([30, 29]), "a": np.array([2, 3])}
    yield "Slice backwards", "Slice (x, s, e, a, t)", {"x": Draw(MATRIX), "s": np.array([-1]), "e": np.array([-2000]), "a": np.array([1]), "t": np.array([-1])}
    for mode in "constant reflect edge wrap".split():
        yield f"Pad {mode}", f'Pad <mode="{mode}"> (x, p)', {"x": Draw(IMAGE), "p": np.array([0, 0, 2, 3, 0, 0, 1, 2])}
    yield "Tile", "Tile (x, r)", {"x": Draw(MATRIX), "r": np.array([1, 3])}
    yield "Expand", "Expand (x, s)", {"x": Draw((ROWS, 1)), "s": np.array(MATRIX)}
    yield "Trilu", "Trilu (x)", {"x": Draw((256, 256))}
    yield "DepthToSpace", "DepthToSpace <blocksize=2> (x)", {"x": Draw((1, 64, 32, 32))}
    yield "ReverseSequence", "ReverseSequence (x, l)", {"x": Draw((128, 32, 16)), "l": ids(127, 32)}
    yield "Col2Im", "Col2Im (x, i, b)", {"x": Draw((1, 144, 900)), "i": np.array([32, 32]), "b": np.array([3, 3])}


def index_rows():
    yield "Gather rows", "Gather (x, i)", {"x": Draw((1000, 64)), "i": ids(1000, 2000)}
    yield "Gather columns", "Gather <axis=1> (x, i)", {"x": Draw(MATRIX), "i": ids(COLUMNS, 200)}
    yield "GatherElements", "GatherElements <axis=1> (x, i)", {"x": Draw(MATRIX), "i": ids(COLUMNS, *MATRIX)}
    yield "ScatterElements", "ScatterElements <axis=0> (x, i, u)", {"x": Draw((9000, 2)), "i": ids(9000, 1, 2), "u": Draw((1, 2))}
    yield "ScatterElements add", 'ScatterElements <axis=1, reduction="add"> (x, i, u)', {"x": Draw(MATRIX), "i": ids(COLUMNS, *MATRIX), "u": Draw(MATRIX)}
    yield "GatherND", "GatherND (x, i)", {"x": Draw(MATRIX), "i": Tuples(20000, *MATRIX)}
    yield "GatherND rows", "GatherND (x, i)", {"x": Draw((8, 128, 32)), "i": Tuples(4000, 8, 128)}
    yield "ScatterND add", 'ScatterND <reduction="add"> (x, i, u)', {"x": Draw(MATRIX), "i": Tuples(20000, *MATRIX), "u": Draw((20000,))}
    yield "ScatterND rows", 'ScatterND (x, i, u)', {"x": Draw((5000, 32)), "i": np.arange(4999, 999, -1).reshape(-1, 1), "u": Draw((4000, 32))}
    yield "OneHot", "OneHot (i, d, v)", {"i": ids(ROWS, 2048), "d": np.array(ROWS), "v": np.array([0, 1], F32)}
    yield "NonZero", "NonZero (x)", {"x": Draw(MATRIX, "bools")}
    yield "Compress", "Compress <axis=1> (x, c)", {"x": Draw(MATRIX), "c": Draw((COLUMNS,), "bools")}
    yield "Unique", "y, f, i, c = Unique (x)", {"x": ids(500, 4096)}


def image_rows():
    image = Draw(IMAGE)
    for mode in "nearest linear cubic".split():
        for name, scale in (("twice", 2), ("half", 0.5), ("1.7", 1.7)):
            yield f"Resize {mode} {name}", f'Resize <mode="{mode}"> (x, , s)', {"x": image, "s": np.array([1, 1, scale, scale], F32)}
    for mode in "linear nearest cubic".split():
        yield f"GridSample {mode}", f'GridSample <mode="{mode}"> (x, g)', {"x": image, "g": Draw((1, 48, 48, 2), "inner")}
    yield "RoiAlign", "RoiAlign <output_height=7, output_width=7, sampling_ratio=2> (x, b, i)", {"x": image, "b": Draw((10, 4), "positive"), "i": np.zeros(10, I64)}
    yield "DeformConv", "DeformConv (x, w, o)", {"x": Draw((1, 8, 24, 24)), "w": weights(8, 8, 3, 3), "o": Draw((1, 18, 22, 22))}
    yield "MaxPool", "MaxPool <kernel_shape=[3,3], pads=[1,1,1,1]> (x)", {"x": image}
    yield "MaxPool indices", "y, z = MaxPool <kernel_shape=[2,2], strides=[2,2]> (x)", {"x": image}
    yield "AveragePool", "AveragePool <kernel_shape=[3,3], pads=[1,1,1,1]> (x)", {"x": image}
    yield "LpPool", "LpPool <kernel_shape=[2,2], strides=[2,2]> (x)", {"x": image}
    yield "LRN", "LRN <size=5> (x)", {"x": Draw(PLANES)}
    for op, more in (("InstanceNormalization", ""), ("GroupNormalization", "<num_groups=8>")):
        yield op, f"{op} {more} (x, s, b)", {"x": Draw(PLANES), "s": weights(64), "b": weights(64)}
    yield "LayerNormalization", "LayerNormalization (x, s, b)", {"x": Draw(MATRIX), "s": weights(COLUMNS), "b": weights(COLUMNS)}


def product_rows():
    yield "MatMul", "MatMul (a, b)", {"a": Draw((64, 256)), "b": Draw((256, 256))}
    yield "MatMul batches", "MatMul (a, b)", {"a": Draw((8, 64, 64)), "b": Draw((8, 64, 64))}
    yield "Einsum", 'Einsum <equation="bik,bjk->bijk"> (a, b)', {"a": Draw((4, 64, 8)), "b": Draw((4, 32, 8))}
    yield "MatMulInteger", "MatMulInteger (a, b)", {"a": Draw((64, 256), "bytes"), "b": np.arange(256 * 128).reshape(256, 128).astype(np.int8)}
    yield "QuantizeLinear", "QuantizeLinear (x, s, z)", {"x": Draw(MATRIX), "s": F32(0.1), "z": U8(128)}
    yield "DequantizeLinear", "DequantizeLinear (x, s, z)", {"x": Draw(MATRIX, "bytes"), "s": F32(0.1), "z": U8(128)}
    yield "DynamicQuantizeLinear", "y, s, z = DynamicQuantizeLinear (x)", {"x": Draw(MATRIX)}
    yield "DFT", "DFT (x, , a)", {"x": Draw((8, 256, 1)), "a": np.array(1)}
    yield "Det", "Det (x)", {"x": Draw((64, 4, 4))}


FAMILIES = unary_rows, binary_rows, reduce_rows, move_rows, index_rows, image_rows, product_rows


def model_of(name, text, inputs):
    """(bytes of the ONNX file, {input: array})"""
    import onnx
    from onnx import helper, numpy_helper, parser
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    node = parser.parse_node(text if "=" in text.split("(")[0].split("<")[0] else f"y = {text}")
    arrays = {n: v.array(rng) if isinstance(v, Draw) else np.asarray(v) for n, v in inputs.items()}
    fed = {n: a for n, a in arrays.items() if isinstance(inputs[n], Draw) and not inputs[n].known}
    graph = helper.make_graph([node], "one",
                              [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in fed.items()],
                              [helper.make_empty_tensor_value_info(o) for o in node.output],
                              [numpy_helper.from_array(a, n) for n, a in arrays.items() if n not in fed])
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    return model.SerializeToString(), fed


def differs(got, expected):
    return got.shape != expected.shape or not np.allclose(got.astype(float), expected.astype(float), RTOL, ATOL, equal_nan=True)


def measure_row(args, row, folder):
    """(better ratio, line), or a message."""
    import time
    import arrays
    name, text, inputs = row
    path = folder / "model.onnx"
    content, fed = model_of(name, text, inputs)
    path.write_bytes(content)
    session, tensors = latency.session_of(path), [arrays.to_torch(a) for a in fed.values()]
    expected = session.run(None, fed)
    runs, wrong = [lambda: session.run(None, fed)], []
    for i, (etc, backend) in enumerate((e, b) for e in (args.etc, args.against) if e for b in ([], ["--backend", "xnnpack"])):
        target = folder / f"{i}.pte"
        measure.run([etc, "lower", path, "-o", target, "-q", *backend])
        program = latency.Program(target)
        if any(differs(g, e) for g, e in zip(program.outputs(tensors), expected)):
            wrong.append(f"{etc} {' '.join(backend)}")
        runs.append(lambda p=program: p.method.execute(tensors))
    if wrong:
        return f"{name}: outputs of {' and '.join(wrong)} differ"
    best = latency.milliseconds(runs, 1000, args.share, time.perf_counter)
    ratio = min(best[1:3]) / best[0]
    before = f"  before {min(best[3:]) / best[0]:6.2f}" if args.against else ""
    return ratio, f"{name:28} {ratio:7.2f}   portable {best[1] * 1e3:8.0f}  XNNPACK {best[2] * 1e3:8.0f}  ONNX Runtime {best[0] * 1e3:7.0f} us{before}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etc", type=pathlib.Path, default=ROOT / "build" / "release" / "etc")
    parser.add_argument("--against", type=pathlib.Path, help="another etc, for comparison")
    parser.add_argument("-k", metavar="PATTERN,...", help="only the operators of these names")
    parser.add_argument("--above", type=float, default=3, help="show those above so many times ONNX Runtime's time")
    parser.add_argument("--share", type=float, default=0.3, help="seconds of runs for an operator")
    args = parser.parse_args()
    for etc in filter(None, (args.etc, args.against)):
        if not os.access(etc, os.X_OK):
            sys.exit(f"operators.py: there is no command {etc}; build it or say --etc PATH")
    import torch
    from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
    torch.set_num_threads(1)
    _unsafe_reset_threadpool(1)
    patterns = args.k.split(",") if args.k else ["*"]
    rows, faults = [], []
    with tempfile.TemporaryDirectory() as folder:
        for row in (row for family in FAMILIES for row in family() if any(fnmatch.fnmatch(row[0], p) for p in patterns)):
            try:
                found = measure_row(args, row, pathlib.Path(folder))
            except (RuntimeError, measure.CommandFailed) as error:
                found = f"{row[0]}: {error}"
            (faults if isinstance(found, str) else rows).append(found)
    for ratio, line in sorted(rows, reverse=True):
        if ratio > args.above:
            print(line)
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"operators: {len(rows)} compared, {sum(r > args.above for r, _ in rows)} above {args.above:g} times ONNX Runtime, {len(faults)} failed")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
