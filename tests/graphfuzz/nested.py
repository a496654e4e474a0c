"""If, Loop and Scan within each other: bodies capture values of every level around them, compute what no step changes, swap what
they carry, return what they were given, and choose by counters and by data."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from builder import BOOL, F32, I64, op
from graph import Step

UNARY = ["Neg", "Abs", "Relu", "Tanh", "Sigmoid", "Identity", "Sin"]
BINARY = ["Add", "Sub", "Mul"]
MOST_NODES = 40
LONGEST = 3  # steps of a loop


class Body:
    """Writes the nodes of one graph. `known` has the names in sight: F32 ones of one shape, counters (i64) and conditions."""

    def __init__(self, b, shape, prefix, around=None, budget=None):
        self.b, self.shape, self.prefix = b, shape, prefix
        self.known = {k: list(v) for k, v in around.known.items()} if around else {F32: [], I64: [], BOOL: []}
        self.nodes, self.initializers, self.count = [], [], 0
        self.budget = around.budget if around else [MOST_NODES]

    def name(self):
        self.count += 1
        return f"{self.prefix}_{self.count}"

    def add(self, name, inputs, dtype=None, **attributes):
        out = self.name()
        self.nodes.append(helper.make_node(name, inputs, [out], **{k: v for k, v in attributes.items() if v is not None}))
        if dtype is not None:
            self.known[dtype].append(out)
        return out

    def constant(self, array):
        out = self.name()
        if self.b.chance(0.5):
            self.initializers.append(numpy_helper.from_array(np.asarray(array), out))
        else:
            self.nodes.append(helper.make_node("Constant", [], [out], value=numpy_helper.from_array(np.asarray(array))))
        return out

    def some(self, dtype):
        """A name in sight; the newer ones more often."""
        known = self.known[dtype]
        return self.b.choice(known[-4:] if self.b.chance(0.6) else known)

    def typed(self, name, dtype, shape, always=True):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape if always or self.b.chance(0.7) else None)

    def graph(self, name, inputs, outputs):
        return helper.make_graph(self.nodes, name, inputs, outputs, self.initializers)


def calm(body, x):
    """Keeps numbers small however often a step is done."""
    return body.add("Tanh", [x], F32) if body.b.chance(0.7) else body.add("Clip", [x, body.constant(np.float32(-2)), body.constant(np.float32(2))], F32)


def condition(body):
    b = body.b
    kind = b.rng.random()
    if kind < 0.35:
        return body.some(BOOL)
    if kind < 0.6:
        return body.add("Less", [body.some(I64), body.constant(np.int64(b.whole(0, 3)))], BOOL)
    if kind < 0.7:
        return body.add("Not", [body.some(BOOL)], BOOL)
    if kind < 0.8:
        return body.add(b.choice(["And", "Or", "Xor"]), [body.some(BOOL), body.some(BOOL)], BOOL)
    mean = body.add("ReduceMean", [body.some(F32)], keepdims=0)
    return body.add("Less", [mean, body.constant(np.float32(b.choice([-0.3, 0.11, 0.4])))], BOOL)


def plain(body):
    b, x = body.b, body.some(F32)
    kind = b.rng.random()
    if kind < 0.3:
        return calm(body, body.add(b.choice(BINARY), [x, body.some(F32)]))
    if kind < 0.5:
        return body.add(b.choice(UNARY), [x], F32)
    if kind < 0.58:
        return calm(body, body.add("Add", [x, body.constant(b.draw(F32, b.choice([body.shape, body.shape[-1:], ()]), -1, 1))]))
    if kind < 0.66:
        return body.add("Where", [condition(body), x, body.some(F32)], F32)
    if kind < 0.72:
        turned = body.add("Transpose", [x], perm=list(range(len(body.shape)))[::-1])
        other = body.add("Reshape", [turned, body.constant(np.array(body.shape, np.int64))])
        return body.add("Identity", [other], F32)
    if kind < 0.78:
        row = body.add("Gather", [x, body.add("Mod", [body.some(I64), body.constant(np.int64(body.shape[0]))])], axis=0)
        return calm(body, body.add("Add", [row, body.some(F32)]))
    if kind < 0.84:
        mean = body.add("ReduceMean", [x], keepdims=1, axes=None if b.opset >= 18 else [b.whole(0, len(body.shape) - 1)])
        return body.add("Sub", [body.some(F32), mean], F32)
    if kind < 0.9:
        both = body.add("Concat", [x, body.some(F32)], axis=0)
        at = b.whole(0, body.shape[0])
        return body.add("Slice", [both, body.constant(np.array([at])), body.constant(np.array([at + body.shape[0]])), body.constant(np.array([0]))], F32)
    if kind < 0.95:
        return body.add("Mul", [x, body.add("Cast", [body.some(BOOL), ], to=TensorProto.FLOAT)], F32)
    body.add(b.choice(["Add", "Sub"]), [body.some(I64), body.constant(np.int64(b.whole(0, 2)))], I64)


def branches(body, depth):
    b, count = body.b, body.b.whole(1, 3)
    kinds = [b.choice([F32, F32, F32, I64, BOOL]) for _ in range(count)]
    cond = condition(body)
    made = {}
    for which in ("then_branch", "else_branch"):
        inner = Body(b, body.shape, body.name(), body)
        fill(inner, depth - 1, b.whole(0, 4))
        made[which] = finish(inner, which, kinds)
    outs = [body.name() for _ in kinds]
    body.nodes.append(helper.make_node("If", [cond], outs, **made))
    for out, kind in zip(outs, kinds):
        body.known[kind].append(out)


def finish(inner, name, kinds, inputs=(), more=()):
    """A graph that returns a value of each kind, `more` (name, type, shape) before them."""
    b, outs = inner.b, [inner.typed(*x) for x in more]
    taken = {x[0] for x in more}
    local = {x for n in inner.nodes for x in n.output} | {x.name for x in inputs}
    for kind in kinds:
        name_ = inner.some(kind)
        # Of a counter, a value from outside or a copy of either, ONNX Runtime returns what its memory holds later.
        if kind != BOOL:
            name_ = inner.add("Mul", [name_, inner.constant(np.ones((), kind))])
        elif name_ not in local or name_ in taken or b.chance(0.1):
            name_ = inner.add("Identity", [name_])
        taken.add(name_)
        outs.append(inner.typed(name_, kind, list(inner.shape) if kind == F32 else [], bool(name == "scan")))
    return inner.graph(name, list(inputs), outs)


def loop(body, depth):
    b = body.b
    carried = [b.choice([F32, F32, I64, BOOL]) for _ in range(b.whole(0, 3))]
    scans = [F32] * b.whole(0 if carried else 1, 1)
    inner = Body(b, body.shape, body.name(), body)
    i, go = inner.name(), inner.name()
    names = [inner.name() for _ in carried]
    inputs = [helper.make_tensor_value_info(i, TensorProto.INT64, []), helper.make_tensor_value_info(go, TensorProto.BOOL, [])]
    inputs += [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(k), list(body.shape) if k == F32 else []) for n, k in zip(names, carried)]
    inner.known[I64].append(i)
    for n, k in zip(names, carried):
        inner.known[k].append(n)
    counted = b.chance(0.75)
    bounded = body.constant(np.int64(b.whole(1 if scans else 0, LONGEST)))
    if not scans and b.chance(0.4):  # a number of steps that is known when the program runs
        bounded = body.add("Mod", [body.add("Abs", [body.some(I64)]), body.constant(np.int64(LONGEST + 1))])
    fill(inner, depth - 1, b.whole(1, 6))
    if counted or scans:
        more = inner.add("Identity", [go])
    else:
        more = inner.add("Identity", [condition(inner)])
    first = "" if b.chance(0.4) else body.constant(np.array(True)) if counted or scans else condition(body)
    made = finish(inner, "body", [*carried, *scans], inputs, [(more, BOOL, [])])
    start = [body.some(k) for k in carried]
    outs = [body.name() for _ in [*carried, *scans]]
    body.nodes.append(helper.make_node("Loop", [bounded, first, *start], outs, body=made))
    for out, kind in zip(outs, carried):
        body.known[kind].append(out)
    for out in outs[len(carried):]:
        body.add("ReduceMax" if b.chance(0.5) else "ReduceMin", [out], F32, keepdims=0, axes=[0]) if b.opset < 18 else body.add(
            "Gather", [out, body.constant(np.int64(b.choice([0, -1])))], F32, axis=0)


def scan(body, depth):
    """Over the rows of a few values that are stacked."""
    b = body.b
    rows = [body.add("Unsqueeze", [body.some(F32), body.constant(np.array([0]))]) if b.opset >= 13 else body.add(
        "Unsqueeze", [body.some(F32)], axes=[0]) for _ in range(b.whole(1, 3))]
    stacked = body.add("Concat", rows, axis=0)
    inner = Body(b, body.shape, body.name(), body)
    states, x = [inner.name() for _ in range(b.whole(0, 2))], inner.name()
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(body.shape)) for n in [*states, x]]
    inner.known[F32] += [*states, x]
    fill(inner, depth - 1, b.whole(1, 5))
    made = finish(inner, "scan", [F32] * (len(states) + 1), inputs)
    outs = [body.name() for _ in range(len(states) + 1)]
    body.nodes.append(helper.make_node("Scan", [*(body.some(F32) for _ in states), stacked], outs, body=made, num_scan_inputs=1,
                                       scan_input_directions=[b.whole(0, 1)], scan_output_directions=[b.whole(0, 1)]))
    body.known[F32] += outs[:-1]
    body.add("Gather", [outs[-1], body.constant(np.int64(b.choice([0, -1])))], F32, axis=0)


def fill(body, depth, count):
    b = body.b
    for _ in range(count):
        if body.budget[0] <= 0:
            break
        body.budget[0] -= 1
        kind = b.rng.random()
        if depth > 0 and kind < 0.2:
            branches(body, depth)
        elif depth > 0 and kind < 0.4:
            loop(body, depth)
        elif depth > 0 and kind < 0.46:
            scan(body, depth)
        else:
            plain(body)


@op("Nested", 13, 26, weight=0)  # newer opsets have onnx's own evaluator as reference, whose loops without a condition do not run
def nested(b):
    x = b.operand(F32, 1, 3, low=-5, high=5, least=1, where=lambda v: all(b.fixed(d) for d in v.shape))
    shape = b.x(x).shape
    body = Body(b, shape, b.name("g"))
    body.known[F32] += [x, b.like(F32, shape, -2, 2)]
    body.known[I64] += [b.constant(np.int64(b.whole(0, 3))) if b.chance(0.3) else b.fresh(I64, (), 0, 4, constant=False)]
    body.known[BOOL] += [b.fresh(BOOL, (), constant=b.chance(0.2))]
    fill(body, 3, b.whole(0, 2))
    b.choice([branches, loop, scan])(body, 3)
    fill(body, 2, b.whole(0, 3))
    for tensor in body.initializers:
        body.nodes.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
    for node in body.nodes:
        b.step(Step([node], exact=False))
