#!/usr/bin/env python3
"""Equal parts of a network become one delegate that is called several times: on the real runtime against ONNX Runtime.

    tests/conformance/repeats.py [-k PATTERN,...] [-v]

Each case says how many delegates its program must have, and how often it must call them.
"""

import json
import subprocess
import sys

import numpy as np
from onnx import helper, numpy_helper

import single_node
from single_node import Case

WIDTH, LENGTH, HEADS = 64, 6, 4


class Repeats(Case):
    """A network of these outputs; `made` is the Network that they are of."""

    def __init__(self, name, made, outputs, feeds, delegates, calls, dims=None, shapes=None):
        nodes = made.nodes + [helper.make_node("Identity", [v], [f"y{i}"]) for i, v in enumerate(outputs)]
        super().__init__(name, None, None, feeds, made.constants, outputs=len(outputs), nodes=nodes, dims=dims, shapes=shapes)
        self.delegates, self.calls = delegates, calls


class Network:
    """Nodes in the making. Weights of one name are drawn once; with `copies` each use is an initializer of its own."""

    def __init__(self, copies=False, seed=3):
        self.nodes, self.constants, self.drawn, self.copies = [], {}, {}, copies
        self.rng = np.random.default_rng(seed)

    def add(self, op, *inputs, **attributes):
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=f"{op}_{len(self.nodes)}", **attributes))
        return out

    def constant(self, value, name=None):
        name = name or f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def weight(self, name, *shape):
        if name not in self.drawn:
            self.drawn[name] = (self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[:1] if len(shape) == 2 else shape[1:]) or 1)).astype(np.float32)
        return self.constant(self.drawn[name], None if self.copies else name)

    def linear(self, x, name, inputs=WIDTH, outputs=WIDTH):
        product = self.add("MatMul", x, self.weight(name, inputs, outputs))
        return self.add("Add", product, self.weight(name + ".bias", outputs))

    def heads(self, x):
        split = self.add("Reshape", x, self.constant(np.array([0, -1, HEADS, WIDTH // HEADS])))
        return self.add("Transpose", split, perm=[0, 2, 1, 3])

    def norm(self, x, name):
        return self.add("LayerNormalization", x, self.weight(name, WIDTH), self.weight(name + ".bias", WIDTH))

    def layer(self, x, mask=None, own=""):
        """A transformer layer; weights whose names end in `own` are not shared."""
        q, k, v = (self.heads(self.linear(x, part)) for part in "qkv")
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        if mask:
            scores = self.add("Add", scores, mask)
        mixed = self.add("Transpose", self.add("MatMul", self.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        mixed = self.linear(self.add("Reshape", mixed, self.constant(np.array([0, -1, WIDTH]))), "o")
        x = self.norm(self.add("Add", x, mixed), "first")
        hidden = self.add("Relu", self.linear(x, "up" + own, WIDTH, 2 * WIDTH))
        return self.norm(self.add("Add", x, self.linear(hidden, "down" + own, 2 * WIDTH, WIDTH)), "second")

    def convolution(self, x, name, channels, **attributes):
        return self.add("Conv", x, self.weight(name, channels, channels, 3, 3), self.weight(name + ".bias", channels),
                        pads=[1, 1, 1, 1], **attributes)

    def block(self, x, name, channels=48):
        inner = self.add("Relu", self.convolution(x, name, channels))
        return self.add("Relu", self.add("Add", x, self.convolution(inner, name + ".second", channels)))


def feed(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def layers(network, x, count, **more):
    for _ in range(count):
        x = network.layer(x, **more)
    return x


def transformer_cases():
    rows = {"x": feed(1, LENGTH, WIDTH)}
    for copies in (False, True):
        n = Network(copies)
        yield Repeats("layers-copied-weights" if copies else "layers", n, [layers(n, "x", 4)], rows, 1, 4)
    n = Network()
    inside = n.add("Tanh", n.linear("x", "in"))
    yield Repeats("layers-between", n, [n.linear(layers(n, inside, 4), "out")], rows, 3, 6)
    n = Network()
    mask = n.add("Mul", n.add("Sub", n.constant(np.float32(1)), "m"), n.constant(np.float32(-9)))
    yield Repeats("layers-mask", n, [layers(n, "x", 4, mask=mask)],
                  {**rows, "m": (feed(1, 1, LENGTH, LENGTH, seed=2) > 0).astype(np.float32)}, 2, 5)
    n = Network()
    feeds = [{"x": feed(size, LENGTH, WIDTH, seed=size)} for size in (1, 3, 2)]
    yield Repeats("layers-batch", n, [layers(n, "x", 4)], feeds, 1, 4, dims={"n": "1..3"}, shapes={"x": ["n", LENGTH, WIDTH]})
    # Two kinds of layers in turn: each pair is a copy.
    n = Network()
    x = "x"
    for _ in range(3):
        x = n.add("Tanh", n.linear(n.layer(x), "extra"))
    yield Repeats("layers-in-turn", n, [x], rows, 1, 3)
    # Attention is shared, the products behind it are not: each layer has a part of its own.
    n = Network()
    x = "x"
    for i in range(4):
        x = n.layer(x, own=str(i))
    yield Repeats("layers-half-shared", n, [x], rows, 5, 8)
    # The second result of one layer leaves it: that layer has code of its own.
    n = Network()
    one = n.layer("x")
    x = layers(n, one, 3)
    half = [node for node in n.nodes if node.op_type == "Relu"][1].output[0]
    yield Repeats("layers-one-gives-more", n, [x, half], rows, 2, 4)


def tower_cases():
    n = Network()
    a, b = (layers(n, x, 2) for x in ("x", "z"))
    yield Repeats("towers-of-layers", n, [n.add("Sub", a, b)], {"x": feed(1, LENGTH, WIDTH), "z": feed(1, LENGTH, WIDTH, seed=2)}, 2, 5)
    n = Network()
    image = {"x": feed(1, 48, 14, 14), "z": feed(1, 48, 14, 14, seed=2)}
    a, b = (n.block(n.block(x, "one"), "two") for x in ("x", "z"))
    yield Repeats("towers-of-images", n, [n.add("Abs", n.add("Sub", a, b))], image, 2, 3)
    # Not of one shape: nothing is equal.
    n = Network()
    image = {"x": feed(1, 48, 14, 14), "z": feed(1, 48, 7, 7, seed=2)}
    yield Repeats("towers-of-two-sizes", n, [n.block("x", "one"), n.block("z", "one")], image, 1, 1)


def other_cases():
    # Nearly equal: other weights; another attribute, so that the first and last softmax are equal, and all products.
    n = Network()
    x = "x"
    for i in range(3):
        x = n.layer(x)
        n.drawn = {k: v + np.float32(1e-3) for k, v in n.drawn.items()}
        n.copies = True
    yield Repeats("nearly-equal-weights", n, [x], {"x": feed(1, LENGTH, WIDTH)}, 1, 1)
    n = Network()
    x = "x"
    for axis in (1, 2, 1):
        x = n.add("Softmax", n.linear(n.linear(x, "a", WIDTH, 8 * WIDTH), "b", 8 * WIDTH, WIDTH), axis=axis)
    yield Repeats("nearly-equal-attribute", n, [x], {"x": feed(1, LENGTH, WIDTH)}, 3, 6)
    # Few weights are not worth the calls.
    n = Network()
    x = "x"
    for _ in range(8):
        x = n.add("Tanh", n.linear(x, "small"))
    yield Repeats("few-weights", n, [x], {"x": feed(1, LENGTH, WIDTH)}, 1, 1)
    # An unrolled recurrence: the step reads the last state and one row of the input.
    n = Network()
    state = n.add("Mul", n.add("Slice", "x", *(n.constant(np.array([i])) for i in (0, 1, 1))), n.constant(np.float32(0)))
    for i in range(LENGTH):
        row = n.add("Slice", "x", *(n.constant(np.array([k])) for k in (i, i + 1, 1)))
        state = n.add("Tanh", n.add("Add", n.linear(row, "in", WIDTH, 4 * WIDTH), n.linear(state, "state", 4 * WIDTH, 4 * WIDTH)) if i else
                      n.linear(row, "in", WIDTH, 4 * WIDTH))
    yield Repeats("recurrence", n, [state], {"x": feed(1, LENGTH, WIDTH)}, 3, 12)


def check(case, args, server, work):
    wrong = single_node.check(case, args, server, work)
    if wrong:
        return wrong
    text = subprocess.run([args.etc, "inspect", f"{work}/model.pte", "--json"], check=True, capture_output=True, text=True)
    delegates = json.loads(text.stdout)["methods"][0]["delegates"]
    found = (len(delegates), sum(d["calls"] for d in delegates))
    if found != (case.delegates, case.calls):
        return f"{found[0]} delegates called {found[1]} times instead of {case.delegates} called {case.calls} times"
    return None


def main():
    return single_node.cases.run([*transformer_cases(), *tower_cases(), *other_cases()], check,
                                 single_node.parser(__doc__, ["--backend=xnnpack"], True).parse_args())


if __name__ == "__main__":
    sys.exit(main())
