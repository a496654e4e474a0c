"""A case of control.py: a program with branches or loops, and the values that it runs with."""

import dataclasses

import numpy as np
import onnx.parser

RNG = np.random.default_rng(11)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def flag(value):
    return np.array(value, dtype=bool)


def whole(value):
    return np.array(value, dtype=np.int64)


def real(value, dtype=np.float32):
    return np.array(value, dtype=dtype)


@dataclasses.dataclass
class Case:
    name: str
    inputs: str
    outputs: str
    body: str
    feeds: list
    dims: dict = dataclasses.field(default_factory=dict)
    opset: int = 18
    jumps: bool = True  # the program must have some
    rows: str = ""  # of the last output, as the importer knows their number: "?" when data decide it, "" is not looked at
    states: int = -1  # of the first loop, as the importer builds it; -1 is not looked at
    fails: list = dataclasses.field(default_factory=list)  # inputs with which the call must end with an error
    says: str = "cannot run"  # a part of that error in etc run
    stacked: bool = False  # lists among the outputs are one tensor, not one for each element

    def model(self):
        return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {self.opset}, "ai.onnx.ml" : 3]> '
                                       f'g ({self.inputs}) => ({self.outputs}) {{ {self.body} }}')


TRUE = "t = Constant<value = bool {1}>() "
