"""A generated graph with its values, and the reference that computes them step by step.

A `Case` is a list of steps; a step is one node, or a few that only make sense together (a sequence that is built and taken
apart). Each step is evaluated alone, so that every value is known as soon as its step exists, each step has the reference
that can compute it (`oracle`), and no fusion of the reference is between a node and its meaning.

Every value has an error bound. It is measured, not derived: a step is evaluated once more with its inputs moved by what they
may be off. A step is refused when an integer or boolean result of it changes (a comparison near equality, a rounding near a
half), or when its error becomes too large to compare anything; hence every result of a graph is well conditioned.
"""

import hashlib
import zlib
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLUSHED = 1e-36  # kernels may make zeros of what is smaller, as ONNX Runtime's Sigmoid does
NEWEST_OF_REFERENCE = 26  # the newest opset that ONNX Runtime loads; newer ones go to onnx's own evaluator
ONLY_TYPES = 22  # the opset that gave many operators one more element type and changed nothing else
IR_VERSION = 10
BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = {np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)}
# The error of a result, in parts of its largest element, above which nothing could be learned from comparing it.
LARGEST_ERROR = {np.dtype(np.float16): 0.03, BF16: 0.1, np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}
LARGEST_VALUE = {np.dtype(np.float16): 1e3}
MOST_ELEMENTS = 4000

# Where ONNX Runtime does not follow the standard, the evaluator of onnx is asked: operator, element type or None for all, reason.
DEVIATIONS = [
    ("Mish", None, "ONNX Runtime has no kernel and expands it with a threshold"),
]
# Where the evaluator of onnx is wrong, and ONNX Runtime has no kernel: operator, condition, reason. Such a step is left out.
NO_REFERENCE = [
    ("GlobalMaxPool", lambda node, opset: True, "loses a dimension of a result of three"),
    ("Softmax", lambda node, opset: opset < 13, "knows the meaning of opset 13 only"),
    ("LogSoftmax", lambda node, opset: opset < 13, "knows the meaning of opset 13 only"),
    ("Hardmax", lambda node, opset: opset < 13, "knows the meaning of opset 13 only"),
    ("Erf", lambda node, opset: True, "turns integers into floats"),
    ("MaxPool", lambda node, opset: True, "mixes up pads of several axes"),
    ("AveragePool", lambda node, opset: True, "mixes up pads of several axes"),
    ("LpPool", lambda node, opset: True, "mixes up pads of several axes"),
    ("LRN", lambda node, opset: True, "leaves out the last channel of a window"),
    ("ConvTranspose", lambda node, opset: True, "adds the bias of the first group to all"),
]


class Reject(Exception):
    """This step cannot be part of the graph; the text says why, for those who tune the generator."""


@dataclass
class Step:
    nodes: list
    exact: bool  # moves or selects elements, or computes without rounding: adds no error
    ring: bool = False  # sums and products: without rounding if all numbers are small multiples of a power of two

    def inputs(self):
        """Names from outside, also those that only a body of If, Loop or Scan reads."""
        inside, seen = set(), []
        for node in self.nodes:
            seen += [x for x in free_names(node) if x not in inside]
            inside.update(node.output)
        return list(dict.fromkeys(seen))

    def outputs(self):
        """Results that another step may use: all, but for those that end in the step (sequences, optionals)."""
        used = {x for node in self.nodes for x in free_names(node)}
        return [x for node in self.nodes for x in node.output if x and (len(self.nodes) == 1 or x not in used)]


def free_names(node):
    names = [x for x in node.input if x]
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            body = attribute.g
            own = {x.name for x in body.input} | {x.name for x in body.initializer}
            for inner in body.node:
                names += [x for x in free_names(inner) if x not in own]
                own.update(inner.output)
            names += [x.name for x in body.output if x.name not in own]
    return names


@dataclass
class Case:
    opset: int
    steps: list = field(default_factory=list)
    inputs: dict = field(default_factory=dict)  # name: array
    constants: dict = field(default_factory=dict)  # name: array
    as_nodes: set = field(default_factory=set)  # constants that are nodes of type Constant, not initializers
    functions: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    symbols: dict = field(default_factory=dict)  # name of a symbol: (least, most)
    symbolic: dict = field(default_factory=dict)  # name of an input: its dimensions, numbers and names of symbols
    kinds: dict = field(default_factory=dict)  # element type and rank of each result
    feeds: list = field(default_factory=list)  # further inputs: the same shapes with other values, or other sizes

    def nodes(self):
        return [node for step in self.steps for node in step.nodes]

    def model(self):
        nodes = [helper.make_node("Constant", [], [k], value=numpy_helper.from_array(v))
                 for k, v in self.constants.items() if k in self.as_nodes]
        nodes += self.nodes()
        inputs = [value_info(k, v, self.symbolic.get(k)) for k, v in self.inputs.items()]
        weights = [numpy_helper.from_array(v, k) for k, v in self.constants.items() if k not in self.as_nodes]
        outputs = []
        for x in self.outputs:
            dtype, rank = self.kinds[x]
            outputs.append(helper.make_tensor_value_info(x, helper.np_dtype_to_tensor_dtype(dtype), [None] * rank))
        graph = helper.make_graph(nodes, "random", inputs, outputs, weights)
        return make_model(graph, self.opset, self.functions)

    def digest(self):
        """The same on every machine: names the graph, not the values that the reference computed."""
        return hashlib.sha256(self.model().SerializeToString(deterministic=True)).hexdigest()[:16]


