"""Operators that work element by element."""

import numpy as np

from builder import ALL, BOOL, FLOATING, INTEGERS, NUMBERS, U8, op

# name: (first opset, exact, NaN and infinities allowed, least, most)
UNARY = {
    "Abs": (7, True, True, None, None), "Neg": (7, True, True, None, None), "Ceil": (7, True, True, None, None),
    "Floor": (7, True, True, None, None), "Round": (11, True, True, None, None), "Identity": (7, True, True, None, None),
    "Sign": (9, True, False, None, None), "IsNaN": (9, True, True, None, None), "Not": (7, True, True, None, None),
    "BitwiseNot": (18, True, True, None, None), "Relu": (7, True, False, None, None),
    "Sqrt": (7, False, False, 0.01, 1e4), "Exp": (7, False, False, -10, 4), "Log": (7, False, False, 0.02, 1e4),
    "Sin": (7, False, False, -30, 30), "Cos": (7, False, False, -30, 30), "Tan": (7, False, False, -1.2, 1.2),
    "Asin": (7, False, False, -0.9, 0.9), "Acos": (7, False, False, -0.9, 0.9), "Atan": (7, False, False, None, None),
    "Sinh": (9, False, False, -5, 5), "Cosh": (9, False, False, -5, 5), "Asinh": (9, False, False, -1e3, 1e3),
    "Acosh": (9, False, False, 1.1, 1e3), "Atanh": (9, False, False, -0.9, 0.9), "Erf": (9, False, False, -1e4, 1e4),
    "Sigmoid": (7, False, False, None, None), "Tanh": (7, False, False, None, None), "Reciprocal": (7, False, False, 0.1, 1e3),
    "Softplus": (7, False, False, -50, 50), "Softsign": (7, False, False, None, None), "HardSwish": (14, False, False, None, None),
    "Mish": (18, False, False, -20, 20),
}


def register_unary(name, since, exact, special, low, high):
    @op(name, since)
    def unary(b):
        b.node(name, [b.operand(b.types(name), low=low, high=high, special=special)], exact=exact)


for _name, _row in UNARY.items():
    register_unary(_name, *_row)


@op("IsInf", 10)
def is_inf(b):
    x = b.operand(b.types("IsInf"), special=True)
    b.node("IsInf", [x], exact=True, detect_negative=b.choice([None, 0, 1]), detect_positive=b.choice([None, 0, 1]))


# name: (first opset, attributes with their ranges)
ACTIVATIONS = {
    "Elu": (7, {"alpha": (0.2, 2)}), "Selu": (7, {"alpha": (0.5, 2), "gamma": (0.5, 2)}), "Celu": (12, {"alpha": (0.5, 2)}),
    "LeakyRelu": (7, {"alpha": (-0.5, 0.9)}), "ThresholdedRelu": (10, {"alpha": (-1, 2)}),
    "HardSigmoid": (7, {"alpha": (0.1, 0.5), "beta": (0.2, 0.7)}), "Swish": (24, {"alpha": (0.5, 2)}),
    "Shrink": (9, {"lambd": (0.1, 1.5), "bias": (-1, 1)}),
}


def register_activation(name, since, ranges):
    @op(name, since)
    def activation(b):
        attributes = {k: round(b.rng.uniform(*v), 3) if b.chance(0.7) else None for k, v in ranges.items()}
        x = b.operand(b.types(name) - (INTEGERS if name == "Shrink" else set()), low=-50, high=50)
        b.node(name, [x], **attributes)


for _name, _row in ACTIVATIONS.items():
    register_activation(_name, *_row)


@op("Gelu", 20)
def gelu(b):
    b.node("Gelu", [b.operand(b.types("Gelu"), low=-50, high=50)], approximate=b.choice([None, "none", "tanh"]))


def register_binary(name, since, ring, exact, low, high, weight=1.5):
    @op(name, since, weight=weight)
    def binary(b):
        x = b.operand(b.types(name), low=low, high=high)
        y = b.broadcast(b.x(x).dtype, b.x(x).shape, low, high)
        if b.chance(0.5):
            x, y = y, x
        b.node(name, [x, y], exact=exact, ring=ring)


for _name, _row in {
        "Add": (7, True, False, -1e3, 1e3, 3), "Sub": (7, True, False, -1e3, 1e3, 3), "Mul": (7, True, False, -1e2, 1e2, 3),
        "Equal": (7, False, True, None, None), "Greater": (7, False, True, None, None), "Less": (7, False, True, None, None),
        "GreaterOrEqual": (12, False, True, None, None), "LessOrEqual": (12, False, True, None, None),
        "And": (7, False, True, None, None), "Or": (7, False, True, None, None), "Xor": (7, False, True, None, None),
        "BitwiseAnd": (18, False, True, None, None), "BitwiseOr": (18, False, True, None, None),
        "BitwiseXor": (18, False, True, None, None)}.items():
    register_binary(_name, *_row)


def divisor(b, dtype, shape):
    """No zero among them, and none near it."""
    if dtype in INTEGERS:
        y = b.draw(dtype, tuple(1 if b.chance(0.2) else d for d in shape), 1, 7)
        y = np.where(b.np_rng.random(y.shape) < 0.3, -y.astype(np.int64), y.astype(np.int64)) if dtype != U8 else y
    else:
        y = b.np_rng.uniform(0.3, 4, shape) * b.np_rng.choice([-1, 1], shape)
    y = np.asarray(y).astype(dtype)
    if all(b.fixed(d) for d in y.shape) and b.chance(0.4):
        return b.constant(y)
    return b.add_input(y, lambda s: np.resize(y, s))


@op("Div", 7, weight=2)
def div(b):
    x = b.operand(b.types("Div"), low=-1e3, high=1e3)
    b.node("Div", [x, divisor(b, b.x(x).dtype, b.x(x).shape)])


