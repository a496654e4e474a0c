"""Cases for xnnpack_sweep.py of ops that move elements or leave some out; see xnnpack_cases.py."""

import numpy as np

from xnnpack_draw import SYMBOLS, Invalid, case_of

@case_of("CLONE")
def clone(d):
    shape = d.shape()
    return d.textual("aten::clone(%0, none)", shape, lambda x: x, shape)


@case_of("CAT")
def concat(d):
    shape = d.shape(1, most=4000)
    axis = d.whole(-len(shape), len(shape) - 1)
    names = []
    for i in range(d.one(1, 2, 2, 3, 4, 5, 6, 9, 12)):
        one = list(shape)
        one[axis] = d.dim()
        names.append(d.weight(one) if i and d.chance(0.2) and not any(x in SYMBOLS for x in one) else d.operand(one))
    return d.layout(d.compute(d.node("Concat", names, axis=axis)), len(shape))


@case_of("PERMUTE_COPY")
def transpose(d):
    shape = d.shape(1)
    perm = d.one([0, 2, 3, 1], [0, 3, 1, 2]) if len(shape) == 4 and d.chance(0.4) else d.r.sample(range(len(shape)), len(shape))
    return d.layout(d.compute(d.node("Transpose", [d.operand(shape)], perm=perm)), len(shape))


def step(d, v, dims):
    """One more node on v, which has these dims of which some vary; the new v and its dims."""
    rank, last, kind = len(dims), dims[-1], d.whole(0, 12)
    i = d.whole(0, rank - 1)
    if kind < 3:
        perm = d.r.sample(range(rank), rank)
        return d.node("Transpose", [v], perm=perm), [dims[k] for k in perm]
    if kind == 3:
        return d.node(d.one("Relu", "Tanh", "Abs"), [v]), dims
    if kind == 4:
        shape = [1 if x in SYMBOLS or d.chance(0.3) else x for x in dims][d.whole(0, rank - 1):]
        return d.node(d.one("Mul", "Add", "Sub"), d.r.sample([v, d.weight(shape)], 2)), dims
    if kind == 5:
        shape = [1 if d.chance(0.3) else x for x in dims][d.whole(0, rank - 1):]
        return d.node(d.one("Mul", "Add"), d.r.sample([v, d.input(shape)], 2)), dims
    if kind == 6:
        return d.node("Softmax", [v], axis=d.one(-1, -1, -1, i)), dims
    if kind == 7 and rank < 6:
        return d.node("Unsqueeze", [v, d.ints(i)]), [*dims[:i], 1, *dims[i:]]
    if kind == 8 and dims[i] == 1 and rank > 3:
        return d.node("Squeeze", [v, d.ints(i)]), [*dims[:i], *dims[i + 1:]]
    if kind == 9 and dims[i] not in SYMBOLS and dims[i] > 1:
        size = d.whole(1, dims[i])
        return d.node("Slice", [v, d.ints(dims[i] - size), d.ints(dims[i]), d.ints(i)]), [*dims[:i], size, *dims[i + 1:]]
    if kind == 10:
        perm = [*range(rank - 2), rank - 1, rank - 2]
        return d.node("MatMul", [v, d.node("Transpose", [d.node("Neg", [v]) if d.chance(0.5) else v], perm=perm)]), [*dims[:-1], dims[-2]]
    if kind == 11 and last not in SYMBOLS:
        if d.chance(0.4):
            return d.node("LayerNormalization", [v, d.weight([last])]), dims
        n = d.one(1, 3, 4, 8)
        return d.node("MatMul", [v, d.weight([last, n])]), [*dims[:-1], n]
    if kind == 12 and dims[i] not in SYMBOLS:
        return d.node("Concat", [v, d.node("Neg", [v])], axis=i), [*dims[:i], 2 * dims[i], *dims[i + 1:]]
    return v, dims


def heads(d):
    """Heads split off, of a tensor of which two dims vary, and what is done with them."""
    if d.special or d.dtype != np.float32:
        raise Invalid
    count, size, outer = d.one(1, 2, 3, 4, 5), d.one(1, 2, 3, 4, 8), list(d.one("ab", "ba"))
    v = d.node("Reshape", [d.operand([*outer, count * size]), d.ints(0, 0, count, size)])
    dims = [*outer, count, size]
    for _ in range(d.whole(1, 7)):
        v, dims = step(d, v, dims)
    if d.chance(0.5) and not SYMBOLS.keys() & dims[-2:]:
        v = d.node("Reshape", [v, d.ints(*[0] * (len(dims) - 2), dims[-2] * dims[-1])])
    return d.node("Neg", [v], name="after")


