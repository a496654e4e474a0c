"""A torch module of an ONNX model, as far as the networks of quantize.py need it: what the official flow starts from.

Sizes are fixed by ONNX Runtime, which also folds constants; gelu, hardswish and linear layers are recognised again, as
they stand in the modules that people write, since that is what the official quantizer looks for.
"""
import pathlib
import tempfile


def _prepared(model):
    """The ONNX graph with batch 1 and constants folded."""
    import onnx
    import onnxruntime
    from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed
    loaded = onnx.load(str(model))
    make_dim_param_fixed(loaded.graph, "batch", 1)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(pathlib.Path(folder) / "folded.onnx")
        onnxruntime.InferenceSession(loaded.SerializeToString(), options, providers=["CPUExecutionProvider"],
                                     disabled_optimizers=["MatMulAddFusion", "ConvActivationFusion"])
        return onnx.load(options.optimized_model_filepath).graph


class _Graph:
    """Nodes, constants and who uses what."""

    def __init__(self, graph):
        from onnx import helper, numpy_helper
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.nodes = list(graph.node)
        self.attributes = {id(n): {a.name: helper.get_attribute_value(a) for a in n.attribute} for n in self.nodes}
        self.users = {}
        for n in self.nodes:
            for name in n.input:
                self.users.setdefault(name, []).append(n)
        self.inputs = [i.name for i in graph.input if i.name not in self.constants]
        self.outputs = [o.name for o in graph.output]

    def only_user(self, name, op):
        users = self.users.get(name, [])
        return users[0] if len(users) == 1 and users[0].op_type == op and name not in self.outputs else None

    def single(self, name):
        """The number that a constant of one element is."""
        value = self.constants.get(name)
        return float(value.reshape(())) if value is not None and value.size == 1 else None


def _gelu(g, n):
    """The nodes of x * (1 + erf(x / sqrt 2)) / 2 behind the division n, or None."""
    erf = g.only_user(n.output[0], "Erf")
    add = erf and g.only_user(erf.output[0], "Add")
    mul = add and g.only_user(add.output[0], "Mul")
    half = mul and n.input[0] in mul.input and g.only_user(mul.output[0], "Mul")
    return [n, erf, add, mul, half] if half else None


def _steps(g):
    """(function of the values, names of operands, name of the result), in order."""
    import torch
    import torch.nn.functional as F
    steps, done = [], set()

    def emit(function, operands, node):
        steps.append((function, [name for name in operands], node.output[0]))
    for n in g.nodes:
        if id(n) in done:
            continue
        a = g.attributes[id(n)]
        spelt = _gelu(g, n) if n.op_type == "Div" else None
        if spelt:
            done |= {id(m) for m in spelt}
            emit(F.gelu, n.input[:1], spelt[-1])
            continue
        if n.op_type == "HardSigmoid":
            mul = g.only_user(n.output[0], "Mul")
            if mul and n.input[0] in mul.input:
                done.add(id(mul))
                emit(F.hardswish, n.input[:1], mul)
            else:
                emit(F.hardsigmoid, n.input[:1], n)
            continue
        if n.op_type == "MatMul" and n.input[1] in g.constants:
            weight = n.input[1] + "/transposed"
            g.constants[weight] = g.constants[n.input[1]].T.copy()
            add = g.only_user(n.output[0], "Add")
            bias = next((name for name in add.input if name in g.constants and g.constants[name].ndim == 1), None) if add else None
            if bias:
                done.add(id(add))
            emit(F.linear, [n.input[0], weight] + ([bias] if bias else []), add if bias else n)
            continue
        emit(*_one(g, n, a, torch, F), n)
    return steps