def make_model(graph, opset, functions):
    opsets = [helper.make_opsetid("", opset)]
    if functions:
        opsets.append(helper.make_opsetid("local", 1))
    if any(n.domain == "com.microsoft" for n in graph.node):
        opsets.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, functions=functions)


def value_info(name, array, shape=None):
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape if shape is None else shape)


# --- one step ---

_options = onnxruntime.SessionOptions()
_options.log_severity_level = 4
_options.intra_op_num_threads = _options.inter_op_num_threads = 1
_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


class Oracle:
    """The reference of one step. Parameters that are constants in the graph are constants here too."""

    def __init__(self, case, step, arrays):
        self.names = step.inputs()
        self.outputs = step.outputs()
        constants = {k: case.constants[k] for k in self.names if k in case.constants}
        self.names = [k for k in self.names if k not in constants]
        graph = helper.make_graph(step.nodes, "step", [value_info(k, arrays[k]) for k in self.names],
                                  [helper.make_empty_tensor_value_info(x) for x in self.outputs],
                                  [numpy_helper.from_array(v, k) for k, v in constants.items()])
        functions = [f for f in case.functions if any(n.op_type == f.name for n in step.nodes)]
        self.session, self.kinds = None, {}
        if not deviates(step, arrays):
            for opset in opsets_of_reference(case.opset, step.nodes):
                self.session = self.session or load(make_model(graph, opset, functions), step)
        if self.session is None:
            for op, condition, reason in NO_REFERENCE:
                if any(n.op_type == op and condition(n, case.opset) for n in step.nodes):
                    raise Reject(f"{op}: the evaluator {reason}")
            try:
                model = make_model(graph, case.opset, functions)
                self.session = ReferenceEvaluator(model)
                self.kinds = {x.name: x.type.tensor_type.elem_type for x in onnx.shape_inference.infer_shapes(model).graph.output}
            except Exception as e:
                raise Reject(f"{step.nodes[0].op_type}: no reference") from e

    def __call__(self, arrays):
        try:
            if isinstance(self.session, ReferenceEvaluator):
                with np.errstate(all="ignore"):
                    results = self.session.run(None, {k: arrays[k] for k in self.names})
            else:
                results = run_ort(self.session, {k: arrays[k] for k in self.names})
        except Exception as e:
            raise Reject(f"{self.outputs}: {e}") from e
        results = dict(zip(self.outputs, (np.asarray(x) for x in results)))
        for name, kind in self.kinds.items():
            if kind and helper.np_dtype_to_tensor_dtype(results[name].dtype) != kind:
                raise Reject(f"{name}: the evaluator changes the type to {results[name].dtype}")
        return results


def run_ort(session, feeds):
    """Through OrtValue, which knows bfloat16."""
    if not any(x.dtype == BF16 for x in feeds.values()) and not any("bfloat16" in x.type for x in session.get_outputs()):
        return session.run(None, feeds)
    binding = session.io_binding()
    kept = []
    for name, array in feeds.items():
        half = array.dtype == BF16
        array = np.ascontiguousarray(array).reshape(array.shape)
        kept.append(onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), onnx.TensorProto.BFLOAT16)
                    if half else onnxruntime.OrtValue.ortvalue_from_numpy(array))
        binding.bind_ortvalue_input(name, kept[-1])
    for out in session.get_outputs():
        binding.bind_output(out.name)
    session.run_with_iobinding(binding)
    results = []
    for out, value in zip(session.get_outputs(), binding.get_outputs()):
        half = "bfloat16" in out.type
        results.append(to_numpy_bf16(value) if half else value.numpy())
    return results


def to_numpy_bf16(value):
    import torch

    return torch.from_dlpack(value._ortvalue.to_dlpack()).view(torch.int16).numpy().view(BF16)


def opsets_of_reference(opset, nodes):
    """The opsets at which ONNX Runtime may be asked: that of the graph, or an older one at which the nodes mean the same."""
    since = newest_since(nodes, opset)
    if opset <= NEWEST_OF_REFERENCE:
        yield opset
    elif since <= NEWEST_OF_REFERENCE:
        yield NEWEST_OF_REFERENCE
    if since == ONLY_TYPES:
        yield ONLY_TYPES - 1


def newest_since(nodes, opset):
    """The opset in which the meaning of one of these nodes changed last."""
    versions = [0]
    for node in nodes:
        if node.domain == "":
            versions.append(onnx.defs.get_schema(node.op_type, opset, "").since_version)
        versions += [newest_since(a.g.node, opset) for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return max(versions)


def load(model, step):
    """A session of ONNX Runtime, or None if it has no kernel."""
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), _options, providers=["CPUExecutionProvider"])
    except Exception as e:
        if "NOT_IMPLEMENTED" in str(e):
            return None
        raise Reject(f"{step.nodes[0].op_type}: {e}") from e