@case_of("VIEW_COPY")
def reshape(d):
    if d.symbols and d.chance(0.5):
        return heads(d)
    shape = d.shape()
    to = list(shape)
    if d.chance(0.5) and len(to) > 1:
        i = d.whole(0, len(to) - 2)
        to[i:i + 2] = [-1]
    else:
        for i in reversed(range(len(to))):
            if to[i] not in SYMBOLS and to[i] > 1 and d.chance(0.5):
                factor = next((f for f in (2, 3, 5, 7) if to[i] % f == 0), to[i])
                to[i:i + 1] = [to[i] // factor, factor]
        if d.chance(0.3):
            to.insert(d.whole(0, len(to)), 1)
    for i, x in enumerate(to):
        if x in SYMBOLS:
            to[i] = 0 if i < len(shape) and shape[i] == x else -1
    if to.count(-1) > 1:
        raise Invalid
    return d.layout(d.compute(d.node("Reshape", [d.operand(shape), d.ints(*to)])), len(to))


@case_of("SQUEEZE_COPY_DIMS", "UNSQUEEZE_COPY")
def squeeze(d):
    shape = d.shape(1, 6)
    if d.row == "UNSQUEEZE_COPY":
        axis = d.whole(0, len(shape))
        result = [*shape[:axis], 1, *shape[axis:]]
        return d.textual(f"aten::unsqueeze_copy(%0, {axis})", result, lambda x: x.reshape(result), shape)
    axes = sorted(d.r.sample(range(len(shape)), d.whole(1, len(shape))))
    shape = [1 if i in axes else x for i, x in enumerate(shape)]
    result = [x for i, x in enumerate(shape) if i not in axes]
    return d.textual(f"aten::squeeze_copy.dims(%0, {axes})", result, lambda x: x.reshape(result), shape)


@case_of("SLICE_COPY_TENSOR")
def cut(d):
    shape = d.shape(1)
    axes = d.r.sample(range(len(shape)), d.whole(1, min(3, len(shape))))
    starts, ends, steps = [], [], []
    for i in axes:
        size = SYMBOLS.get(shape[i], shape[i])
        starts.append(d.whole(-size - 1, size + 1))
        steps.append(d.one(1, 1, 1, 1, 1, 1, 2, -1))
        ends.append(d.one(d.whole(-size - 1, size + 2), size, 2**31 - 1 if steps[-1] > 0 else size))
    return d.layout(d.compute(d.node("Slice", [d.operand(shape), d.ints(*starts), d.ints(*ends), d.ints(*axes), d.ints(*steps)])), len(shape))


@case_of("SLICE_SCATTER")
def slice_scatter(d):
    """An assignment to a slice, as exporters write it: the positions of each of its elements."""
    shape = d.shape(1, 4)
    dims = d.whole(1, len(shape))
    if any(size in SYMBOLS or size == 0 for size in shape[:dims]):
        raise Invalid
    ranges = []
    for size in shape[:dims]:
        begin, step = d.whole(0, size - 1) if d.chance(0.7) else 0, d.one(1, 1, 1, 1, 1, 2, 3)
        end = d.whole(begin + 1, size) if d.chance(0.5) else size
        ranges.append(np.arange(begin, end, step) - (size if d.chance(0.1) else 0))
    positions = np.stack(np.meshgrid(*ranges, indexing="ij"), -1)
    updates = d.operand([*(len(r) for r in ranges), *shape[dims:]])
    return d.layout(d.compute(d.node("ScatterND", [d.operand(shape), d.constant(positions), updates])), len(shape))


@case_of("SPLIT_WITH_SIZES_COPY")
def split(d):
    shape = d.shape(1)
    axis = d.whole(-len(shape), len(shape) - 1)
    parts = d.whole(1, 5)
    sizes = [0 if d.chance(0.03) else d.whole(1, 6) for _ in range(parts)]
    shape[axis] = sum(sizes)
    outs = d.node("Split", [d.operand(shape), d.ints(*sizes)], parts, axis=axis)
    outs = [outs] if parts == 1 else outs
    return [d.compute(x) for x in outs if d.chance(0.8) or x == outs[0]]


@case_of("SPLIT_COPY_TENSOR")
def split_evenly(d):
    shape = d.shape(1)
    axis, each, parts = d.whole(0, len(shape) - 1), d.whole(1, 4), d.whole(1, 5)
    last = d.whole(1, each) if d.chance(0.3) else each
    shape[axis] = each * (parts - 1) + last
    results = [[*shape[:axis], last if i == parts - 1 else each, *shape[axis + 1:]] for i in range(parts)]
    ends = [each * (i + 1) for i in range(parts - 1)]
    return d.textual(f"aten::split_copy.Tensor(%0, {each}, {axis})", results, lambda x: np.split(x, ends, axis), shape)


@case_of("SELECT_COPY_INT")
def select(d):
    shape = d.shape(1)
    axis = d.whole(-len(shape), len(shape) - 1)
    size = shape[axis] if shape[axis] not in SYMBOLS else 1
    if size == 0:
        raise Invalid
    return d.layout(d.compute(d.node("Gather", [d.operand(shape), d.constant(np.array(d.whole(-size, size - 1), np.int64))], axis=axis)),
                    len(shape) - 1)


@case_of("EXPAND_COPY")
def expand(d):
    shape = d.shape(0, 6, most=2000)
    to = [d.whole(1, 4) if x == 1 and d.chance(0.7) else 1 if x in SYMBOLS else x for x in shape]
    to = [d.whole(1, 3) for _ in range(d.one(0, 0, 1, 2))] + to
    return d.layout(d.compute(d.node("Expand", [d.operand(shape), d.ints(*to)])), len(to))


@case_of("CONSTANT_PAD_ND")
def pad(d):
    shape = d.shape(1)
    low = -1 if d.chance(0.2) else 0
    pads = [d.whole(low, 3) if d.chance(0.6) else 0 for _ in range(2 * len(shape))]
    value = [d.constant(np.array(d.one(0, 1, 2), d.dtype))] if d.chance(0.5) else []
    if d.chance(0.1) and d.dtype.kind == "f":
        value = [d.constant(np.array(d.one(-np.inf, np.inf, -0.0, np.nan), d.dtype))]
    return d.layout(d.compute(d.node("Pad", [d.operand(shape), d.ints(*pads), *value])), len(shape))


@case_of("FLIP")
def flip(d):
    shape = d.shape(1)
    axes = d.r.sample(range(len(shape)), d.whole(1, min(3, len(shape))))
    back, begin = [-1] * len(axes), [-2**31] * len(axes)
    y = d.node("Slice", [d.operand(shape), d.ints(*back), d.ints(*begin), d.ints(*axes), d.ints(*back)])
    return d.layout(d.compute(y), len(shape))


@case_of("INDEX_SELECT")
def index_select(d):
    shape = d.shape(1)
    axis = d.whole(-len(shape), len(shape) - 1)
    size = 1 if shape[axis] in SYMBOLS else shape[axis]
    if size == 0:
        raise Invalid
    picks = [d.whole(-size, size - 1) for _ in range(d.one(1, 2, 3, 5, 9))]
    if d.chance(0.4):  # in steps
        picks = list(range(d.whole(0, size - 1), size, d.one(1, 1, 2, 3)))
    indices = d.input([len(picks)], lambda s, rng: np.array(picks)) if d.chance(0.05) else d.ints(*picks)
    return d.layout(d.compute(d.node("Gather", [d.operand(shape), indices], axis=axis)), len(shape))


@case_of("REPEAT")
def tile(d):
    shape = d.shape(1, most=2000)
    return d.layout(d.compute(d.node("Tile", [d.operand(shape), d.ints(*[d.one(1, 1, 2, 3) for _ in shape])])), len(shape))


@case_of(*(f"{kind}_PAD{n}D" for kind in ("REFLECTION", "REPLICATION") for n in (1, 2, 3)))
def edge_pad(d):
    rank = 2 + int(d.row[-2])
    shape = d.shape(rank, rank)
    pads = [[0, 0] if i < 2 else [d.whole(0, 3), d.whole(0, 3)] for i in range(rank)]
    reflects = d.row.startswith("REFLECTION")
    for size, (before, after) in zip(shape, pads):
        least = 1 if size in SYMBOLS else size
        if max(before, after) and least <= (max(before, after) if reflects else 0):
            raise Invalid
    flat = [before for before, _ in pads] + [after for _, after in pads]
    y = d.node("Pad", [d.operand(shape), d.ints(*flat)], mode="reflect" if reflects else "edge")
    return d.layout(d.compute(y), rank)
