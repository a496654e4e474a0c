"""Models of quantized.py: float graphs that are drawn, and what quantizing them makes of them.

A Net is a float graph; ONNX Runtime says which ranges its values have, and `qdq` writes the model with QuantizeLinear and
DequantizeLinear around each node whose result is quantized, `static` and `dynamic` have onnxruntime.quantization write it.
"""

import contextlib
import io
import logging
import os
import tempfile
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

import cases

F32 = np.float32
# They limit, move or pick: on one quantization for operands and result.
MOVES = {"Reshape", "Transpose", "Slice", "MaxPool", "Flatten", "Squeeze", "Unsqueeze", "Split", "Gather"}
RANGES = {np.dtype(t): (np.iinfo(t).min, np.iinfo(t).max) for t in (np.int8, np.uint8, np.int16, np.uint16)}


def tensor_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


@dataclass
class Scheme:
    """How a model is quantized. zero: "middle", "low" or "high" for weights of u8 and activations at the edge, or None for what
    the range says. fold: weights as integers in the file; otherwise QuantizeLinear stands behind floats, too."""
    act: type = np.int8
    weight: type = np.int8
    channels: bool = True
    weight_zero: int | None = None
    float_bias: bool = False
    bias_factor: float = 1.0
    opset: int = 17
    narrow: float = 1.0  # of the range of activations: below 1 some saturate
    vectors: bool = False  # scales and zero points with one element instead of none
    omit_zeros: bool = False  # zero points that are 0 are left out
    io_codes: bool = False  # inputs and outputs of the graph are codes
    float_output: bool = True  # a DequantizeLinear behind the last QuantizeLinear


