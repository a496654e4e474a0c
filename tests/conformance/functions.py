#!/usr/bin/env python3
"""Functions of the model itself, in domains of their own, on the real runtime against ONNX Runtime.

    tests/conformance/functions.py [-k PATTERN,...] [-v]
"""

import sys

import numpy as np
import onnx
import onnx.parser

import contrib
from contrib import cases

MODELS = {
    "attribute": """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = own.leaky <slope = 0.3> (x) }
        <domain: "own", opset_import: ["" : 18]> leaky <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }""",
    "default": """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) { t = own.leaky (x) y = own.leaky <slope = 0.7> (t) }
        <domain: "own", opset_import: ["" : 18]> leaky <slope: float = 0.2> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }""",
    "nested": """<ir_version: 9, opset_import: ["" : 18, "outer" : 1, "inner" : 1]>
        g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y, z = outer.both <slope = 0.4> (x) }
        <domain: "inner", opset_import: ["" : 18]> leaky <slope> (a) => (b) { b = LeakyRelu <alpha: float = @slope> (a) }
        <domain: "outer", opset_import: ["" : 18, "inner" : 1]> both <slope> (a) => (b, c) {
            t = inner.leaky <slope: float = @slope> (a) b = Neg (t) c = inner.leaky <slope = 0.5> (b) }""",
    # Softmax of opset 11 takes all dims from its axis on. ONNX Runtime 1.31 forgets that when it inlines the function.
    "own_opset": """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) { y = own.old (x) z = Softmax <axis = 1> (x) }
        <domain: "own", opset_import: ["" : 11]> old (a) => (b) { b = Softmax <axis = 1> (a) }""",
    "optional_input": """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x, float low) => (float[2,3] y, float[2,3] z) { y = own.clip (x, low) z = own.clip (x) }
        <domain: "own", opset_import: ["" : 18]> clip (a, low) => (b) { b = Clip (a, low) }""",
    "contrib": """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[2,4] x) => (float[2,4] y) { y = own.act (x) }
        <domain: "own", opset_import: ["" : 18, "com.microsoft" : 1]> act (a) => (b) { t = com.microsoft.QuickGelu <alpha = 1.5> (a) b = Add (t, a) }""",
    "captured": """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = own.choose <slope = 0.3> (x) }
        <domain: "own", opset_import: ["" : 18]> choose <slope> (a) => (b) {
            s = ReduceSum <keepdims = 0> (a) zero = Constant <value_float = 0.0> () c = Greater (s, zero)
            b = If (c) <then_branch = t () => (float[2,3] p) { p = LeakyRelu <alpha: float = @slope> (a) },
                        else_branch = e () => (float[2,3] q) { q = Neg (a) }> }""",
}


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def overloads():
    """Two functions of one name; the parser's text has no place for overloads."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[2,3] y) { t = own.f (x) y = own.f (t) }
        <domain: "own", opset_import: ["" : 18]> f (a) => (b) { b = Neg (a) }
        <domain: "own", opset_import: ["" : 18]> f (a) => (b) { b = Exp (a) }""")
    for i, name in enumerate(("negative", "exponential")):
        model.graph.node[i].overload = model.functions[i].overload = name
    return model


class Case:
    """What contrib.check wants of a case."""

    reference = compare = growth = None
    constants, dims, labels, rtol, atol = {}, {}, (), 1e-4, 1e-5

    def __init__(self, name, model):
        self.name, self.model, self.feeds = name, model, []
        if name == "own_opset":
            self.reference = lambda x: [softmax(x.reshape(2, -1)).reshape(x.shape), softmax(x, 1)]
        for _ in range(2):
            shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
            self.feeds.append({k: np.asarray(contrib.normal(*v), np.float32) for k, v in shapes.items()})


def main():
    models = [Case(k, onnx.parser.parse_model(v)) for k, v in MODELS.items()] + [Case("overloads", overloads())]
    return cases.run(models, contrib.check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
