"""Operators that move, select or repeat elements along axes, and the arithmetic on shapes that models do."""

import numpy as np

from builder import ALL, BOOL, FLOATING, I64, op
from graph import Reject


def factors(b, total, parts):
    """A random split of `total` into that many factors."""
    shape = [1] * parts
    left = total
    while left > 1:
        p = next(d for d in range(2, left + 1) if left % d == 0)
        shape[b.whole(0, parts - 1)] *= p
        left //= p
    return shape


def axes_input(b, name, inputs, axes, since, **attributes):
    """A node whose axes moved from an attribute to an input in some opset."""
    if b.opset >= since:
        return b.node(name, [*inputs, b.ints(axes) if axes is not None else ""], exact=True, **attributes)
    return b.node(name, inputs, exact=True, axes=axes, **attributes)


def target(b, shape):
    """A shape as an input: a constant, sometimes taken apart and put together as exporters do."""
    return b.ints(shape)


@op("Reshape", 7, weight=3)
def reshape(b):
    x = b.operand(b.types("Reshape"), special=True)
    shape = b.x(x).shape
    if not all(b.fixed(d) for d in shape):
        return symbolic_reshape(b, x)
    if 0 in shape:
        to = list(shape) if b.opset < 14 or b.chance(0.5) else list(shape[::-1])
        return b.node("Reshape", [x, b.ints(to)], exact=True, allowzero=1 if to != list(shape) else None)
    to = factors(b, int(np.prod(shape)), b.whole(1, 5))
    if b.chance(0.5):
        at = b.whole(0, len(to) - 1)
        to[at] = -1
    for i, d in enumerate(shape[:len(to)]):
        if to[i] == d and b.chance(0.3):
            to[i] = 0
    return b.node("Reshape", [x, b.ints(to)], exact=True)


def symbolic_reshape(b, x):
    """Merges dimensions, or goes through Shape, Gather, Concat."""
    rank = b.x(x).ndim
    if b.chance(0.5) or rank < 2:
        free = [i for i, d in enumerate(b.x(x).shape) if not b.fixed(d)]
        if len(free) > 1:
            return b.node("Reshape", [x, b.ints([-1])], exact=True)
        to = [-1 if i == free[0] else d for i, d in enumerate(b.x(x).shape)]
        return b.node("Reshape", [x, b.ints([1] * b.whole(0, 1) + to)], exact=True)
    return reshape_by_shape(b, x)


@op("Shape", 7, weight=2)
def reshape_by_shape(b, x=None):
    """Shape, Gather or Slice of it, arithmetic, Concat, and Reshape, Expand or ConstantOfShape by the result."""
    x = x or b.operand(ALL, 1, 4)
    rank = b.x(x).ndim
    if rank == 0:
        raise Reject("rank")
    shape = b.node("Shape", [x], exact=True)
    if b.chance(0.2):
        return shape
    pieces, at = [], b.whole(0, rank - 1)
    for i in range(rank):
        if i == at and b.chance(0.5):
            pieces.append(b.ints([-1]))
            continue
        d = b.node("Gather", [shape, b.constant(np.array(i if b.chance(0.6) else i - rank))], exact=True, axis=0)
        if b.chance(0.3):
            d = b.node("Mul", [b.node("Add", [d, d], exact=True), b.constant(np.array(1))], exact=True)
            d = b.node("Div", [d, b.constant(np.array(2))], exact=True)
        pieces.append(b.node("Unsqueeze", [d, b.ints([0])], exact=True) if b.opset >= 13 else b.node(
            "Unsqueeze", [d], exact=True, axes=[0]))
    to = b.node("Concat", pieces, exact=True, axis=0)
    return b.node("Reshape", [x, to], exact=True)


@op("Shape", 15)
def shape_part(b):
    x = b.operand(b.types("Shape"), special=True)
    rank = b.x(x).ndim
    b.node("Shape", [x], exact=True, start=b.choice([None, 0, b.whole(-rank - 1, rank + 1)]),
           end=b.choice([None, b.whole(-rank - 1, rank + 1)]))


@op("Size", 7, weight=0.5)
def size(b):
    b.node("Size", [b.operand(b.types("Size"), special=True)], exact=True)