@dataclass
class Net:
    """Nodes in order; weights are operands 1 of products, biases operands 2."""
    rng: np.random.Generator
    nodes: list = field(default_factory=list)
    inputs: dict = field(default_factory=dict)  # name: array
    weights: dict = field(default_factory=dict)  # constants that are quantized
    others: dict = field(default_factory=dict)  # constants that are not
    alone: set = field(default_factory=set)  # values that are not quantized: between a node and its activation
    outputs: list = field(default_factory=list)
    axis: dict = field(default_factory=dict)  # of the channels of a weight
    count: int = 0

    def name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def input(self, *shape, spread=1.0, shift=0.0):
        name = self.name("x")
        self.inputs[name] = (self.rng.standard_normal(shape) * spread + shift).astype(F32)
        return name

    def weight(self, *shape, axis=0, spread=0.3):
        name = self.name("w")
        size = [1] * len(shape)
        if axis is not None:
            size[axis] = shape[axis]
        self.weights[name] = (self.rng.standard_normal(shape) * spread * self.rng.uniform(0.2, 1.0, size)).astype(F32)
        self.axis[name] = axis
        return name

    def bias(self, count, spread=0.5):
        name = self.name("b")
        self.weights[name] = (self.rng.standard_normal(count) * spread).astype(F32)
        return name

    def constant(self, array):
        name = self.name("c")
        self.others[name] = np.asarray(array)
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [self.name("v") for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def inner(self, kind, *inputs, **attributes):
        """A node whose result is not quantized."""
        name = self.op(kind, *inputs, **attributes)
        self.alone.add(name)
        return name

    def float_model(self, outputs, opset=17, dims=()):
        def shape(name):
            return [dims.get(i, d) if dims else d for i, d in enumerate(self.inputs[name].shape)]

        values = [helper.make_tensor_value_info(k, tensor_type(F32), shape(k)) for k in self.inputs]
        results = [helper.make_tensor_value_info(k, tensor_type(F32), None) for k in outputs]
        data = [numpy_helper.from_array(v, k) for k, v in {**self.weights, **self.others}.items()]
        return helper.make_model(helper.make_graph(self.nodes, "float", values, results, initializer=data), ir_version=9,
                                 opset_imports=[helper.make_opsetid("", opset)])

    def ranges(self, opset):
        names = [o for n in self.nodes for o in n.output]
        results = cases.ort_session(self.float_model(names, opset).SerializeToString()).run(None, self.inputs)
        arrays = {**self.inputs, **dict(zip(names, results))}
        return {k: (min(float(v.min()), 0.0), max(float(v.max()), 0.0)) for k, v in arrays.items() if v.dtype == F32}


def activation_codes(low, high, scheme):
    least, most = RANGES[np.dtype(scheme.act)]
    low, high = low * scheme.narrow, high * scheme.narrow
    if scheme.act in (np.int16, np.uint16):
        high = max(-low, high, 1e-3)
        middle = 0 if scheme.act == np.int16 else 32768
        return F32(high / 32767), scheme.act(middle)
    scale = F32(max(high - low, 1e-3) / (most - least))
    return scale, scheme.act(np.clip(np.rint(least - low / scale), least, most))


def quantized(array, scale, zero, dtype, axis=None):
    if axis is not None:
        shape = [1] * array.ndim
        shape[axis] = -1
        scale, zero = np.reshape(scale, shape), np.reshape(zero, shape)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.clip(np.rint(array.astype(np.float64) / scale) + np.asarray(zero, np.float64), least, most).astype(dtype)


def weight_codes(array, axis, scheme):
    """Codes, scales, zero points."""
    channels = scheme.channels and axis is not None
    rest = tuple(i for i in range(array.ndim) if i != axis) if channels else None
    zero = scheme.weight_zero if scheme.weight_zero is not None else (128 if scheme.weight == np.uint8 else 0)
    least, most = np.iinfo(scheme.weight).min, np.iinfo(scheme.weight).max
    reach = min(most - zero, zero - least) or 1
    scale = np.maximum(np.abs(array).max(axis=rest), 1e-6).astype(F32) / F32(reach)
    zeros = np.full(np.shape(scale), zero, scheme.weight)
    return quantized(array, scale, zeros, scheme.weight, axis if channels else None), scale, zeros


class Writer:
    """A Net as QuantizeLinear and DequantizeLinear around its nodes."""

    def __init__(self, net, scheme):
        self.net, self.scheme, self.nodes, self.data = net, scheme, [], {}
        self.parameters, self.real, self.codes, self.steps = {}, {}, {}, {}

    def numbers(self, name, scale, zero):
        s = self.scheme
        shape = (1,) if s.vectors and np.ndim(scale) == 0 else np.shape(scale)
        self.data[f"{name}_s"] = np.reshape(np.asarray(scale, F32), shape)
        names = [f"{name}_s"]
        if not (s.omit_zeros and not np.any(zero) and np.asarray(zero).dtype in (np.uint8, np.int32)):
            self.data[f"{name}_z"] = np.reshape(zero, shape)
            names.append(f"{name}_z")
        return names

    def choose(self, ranges):
        """The parameters of each value; what only moves has those of what it moves."""
        for name in self.net.inputs:
            self.parameters[name] = activation_codes(*ranges[name], self.scheme)
        for n in self.net.nodes:
            for o in n.output:
                if o not in self.net.alone and o in ranges:
                    same = n.op_type in MOVES and n.input[0] in self.parameters
                    self.parameters[o] = self.parameters[n.input[0]] if same else activation_codes(*ranges[o], self.scheme)

    def real_of(self, name, n, position):
        """What a node reads for a value of the net."""
        net = self.net
        if name in net.weights:
            return self.bias(name, n) if position == 2 and n.op_type in ("Conv", "ConvTranspose", "Gemm") else self.weight(name)
        return self.real.get(name, name)

    def weight(self, name):
        net = self.net
        if name in self.real:
            return self.real[name]
        axis = net.axis.get(name)
        self.data[f"{name}_q"], scale, zero = weight_codes(net.weights[name], axis, self.scheme)
        per = {"axis": axis} if np.ndim(scale) else {}
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *self.numbers(name, scale, zero)], [f"{name}_r"], **per))
        self.real[name] = f"{name}_r"
        return self.real[name]

    def bias(self, name, n):
        s = self.scheme
        if s.float_bias:
            self.data[name] = self.net.weights[name]
            return name
        self.weight(n.input[1])
        steps = np.asarray(self.parameters[n.input[0]][0] * self.data[f"{n.input[1]}_s"] * F32(s.bias_factor), F32)
        if n.op_type == "ConvTranspose" and np.ndim(steps) and steps.size not in (1, len(self.net.weights[name])):
            steps = steps.max()  # a scale for a row of the filter serves several groups
        steps = steps.reshape(()) if steps.size == 1 else steps
        self.data[f"{name}_q"] = quantized(self.net.weights[name], steps, np.zeros(steps.shape), np.int32, 0 if steps.ndim else None)
        per = {"axis": 0} if steps.ndim else {}
        numbers = self.numbers(name, steps, np.zeros(steps.shape, np.int32))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *numbers], [f"{name}_r"], **per))
        return f"{name}_r"

    def quantize(self, name):
        scale, zero = self.parameters[name]
        numbers = self.numbers(name, scale, zero)
        self.codes[name], self.real[name] = f"{name}_q", f"{name}_r"
        if name in self.net.inputs and self.scheme.io_codes:
            self.codes[name] = name
        else:
            self.nodes.append(helper.make_node("QuantizeLinear", [name, *numbers], [f"{name}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [self.codes[name], *numbers], [f"{name}_r"]))

    def model(self, dims):
        net, s = self.net, self.scheme
        self.choose(net.ranges(s.opset))
        for name in net.inputs:
            self.quantize(name)
        for n in net.nodes:
            self.nodes.append(helper.make_node(n.op_type, [self.real_of(i, n, k) for k, i in enumerate(n.input)], n.output))
            self.nodes[-1].attribute.extend(n.attribute)
            for o in n.output:
                if o in self.parameters:
                    self.quantize(o)
        outputs = []
        for o in net.outputs:
            codes = o in self.codes and not s.float_output
            name = self.codes[o] if codes else self.real.get(o, o)
            step = 1.0 if codes else float(self.parameters[o][0]) if o in self.parameters else None
            outputs.append((name, s.act if codes else F32, step))
        kind = s.act if s.io_codes else F32
        values = [helper.make_tensor_value_info(k, tensor_type(kind), [dims.get(i, d) for i, d in enumerate(v.shape)])
                  for k, v in net.inputs.items()]
        results = [helper.make_tensor_value_info(k, tensor_type(t), None) for k, t, _ in outputs]
        used = {i for n in self.nodes for i in n.input}
        data = [numpy_helper.from_array(v, k) for k, v in {**self.data, **net.others}.items() if k in used]
        graph = helper.make_graph([n for n in self.nodes if set(n.output) & (used | {k for k, _, _ in outputs})], "quantized", values, results,
                                  initializer=data)
        model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", s.opset)])
        feeds = {k: quantized(v, *self.parameters[k], s.act) if s.io_codes else v for k, v in net.inputs.items()}
        return model, feeds, [step for _, _, step in outputs]


def qdq(net, scheme, dims=None):
    """The model, its feeds, and a quantum of each output (None: floats that were not quantized)."""
    return Writer(net, scheme).model(dims or {})


class Samples:
    def __init__(self, feeds):
        self.left = iter(feeds)

    def get_next(self):
        return next(self.left, None)


def written(net, write, opset, dims):
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="etc-quantize-") as work:
        source, target = os.path.join(work, "float.onnx"), os.path.join(work, "quantized.onnx")
        onnx.save(onnx.shape_inference.infer_shapes(net.float_model(net.outputs, opset, dims)), source)
        with contextlib.redirect_stdout(io.StringIO()):
            write(source, target)
        return onnx.load(target)


def last_steps(model):
    """By output: the scale of the DequantizeLinear that makes it, or None."""
    data = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    made = {o: n for n in model.graph.node for o in n.output}
    nodes = [made.get(o.name) for o in model.graph.output]
    return [float(np.ravel(data[n.input[1]])[0]) if n is not None and n.op_type == "DequantizeLinear" else None for n in nodes]


def static(net, form, act, weight, channels, opset=17):
    """What onnxruntime.quantization.quantize_static makes of the net."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    kinds = {np.int8: QuantType.QInt8, np.uint8: QuantType.QUInt8}
    model = written(net, lambda source, target: quantize_static(
        source, target, Samples([net.inputs]), quant_format=getattr(QuantFormat, form), per_channel=channels,
        activation_type=kinds[act], weight_type=kinds[weight]), opset, {})
    return model, net.inputs, last_steps(model)


def dynamic(net, weight, channels, dims, opset=17):
    """What onnxruntime.quantization.quantize_dynamic makes of the net."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = written(net, lambda source, target: quantize_dynamic(
        source, target, per_channel=channels, weight_type=QuantType.QInt8 if weight == np.int8 else QuantType.QUInt8), opset, dims)
    return model, net.inputs, [None] * len(net.outputs)
