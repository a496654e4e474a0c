"""The official ONNX backend cases, collected from the installed `onnx` package and written out once.

onnx.backend.test holds five kinds: `node` (made by Python code), `simple`, `pytorch-converted` and
`pytorch-operator` (folders with protobuf files), and `light` (real architectures whose weights are generator nodes;
the input is BackendTest's dummy data). Making the node cases takes seconds, so all are kept in a cache folder: a
model.onnx and a bundle (inputs and expected outputs) per case, and one index.

`runnable` is a rule, not a list: every graph input and output is a tensor of a dtype the runtime holds, the domains
are ai.onnx and ai.onnx.ml alone, and the result is deterministic.
"""

import glob
import json
import os
import re
import shutil
import warnings

import arrays

DATA_KINDS = ("simple", "pytorch-converted", "pytorch-operator")
RANDOM_OPS = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
CACHE_FORMAT = 2


def load(cache_root):
    """The list of cases (dicts) from the cache below `cache_root`, which is filled on first use."""
    import onnx

    cache = os.path.join(cache_root, f"cases-onnx{onnx.__version__}-{CACHE_FORMAT}")
    index = os.path.join(cache, "index.json")
    if not os.path.exists(index):
        fill(cache)
    with open(index) as f:
        cases = json.load(f)
    for case in cases:
        case["dir"] = os.path.join(cache, case["name"])
    return cases


def fill(cache):
    """Several runs may do this at once: each makes its own folder, the first rename wins."""
    fresh = f"{cache}.{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh)
    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, kind, tolerance, model, data in collect():
            case = describe(name, kind, tolerance, model)
            folder = os.path.join(fresh, name)
            os.makedirs(folder)
            if case["class"] == "runnable":
                write(folder, case, model, data())
            cases.append(case)
    by_name = {c["name"]: c for c in cases}
    for case in cases:
        base = by_name.get(expanded_name(case))
        if base is not None:
            case["op"] = base["op"]
    cases.sort(key=lambda c: c["name"])
    with open(os.path.join(fresh, "index.json"), "w") as f:
        json.dump(cases, f, indent=0)
    try:
        os.rename(fresh, cache)
    except OSError:
        shutil.rmtree(fresh)


def collect():
    """Yields (name, kind, (rtol, atol), model, function that gives (inputs, outputs))."""
    import onnx
    from onnx.backend.test.case.model import collect_testcases as collect_model_cases
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind="node"):
        yield case.name, "node", (case.rtol, case.atol), case.model, lambda c=case: stored(c)
    seen = set()
    for kind in DATA_KINDS:
        for case in load_model_tests(kind=kind):
            seen.add((kind, case.name))
            model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
            yield (f"{kind}__{case.name}", kind, (case.rtol, case.atol), model,
                   lambda c=case, m=model: from_files(c.model_dir, m))
    for case in collect_model_cases():
        if case.kind == "simple" and ("simple", case.name) not in seen:
            yield f"simple__{case.name}", "simple", (case.rtol, case.atol), case.model, lambda c=case: stored(c)
    package = os.path.dirname(os.path.dirname(onnx.__file__))
    for case in load_model_tests(kind="real"):
        path = os.path.join(package, case.url)
        if os.path.exists(path):
            model = onnx.load(path)
            yield (f"light__{case.name}", "light", (case.rtol, case.atol), model,
                   lambda c=case, p=path, m=model: light_data(c, p, m))


def stored(case):
    return case.data_sets[0]


def from_files(folder, model):
    """test_data_set_0 holds the inputs that are not initializers, in graph order, and all outputs."""
    def read(stem):
        found = []
        while os.path.exists(path := os.path.join(folder, "test_data_set_0", f"{stem}_{len(found)}.pb")):
            found.append(read_tensor(path))
        return found

    if len(glob.glob(os.path.join(folder, "test_data_set_*"))) != 1:
        raise ValueError(f"{folder}: expected exactly one data set")
    return read("input"), read("output")


def read_tensor(path):
    import onnx

    tensor = onnx.TensorProto()
    with open(path, "rb") as f:
        tensor.ParseFromString(f.read())
    return tensor


