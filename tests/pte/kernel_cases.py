"""Calls of every kernel in the op table, as data: what kernel_table.py makes programs of.

A case is a list of arguments in the order of the schema; `T` is a tensor operand. Sizes that are natural batch sizes are `n`: a
number in the tests with fixed sizes, a bounded symbol in those with dynamic ones. Rows with nothing but a tensor, two tensors, or a
tensor and a number get the shapes below; all others are listed. The values avoid what C leaves undefined (division of integers by 0,
floats that do not fit the integer they are converted to); what kernels do with indices out of range is not asked.
"""

import numpy as np

DTYPES = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
}
FLOATS = ("f16", "bf16", "f32", "f64")


class Size:
    """a * n + b."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __mul__(self, k):
        return Size(self.a * k, self.b * k)

    def __add__(self, k):
        return Size(self.a, self.b + k)


n = Size(1, 0)


class T:
    """A tensor operand: its dtype (None: the one under test) and what values it has (see `values`)."""

    def __init__(self, shape, dtype=None, kind="any"):
        self.shape, self.dtype, self.kind = list(shape), dtype, kind


class Dtype:
    """An element type as an argument; None: the one under test."""

    def __init__(self, name=None):
        self.name = name


def values(kind, dtype, shape, rng, bfloat16):
    """An array. Kinds: any, special (with infinities and NaN), nz (no zero), pos, unit (0..1), mask, shift, tiny, index:N, distinct."""
    real = bfloat16 if dtype == "bf16" else np.dtype(DTYPES[dtype])
    count = int(np.prod(shape))
    if kind.startswith("index:"):
        flat = rng.permutation(max(count, int(kind[6:])))[:count] % int(kind[6:])
    elif kind == "distinct":
        flat = rng.permutation(count) - (count // 2 if dtype[0] != "u" else 0)
    elif kind == "tiny":
        flat = rng.integers(0, 3, count)
    elif kind == "shift":
        flat = rng.integers(0, 7, count)
    elif dtype == "bool":
        flat = np.ones(count, bool) if kind == "nz" else rng.integers(0, 2, count).astype(bool)
    elif dtype in FLOATS:
        low, high = {"pos": (0.1, 3), "unit": (0, 1)}.get(kind, (-3, 3))
        flat = rng.uniform(low, high, count)
        if kind == "special":
            special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0, 1e-4]
            flat[: len(special)] = special[:count]
    else:
        low = 0 if dtype[0] == "u" else -8
        flat = rng.integers(1 if kind in ("pos", "unit") else low, 9, count)
        if kind == "nz":
            flat[flat == 0] = 3
    return np.asarray(flat).reshape(shape).astype(real)


SHAPES = [[], [1], [7], [1000], [n, 33], [2, 3, 4], [n, 1, 3, 2], [2, 1, 2, 1, 3], [0, 4]]
PAIRS = [([], []), ([7], [7]), ([n, 33], [n, 33]), ([n, 5], []), ([], [n, 5]), ([n, 5], [5]), ([3, 1], [1, 4]), ([4], [2, 3, 4]),
         ([n, 1, 3, 2], [3, 1]), ([2, 1, 2, 1, 3], [1, 4, 1, 3, 1]), ([0, 4], [4]), ([1], [1, 1]), ([2, 3, 4], [2, 1, 1]),
         ([64], [64]), ([8, 125], [8, 125]), ([8, 125], [125]), ([8, 125], [8, 1]), ([1], [1000])]
SCALARS = [2, 3]
DATA_SHAPES = ("aten::nonzero", "aten::masked_select", "aten::repeat_interleave.Tensor")
DIVIDE = ("div", "fmod", "remainder", "floor_divide")
M = dict(dtype="bool", kind="mask")


def index(shape, limit, dtype="i64"):
    return T(shape, dtype, f"index:{limit}")


def reduced(extra=(), keep=True):
    """Dims to reduce over, with what follows them in the schema."""
    for shape, dims in ([[7], [0]], [[n, 33], [1]], [[2, 3, 4], [0, 2]], [[2, 3, 4], [-2]], [[n, 1, 3, 2], [1, 3]], [[2, 1, 2, 1, 3], [0, 1, 2, 3, 4]]):
        for flag in (True, False) if keep else (None,):
            yield [T(shape), dims, *([] if flag is None else [flag]), *extra]


def along(tail, kind="any"):
    for shape, dim in ([[7], 0], [[n, 33], 1], [[n, 33], -2], [[2, 3, 4], 1], [[n, 1, 3, 2], 1], [[2, 1, 2, 1, 3], -1]):
        yield [T(shape, kind=kind), dim, *tail]


def moves(*cases):
    return [list(c) for c in cases]


def conv(shape, weight, bias, stride, padding, dilation, transposed=False, out=None, groups=1):
    width = weight[1] * groups if transposed else weight[0]
    return [T(shape), T(weight), T([width]) if bias else None, stride, padding, dilation, transposed, out or [0] * len(stride), groups]


def norm(shape, c, stats):
    tail = [T([c]), T([c], kind="pos"), 0.1, 1e-5] if stats else [True, 0.1, 1e-5]
    return [[T(shape), T([c]), T([c]), *tail], [T(shape), None, None, *tail]]


PADS = {1: ([[n, 3, 7], [2, 1]], [[3, 7], [0, 3]]), 2: ([[n, 3, 5, 7], [2, 1, 0, 3]], [[3, 5, 7], [1, 1, 2, 2]]),
        3: ([[n, 3, 4, 5, 7], [2, 1, 0, 3, 1, 2]], [[3, 4, 5, 7], [1] * 6])}

CASES = {
    "aten::clamp": [[T(s, kind=k), lo, hi] for s, k in (([n, 33], "special"), ([], "any"), ([0, 4], "any"))
                    for lo, hi in ((0, 1), (None, 1), (0, None))],
    "aten::elu": [[T([n, 33], kind="special"), 1.5, 1, 1], [T([]), 1, 1.0507, 1], [T([2, 3, 4]), 1.5, 1.25, 0.5]],
    "aten::gelu": [[T(s, kind="special"), how] for s in ([n, 33], [], [2, 3, 4]) for how in ("none", "tanh")],
    "aten::hardtanh": [[T(s, kind="special"), 0, 2] for s in ([n, 33], [], [0, 4])],
    "aten::leaky_relu": [[T(s, kind="special"), 0.1] for s in ([n, 33], [], [2, 3, 4])],
    "aten::logit": [[T(s, kind="unit"), e] for s in ([n, 33], [], [0, 4]) for e in (None, 0.1)],
    "aten::add.Tensor": [[T(a), T(b), k] for a, b in PAIRS for k in (1, 2) if k == 1 or a not in ([], [1]) or a == b],
    "aten::sub.Tensor": [[T(a), T(b), k] for a, b in PAIRS for k in (1, 2)],
    "aten::add.Scalar": [[T(s), 2, k] for s in SHAPES for k in (1, 3)],
    "aten::sub.Scalar": [[T(s), 2, k] for s in SHAPES for k in (1, 3)],
    "aten::rsub.Scalar": [[T(s), 2, k] for s in SHAPES for k in (1, 3)],
    "aten::clamp.Tensor": [[T([n, 33]), T([33]), T([])], [T([n, 33]), None, T([n, 33])], [T([2, 3]), T([1, 3]), None], [T([]), T([]), T([])],
                           [T([3]), T([2, 3]), T([2, 1])]],
    "aten::div.Scalar_mode": [[T(s), 2, m] for s in SHAPES for m in ("floor", "trunc")] + [[T([5], "f32"), 2, None]],
    "aten::div.Tensor_mode": [[T(a), T(b, kind="nz"), m] for a, b in PAIRS for m in ("floor", "trunc")],
    "aten::masked_fill.Scalar": [[T(a), T(b, **M), 1] for a, b in PAIRS],
    "aten::pow.Tensor_Scalar": [[T(s, kind="tiny"), k] for s in SHAPES for k in SCALARS],
    "aten::pow.Tensor_Tensor": [[T(a, kind="tiny"), T(b, kind="shift")] for a, b in PAIRS],
    "aten::pow.Scalar": [[2, T(s, kind="shift")] for s in SHAPES],
    "aten::where.self": [[T(c, **M), T(a), T(b)] for c, a, b in
                         (([n, 33], [n, 33], [n, 33]), ([33], [n, 33], []), ([n, 1], [], [4]), ([], [2, 3], [3]), ([], [], []), ([0, 4], [4], []),
                          ([2, 1, 1, 3], [4, 1], [1]), ([2, 1, 2, 1, 3], [2, 1, 1, 3], [3]))],
    "aten::amax": list(reduced()), "aten::amin": list(reduced()),
    "aten::any": [[T(s)] for s in SHAPES], "aten::max": [[T(s)] for s in SHAPES[:-1]], "aten::min": [[T(s)] for s in SHAPES[:-1]],
    "aten::any.dim": list(along([True])) + list(along([False])),
    "aten::any.dims": list(reduced()),
    "aten::argmax": list(along([True])) + list(along([False])) + [[T([2, 3, 4]), None, False]],
    "aten::argmin": list(along([True])) + list(along([False])) + [[T([2, 3, 4]), None, False]],
    "aten::cumsum": list(along([None])) + [[T([2, 3]), 0, Dtype("f32")], [T([0, 4]), 1, None]],
    "aten::_log_softmax": list(along([False])), "aten::_softmax": list(along([False])) + [[T([]), 0, False], [T([0, 4]), 1, False]],
    "aten::max.dim": list(along([True])) + list(along([False])), "aten::min.dim": list(along([True])) + list(along([False])),
    "aten::mean": [[T(s), None] for s in SHAPES[:-1]],
    "aten::mean.dim": list(reduced([None])) + [[T([2, 3]), [1], False, Dtype("f32")]],
    "aten::prod": [[T(s, kind="nz"), None] for s in ([], [1], [7], [2, 3], [0, 4])],
    "aten::prod.dim_int": [[T([n, 5], kind="nz"), 1, True, None], [T([2, 3, 4]), -3, False, None], [T([2, 3]), 0, False, Dtype("f64")]],
    "aten::sum.dim_IntList": list(reduced([None])) + [[T([2, 3]), [1], False, Dtype("f32")], [T([0, 4]), [0], False, None]],
    "aten::topk": [[T([n, 9], kind="distinct"), 3, 1, True, True], [T([5, 3], kind="distinct"), 2, 0, False, True],
                   [T([2, 7], kind="distinct"), 7, -1, True, True]],
    "aten::var.correction": [[T([n, 33]), [1], 1, True], [T([2, 3, 4]), [0, 2], 0, False], [T([7]), None, None, False]],
    "aten::var_mean.correction": [[T([n, 33]), [1], 1, True], [T([2, 3, 4]), [0, 2], 0, False], [T([7]), None, None, False]],
    "aten::addmm": [[T(s), T([n, 5]), T([5, 4]), b, a] for s in ([4], [n, 4], [1, 4], [], [n, 1]) for b, a in ((1, 1), (2, 3))],
    "aten::bmm": [[T([n, 3, 5]), T([n, 5, 4])], [T([1, 1, 7]), T([1, 7, 1])], [T([2, 17, 33]), T([2, 33, 9])], [T([2, 3, 0]), T([2, 0, 4])]],
    "aten::mm": [[T([n, 5]), T([5, 4])], [T([1, 7]), T([7, 1])], [T([17, 33]), T([33, 9])], [T([3, 0]), T([0, 4])]],
    "aten::linear": [[T([n, 5]), T([4, 5]), None], [T([n, 3, 5]), T([4, 5]), None], [T([n, 5]), T([4, 5]), T([4])],
                     [T([17, 33]), T([9, 33]), T([9])]],
    "aten::_cdist_forward": [[T([n, 3, 5]), T([n, 4, 5]), p, None] for p in (0.0, 1.0, 2.0, 3.0, float("inf"))] + [[T([2, 5]), T([3, 5]), 2.0, None]],
    "aten::convolution": [
        conv([n, 3, 7, 9], [4, 3, 3, 3], True, [1, 1], [1, 1], [1, 1]), conv([n, 4, 7, 9], [4, 1, 3, 2], False, [2, 1], [0, 1], [1, 2], groups=4),
        conv([2, 3, 9], [4, 3, 3], True, [2], [1], [1]), conv([n, 3, 5, 5], [3, 4, 3, 3], True, [2, 2], [1, 1], [1, 1], True, [1, 0]),
        conv([n, 4, 5, 5], [4, 2, 2, 3], False, [1, 2], [0, 1], [1, 1], True, groups=2), conv([1, 3, 5, 5], [8, 3, 1, 1], True, [1, 1], [0, 0], [1, 1]),
        conv([2, 3, 6], [3, 2, 4], False, [2], [1], [1], True)],
    "aten::_native_batch_norm_legit.no_stats": norm([n, 3, 5], 3, False) + norm([2, 3, 4, 5], 3, False),
    "aten::_native_batch_norm_legit_no_training": norm([n, 3], 3, True) + norm([2, 3, 4, 5], 3, True),
    "aten::native_group_norm": [[T([n, 6, 5]), T([6]), T([6]), n, 6, 5, 3, 1e-5], [T([2, 4, 2, 3]), None, None, 2, 4, 6, 2, 1e-5]],
    "aten::native_layer_norm": [[T([n, 33]), [33], T([33]), T([33]), 1e-5], [T([2, 3, 4]), [3, 4], None, None, 1e-3], [T([n, 3, 4]), [4], T([4]), None, 1e-5]],
    "aten::_adaptive_avg_pool2d": [[T([n, 3, 7, 9]), [2, 3]], [T([3, 5, 5]), [1, 1]], [T([1, 2, 4, 6]), [4, 6]]],
    "aten::avg_pool2d": [[T([n, 3, 7, 9]), [3, 2], [2, 2], [1, 1], ceil, pad, div] for ceil in (False, True) for pad in (False, True) for div in (None, 5)]
    + [[T([3, 6, 6]), [2, 2], [], [0, 0], False, True, None]],
    "aten::max_pool2d_with_indices": [[T([n, 3, 7, 9], kind="special"), [3, 2], [2, 2], [1, 1], [1, 2], ceil] for ceil in (False, True)]
    + [[T([3, 6, 6]), [2, 2], [], [0, 0], [1, 1], False]],
    "aten::max_pool2d_with_indices_backward": [[T([n, 2, 1, 5], t), T([n, 2, 1, width], t), [1, 1], [1, stride], [0, 0], [1, 1], False, index([n, 2, 1, 5], width), None]
                                               for width, stride in ((5, 1), (9, 2), (10, 2)) for t in FLOATS]
    + [[T([3, 2, 4], "f32"), T([3, 4, 7], "f32"), [2, 1], [2, 2], [0, 0], [1, 1], False, index([3, 2, 4], 28), None]],
    "aten::grid_sampler_2d": [[T([n, 3, 5, 6]), T([n, 4, 3, 2]), mode, pad, corner] for mode in (0, 2) for pad in (0, 1, 2) for corner in (False, True)]
    + [[T([n, 3, 5, 6], "f32"), T([n, 4, 3, 2], "f32"), 1, pad, corner] for pad in (0, 1, 2) for corner in (False, True)],
    # nearest in halves: which pixel is nearest depends on the last bit, so the dtype is one where it does not
    "aten::pixel_shuffle": [[T([n, 12, 3, 4]), 2], [T([2, 9, 2, 1]), 3]],
    "aten::pixel_unshuffle": [[T([n, 3, 6, 4]), 2], [T([2, 1, 6, 3]), 3]],
    "aten::upsample_bilinear2d.vec": [[T([n, 3, 4, 5]), [7, 9], c, None] for c in (False, True)] + [[T([2, 3, 4, 5]), None, c, [2.0, 1.5]] for c in (False, True)],
    "aten::upsample_nearest2d.vec": [[T([n, 3, 4, 5]), [7, 9], None], [T([2, 3, 4, 5]), None, [2.0, 1.5]], [T([2, 3, 4, 5]), [2, 3], None]],
    "aten::embedding": [[T([7, 4]), index([n, 3], 7), -1, False, False], [T([7, 4]), index([5], 7, "i32"), -1, False, False], [T([7, 4]), index([], 7), -1, False, False]],
    "aten::gather": [[T([n, 5]), 1, index([n, 3], 5), False], [T([4, 5]), 0, index([2, 5], 4), False], [T([2, 3, 4]), -2, index([2, 6, 4], 3), False], [T([7]), 0, index([3], 7), False]],
    "aten::index_put": [[T([5, 4]), [index([3], 5)], T([3, 4]), a] for a in (False, True)]
    + [[T([5, 4]), [index([3], 5), index([3], 4)], T([3]), False], [T([5, 4]), [T([5, 4], **M)], T([]), False], [T([n, 6]), [None, index([3], 6)], T([n, 3]), False]],
    "aten::index_put_": [[T([5, 4]), [index([3], 5)], T([3, 4]), False], [T([n, 6]), [None, index([3], 6)], T([n, 3]), False]],
    "aten::index_select": [[T([n, 5]), 1, index([3], 5)], [T([4, 5]), 0, index([6], 4, "i32")], [T([7]), 0, index([1], 7)], [T([2, 3, 4]), -2, index([2], 3)]],
    "aten::index.Tensor": [[T([5, 4]), [index([3], 5)]], [T([5, 4]), [index([3], 5), index([3], 4)]], [T([n, 5]), [None, index([2, 2], 5)]],
                           [T([5, 4, 3]), [index([2, 1], 5), None, index([3], 3)]], [T([5, 4]), [index([3], 5, "i32")]]],
    "aten::masked_scatter": [[T([n, 5]), T([n, 5], **M), T([n, 5])], [T([4, 5]), T([5], **M), T([20])], [T([7]), T([7], **M), T([9])]],
    "aten::scatter_add": [[T([n, 5]), 1, index([n, 3], 5), T([n, 3])], [T([4, 5]), 0, index([2, 5], 4), T([4, 5])], [T([7]), 0, index([3], 7), T([3])]],
    "aten::scatter.src": [[T([n, 5]), 1, index([n, 3], 5), T([n, 3])], [T([1, 5]), -1, index([1, 5], 5), T([1, 5])], [T([7]), 0, index([3], 7), T([3])]],
    "aten::scatter.value": [[T([n, 5]), 1, index([n, 3], 5), 1], [T([4, 5]), 0, index([2, 5], 4), 1], [T([7]), 0, index([3], 7), 1]],
    "aten::select_scatter": [[T([n, 5]), T([n]), 1, 2], [T([2, 3, 4]), T([2, 4]), -2, -1], [T([7]), T([]), 0, 3]],
    "aten::slice_scatter": [[T([n, 5]), T([n, 2]), 1, 1, 5, 2], [T([6, 3]), T([4, 3]), 0, None, 4, 1], [T([7]), T([3]), 0, -3, None, 1]],
    "aten::cat": [[[T([n, 5]), T([n, 3])], 1], [[T([n, 5]), T([2, 5]), T([n, 5])], 0], [[T([0]), T([2, 3])], 0], [[T([7])], 0], [[T([2, 3, 1]), T([2, 3, 4])], -1], [[T([0, 4]), T([2, 4])], 0]],
    "aten::clone": [[T(s), None] for s in SHAPES],
    "dim_order_ops::_clone_dim_order": [[T(s), False, None] for s in SHAPES],
    "aten::constant_pad_nd": [[T([n, 5]), [1, 2], 1], [T([2, 3, 4]), [1, 0, 0, 2], 0], [T([7]), [0, 3], 1], [T([n, 1, 3, 2]), [1, 1, 2, 0], 1]],
    "aten::copy_": [[T([n, 5]), T([5]), False], [T([2, 3, 4]), T([2, 3, 4]), False], [T([]), T([]), False], [T([7]), T([1]), False]],
    "aten::diagonal_copy": [[T([n, 5, 5]), 0, 1, 2], [T([4, 5]), 1, 0, 1], [T([4, 5]), -2, 0, 1], [T([2, 3, 4]), 0, 2, 0]],
    "executorch_prim::et_view.default": [[T([n, 6]), [n, 2, 3]], [T([7]), [1, 7, 1]], [T([]), [1]], [T([2, 3, 4]), [24]]],
    "aten::expand_copy": [[T([5]), [4, 5], False], [T([3, 1]), [-1, 4], False], [T([]), [2, 3], False], [T([n, 1, 3, 1]), [n, 2, 3, 4], False], [T([1]), [7], False]],
    "aten::flip": [[T([n, 5]), [1]], [T([2, 3, 4]), [0, -1]], [T([7]), [0]], [T([2, 3]), []]],
    "aten::glu": [[T([n, 6]), -1], [T([4, 3]), 0], [T([2, 4, 3]), 1]],
    "aten::permute_copy": [[T([n, 5]), [1, 0]], [T([2, 3, 4]), [2, 0, 1]], [T([n, 1, 3, 2]), [0, 3, 1, 2]], [T([7]), [0]], [T([2, 1, 2, 1, 3]), [4, 3, 2, 1, 0]]],
    **{f"aten::{how}_pad{d}d": [[T(s), p] for s, p in PADS[d]] for how in ("reflection", "replication") for d in (1, 2, 3)},
    "aten::as_strided_copy": [[T([n, 6]), [n, 3, 2], [6, 1, 3], 0], [T([7]), [3, 2], [2, 1], 1], [T([4, 5]), [5, 4], [1, 5], None], [T([3]), [2, 3, 2], [0, 1, 0], None]],
    "aten::repeat": [[T([n, 5]), [2, 1]], [T([7]), [3, 2]], [T([]), [4]], [T([2, 3, 1]), [1, 2, 3]]],
    "aten::roll": [[T([n, 5]), [2], [1]], [T([2, 3, 4]), [1, -1], [0, 2]], [T([7]), [10], [0]]],
    "aten::select_copy.int": [[T([n, 5]), 1, 2], [T([2, 3, 4]), 0, -1], [T([7]), 0, 3]],
    "aten::slice_copy.Tensor": [[T([n, 5]), 1, 1, 4, 1], [T([7]), 0, -4, None, 2], [T([2, 3, 4]), -1, None, 100, 3], [T([n, 5]), 1, 4, 2, 1]],
    "aten::split_copy.Tensor": [[T([n, 5]), 2, 1], [T([6, 3]), 3, 0]],
    "aten::split_with_sizes_copy": [[T([n, 5]), [2, 3], 1], [T([6, 3]), [1, 0, 5], 0]],
    "aten::squeeze_copy.dims": [[T([n, 1, 5]), [1]], [T([1, 3, 1]), [0, 2]], [T([2, 3]), [0]]],
    "aten::stack": [[[T([n, 5]), T([n, 5])], 1], [[T([]), T([])], 0], [[T([7])], -1]],
    "aten::_to_copy": [[T(s, kind="unit"), Dtype(d), False, None] for s in ([n, 33], [], [0, 4]) for d in ("bool", "u8", "i8", "i64", "f16", "bf16", "f32", "f64")],
    "dim_order_ops::_to_dim_order_copy": [[T(s, kind="unit"), Dtype(d), False, None] for s in ([n, 33], []) for d in ("bool", "u8", "i32", "f16", "f64")],
    "aten::transpose_copy.int": [[T([n, 5]), 0, 1], [T([2, 3, 4]), -1, 0], [T([n, 1, 3, 2]), 1, 2], [T([7]), 0, 0]],
    "aten::tril": [[T([n, 4, 5]), 0], [T([4, 5]), 1], [T([4, 5]), -2]],
    "aten::unbind_copy.int": [[T([n, 3]), 1], [T([2, 3, 4]), 0]],
    "aten::unfold_copy": [[T([n, 7]), 1, 3, 2], [T([7]), 0, 7, 1], [T([5, 3]), 0, 2, 1]],
    "aten::unsqueeze_copy": [[T([n, 5]), 1], [T([]), 0], [T([7]), -1]],
    "aten::view_copy": [[T([n, 6]), [n, 2, 3]], [T([7]), [1, -1]], [T([]), [1]], [T([0, 4]), [2, 0]]],
    "aten::arange": [[5, Dtype(d)] for d in ("i64", "i32", "f32")] + [[4.5, Dtype("f32")]],
    "aten::arange.start_step": [[1, 9, 3, Dtype("i64")], [5, -1, -2, Dtype("i32")], [0.5, 2.0, 0.25, Dtype("f32")]],
    "aten::full": [[[2, 3], 1, Dtype(d)] for d in ("bool", "u8", "i64", "f16", "bf16", "f32", "f64")] + [[[], 2, Dtype("i32")], [[0, 4], 2.5, Dtype("f32")]],
    "aten::full_like": [[T([n, 5]), 1, None, None], [T([]), 1, Dtype("f32"), None]],
    "aten::ones": [[[2, 3], Dtype(d)] for d in ("bool", "u8", "i64", "f16", "bf16", "f32", "f64")],
    "aten::zeros": [[[2, 3], Dtype(d)] for d in ("bool", "u8", "i64", "f16", "bf16", "f32", "f64")],
    "aten::rand": [[[2, 3], Dtype(d)] for d in FLOATS], "aten::randn": [[[2, 3], Dtype(d)] for d in FLOATS],
    "aten::scalar_tensor": [[1, Dtype(d)] for d in ("bool", "u8", "i64", "f16", "bf16", "f32", "f64")],
}

# Calls that must not be written: (op, arguments, element types, words of the reason).
REFUSED = [
    ("aten::add.Tensor", [T([]), T([n, 5]), 2], ("f32", "i32", "bf16"), "with an alpha"),
    ("aten::add.Tensor", [T([1, 1]), T([n, 5]), 2], ("f32",), "with an alpha"),
    ("aten::linear", [T([5]), T([4, 5]), None], ("f32",), "less than two dimensions"),
    ("aten::index.Tensor", [T([5, 4]), [index([3], 5), index([3], 4)]], ("u16", "u32", "u64"), "one index tensor"),
    ("aten::copy_", [T([n, 5]), T([5]), False], ("u16", "u32", "u64"), "broadcast"),
]


def possible(name, args, dtype):
    """Not among REFUSED, which has one call of each kind that is not."""
    if dtype in ("u16", "u32", "u64") and name == "aten::index.Tensor":
        return len(args[1]) == 1 and len(args[1][0].shape) == 1
    return not (dtype in ("u16", "u32", "u64") and name == "aten::copy_" and args[0].shape != args[1].shape)


def cases_of(name, schema):
    """The cases of an op: listed, or made from the schema's arguments; None when there are none."""
    if name in CASES:
        return CASES[name]
    if name in DATA_SHAPES or "Tensor" not in schema[schema.index("->"):]:
        return None
    types = [a.split()[0] for a in schema[schema.index("(") + 1: schema.index(") ->")].split(", ") if a not in ("*", "")]
    base = name.split("::")[1].split(".")[0]
    if types == ["Tensor"]:
        return [[T(s, kind="special" if s == [n, 33] else "any")] for s in SHAPES]
    other = "nz" if base in DIVIDE else "shift" if "shift" in base or base == "pow" else "any"
    if types == ["Tensor", "Tensor"]:
        kinds = [("any", other)] + ([("special", "special")] if base in ("maximum", "minimum", "eq", "lt", "atan2", "mul") else [])
        return [[T(a, kind=p), T(b, kind=q)] for a, b in PAIRS for p, q in kinds]
    if types == ["Tensor", "Scalar"]:
        return [[T(s), k] for s in SHAPES for k in SCALARS]
    return None


