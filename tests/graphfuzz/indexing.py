"""Gathers, scatters and what else takes positions; results whose size depends on data."""

import numpy as np

from builder import BOOL, FLOATING, I32, I64, op
from graph import Reject


def positions(b, shape, length, dtype=None, lowest=None):
    """Indices into an axis of that length, negative ones too. They stay valid for every size of a symbol."""
    if length == 0 and 0 not in shape:
        raise Reject("an empty axis")
    if not b.fixed(length):
        length = 2
    dtype = dtype or b.choice([I64, I64, I32])
    lowest = -length if lowest is None else lowest
    return b.fresh(dtype, shape, lowest, length - 1)


@op("Gather", 7, weight=3)
def gather(b):
    x = b.operand(b.types("Gather"), 1, 4, special=True)
    axis = b.axis(b.x(x).ndim)
    i = positions(b, b.shape(0, 2), b.x(x).shape[axis], lowest=None if b.opset >= 11 else 0)
    b.node("Gather", [x, i], exact=True, axis=b.choice([axis, axis, None]) if axis == 0 else axis)


@op("GatherElements", 11)
def gather_elements(b):
    x = b.operand(b.types("GatherElements"), 1, 4, special=True, least=1)
    axis = b.axis(b.x(x).ndim)
    shape = list(b.x(x).shape)
    shape = [d if b.chance(0.6) or not b.fixed(d) else b.whole(1, d) for d in shape]
    shape[axis] = b.whole(1, 6)
    b.node("GatherElements", [x, positions(b, shape, b.x(x).shape[axis])], exact=True, axis=axis)


def index_rows(b, shape, batch, depth, unique=False):
    """Index tuples below shape[batch:batch + depth], for GatherND and ScatterND."""
    lengths = [d if b.fixed(d) else 2 for d in shape[batch:batch + depth]]
    if 0 in lengths:
        raise Reject("an empty axis")
    count = b.whole(1, 4)
    outer = list(shape[:batch]) + ([count] if b.chance(0.8) or batch == 0 else [])
    if not unique:
        rows = [b.np_rng.integers(-n, n, outer) for n in lengths]
        return np.stack(rows, axis=-1).astype(np.int64)
    every = int(np.prod(lengths))
    chosen = b.np_rng.permutation(every)[:min(count, every)]
    return np.stack(np.unravel_index(chosen, lengths), axis=-1).astype(np.int64)


@op("GatherND", 11)
def gather_nd(b):
    batch = b.choice([0, 0, 1]) if b.opset >= 12 else 0
    x = b.operand(b.types("GatherND"), batch + 1, 4, special=True, least=1, where=lambda v: all(b.fixed(d) for d in v.shape[:batch]))
    shape = b.x(x).shape
    rows = index_rows(b, shape, batch, b.whole(1, len(shape) - batch))
    b.node("GatherND", [x, b.constant(rows) if b.chance(0.5) else b.add_input(rows)], exact=True, batch_dims=batch or None)


def reductions(b, since, name):
    """Value of the attribute, and whether positions may repeat."""
    if b.opset < since or b.chance(0.4):
        return None, False
    kinds = ["none", "add", "mul"] + (["max", "min"] if b.opset >= 18 else [])
    kind = b.choice(kinds)
    return kind, kind != "none"


def register_scatter(name, since, until=10**6):
    @op(name, since, until)
    def scatter(b):
        reduction, repeat = reductions(b, 16, name)
        x = b.operand(b.types(name) - ({BOOL} if reduction not in (None, "none") else set()), 1, 3, least=1, low=-50, high=50,
                      where=lambda v: all(b.fixed(d) for d in v.shape))
        axis = b.axis(b.x(x).ndim)
        shape = [b.whole(1, d) for d in b.x(x).shape]
        length = b.x(x).shape[axis]
        if repeat:
            i = b.np_rng.integers(-length if b.opset >= 11 else 0, length, shape)
        else:
            i = np.argsort(b.np_rng.random([length if k == axis % len(shape) else d for k, d in enumerate(shape)]), axis=axis)
            i = np.take(i, range(shape[axis]), axis=axis)
        i = np.asarray(i, b.choice([np.int64, np.int32]))
        i = b.constant(i) if b.chance(0.5) else b.add_input(i, lambda s: i)
        b.node(name, [x, i, b.fresh(b.x(x).dtype, shape, -3, 3)], exact=reduction in (None, "none", "min", "max"), ring=True, axis=axis,
               reduction=reduction)