@op("Transpose", 7, weight=3)
def transpose(b):
    x = b.operand(b.types("Transpose"), special=True)
    perm = list(range(b.x(x).ndim))
    b.rng.shuffle(perm)
    b.node("Transpose", [x], exact=True, perm=perm if b.chance(0.8) and perm else None)


@op("Flatten", 7)
def flatten(b):
    x = b.operand(b.types("Flatten"), special=True, low_rank=0 if b.opset >= 13 else 1)
    rank = b.x(x).ndim
    b.node("Flatten", [x], exact=True, axis=b.choice([None, b.whole(-rank if b.opset >= 11 else 0, rank)]) if rank else 0)


@op("Squeeze", 7, weight=1.5)
def squeeze(b):
    x = b.operand(b.types("Squeeze"), special=True, where=lambda v: 1 in v.shape)
    rank = b.x(x).ndim
    ones = [i for i, d in enumerate(b.x(x).shape) if d == 1]
    axes = b.rng.sample(ones, b.whole(1, len(ones)))
    if b.opset >= 11 and b.chance(0.4):
        axes = [a - rank for a in axes]
    axes_input(b, "Squeeze", [x], None if b.chance(0.2) and not b.symbolic else axes, 13)


@op("Unsqueeze", 7, weight=1.5)
def unsqueeze(b):
    x = b.operand(b.types("Unsqueeze"), 0, 3, special=True)
    more = b.whole(1, 2)
    rank = b.x(x).ndim + more
    axes = b.rng.sample(range(rank), more)
    if b.opset >= 11 and b.chance(0.4):
        axes = [a - rank for a in axes]
    elif b.opset < 13:
        axes.sort()
    axes_input(b, "Unsqueeze", [x], axes, 13)


@op("Concat", 7, weight=2.5)
def concat(b):
    x = b.operand(b.types("Concat"), 1, 5, special=True)
    shape = b.x(x).shape
    axis = b.whole(0, len(shape) - 1)
    parts = [x]
    for _ in range(b.choice([0, 1, 1, 2, 3])):
        fits = [k for k, v in b.arrays.items() if v.dtype == b.x(x).dtype and v.ndim == len(shape) and k not in b.dynamic and all(
            p == q for i, (p, q) in enumerate(zip(v.shape, shape)) if i != axis)]
        if fits and b.chance(0.6):
            parts.append(b.choice(fits))
        else:
            parts.append(b.fresh(b.x(x).dtype, [b.whole(0, 4) if i == axis else d for i, d in enumerate(shape)]))
    b.rng.shuffle(parts)
    b.node("Concat", parts, exact=True, axis=axis if b.opset < 11 or b.chance(0.6) else axis - len(shape))


@op("Split", 7, weight=2)
def split(b):
    x = b.operand(b.types("Split"), 1, 5, special=True)
    shape = b.x(x).shape
    fixed = [i for i, d in enumerate(shape) if b.fixed(d)]
    if not fixed:
        raise Reject("no fixed axis")
    axis = b.choice(fixed)
    length = shape[axis]
    count = b.whole(1, min(max(length, 1), 4))
    given = b.chance(0.6) or length % count != 0
    cuts = sorted(b.whole(0, length) for _ in range(count - 1))
    sizes = [hi - lo for lo, hi in zip([0, *cuts], [*cuts, length])]
    attributes = {"axis": axis if b.chance(0.6) or b.opset < 11 else axis - len(shape)}
    inputs = [x]
    if b.opset >= 18 and not given:
        attributes["num_outputs"] = count
    elif given and b.opset >= 13:
        inputs.append(b.ints(sizes))
    elif given:
        attributes["split"] = sizes
    b.node("Split", inputs, count, exact=True, **attributes) if count > 1 else b.node("Split", inputs, 1, exact=True, **attributes)


