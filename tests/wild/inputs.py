"""Seeded inputs that look like what the models see: voices, smooth images, ids, states.

A model's row says INPUT=KIND[:NUMBER...] for each input; what is left out gets the kind of its element type. Names of inputs
that have blanks or '=' are written by their position: 0=image.
"""

import zlib

import numpy as np

RATE = 16000
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
         "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}


def voice(rng, shape, scale=0.3):
    """Harmonics of a gliding pitch in syllables, and some noise; the last axis is time, or the one before if that is 1."""
    samples = int(np.prod(shape))
    t = np.arange(samples) / RATE
    phase = 2 * np.pi * np.cumsum(140 + 40 * np.sin(2 * np.pi * 0.7 * t + rng.uniform(0, 6))) / RATE
    sound = sum(np.sin(k * phase) / k for k in range(1, 12)) * (0.55 + 0.45 * np.sin(2 * np.pi * 3.1 * t))
    return (scale * (0.5 * sound + 0.02 * rng.standard_normal(samples))).reshape(shape)


def image(rng, shape, low=0.0, high=1.0):
    """Coarse patches with fine noise over them, on every axis with 16 places or more."""
    coarse = rng.uniform(0, 1, [n if n < 16 else -(-n // 8) for n in shape])
    for axis, n in enumerate(shape):
        if n >= 16:
            coarse = np.take(np.repeat(coarse, 8, axis), np.arange(n), axis)
    return low + (high - low) * np.clip(0.9 * coarse + 0.1 * rng.uniform(0, 1, shape), 0, 1)


def normal(rng, shape, scale=1.0, mean=0.0):
    return mean + scale * rng.standard_normal(shape)


def uniform(rng, shape, low=0.0, high=1.0):
    return rng.uniform(low, high, shape)


def ints(rng, shape, low=0, high=10):
    return rng.integers(int(low), int(high), shape)


def const(_, shape, value=0):
    return np.full(shape, value)


def list_of(_, shape, *values):
    """These values along the last axis."""
    return np.broadcast_to(np.array(values), shape)


def steps(_, shape):
    """0, 1, 2, ... on the last axis."""
    return np.broadcast_to(np.arange(shape[-1]), shape)


def distances(_, shape, most=10):
    """|i - j| of the last two axes, at most `most`."""
    i, j = np.indices(shape[-2:])
    return np.broadcast_to(np.minimum(abs(i - j), int(most)), shape)


KINDS = {f.__name__: f for f in (voice, image, normal, uniform, ints, const, list_of, steps, distances)}
DEFAULT = {"f": "normal", "i": "ints", "u": "ints", "b": "const:1"}


def parse(text):
    """{input: kind} of a row's column."""
    return dict(item.rsplit("=", 1) for item in text.split())


def make(model, values, kinds, sizes):
    """One array an input of an ONNX Runtime session, in its order. values: dims by position of input and axis, or by name."""
    arrays = []
    for i, value in enumerate(values):
        kind = kinds.get(value.name, kinds.get(str(i)))
        shape = [size_of(value.name, axis, dim, sizes) for axis, dim in enumerate(value.shape)]
        dtype = np.dtype(TYPES[value.type])
        name, *numbers = (kind or DEFAULT[dtype.kind]).split(":")
        rng = np.random.default_rng(zlib.crc32(f"{model}/{i}/{shape}".encode()))
        arrays.append(np.ascontiguousarray(np.asarray(KINDS[name](rng, shape, *map(float, numbers)), dtype)).reshape(shape))
    return arrays


def size_of(name, axis, dim, sizes):
    for key in (f"{name}:{axis}", dim):
        if key in sizes:
            return sizes[key]
    if isinstance(dim, int) and dim >= 0:
        return dim
    raise ValueError(f"the row gives no size for axis {axis} ('{dim}') of input '{name}'")