def deviates(step, arrays):
    for node in step.nodes:
        for op, dtype, _ in DEVIATIONS:
            if node.op_type == op and (dtype is None or any(arrays[x].dtype == dtype for x in node.input if x in arrays)):
                return True
    return False


def is_float(array):
    return array.dtype in FLOATS


def epsilon(dtype):
    return float(ml_dtypes.finfo(dtype).eps)


def largest(array):
    wide = np.abs(array.astype(np.float64))
    wide = wide[np.isfinite(wide)]
    return float(wide.max()) if wide.size else 0.0


def moved(array, error, relative, rng):
    """Two arrays on either side, as far away as the value may be off, and then four times that."""
    by = 4.0 * (error + relative * np.abs(array.astype(np.float64))) * rng.choice([-1.0, 1.0], array.shape)
    with np.errstate(all="ignore"):
        return (array + by).astype(array.dtype), (array - by).astype(array.dtype)


def gap(a, b):
    with np.errstate(all="ignore"):
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        difference = np.where(same, 0.0, np.abs(a - b))
    return float(difference.max()) if difference.size else 0.0


def grid_exact(array):
    """Whether sums and products of such numbers need no rounding."""
    wide = array.astype(np.float64)
    bits = {np.dtype(np.float16): (3, 8.0), BF16: (1, 6.0)}.get(array.dtype, (8, 13.0))
    return bool(np.all(np.isfinite(wide))) and bool(np.all(wide * 2 ** bits[0] == np.round(wide * 2 ** bits[0]))) and largest(
        array) < 2 ** bits[1]


def evaluate(case, step, arrays, errors):
    """Adds the results of the step to `arrays` and their error bounds to `errors`, or raises Reject."""
    oracle = Oracle(case, step, arrays)
    results = oracle({k: arrays[k] for k in oracle.names})
    floats = [k for k in step.inputs() if k in arrays and is_float(arrays[k])]
    exact = step.exact or step.ring and all(errors.get(k, 0.0) == 0.0 for k in floats) and all(
        grid_exact(x) for x in [*results.values(), *(arrays[k] for k in floats)])
    finite = all(np.isfinite(arrays[k].astype(np.float64)).all() for k in floats)
    for name, x in results.items():
        check_result(name, x, finite)
    found = measure(oracle, case, step, arrays, errors, results, exact)
    for name, x in results.items():
        if is_float(x):
            error = found[name] if exact else max(found[name], 2 * epsilon(x.dtype) * largest(x))
            if error > LARGEST_ERROR[x.dtype] * max(largest(x), 1e-3):
                raise Reject(f"{step.nodes[0].op_type}: an error of {error:.2g}")
            errors[name] = error
    case.kinds.update({k: (v.dtype, v.ndim) for k, v in results.items()})
    arrays.update(results)


def check_result(name, x, finite):
    if x.dtype.kind not in "fiub" and x.dtype != BF16:
        raise Reject(f"{name}: a result of type {x.dtype}")
    if x.size > MOST_ELEMENTS:
        raise Reject("too large")
    if is_float(x) and finite and not np.isfinite(x.astype(np.float64)).all():
        raise Reject(f"{name}: not finite")
    if is_float(x) and largest(x) > LARGEST_VALUE.get(x.dtype, 1e6):
        raise Reject(f"{name}: too large a number")


def measure(oracle, case, step, arrays, errors, results, exact):
    """How far each result moves when the inputs do."""
    found = dict.fromkeys(results, 0.0)
    moving, rng = {}, np.random.default_rng(zlib.crc32(step.nodes[0].SerializeToString()))
    for k in oracle.names:
        if is_float(arrays[k]) and (errors.get(k, 0.0) > 0.0 or not exact):
            moving[k] = moved(arrays[k], errors.get(k, 0.0), 0.0 if exact else epsilon(arrays[k].dtype), rng)
    if not moving:
        return found
    for side in (0, 1):
        again = oracle({k: moving[k][side] if k in moving else arrays[k] for k in oracle.names})
        for name, x in results.items():
            if again[name].shape != x.shape:
                raise Reject("a size depends on rounding")
            if is_float(x):
                found[name] = max(found[name], gap(again[name], x) / 4.0)
            elif not np.array_equal(again[name], x):
                raise Reject(f"{step.nodes[0].op_type}: a result depends on rounding")
    if any(not np.isfinite(x) for x in found.values()):
        raise Reject("not finite nearby")
    return found


def evaluate_all(case, feeds):
    """(arrays, errors) of all values for these inputs."""
    arrays = {**case.constants, **feeds}
    errors = {}
    for step in case.steps:
        evaluate(case, step, arrays, errors)
    return arrays, errors


def tolerance(x, error):
    """(relative, absolute) tolerance of a result."""
    if not is_float(x):
        return 0.0, 0.0
    return max(1e-4, 8 * epsilon(x.dtype)), max(16 * error, 1e-6 * largest(x), FLUSHED)
