"""How xnnpack_ops.py and xnnpack_ops_windows.py write the models of their cases."""

from onnx import helper

from single_node import Case

HALF = {"rtol": 2e-2, "atol": 1e-2}


def node(op, inputs, outputs="y0", **attributes):
    return helper.make_node(op, inputs, [outputs] if isinstance(outputs, str) else outputs, **attributes)


def chain(x, *steps):
    """Nodes one after the other, from x to y0: (op, further inputs, attributes)."""
    made = []
    for i, step in enumerate(steps):
        op, more, attributes = (*step, [], {})[:3] if len(step) == 1 else (*step, {})[:3]
        out = "y0" if i == len(steps) - 1 else f"t{i}"
        made.append(node(op, [x, *more], out, **attributes))
        x = out
    return made


def graph(name, nodes, feeds, constants=(), kernels=0, **more):
    return Case(name, None, None, feeds, constants, nodes=nodes, kernels=kernels, **more)


def single(name, op, inputs, feeds, constants=(), kernels=0, **more):
    return Case(name, op, inputs, feeds, constants, kernels=kernels, **more)
