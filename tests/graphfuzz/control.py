"""If, Loop, Scan, functions of the model, sequences and optionals."""

import numpy as np
import onnx
from onnx import helper

from builder import ALL, BOOL, F32, FLOATING, I64, op
from graph import NEWEST_OF_REFERENCE, Reject, Step

BODY_OPS = ["Add", "Sub", "Mul", "Max", "Min"]
BODY_UNARY = ["Neg", "Abs", "Relu", "Tanh", "Sigmoid", "Identity"]


def body_chain(b, names, prefix, result):
    """A few nodes on values of one float type and shape, ending in `result`."""
    nodes, known = [], list(names)
    count = b.whole(1, 3)
    for i in range(count):
        out = result if i == count - 1 else f"{prefix}t{i}"
        if b.chance(0.6):
            nodes.append(helper.make_node(b.choice(BODY_OPS if b.opset >= 8 else BODY_OPS[:3]), [b.choice(known), b.choice(known)], [out]))
        else:
            nodes.append(helper.make_node(b.choice(BODY_UNARY), [b.choice(known)], [out]))
        known.append(out)
    return nodes


def typed(name, array, shape=True):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape) if shape is True else shape)


@op("If", 7, weight=1.2)
def if_(b):
    x = b.operand(F32, low=-20, high=20, where=lambda v: all(b.fixed(d) for d in v.shape))
    y = b.like(F32, b.x(x).shape, -20, 20)
    condition = b.constant(np.array(b.chance(0.5))) if b.chance(0.4) else b.fresh(BOOL, (), constant=False)
    prefix = b.name("if")
    branches = {}
    for branch in ("then_branch", "else_branch"):
        out = f"{prefix}_{branch}"
        branches[branch] = helper.make_graph(body_chain(b, [x, y], out, out), branch, [], [typed(out, b.x(x))])
    b.node("If", [condition], **branches)


@op("Loop", 7, weight=1.2)
def loop(b):
    x = b.operand(F32, 0, 3, low=-5, high=5, where=lambda v: all(b.fixed(d) for d in v.shape))
    y = b.like(F32, b.x(x).shape, -2, 2)
    p = b.name("loop")
    trips = b.constant(np.array(b.whole(0, 4)))
    nodes = [helper.make_node("Identity", [f"{p}_go"], [f"{p}_more"])]
    nodes += body_chain(b, [f"{p}_in", y], p, f"{p}_out")
    outputs = [typed(f"{p}_more", np.array(True)), typed(f"{p}_out", b.x(x))]
    scan = b.chance(0.5)
    if scan:
        nodes.append(helper.make_node(b.choice(["Neg", "Abs"]), [f"{p}_out"], [f"{p}_scan"]))
        outputs.append(typed(f"{p}_scan", b.x(x)))
    body = helper.make_graph(nodes, "body", [typed(f"{p}_i", np.array(0)), typed(f"{p}_go", np.array(True)), typed(f"{p}_in", b.x(x))], outputs)
    b.node("Loop", [trips, b.constant(np.array(True)) if b.chance(0.6) else "", x], 2 if scan else 1, body=body)


@op("Scan", 9)
def scan(b):
    x = b.operand(F32, 2, 3, low=-5, high=5, least=1, where=lambda v: all(b.fixed(d) for d in v.shape))
    p = b.name("scan")
    axis = b.whole(0, b.x(x).ndim - 1)
    element = np.take(b.x(x), 0, axis)
    state = b.like(F32, element.shape, -2, 2)
    nodes = body_chain(b, [f"{p}_s", f"{p}_x"], p, f"{p}_out")
    nodes.append(helper.make_node(b.choice(BODY_UNARY), [f"{p}_out"], [f"{p}_y"]))
    body = helper.make_graph(nodes, "body", [typed(f"{p}_s", element), typed(f"{p}_x", element)],
                             [typed(f"{p}_out", element), typed(f"{p}_y", element)])
    b.node("Scan", [state, x], 2, body=body, num_scan_inputs=1, scan_input_axes=[axis],
           scan_input_directions=b.choice([None, [1]]), scan_output_directions=b.choice([None, [1]]))


