"""Small quantized models written as text, and random numbers for them."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from quantized_draw import F32, tensor_type

I8, U8, I32, F16 = np.int8, np.uint8, np.int32, np.float16
RNG = np.random.default_rng(2)


def normal(*shape, spread=1.0):
    return (RNG.standard_normal(shape) * spread).astype(F32)


def codes(dtype, *shape):
    return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def model(text, inputs, constants, outputs, opset=21, dims=None, more=()):
    """text: a node a line, "y = Op(x, z) key=value …". inputs and outputs: name: array, name: dtype."""
    graph = helper.make_graph([node(x) for x in text.strip().splitlines()] + list(more), "edge",
                              [helper.make_tensor_value_info(k, tensor_type(v.dtype), [(dims or {}).get(i, d) for i, d in enumerate(v.shape)])
                               for k, v in inputs.items()],
                              [helper.make_tensor_value_info(k, tensor_type(t), None) for k, t in outputs.items()],
                              initializer=[initializer(k, v) for k, v in constants.items()])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def initializer(name, value):
    value = np.asarray(value)
    if value.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
        kind = TensorProto.INT4 if value.dtype == ml_dtypes.int4 else TensorProto.UINT4
        return helper.make_tensor(name, kind, value.shape, value.astype(np.int32).ravel().tolist())
    return numpy_helper.from_array(value, name)


def node(line):
    results, call = line.strip().split(" = ")
    op, rest = call.split("(", 1)
    operands, attributes = rest.split(")", 1)
    made = helper.make_node(op, [x.strip() for x in operands.split(",")], [x.strip() for x in results.split(",")])
    for pair in attributes.split():
        key, value = pair.split("=", 1)
        numbers = [float(x) if "." in x else int(x) if x.lstrip("-").isdigit() else x for x in value.rstrip(",").split(",")]
        made.attribute.append(helper.make_attribute(key, value if key == "equation" else numbers if "," in value else numbers[0]))
    return made


# Scales whose ratios are fractions of small numbers make many halves, which XNNPACK's sums and products of codes round up,
# and floats to either side.
ODD = {"x": 1.0371, "z": 0.9713, "y": 1.0193, "o": 1.0457, "w": 0.9911, "c": 1.0093}


def q(x, scale, zero=0, dtype=I8, odd=True):
    """Numbers of a quantization, by name."""
    return {f"{x}s": F32(scale * ODD[x] if odd else scale), f"{x}z": dtype(zero)}


def pair(x, y=None):
    y = y or x
    return f"{x}q = QuantizeLinear({x}, {y}s, {y}z)\n{x}r = DequantizeLinear({x}q, {y}s, {y}z)\n"