def scalar_programs():
    """A program of each op on scalars: (op, text, inputs)."""
    def program(op, kinds, result, values, divisor=None):
        types = {"i": ("i64", "int"), "f": ("f64", "float"), "b": ("bool", "bool")}
        lines = ["graph @forward level(edge) {"]
        lines += [f'  %{k}: {types[c][0]}[] = input "i{k}"' for k, c in enumerate(kinds)]
        m = len(kinds)
        lines += [f"  %{m + k}: {types[c][1]} = aten::_local_scalar_dense(%{k})" for k, c in enumerate(kinds)]
        lines.append(f"  %{2 * m}: {types[result][1]} = {op}({', '.join([f'%{m + k}' for k in range(m)] + ([] if divisor is None else [str(divisor)]))})")
        lines.append(f"  %{2 * m + 1}: {types[result][0]}[] = aten::full([], %{2 * m}, {types[result][0]})")
        arrays = [np.asarray(v, DTYPES[types[c][0]]) for v, c in zip(values, kinds)]
        return op, "\n".join([*lines, f'  output %{2 * m + 1} "o0"', "}", ""]), arrays

    p = "executorch_prim::"
    for x, y in ((7, 3), (-7, 3), (7, -3), (4, 4)):
        for name in ("add", "sub", "mul"):
            yield program(p + name + ".Scalar", "ii", "i", (x, y))
            yield program(p + name + ".Scalar", "ff", "f", (x + 0.5, y))
        for name in ("eq", "ge", "gt", "le", "lt"):
            yield program(p + name + ".Scalar", "ii", "b", (x, y))
            yield program(p + name + ".Scalar", "ff", "b", (x, y))
        for name in ("floordiv.Scalar", "floordiv.int", "mod.Scalar", "mod.int"):  # a divisor that may be 0 is refused
            yield program(p + name, "i", "i", (x,), y)
        for name in ("sym_max.Scalar", "sym_min.Scalar"):
            yield program(p + name, "ii", "i", (x, y))
        yield program(p + "truediv.Scalar", "ii", "f", (x, y))
        yield program(p + "truediv.Scalar", "ff", "f", (x, y))
        yield program(p + "neg.Scalar", "i", "i", (x,))
        yield program(p + "neg.Scalar", "f", "f", (x / 2,))
        yield program(p + "sym_float.Scalar", "i", "f", (x,))
        for name in ("ceil", "round", "trunc", "sym_int"):
            yield program(p + name + ".Scalar", "f", "i", (x / 2,))
    for flag in (True, False):
        yield program(p + "sym_ite.Scalar", "bii", "i", (flag, 5, -6))
        yield program(p + "sym_not.Scalar", "b", "b", (flag,))