@op("Identity", 10, weight=1.5)
def function(b):
    """A call of a function of the model."""
    x = b.operand(F32, low=-20, high=20)
    y = b.broadcast(F32, b.x(x).shape, -20, 20)
    name = b.name("Function")
    nodes = body_chain(b, ["a", "b"], "f", "r")
    made = helper.make_function("local", name, ["a", "b"], ["r"], nodes, [helper.make_opsetid("", b.opset)])
    b.case.functions.append(made)
    b.node(name, [x, y], domain="local")


def sequence_step(b, nodes):
    b.step(Step(nodes, exact=True))


@op("SequenceConstruct", 11, weight=1.2)
def sequence(b):
    x = b.operand(ALL, 1, 3, special=True)
    count = b.whole(1, 3)
    names = [x] + [b.like(b.x(x).dtype, b.x(x).shape) for _ in range(count - 1)]
    p = b.name("s")
    if b.chance(0.2):
        nodes = [helper.make_node("SequenceEmpty", [], [p + "0"], dtype=helper.np_dtype_to_tensor_dtype(b.x(x).dtype)),
                 helper.make_node("SequenceInsert", [p + "0", x], [p])]
        count = 1
    else:
        nodes = [helper.make_node("SequenceConstruct", names, [p])]
    last = p
    if b.chance(0.4):
        at = b.constant(np.array(b.whole(-count, count)))
        nodes.append(helper.make_node("SequenceInsert", [last, x, at] if b.chance(0.7) else [last, x], [last + "i"]))
        last, count = last + "i", count + 1
    if b.chance(0.3) and count > 1:
        at = b.constant(np.array(b.whole(-count, count - 1)))
        nodes.append(helper.make_node("SequenceErase", [last, at] if b.chance(0.7) else [last], [last + "e"]))
        last, count = last + "e", count - 1
    end = b.name()
    kind = b.rng.random()
    if kind < 0.4:
        nodes.append(helper.make_node("SequenceAt", [last, b.constant(np.array(b.whole(-count, count - 1)))], [end]))
    elif kind < 0.8:
        new = b.choice([None, 1]) if b.x(x).ndim < 4 else None
        nodes.append(helper.make_node("ConcatFromSequence", [last], [end], axis=b.whole(0, b.x(x).ndim - 1), **({"new_axis": new} if new else {})))
    else:
        nodes.append(helper.make_node("SequenceLength", [last], [end]))
    sequence_step(b, nodes)


@op("SplitToSequence", 11)
def split_to_sequence(b):
    x = b.operand(b.types("SplitToSequence") & (FLOATING | {I64}), 1, 3, least=1, where=lambda v: b.fixed(v.shape[0]))
    length = b.x(x).shape[0]
    p, end = b.name("s"), b.name()
    inputs, attributes, count = [x], {}, length
    if b.chance(0.6):
        size = b.whole(1, length)
        inputs.append(b.constant(np.array(size)))
        count = -(-length // size)
    else:
        attributes["keepdims"] = b.whole(0, 1)
    sequence_step(b, [helper.make_node("SplitToSequence", inputs, [p], **attributes),
                      helper.make_node("SequenceAt", [p, b.constant(np.array(b.whole(0, count - 1)))], [end])])


@op("Optional", 15, weight=0.7)
def optional(b):
    if not 18 <= b.opset <= NEWEST_OF_REFERENCE:
        raise Reject("ONNX Runtime takes optionals apart from opset 18 on, onnx's evaluator adds a dim to them")
    x = b.operand(F32)
    p, end = b.name("o"), b.name()
    last = "OptionalGetElement" if b.chance(0.6) else "OptionalHasElement"
    sequence_step(b, [helper.make_node("Optional", [x], [p]), helper.make_node(last, [p], [end])])


@op("Scan", 8, 8, weight=0.3)
def scan_batched(b):
    x = b.operand(F32, 3, 3, low=-5, high=5, least=1, where=lambda v: all(b.fixed(d) for d in v.shape))
    p = b.name("scan")
    element = b.x(x)[0, 0]
    state = b.like(F32, (b.x(x).shape[0], *element.shape), -2, 2)
    nodes = [*body_chain(b, [f"{p}_s", f"{p}_x"], p, f"{p}_out"), helper.make_node("Neg", [f"{p}_out"], [f"{p}_y"])]
    body = helper.make_graph(nodes, "body", [typed(f"{p}_s", element), typed(f"{p}_x", element)],
                             [typed(f"{p}_out", element), typed(f"{p}_y", element)])
    b.node("Scan", ["", state, x], 2, body=body, num_scan_inputs=1)
