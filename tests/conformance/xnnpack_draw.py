"""What the cases of xnnpack_cases.py are drawn with.

A case is named by its op and a number, from which all that is random about it comes. What may be taken away from a failing
case without changing its form (`without`): "nhwc" (the operand comes out of a convolution, hence in XNNPACK's layout for
images), "symbols" (sizes that vary), "special" (NaN, infinities and negative zeros among the values), "type" (other than f32).
"""

import random

import numpy as np
from onnx import helper

SYMBOLS = {"a": 5, "b": 7}  # their largest sizes
SIZES = [{"a": 5, "b": 7}, {"a": 2, "b": 3}, {"a": 1, "b": 1}]  # that a case with symbols runs at
TYPES = [np.float16, np.float64, np.int32, np.int64, np.int8, np.uint8, np.bool_]
SIMPLIFICATIONS = ("nhwc", "symbols", "special", "type")
CASES = {}  # row of lower.def: function of a Draw


class Invalid(Exception):
    """Not a case: what was drawn contradicts itself."""


def case_of(*rows):
    def register(function):
        CASES.update(dict.fromkeys(rows, function))
        return function
    return register


class Draw:
    """The choices of one case, and the graph that they make."""

    def __init__(self, row, number, without=()):
        self.row, self.number = row, number
        self.r = random.Random(f"{row}:{number}")
        self.nodes, self.inputs, self.constants, self.opset = [], {}, {}, 18
        self.text = self.reference = None  # instead of nodes
        # Drawn always, so that taking one away leaves the others as they are.
        nhwc, symbols, special, kind = self.r.random(), self.r.random(), self.r.random(), self.r.random()
        other = self.r.choice(TYPES)
        self.symbols = symbols < 0.2 and "symbols" not in without
        self.special = special < 0.08 and "special" not in without
        # A convolution multiplies NaN and infinities by the zeros that fill its kernel up: they spread.
        self.nhwc = nhwc < 0.3 and not self.special and "nhwc" not in without
        self.dtype = np.dtype(other if kind < 0.12 and "type" not in without else np.float32)

    # --- choices ---

    def one(self, *items):
        return self.r.choice(items)

    def whole(self, low, high):
        return self.r.randint(low, high)

    def chance(self, p):
        return self.r.random() < p

    def dim(self):
        draw, symbol = self.r.random(), self.r.choice(sorted(SYMBOLS))
        size = self.r.choice([1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33])
        if self.symbols and draw < 0.4:
            return symbol
        return 0 if draw > 0.99 else size

    def shape(self, low=0, high=7, most=20000):
        rank = self.r.choice([x for x in (0, 1, 2, 2, 3, 3, 4, 4, 4, 4, 5, 6, 7) if low <= x <= high])
        for _ in range(100):
            shape = [self.dim() for _ in range(rank)]
            if np.prod([SYMBOLS.get(x, x) for x in shape], dtype=np.int64) <= most:
                return shape
        return [1] * rank

    def image(self, rank=None, channels=None, least=1, most=12):
        """[batch, channels, ...spatial]"""
        rank = rank or self.one(3, 4, 4, 4, 4, 4, 5)
        spatial = [self.one("a", "b") if self.symbols and self.chance(0.5) else self.whole(least, most) for _ in range(rank - 2)]
        batch = "a" if self.symbols and self.chance(0.5) else 0 if self.chance(0.01) else self.whole(1, 3)
        return [batch, channels or self.one(1, 2, 3, 4, 6, 8, 16, 17), *spatial]

    # --- the graph ---

    def values(self, low=None, high=None, dtype=None):
        """A function of shape and generator that makes values of a kind drawn here."""
        dtype, kind, special = np.dtype(dtype or self.dtype), self.r.random(), self.special

        def make(shape, rng):
            if dtype == np.bool_:
                return np.asarray(rng.random(shape) < 0.5)
            if dtype.kind in "iu":
                return np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 10, shape)).astype(dtype)
            x = rng.uniform(low, high, shape) if low is not None else (
                rng.standard_normal(shape) * (3 if kind < 0.6 else 20) if kind < 0.85 else rng.integers(-12, 13, shape) / 4.0)
            x = np.array(x, dtype)
            if special and x.size:
                flat = x.reshape(-1)
                for value in (np.nan, np.inf, -np.inf, -0.0):
                    flat[rng.integers(0, flat.size)] = value
            return x
        return make

    def input(self, shape, make=None):
        """An operand that arrives at run time."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = (list(shape), make or self.values())
        return name

    def constant(self, array):
        name = f"k{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def weight(self, shape, make=None):
        """A constant of fixed shape."""
        if any(x in SYMBOLS for x in shape):
            raise Invalid
        return self.constant((make or self.values())(tuple(shape), np.random.default_rng(self.whole(0, 10**6))))

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def operand(self, shape, make=None):
        """An input; of an image perhaps in the layout that XNNPACK wants for images."""
        x = self.input(shape, make)
        if self.nhwc and len(shape) == 4 and self.dtype == np.float32 and shape[1] not in SYMBOLS and 0 < shape[1] <= 64:
            w = self.constant(np.ones((shape[1], 1, 1, 1), np.float32))
            return self.node("Conv", [x, w], group=shape[1], name="before")
        return x

    def node(self, op, inputs, outputs=1, name="", **attributes):
        names = [f"v{len(self.nodes)}.{i}" for i in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{name or 'case'}.{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def textual(self, call, result, reference, *shapes, constants=()):
        """A graph of the edge dialect: the call of values %0, %1, …: inputs of these shapes, then constants."""
        if any(x in SYMBOLS or x == 0 for shape in shapes for x in shape):
            raise Invalid
        make = self.values(dtype=np.float32)
        lines = []
        for i, shape in enumerate(shapes):
            self.inputs[f"x{i}"] = (list(shape), make)
            lines.append(f'%{i}: f32{list(shape)} = input "x{i}"')
        for i, array in enumerate(constants, len(shapes)):
            values = [float(x) for x in array.reshape(-1)] if array.ndim else float(array)
            lines.append(f"%{i}: f32{list(array.shape)} = const {values}")
        results = result if result and isinstance(result[0], list) else [result]
        n, count = len(lines), len(results)
        lines.append(", ".join(f"%{n + i}: f32{list(x)}" for i, x in enumerate(results)) + f" = {call}")
        lines += [f"%{n + count + i}: f32{list(x)} = aten::neg(%{n + i})" for i, x in enumerate(results)]
        lines.append("output " + ", ".join(f'%{n + count + i} "y{i}"' for i in range(count)))
        self.text = "graph @forward level(edge) {\n  " + "\n  ".join(lines) + "\n}\n"
        self.reference = lambda *x: [-np.asarray(y) for y in (reference(*x) if result is results else [reference(*x)])]
        return [f"y{i}" for i in range(count)]

    def compute(self, x):
        """Something is computed with x, so that moving elements is worth a delegate."""
        return self.node("Neg", [x], name="after") if self.dtype == np.float32 else x

    def layout(self, y, rank):
        """Sometimes an image goes on in XNNPACK's layout."""
        if self.nhwc and rank == 4 and self.dtype == np.float32 and self.chance(0.5):
            return self.node("MaxPool", [y], name="after", kernel_shape=[2, 1], pads=[1, 0, 0, 0])
        return y


class Sample:
    """One case as it is tested: nodes, the inputs with their shapes, one or more outputs."""

    def __init__(self, row, number, without=()):
        d = Draw(row, number, without)
        outputs = CASES[row](d)
        self.row, self.number, self.key, self.opset = row, number, f"{row}:{number}", d.opset
        self.outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        self.nodes, self.inputs, self.constants, self.dtype, self.special = d.nodes, d.inputs, d.constants, d.dtype, d.special
        self.text, self.reference = d.text, d.reference
        self.symbolic = any(x in SYMBOLS for shape, _ in d.inputs.values() for x in shape)

    def feeds(self):
        """Inputs at each of the sizes."""
        for sizes in SIZES if self.symbolic else SIZES[:1]:
            yield {name: make(tuple(sizes.get(x, x) for x in shape), np.random.default_rng([self.number, i]))
                   for i, (name, (shape, make)) in enumerate(self.inputs.items())}