def light_data(case, path, model):
    from onnx.backend.test.runner import Runner

    inputs = [Runner.generate_dummy_data(x, seed=0, name=case.model_name) for x in graph_inputs(model)]
    return inputs, [read_tensor(path[: -len(".onnx")] + f"_output_{i}.pb") for i in range(len(model.graph.output))]


def graph_inputs(model):
    initial = {x.name for x in model.graph.initializer} | {x.values.name for x in model.graph.sparse_initializer}
    return [x for x in model.graph.input if x.name not in initial]


def all_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for sub in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from all_nodes(sub)


def type_text(proto):
    """'float32', or for what the runtime cannot hold the words of the reason."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        element = proto.tensor_type.elem_type
        if element in arrays.RUNTIME_DTYPES:
            return arrays.RUNTIME_DTYPES[element], True
        from onnx import TensorProto

        return TensorProto.DataType.Name(element).lower(), False
    return (kind or "nothing").replace("_type", ""), False


def classify(model):
    """'runnable', or one word why not and a sentence."""
    for opset in model.opset_import:
        if opset.domain == "ai.onnx.preview.training":
            return "training", "domain ai.onnx.preview.training"
    for node in all_nodes(model.graph):
        if node.op_type in RANDOM_OPS:
            return "random", f"random op {node.op_type}"
    for value in [*graph_inputs(model), *model.graph.output]:
        text, fits = type_text(value.type)
        if not fits:
            return "dtype" if value.type.WhichOneof("value") == "tensor_type" else text, f"graph input or output of type {text}"
    return "runnable", ""


def op_of(kind, model):
    """The op under test. (An expanded function gets the op of its unexpanded twin, see fill.)"""
    if kind == "light":
        return "model"
    node = model.graph.node[-1 if kind == "node" else 0] if model.graph.node else None
    return node.op_type if node else "none"


def describe(name, kind, tolerance, model):
    kind_class, reason = classify(model)
    opsets = {x.domain or "ai.onnx": x.version for x in model.opset_import}
    return {"name": name, "kind": kind, "class": kind_class, "reason": reason, "op": op_of(kind, model),
            "opset": opsets.get("ai.onnx", 0), "rtol": tolerance[0], "atol": tolerance[1],
            "ops": sorted({x.op_type for x in all_nodes(model.graph)})}


def to_array(value):
    import numpy as np
    import onnx

    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    return arrays.own(np.asarray(value))


def write(folder, case, model, data):
    import onnx

    inputs, outputs = [to_array(x) for x in data[0]], [to_array(x) for x in data[1]]
    names = graph_inputs(model)
    if len(names) != len(inputs) or len(model.graph.output) != len(outputs):
        raise ValueError(f"{case['name']}: the data does not fit the graph")
    dims = {}
    for value, array in zip(names, inputs):
        for dim, size in zip(value.type.tensor_type.shape.dim, array.shape):
            if dim.dim_param and dims.setdefault(dim.dim_param, size) != size:
                raise ValueError(f"{case['name']}: dimension {dim.dim_param} has two sizes")
    # A dropout in training mode with a ratio draws random numbers; the ratio is an input, so only data can tell.
    if "Dropout" in case["ops"] and training_dropout(model, dict(zip([x.name for x in names], inputs))):
        case["class"], case["reason"] = "random", "Dropout in training mode"
        return
    case["dims"] = dims
    case["inputs"] = [x.name for x in names]
    case["outputs"] = [x.name for x in model.graph.output]
    onnx.save(model, os.path.join(folder, "model.onnx"))
    arrays.save_bundle(os.path.join(folder, "data.pkl"), inputs, outputs)


def training_dropout(model, feeds):
    import onnx

    values = dict(feeds)
    values.update({x.name: onnx.numpy_helper.to_array(x) for x in model.graph.initializer})
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            values[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    for node in model.graph.node:
        if node.op_type == "Dropout" and len(node.input) > 2 and values.get(node.input[2]) is not None:
            ratio = values.get(node.input[1], 0.5) if node.input[1] else 0.5
            if bool(values[node.input[2]]) and float(ratio) != 0.0:
                return True
    return False


def expanded_name(case):
    """The case whose function body this one is, or None."""
    match = re.match(r"(.*)_expanded(_ver\d+)?$", case["name"])
    return match.group(1) if match else None
