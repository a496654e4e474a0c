"""What the families of operators are written with: draws operands, adds nodes, keeps what the reference accepts.

The same seed gives the same graph on every machine that has the same releases of onnx and onnxruntime: all choices come from
one generator of random numbers, and the values that a choice depends on are computed by the reference.
"""

import random

import numpy as np
import onnx
from onnx import helper

from graph import BF16, Case, Reject, Step, evaluate, is_float

F32, F64, F16 = (np.dtype(x) for x in (np.float32, np.float64, np.float16))
I8, I16, I32, I64, U8, BOOL = (np.dtype(x) for x in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.bool_))
WEIGHTS = {F32: 50, I64: 10, F16: 8, F64: 7, I32: 7, BF16: 4, U8: 4, I8: 4, BOOL: 4, I16: 2}
INTEGERS = {I8, I16, I32, I64, U8}
FLOATING = {F32, F64, F16, BF16}
NUMBERS = INTEGERS | FLOATING
ALL = NUMBERS | {BOOL}
SIGNED = NUMBERS - {U8}
# A size above the largest that a fixed dimension gets belongs to a symbol: what must not be baked in can be seen from it.
LARGEST_FIXED = 8
SYMBOL_SIZES = {"n": 11, "m": 13}

FAMILIES = {}  # operator name: [(first opset, function, weight)]


def op(name, since=1, until=10**6, weight=1.0):
    """Registers a function of a Builder that adds one such node."""

    def register(function):
        FAMILIES.setdefault(name, []).append((since, until, function, weight))
        return function

    return register