@op("Slice", 7, weight=3)
def slice_(b):
    x = b.operand(b.types("Slice") if b.opset >= 10 else ALL, 1, 5, special=True)
    shape = b.x(x).shape
    axes = b.rng.sample(range(len(shape)), b.whole(1, len(shape)))
    starts, ends, steps = [], [], []
    for a in axes:
        length = shape[a] if b.fixed(shape[a]) else 3
        step = b.choice([1, 1, 1, 2, 3, -1, -2]) if b.opset >= 10 else 1
        lo, hi = sorted((b.whole(0, length), b.whole(0, length + 1)))
        if step < 0:
            lo, hi = b.choice([length - 1, hi, 2**31]), b.choice([lo, -2**31, -length - 1])
        elif b.chance(0.3):
            lo, hi = lo - length if b.fixed(shape[a]) else -lo, b.choice([2**31 - 1, 2**63 - 1, -1, hi])
        starts.append(lo), ends.append(hi), steps.append(step)
    if b.opset < 10:
        default = axes == list(range(len(axes)))
        return b.node("Slice", [x], exact=True, starts=starts, ends=ends, axes=None if default and b.chance(0.5) else axes)
    signed = [a - len(shape) if b.chance(0.3) else a for a in axes]
    default = axes == list(range(len(axes))) and b.chance(0.5)
    dtype = np.int64 if b.chance(0.8) or max(map(abs, starts + ends)) >= 2**31 else np.int32

    def ints(values):
        return b.constant(np.array(values, dtype))

    return b.node("Slice", [x, ints(starts), ints(ends), "" if default else ints(signed),
                            ints(steps) if any(s != 1 for s in steps) or b.chance(0.4) else ""], exact=True)


@op("Tile", 7)
def tile(b):
    x = b.operand(b.types("Tile"), special=True)
    b.node("Tile", [x, b.ints([b.choice([1, 1, 2, 3, 0] if b.chance(0.1) else [1, 1, 2, 3]) for _ in b.x(x).shape])], exact=True)


@op("Expand", 8, weight=1.5)
def expand(b):
    x = b.operand(b.types("Expand"), 0, 4, special=True)
    shape = b.x(x).shape
    to = [b.choice([1, d] if b.fixed(d) else [1]) if d != 1 else b.choice([1, 2, 3, 4]) for d in shape]
    to = [b.whole(1, 3) for _ in range(b.whole(0, 1))] + (to if b.chance(0.8) or any(to[i] != 1 for i in range(len(to))) else to[1:])
    if b.chance(0.25):
        other = b.broadcast(b.x(x).dtype, shape, special=True)
        return b.node("Expand", [x, b.node("Shape", [other], exact=True)], exact=True)
    return b.node("Expand", [x, b.ints(to)], exact=True)


@op("Pad", 7, weight=2)
def pad(b):
    x = b.operand(b.types("Pad"), 1, 4, special=True)
    shape = b.x(x).shape
    mode = b.choice(["constant", "constant", "reflect", "edge", "wrap" if b.opset >= 19 else "edge"])
    least = 0 if mode == "constant" else 1
    if min(shape) < least:
        raise Reject("empty")
    amounts = []
    for d in shape * 2:
        d = d if b.fixed(d) else 2
        most = 2 if mode in ("constant", "edge") else min(2, d - 1 if mode == "reflect" else d)
        amounts.append(b.choice([0, b.whole(0, most), -1 if b.chance(0.15) and d > 2 and mode == "constant" else 0]))
    attributes = {"mode": mode if mode != "constant" or b.chance(0.3) else None}
    if b.opset < 11:
        if b.x(x).dtype not in FLOATING:
            raise Reject("type")
        return b.node("Pad", [x], exact=True, pads=amounts, value=b.choice([None, 1.5]) if mode == "constant" else None, **attributes)
    value = ""
    if mode == "constant" and b.chance(0.6):
        value = b.constant(b.draw(b.x(x).dtype, ()))
    if b.opset >= 18 and b.chance(0.4):
        axes = b.rng.sample(range(len(shape)), b.whole(1, len(shape)))
        amounts = [amounts[a] for a in axes] + [amounts[len(shape) + a] for a in axes]
        return b.node("Pad", [x, b.ints(amounts), value, b.ints([a - len(shape) if b.chance(0.4) else a for a in axes])], exact=True,
                      **attributes)
    return b.node("Pad", [x, b.ints(amounts), value], exact=True, **attributes)


@op("DepthToSpace", 7)
def depth_to_space(b):
    block = b.whole(1, 3)
    x = b.operand(b.types("DepthToSpace"), 4, 4, where=lambda v: v.shape[1] % (block * block) == 0 and v.shape[1] > 0, special=True)
    b.node("DepthToSpace", [x], exact=True, blocksize=block, mode=b.choice([None, "DCR", "CRD"]) if b.opset >= 11 else None)


