"""Reductions, running sums, softmaxes and choices of the largest."""

import numpy as np

from builder import BOOL, F16, INTEGERS, op
from graph import Reject

# name: (opset that moved the axes to an input, exact, sums and products only, least, most)
REDUCTIONS = {
    "ReduceSum": (13, False, True, -100, 100), "ReduceMean": (18, False, False, -100, 100), "ReduceMax": (18, True, False, None, None),
    "ReduceMin": (18, True, False, None, None), "ReduceProd": (18, False, True, -2, 2), "ReduceL1": (18, False, True, -100, 100),
    "ReduceL2": (18, False, False, -100, 100), "ReduceLogSum": (18, False, False, 0.1, 100),
    "ReduceLogSumExp": (18, False, False, -8, 8), "ReduceSumSquare": (18, False, True, -20, 20),
}


# Of integers the reference rounds somewhere on the way.
ROUNDED = {"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}


def register_reduction(name, moved, exact, ring, low, high):
    @op(name, 7)
    def reduce(b):
        # The reference gives a reduction of nothing the wrong shape.
        types = b.types(name) - (INTEGERS if name in ROUNDED else set())
        x = b.operand(types, low=low, high=high, least=1)
        if b.x(x).dtype == F16 and (b.x(x).astype(np.float64) ** 2).sum() > 6e4:
            raise Reject("sums of squares beyond the range of half precision")
        rank = b.x(x).ndim
        axes = b.rng.sample(range(rank), b.whole(0 if b.opset >= moved else 1, rank)) if rank else []
        axes = [a - rank if b.opset >= 11 and b.chance(0.3) else a for a in axes]
        given = bool(rank) and b.chance(0.8)
        attributes = {"keepdims": b.choice([None, 0, 1])}
        if b.opset < moved:
            return b.node(name, [x], exact=exact, ring=ring, axes=axes if given and axes else None, **attributes)
        attributes["noop_with_empty_axes"] = b.choice([None, 0, 1]) if ring and name in ("ReduceSum", "ReduceMax") else None
        return b.node(name, [x, b.ints(axes) if given else ""], exact=exact, ring=ring, **attributes)


for _name, _row in REDUCTIONS.items():
    register_reduction(_name, *_row)


def register_arg(name):
    @op(name, 7, weight=1.5)
    def arg(b):
        x = b.operand(b.types(name), 1, 5, least=1)
        b.node(name, [x], exact=True, axis=b.choice([None, b.whole(0, b.x(x).ndim - 1) if b.opset < 11 else b.axis(b.x(x).ndim)]),
               keepdims=b.choice([None, 0, 1]), select_last_index=b.choice([None, 0, 1]) if b.opset >= 12 else None)


register_arg("ArgMax")
register_arg("ArgMin")


@op("TopK", 7, weight=1.5)
def top_k(b):
    x = b.operand(b.types("TopK"), 1, 4, least=1)
    axis = b.whole(0, b.x(x).ndim - 1)
    length = b.x(x).shape[axis]
    k = b.whole(1, length if b.fixed(length) else 2)
    axis = axis - b.x(x).ndim if b.chance(0.5) and b.opset >= 10 else axis
    keep = b.choice([[True, True], [True, True], [True, False], [False, True]])
    if b.opset < 10:
        return b.node("TopK", [x], 2, exact=True, k=k, axis=axis, keep=keep)
    return b.node("TopK", [x, b.ints([k])], 2, exact=True, axis=axis, keep=keep, largest=b.choice([None, 0, 1]) if b.opset >= 11 else None)


def register_softmax(name, exact):
    @op(name, 7, weight=1.5)
    def softmax(b):
        x = b.operand(b.types(name), 1, 4, low=-30, high=30, least=1)
        axis = b.axis(b.x(x).ndim) if b.opset >= 11 else b.whole(0, b.x(x).ndim - 1)
        b.node(name, [x], exact=exact, axis=b.choice([None, axis, axis]) if b.x(x).ndim > 1 or b.opset >= 13 else axis)


register_softmax("Softmax", False)
register_softmax("LogSoftmax", False)
register_softmax("Hardmax", True)


@op("CumSum", 11)
def cum_sum(b):
    x = b.operand(b.types("CumSum"), 1, 4, low=-50, high=50)
    axis = np.array(b.axis(b.x(x).ndim), b.choice([np.int32, np.int64]))
    b.node("CumSum", [x, b.constant(axis)], ring=True, exclusive=b.choice([None, 0, 1]), reverse=b.choice([None, 0, 1]))


@op("CumProd", 26)
def cum_prod(b):
    x = b.operand(b.types("CumProd"), 1, 4, low=-2, high=2)
    axis = np.array(b.axis(b.x(x).ndim), b.choice([np.int32, np.int64]))
    b.node("CumProd", [x, b.constant(axis)], ring=True, exclusive=b.choice([None, 0, 1]), reverse=b.choice([None, 0, 1]))


@op("MatMul", 7, weight=2)
def matmul(b):
    x = b.operand(b.types("MatMul"), 1, 4, low=-20, high=20, least=1)
    shape = b.x(x).shape
    inner = shape[-1]
    other = [inner] if b.chance(0.2) else [*(1 if b.chance(0.3) else d for d in shape[b.whole(0, len(shape[:-2])):-2]), inner, b.dim()]
    y = b.fresh(b.x(x).dtype, other, -5, 5)
    if b.chance(0.5) and b.x(x).ndim > 1:
        left = b.fresh(b.x(x).dtype, [b.dim(), shape[-2]], -5, 5)
        return b.node("MatMul", [left, x], ring=True)
    return b.node("MatMul", [x, y], ring=True)


@op("Gemm", 7, weight=2)
def gemm(b):
    x = b.operand(b.types("Gemm"), 2, 2, low=-20, high=20, least=1)
    dtype, (rows, inner) = b.x(x).dtype, b.x(x).shape
    left, right, columns = b.choice([None, 0, 1]), b.choice([None, 0, 1]), b.dim()
    if left:
        rows, inner = inner, rows
    y = b.fresh(dtype, (columns, inner) if right else (inner, columns), -5, 5)
    c = b.fresh(dtype, b.choice([(), (1,), (columns,), (rows, 1), (1, columns), (rows, columns)]), -5, 5)
    c = "" if b.opset >= 11 and b.chance(0.3) else c
    scalars = {k: b.choice([None, 0.5, 2.0, -1.0] if dtype not in INTEGERS else [None, 2.0]) for k in ("alpha", "beta")}
    b.node("Gemm", [x, y, c], ring=True, transA=left, transB=right, **scalars)


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "bij->bji", "ij->", "ij->j", "ii->i", "bhid,bhjd->bhij", "...i,...i->...", "i,j->ij",
             "ij,ij->ij", "bij,jk", "ij,j->i", "...ij->...ji", "ii", "abc,cd->abd", "bi,bj,bk->bijk"]