register_scatter("ScatterElements", 11)
register_scatter("Scatter", 9, 10)


@op("ScatterND", 11)
def scatter_nd(b):
    reduction, repeat = reductions(b, 16, "ScatterND")
    x = b.operand(b.types("ScatterND") - ({BOOL} if repeat else set()), 1, 3, least=1, low=-50, high=50,
                  where=lambda v: all(b.fixed(d) for d in v.shape))
    shape = b.x(x).shape
    depth = b.whole(1, len(shape))
    rows = index_rows(b, shape, 0, depth, not repeat)
    i = b.constant(rows) if b.chance(0.5) else b.add_input(rows, lambda s: rows)
    updates = b.fresh(b.x(x).dtype, (*rows.shape[:-1], *shape[depth:]), -3, 3)
    b.node("ScatterND", [x, i, updates], exact=reduction in (None, "none", "min", "max"), ring=True, reduction=reduction)


@op("TensorScatter", 24)
def tensor_scatter(b):
    x = b.operand(b.types("TensorScatter"), 3, 4, least=1, where=lambda v: all(b.fixed(d) for d in v.shape))
    shape = list(b.x(x).shape)
    mode = b.choice([None, "linear", "circular"])
    most = shape[-2]
    steps = b.whole(1, most)
    update = shape[:-2] + [steps] + shape[-1:]
    starts = b.fresh(I64, (shape[0],), 0, most - steps if mode != "circular" else most - 1)
    b.node("TensorScatter", [x, b.fresh(b.x(x).dtype, update), starts if b.chance(0.8) else ""], exact=True, mode=mode)


@op("NonZero", 9, weight=0.5)
def non_zero(b):
    b.node("NonZero", [b.operand(b.types("NonZero"), 1, 4)], exact=True, dynamic=True)


@op("Compress", 9, weight=0.7)
def compress(b):
    x = b.operand(b.types("Compress"), 1, 3, least=1, where=lambda v: all(b.fixed(d) for d in v.shape))
    axis = b.choice([None, b.axis(b.x(x).ndim) if b.opset >= 11 else 0])
    length = b.x(x).size if axis is None else b.x(x).shape[axis]
    keep = b.np_rng.random(b.whole(1, max(1, length))) < 0.6
    constant = b.chance(0.5)
    b.node("Compress", [x, b.constant(keep) if constant else b.add_input(keep)], exact=True, dynamic=not constant, axis=axis)


@op("Unique", 11, weight=0.5)
def unique(b):
    x = b.operand(b.types("Unique") & (FLOATING | {I64, I32}), 1, 2, least=1, where=lambda v: v.size <= 60)
    axis = b.choice([None, None, b.axis(b.x(x).ndim)])
    b.node("Unique", [x], 4, exact=True, dynamic=True, axis=axis, sorted=b.choice([None, 0, 1]),
           keep=[True, *(b.chance(0.5) for _ in range(3))])


@op("NonMaxSuppression", 10, weight=0.5)
def non_max_suppression(b):
    count = b.whole(1, 6)
    corner, size = b.np_rng.uniform(0, 5, (1, count, 2)), b.np_rng.uniform(0.5, 4, (1, count, 2))
    boxes = np.concatenate([corner, corner + size], axis=-1).astype(np.float32)
    scores = b.fresh(np.dtype(np.float32), (1, b.whole(1, 2), count), 0, 1, constant=False)
    b.node("NonMaxSuppression", [b.add_input(boxes, lambda s: boxes), scores, b.ints([b.whole(1, 3)]),
                                 b.constant(np.array([0.4], np.float32)), b.constant(np.array([0.2], np.float32)) if b.chance(0.5) else ""],
           exact=True, dynamic=True)


@op("TfIdfVectorizer", 9, weight=0.5)
def tfidf(b):
    x = b.operand({I32, I64}, 1, 2, low=0, high=9)
    counts, indexes = [0, 3], [0, 1, 2, 3, 4]
    b.node("TfIdfVectorizer", [x], min_gram_length=1, max_gram_length=2, max_skip_count=b.whole(0, 2), mode=b.choice(["TF", "IDF", "TFIDF"]),
           ngram_counts=counts, ngram_indexes=indexes, pool_int64s=[1, 2, 3, 1, 2, 3, 4], weights=[0.5, 1.0, 2.0, 0.25, 3.0])