@op("SpaceToDepth", 7)
def space_to_depth(b):
    block = b.whole(1, 2)
    x = b.operand(b.types("SpaceToDepth"), 4, 4, special=True,
                  where=lambda v: all(d % block == 0 and b.fixed(d) for d in v.shape[2:]) or block == 1)
    b.node("SpaceToDepth", [x], exact=True, blocksize=block)


@op("Trilu", 14)
def trilu(b):
    x = b.operand(b.types("Trilu"), 2, 4, special=True)
    b.node("Trilu", [x, b.constant(np.array(b.whole(-3, 4))) if b.chance(0.7) else ""], exact=True, upper=b.choice([None, 0, 1]))


@op("CenterCropPad", 18)
def center_crop_pad(b):
    x = b.operand(b.types("CenterCropPad"), 1, 4)
    rank = b.x(x).ndim
    axes = sorted(b.rng.sample(range(rank), b.whole(1, rank)))
    every = axes == list(range(rank)) and b.chance(0.5)
    b.node("CenterCropPad", [x, b.ints([b.whole(1, 6) for _ in axes])], exact=True,
           axes=None if every else [a - rank if b.chance(0.3) else a for a in axes])


@op("ReverseSequence", 10)
def reverse_sequence(b):
    x = b.operand(b.types("ReverseSequence"), 2, 4, special=True, where=lambda v: 0 not in v.shape and all(b.fixed(d) for d in v.shape[:2]))
    batch = b.whole(0, 1)
    steps, rows = b.x(x).shape[1 - batch], b.x(x).shape[batch]
    lengths = b.fresh(I64, (rows,), 1, steps)
    b.node("ReverseSequence", [x, lengths], exact=True, batch_axis=batch, time_axis=1 - batch)


@op("ConstantOfShape", 9)
def constant_of_shape(b):
    from onnx import numpy_helper

    dtype = b.dtype(ALL)
    shape = b.ints(b.shape(0, 4)) if not b.symbolic else b.node("Shape", [b.operand(ALL)], exact=True)
    b.node("ConstantOfShape", [shape], exact=True, value=numpy_helper.from_array(b.draw(dtype, (1,))) if b.chance(0.7) else None)


@op("EyeLike", 9)
def eye_like(b):
    from onnx import helper

    x = b.operand(b.types("EyeLike"), 2, 2, special=True)
    to = b.dtype(ALL - {BOOL})
    b.node("EyeLike", [x], exact=True, k=b.choice([None, b.whole(-3, 3)]),
           dtype=helper.np_dtype_to_tensor_dtype(to) if b.chance(0.5) else None)


@op("Range", 11)
def range_(b):
    dtype = b.dtype(b.types("Range"))
    start, step = b.whole(-5, 5), b.choice([1, 2, 3, -1, -2])
    stop = start + step * b.whole(0, 8) + (b.choice([0, 1]) if step > 1 else 0)
    if b.chance(0.3) and dtype == I64:
        size = b.node("Size", [b.operand(ALL)], exact=True)
        return b.node("Range", [b.constant(np.array(0)), size, b.constant(np.array(1))], exact=True)
    return b.node("Range", [b.constant(np.array(v, dtype)) for v in (start, stop, step)], exact=True)


@op("Col2Im", 18, weight=0.7)
def col2im(b):
    n, c, kernel, image = b.whole(1, 2), b.whole(1, 2), [b.whole(1, 3), b.whole(1, 2)], [b.whole(3, 6), b.whole(3, 6)]
    strides, pads = [b.whole(1, 2), b.whole(1, 2)], [b.whole(0, 1) for _ in range(4)]
    blocks = [(image[i] + pads[i] + pads[2 + i] - kernel[i]) // strides[i] + 1 for i in range(2)]
    x = b.like(b.dtype(FLOATING), (n, c * kernel[0] * kernel[1], blocks[0] * blocks[1]), -5, 5)
    b.node("Col2Im", [x, b.ints(image), b.ints(kernel)], ring=True, strides=strides, pads=pads)