class Builder:
    def __init__(self, seed, opset, symbolic=False):
        self.rng = random.Random(seed)
        self.np_rng = np.random.default_rng(seed)
        self.case = Case(opset)
        self.opset = opset
        self.symbolic = symbolic
        self.special = self.rng.random() < 0.08  # some graphs see NaN, infinities and negative zeros
        self.arrays, self.errors = {}, {}
        self.dynamic = set()  # values whose shape depends on data
        self.used = set()
        self.count = 0
        self.recipes = {}  # input: function of a shape that makes other values of the same kind

    # --- draws ---

    def chance(self, p):
        return self.rng.random() < p

    def choice(self, items):
        return self.rng.choice(sorted(items, key=str) if isinstance(items, (set, frozenset)) else list(items))

    def whole(self, low, high):
        return self.rng.randint(low, high)

    def name(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def dim(self, least=1):
        if self.symbolic and self.chance(0.35):
            return SYMBOL_SIZES[self.choice(SYMBOL_SIZES)]
        if least == 0 and not self.symbolic and self.chance(0.04):
            return 0
        return max(1, self.choice([1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8]))

    def shape(self, low=0, high=5, least=0):
        rank = self.choice([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5) if low <= r <= high])
        while True:
            shape = tuple(self.dim(least) for _ in range(rank))
            if np.prod(shape, dtype=np.int64) <= 600:
                return shape

    def dtype(self, allowed):
        allowed = [x for x in WEIGHTS if x in allowed]
        return self.rng.choices(allowed, [WEIGHTS[x] for x in allowed])[0]

    def axis(self, rank, least=None):
        """A random axis, as often negative as not."""
        axis = self.whole(0, rank - 1)
        return axis - rank if self.chance(0.4) else axis

    def fixed(self, size):
        """Whether this size may stand in an attribute."""
        return not self.symbolic or size <= LARGEST_FIXED

    # --- values ---

    def draw(self, dtype, shape, low=None, high=None):
        """Values of an input. Without bounds: quarters, a normal distribution, or small integers."""
        rng = self.np_rng
        if dtype == BOOL:
            return np.asarray(rng.random(shape) < 0.5)
        if dtype in INTEGERS:
            low, high = (0 if dtype == U8 else -9 if low is None else low) if low is None else low, 9 if high is None else high
            return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(dtype)
        if low is not None:
            return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
        kind = self.rng.random()
        if kind < 0.45:
            x = rng.integers(-12, 13, shape) / 4.0
        elif kind < 0.9:
            x = rng.standard_normal(shape)
        else:
            x = rng.uniform(-8, 8, shape)
        return np.asarray(x).astype(dtype)

    def spoil(self, x):
        """Some special values."""
        x = np.array(x)
        flat = x.reshape(-1)
        for _ in range(max(1, flat.size // 6) if flat.size else 0):
            flat[self.whole(0, flat.size - 1)] = self.choice([np.nan, np.inf, -np.inf, -0.0, 0.0])
        return x

    def add_input(self, array, recipe=None):
        name = self.name("x")
        self.case.inputs[name] = array
        self.arrays[name] = array
        self.errors[name] = 0.0
        self.recipes[name] = recipe or (lambda shape: self.np_rng.permutation(array.reshape(-1)).reshape(array.shape))
        if self.symbolic:
            symbols = {size: s for s, size in SYMBOL_SIZES.items()}
            self.case.symbolic[name] = [symbols.get(d, d) for d in array.shape]
        return name

    def constant(self, array, node=None):
        """A parameter, known when lowering: an initializer or a node."""
        array = np.asarray(array)
        name = self.name("c")
        self.case.constants[name] = array
        self.arrays[name] = array
        self.errors[name] = 0.0
        if self.chance(0.3) if node is None else node:
            self.case.as_nodes.add(name)
        return name

    def ints(self, values):
        return self.constant(np.array(values, np.int64))

    def fresh(self, dtype, shape, low=None, high=None, constant=None, special=False):
        """A new input, or sometimes a constant."""
        shape = tuple(shape)
        x = self.draw(dtype, shape, low, high)
        if (self.chance(0.25) if constant is None else constant) and all(self.fixed(d) for d in shape):
            return self.constant(x)
        if special and self.special and low is None and dtype in FLOATING and self.chance(0.5):
            x = self.spoil(x)
            return self.add_input(x)
        return self.add_input(x, lambda s: self.draw(dtype, s, low, high))

    def x(self, name):
        return self.arrays[name]

    def finite(self, name):
        x = self.arrays[name]
        return not is_float(x) or bool(np.isfinite(x.astype(np.float64)).all())

    def within(self, name, low, high):
        x = self.arrays[name].astype(np.float64)
        return bool(np.all((x >= low) & (x <= high)))

    def operand(self, dtypes=ALL, low_rank=0, high_rank=5, low=None, high=None, special=False, where=None, constant=None, least=0):
        """A value of the graph, or a new one. `low` and `high` bound its elements, `where` is any further condition."""
        dtypes = dtypes if isinstance(dtypes, (set, frozenset)) else {dtypes}
        if not dtypes:
            raise Reject("no element type")
        if self.chance(0.85):
            found = []
            for k, v in self.arrays.items():
                if v.dtype in dtypes and low_rank <= v.ndim <= high_rank and self.fits(k, v, low, high, special, least) and (
                        where is None or where(v)):
                    found.append(k)
            if found:
                # Results that nothing uses yet come first: graphs become deep.
                loose = [k for k in found if k not in self.used]
                return self.choice(loose if loose and self.chance(0.7) else found)
        for _ in range(20):
            dtype, shape = self.dtype(dtypes), self.shape(low_rank, high_rank, least)
            if where is None or where(np.empty(shape, dtype)):
                return self.fresh(dtype, shape, low, high, constant, special)
        raise Reject("no operand")

    def fits(self, name, x, low, high, special, least):
        if name in self.dynamic and not self.chance(0.1):
            return False
        if not special and not self.finite(name):
            return False
        if least and 0 in x.shape:
            return False
        return low is None or x.dtype == BOOL or self.within(name, low, high)

    def like(self, dtype, shape, low=None, high=None, constant=None, special=False):
        """A value of exactly this type and shape."""
        shape = tuple(shape)
        return self.operand(dtype, len(shape), len(shape), low, high, special, lambda v: v.shape == shape,
                            constant) if self.chance(0.5) and self.has(dtype, shape) else self.fresh(dtype, shape, low, high, constant, special)

    def has(self, dtype, shape):
        return any(v.dtype == dtype and v.shape == shape for v in self.arrays.values())

    def broadcast(self, dtype, shape, low=None, high=None, special=False):
        """A value that broadcasts against `shape`; its own dimensions may be larger where that one has 1."""

        def fits(v):
            try:
                return np.prod(np.broadcast_shapes(v.shape, shape), dtype=np.int64) <= 1500
            except ValueError:
                return False

        found = [k for k, v in self.arrays.items() if v.dtype == dtype and fits(v) and self.fits(k, v, low, high, special, 0)]
        if found and self.chance(0.6):
            return self.choice(found)
        own = list(shape[self.whole(0, len(shape)):]) if shape and self.chance(0.4) else list(shape)
        own = [1 if self.chance(0.25) else d for d in own]
        return self.fresh(dtype, own, low, high, special=special)

    def types(self, name, index=0):
        """The element types that the standard allows for an input of an operator at this opset."""
        schema = onnx.defs.get_schema(name, self.opset, "")
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}.get(formal.type_str, [formal.type_str])
        names = {"tensor(float)": F32, "tensor(double)": F64, "tensor(float16)": F16, "tensor(bfloat16)": BF16, "tensor(int8)": I8,
                 "tensor(int16)": I16, "tensor(int32)": I32, "tensor(int64)": I64, "tensor(uint8)": U8, "tensor(bool)": BOOL}
        return {names[x] for x in allowed if x in names}

    # --- nodes ---

    def node(self, name, inputs, outputs=1, exact=False, ring=False, domain="", dynamic=False, keep=None, **attributes):
        """Adds a node. `keep` says which outputs exist; absent ones are the empty name."""
        attributes = {k: v for k, v in attributes.items() if v is not None}
        names = [self.name() if keep is None or keep[i] else "" for i in range(outputs)]
        inputs = list(inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        while len(names) > 1 and not names[-1]:
            names.pop()
        made = helper.make_node(name, inputs, names, domain=domain, **attributes)
        self.step(Step([made], exact, ring), dynamic)
        return names[0] if outputs == 1 else names

    def step(self, step, dynamic=False):
        evaluate(self.case, step, self.arrays, self.errors)
        self.case.steps.append(step)
        inputs = step.inputs()
        self.used.update(inputs)
        if dynamic or any(x in self.dynamic for x in inputs):
            self.dynamic.update(step.outputs())

    def snapshot(self):
        case = self.case
        return (dict(case.inputs), dict(case.constants), set(case.as_nodes), list(case.steps), list(case.functions),
                dict(case.symbolic), dict(self.arrays), dict(self.errors), set(self.dynamic), set(self.used), dict(self.recipes))

    def restore(self, kept):
        case = self.case
        (case.inputs, case.constants, case.as_nodes, case.steps, case.functions, case.symbolic, self.arrays, self.errors, self.dynamic,
         self.used, self.recipes) = (type(x)(x) for x in kept)