def data_programs():
    """Programs whose results have sizes that only the data says."""
    head = 'graph @forward level(edge) {\n  sym s0 "u" in [0, 12] unbacked\n'
    rng = np.random.default_rng(3)
    for dtype in ("bool", "u8", "i64", "f32", "f16"):
        real = np.dtype(DTYPES[dtype])
        x, mask = rng.integers(0, 2, (3, 4)).astype(real), rng.integers(0, 2, (3, 4)).astype(bool)
        for some in (x, np.zeros_like(x), np.ones_like(x)):
            yield "aten::nonzero", f'{head}  %0: {dtype}[3, 4] = input "x"\n  %1: i64[s0, 2] = aten::nonzero(%0)\n  output %1 "o0"\n}}\n', [some]
        for some in (mask, ~mask, np.zeros_like(mask)):
            yield ("aten::masked_select", f'{head}  %0: {dtype}[3, 4] = input "x"\n  %1: bool[3, 4] = input "m"\n'
                   f'  %2: {dtype}[s0] = aten::masked_select(%0, %1)\n  output %2 "o0"\n}}\n', [x, some])
    sizes = 'graph @forward level(edge) {\n  sym s0 "n" in [1, 7]\n  %0: f32[s0, 3] = input "x"\n'
    for n_ in (1, 4, 7):
        for op in ("aten::sym_size.int(%0, 0)", "aten::sym_numel(%0)"):
            what = "s0" if "size" in op else "s0*3"
            yield (op.split("(")[0], f'{sizes}  %1: int({what}) = {op}\n  %2: i64[] = aten::full([], %1, i64)\n  output %2 "o0"\n}}\n',
                   [np.ones((n_, 3), np.float32)])