def _one(g, n, a, torch, F):
    """(function, operands) of a node alone."""
    op, inputs = n.op_type, list(n.input)

    def numbers(i, key=None):
        return tuple(int(v) for v in (g.constants[inputs[i]].reshape(-1) if len(inputs) > i and inputs[i] else a[key]))
    if op == "Conv":
        pads, rank = a.get("pads", [0] * 8), g.constants[inputs[1]].ndim - 2
        if list(pads[:rank]) != list(pads[rank:2 * rank]):
            raise NotImplementedError("padding that differs by side")
        convolve = F.conv2d if rank == 2 else F.conv1d
        more = dict(stride=tuple(a.get("strides", [1] * rank)), padding=tuple(pads[:rank]),
                    dilation=tuple(a.get("dilations", [1] * rank)), groups=a.get("group", 1))
        return (lambda x, w, b=None: convolve(x, w, b, **more)), inputs
    if op == "Gemm":
        if not a.get("transB"):
            g.constants[inputs[1] + "/transposed"] = g.constants[inputs[1]].T.copy()
            inputs[1] += "/transposed"
        return F.linear, inputs
    if op == "Clip":
        low, high = g.single(inputs[1]), g.single(inputs[2])
        return (lambda x: F.hardtanh(x, low, high)), inputs[:1]
    if op == "ReduceMean":
        axes, keep = tuple(a["axes"]), bool(a.get("keepdims", 1))
        return (lambda x: x.mean(axes, keepdim=keep)), inputs[:1]
    if op == "ReduceSum":
        axes, keep = numbers(1), bool(a.get("keepdims", 1))
        return (lambda x: x.sum(axes, keepdim=keep)), inputs[:1]
    if op in ("Reshape", "Unsqueeze", "Squeeze"):
        sizes = numbers(1)
        if op == "Reshape":
            return (lambda x: x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(sizes)])), inputs[:1]
        if op == "Squeeze":
            return (lambda x: x.squeeze(sizes)), inputs[:1]

        def unsqueeze(x):
            for axis in sorted(sizes):
                x = x.unsqueeze(axis)
            return x
        return unsqueeze, inputs[:1]
    if op == "Transpose":
        return (lambda x: x.permute(tuple(a["perm"]))), inputs
    if op == "Softmax":
        return (lambda x: x.softmax(a.get("axis", -1))), inputs
    if op == "Concat":
        return (lambda *x: torch.cat(x, a["axis"])), inputs
    if op == "LayerNormalization":
        return (lambda x, w, b: F.layer_norm(x, w.shape, w, b, a.get("epsilon", 1e-5))), inputs
    if op == "Gather":
        index = g.single(inputs[1])
        if inputs[0] in g.constants:
            return (lambda w, i: F.embedding(i, w)), inputs
        return (lambda x: x.select(a.get("axis", 0), int(index))), inputs[:1]
    if op == "GRU":
        return _gru(g, inputs, a, torch), inputs[:1]
    if op == "Cast":
        kinds = {1: torch.float32, 7: torch.int64}
        return (lambda x: x.to(kinds[a["to"]])), inputs
    plain = {"Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Flatten": lambda x: torch.flatten(x, 1),
             "GlobalAveragePool": lambda x: F.adaptive_avg_pool2d(x, 1), "Add": torch.add, "Sub": torch.sub,
             "Mul": torch.mul, "Div": torch.div, "MatMul": torch.matmul}
    if op not in plain:
        raise NotImplementedError(f"operator {op}")
    return plain[op], inputs


def _gru(g, inputs, a, torch):
    """All steps, of one direction; ONNX has the gates in the order z, r, h, torch r, z, n."""
    w, r, b = (torch.from_numpy(g.constants[name][0].copy()) for name in inputs[1:4])
    if a.get("layout") or not a.get("linear_before_reset") or len(g.constants[inputs[1]]) != 1:
        raise NotImplementedError("a GRU of this form")
    hidden = a["hidden_size"]
    layer = torch.nn.GRU(w.shape[1], hidden)

    def gates(t):
        return torch.cat([t[hidden:2 * hidden], t[:hidden], t[2 * hidden:]])
    values = {"weight_ih_l0": gates(w), "weight_hh_l0": gates(r), "bias_ih_l0": gates(b[:3 * hidden]),
              "bias_hh_l0": gates(b[3 * hidden:])}
    layer.load_state_dict(values)
    g.layers = getattr(g, "layers", []) + [layer]
    return lambda x: layer(x)[0].unsqueeze(1)


def module_of(model):
    """The module; it takes the inputs of the model in order."""
    import torch
    g = _Graph(_prepared(model))
    steps = _steps(g)
    used = {name for _, operands, _ in steps for name in operands if name in g.constants}

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(getattr(g, "layers", []))
            self.place = {name: f"c{i}" for i, name in enumerate(sorted(used))}
            for name, place in self.place.items():
                value = torch.from_numpy(g.constants[name].copy())
                if value.is_floating_point():
                    self.register_parameter(place, torch.nn.Parameter(value, requires_grad=False))
                else:
                    self.register_buffer(place, value)

        def forward(self, *inputs):
            values = dict(zip(g.inputs, inputs))
            values.update((name, getattr(self, place)) for name, place in self.place.items())
            for function, operands, result in steps:
                values[result] = function(*(values[name] for name in operands))
            return values[g.outputs[0]]
    return Network().eval()