@op("Einsum", 12)
def einsum(b):
    equation = b.choice(EQUATIONS)
    dtype = b.dtype(b.types("Einsum"))
    sizes = {letter: b.whole(1, 5) for letter in "abcdhijk"}
    names = []
    for term in equation.split("->")[0].split(","):
        shape = ([2, 3] if "..." in term else []) + [sizes[x] for x in term if x.isalpha()]
        names.append(b.like(dtype, shape, -5, 5))
    b.node("Einsum", names, ring=True, equation=equation)


@op("Det", 11, weight=0.7)
def det(b):
    x = b.operand(b.types("Det"), 2, 4, low=-6, high=6, where=lambda v: v.shape[-1] == v.shape[-2] and v.shape[-1] in (1, 2, 3))
    b.node("Det", [x])


@op("OneHot", 9)
def one_hot(b):
    depth = b.whole(2, 6)
    indices = b.operand(b.types("OneHot", 0) & INTEGERS, 1, 3, low=-depth if b.opset >= 11 else 0, high=depth - 1)
    values = b.draw(b.dtype(b.types("OneHot", 2) - {BOOL}), (2,))
    rank = b.x(indices).ndim
    b.node("OneHot", [indices, b.constant(np.array(depth if b.chance(0.7) else [depth])), b.constant(values)], exact=True,
           axis=b.choice([None, -1, b.whole(0, rank), b.whole(-rank - 1, -1)]))