@op("Mod", 10)
def mod(b):
    x = b.operand(b.types("Mod"), low=-1e3, high=1e3)
    dtype = b.x(x).dtype
    b.node("Mod", [x, divisor(b, dtype, b.x(x).shape)], exact=True, fmod=1 if dtype in FLOATING else b.choice([None, 0, 1]))


@op("Pow", 7)
def power(b):
    dtype = b.dtype(b.types("Pow"))
    if dtype in INTEGERS:
        x = b.operand(dtype, low=-6, high=6)
        y = b.broadcast(dtype, b.x(x).shape, 0, 3)
    elif b.chance(0.5):
        x = b.operand(dtype, low=0.2, high=5)
        y = b.broadcast(dtype, b.x(x).shape, -2, 3)
    else:
        x = b.operand(dtype, low=-6, high=6)
        y = b.constant(np.array(b.choice([2, 3, 1, 0, 4]), dtype if b.opset < 12 or b.chance(0.5) else b.choice(b.types("Pow", 1))))
    b.node("Pow", [x, y])


def register_variadic(name, since, ring, exact):
    @op(name, since)
    def variadic(b):
        x = b.operand(b.types(name), low=-1e4, high=1e4)
        names, shape = [x], b.x(x).shape
        for _ in range(b.choice([0, 1, 1, 1, 2, 3])):
            y = b.broadcast(b.x(x).dtype, shape, -1e4, 1e4)
            shape = np.broadcast_shapes(shape, b.x(y).shape)
            names.append(y)
        b.rng.shuffle(names)
        b.node(name, names, exact=exact, ring=ring)


for _name, _row in {"Sum": (8, True, False), "Mean": (8, False, False), "Max": (8, False, True), "Min": (8, False, True)}.items():
    register_variadic(_name, *_row)


@op("BitShift", 11)
def bit_shift(b):
    x = b.operand(b.types("BitShift"), low=0, high=100)
    b.node("BitShift", [x, b.broadcast(b.x(x).dtype, b.x(x).shape, 0, 5)], exact=True, direction=b.choice(["LEFT", "RIGHT"]))


@op("PRelu", 7)
def prelu(b):
    x = b.operand(b.types("PRelu"), low=-1e3, high=1e3)
    shape = b.x(x).shape
    slope = tuple(1 if b.chance(0.3) else d for d in shape[b.whole(0, len(shape)):]) if shape else ()
    b.node("PRelu", [x, b.fresh(b.x(x).dtype, slope, 0 if b.x(x).dtype in INTEGERS else -1, 1)])


@op("Where", 9, weight=2)
def where(b):
    x = b.operand(b.types("Where", 1), special=True)
    y = b.broadcast(b.x(x).dtype, b.x(x).shape, special=True)
    both = np.broadcast_shapes(b.x(x).shape, b.x(y).shape)
    b.node("Where", [b.broadcast(BOOL, both), x, y], exact=True)


@op("Clip", 7, weight=1.5)
def clip(b):
    x = b.operand(b.types("Clip") if b.opset > 6 else FLOATING, special=b.opset > 10)
    dtype = b.x(x).dtype
    low, high = sorted((b.whole(0 if dtype == U8 else -4, 2), b.whole(1, 7)))
    if b.opset < 11:
        return b.node("Clip", [x], exact=True, min=b.choice([None, float(low)]), max=b.choice([None, float(high)]))

    def bound(value):
        value = np.array(value, dtype)
        return "" if b.chance(0.25) else b.constant(value) if b.chance(0.7) else b.add_input(value)

    return b.node("Clip", [x, bound(low), bound(high)], exact=True)


@op("Cast", 7, weight=3)
def cast(b):
    from onnx import helper

    to = b.dtype(b.types("CastLike" if b.opset >= 15 else "Cast") & ALL)
    x = b.operand(b.types("Cast"), low=0 if to == U8 else -100, high=100, special=False)
    b.node("Cast", [x], exact=b.x(x).dtype not in FLOATING or to not in FLOATING, to=helper.np_dtype_to_tensor_dtype(to),
           saturate=b.choice([None, 0, 1]) if b.opset >= 19 else None)


@op("CastLike", 15)
def cast_like(b):
    to = b.operand(b.types("CastLike"))
    x = b.operand(b.types("CastLike"), low=0 if b.x(to).dtype == U8 else -100, high=100)
    b.node("CastLike", [x, to], exact=b.x(x).dtype not in FLOATING or b.x(to).dtype not in FLOATING)


@op("BitCast", 26)
def bit_cast(b):
    from onnx import helper

    x = b.operand(NUMBERS, special=True)
    same = [t for t in NUMBERS if t.itemsize == b.x(x).dtype.itemsize and t not in FLOATING]
    b.node("BitCast", [x], exact=True, to=helper.np_dtype_to_tensor_dtype(b.choice(sorted(same, key=str))))


@op("Dropout", 7)
def dropout(b):
    x = b.operand(b.types("Dropout"), special=True)
    if b.opset >= 12:
        ratio = b.constant(np.array(0.3, np.float32)) if b.chance(0.5) else ""
        b.node("Dropout", [x, ratio, b.constant(np.array(False)) if b.chance(0.4) else ""], 2, exact=True, keep=[True, b.chance(0.3)])
    else:
        b.node("Dropout", [x], exact=True, ratio=b.choice([None, 0.3]))


@op("SwiGLU", 28)
def swiglu(b):
    x = b.operand(b.types("SwiGLU"), low_rank=1, low=-20, high=20)
    b.node("SwiGLU", [x, b.like(b.x(x).dtype, b.x(x).shape, -4, 4)])
