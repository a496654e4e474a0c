"""What a case of dynamic.py is, and what the lists of cases draw their values with."""

import dataclasses
import typing

import numpy as np
import onnx.parser

RNG = np.random.default_rng(7)
HIGH = 8


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def full(n, m):
    return [floats(n, m, 4)]


def codes(*shape):
    """Whole numbers from 0 to 255 with both: quantized at run time, they are themselves."""
    x = np.round(RNG.uniform(0, 255, shape)).astype(np.float32)
    x.flat[0], x.flat[-1] = 0, 255
    return x


def weights(*shape):
    numbers = ", ".join(str(i * 37 % 255 - 127) for i in range(int(np.prod(shape))))
    return f"Constant<value = int8[{','.join(map(str, shape))}] {{{numbers}}}>()"


def fractions(*shape):
    """Constant weights, floats from -2 to 2."""
    numbers = ", ".join(str((i * 37 % 33 - 16) / 8) for i in range(int(np.prod(shape))))
    return f"Constant<value = float[{','.join(map(str, shape))}] {{{numbers}}}>()"


def at_run(result, weight, attributes="group = 1"):
    """ConvInteger of what DynamicQuantizeLinear gives, as onnxruntime.quantization.quantize_dynamic writes it."""
    return (f"{result}_w = {weight} {result}_i = ConvInteger<{attributes}>(q, {result}_w, zero) "
            f"{result}_f = Cast<to = 1>({result}_i) {result} = Mul({result}_f, scale) ")


def rows_at_run(result, x, weight):
    """x times a matrix of codes, x quantized at run time: as quantize_dynamic writes MatMul."""
    return (f"{result}_q, {result}_s, {result}_z = DynamicQuantizeLinear({x}) {result}_w = {weight} "
            f"{result}_i = MatMulInteger({result}_q, {result}_w, {result}_z) {result}_f = Cast<to = 1>({result}_i) "
            f"{result}_t = Mul({result}_s, t) {result} = Mul({result}_f, {result}_t) ")


def product_at_run(result, x, y):
    """x times y, both quantized at run time: as quantize_dynamic writes the products of attention."""
    return (f"{result}_q, {result}_s, {result}_z = DynamicQuantizeLinear({x}) {result}_p, {result}_t, {result}_o = DynamicQuantizeLinear({y}) "
            f"{result}_i = MatMulInteger({result}_q, {result}_p, {result}_z, {result}_o) {result}_f = Cast<to = 1>({result}_i) "
            f"{result}_u = Mul({result}_s, {result}_t) {result} = Mul({result}_f, {result}_u) ")


def quantized(result, x):
    """x in codes of int8 with scale s and zero point o, as numbers again."""
    return f"{result}_q = QuantizeLinear({x}, s, o) {result} = DequantizeLinear({result}_q, s, o) "


@dataclasses.dataclass
class Case:
    name: str
    inputs: str
    outputs: str
    body: str
    feeds: typing.Callable = full
    sizes: tuple = ((3, 5), (1, 1), (6, 2))
    least_n: int = 1
    least_m: int = 1
    high: int = HIGH
    flags: tuple = ()
    beyond: typing.Callable = None  # inputs of a size that the program is not made for: an error of the runtime and of `etc run`
    opset: int = 18
    fixed: bool = False  # the same program when lowered for one size, without a backend: `etc inspect` must tell its memory

    def model(self):
        return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {self.opset}]> '
                                       f'g ({self.inputs}) => ({self.outputs}) {{ {self.body} }}')
