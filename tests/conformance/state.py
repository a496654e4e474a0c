#!/usr/bin/env python3
"""States: many calls of one loaded program, against ONNX Runtime with outputs fed back as inputs.

    tests/conformance/state.py [-k PATTERN,...] [--models DIR]

Small models of every kind of state; with --models the decoders of the zoo as well, token by token, and what they say
is also compared with one call on the whole sequence. Each is run on the real runtime (twice, the second time loaded
anew) and on the reference interpreter, from the model and from the program.
"""

import dataclasses
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.parser  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import etc_command  # noqa: E402

RNG = np.random.default_rng(11)
RTOL, ATOL = 1e-3, 1e-4


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@dataclasses.dataclass
class Method:
    """One model: its calls are dicts of the inputs that are no states. states: input -> (output, first value)."""
    model: object  # ModelProto or path
    states: dict
    dims: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Case:
    name: str
    methods: dict
    calls: list  # (method, feed)
    flags: list
    shared: str = ""  # what --share-state says: the methods have the same states
    whole: object = None  # function(session, outputs of all calls) -> message or None


def graph(text, opset=18):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> {text}')


def single(name, model, states, feeds, flags=None, dims=None, **more):
    flags = [f"{i}:{o}" for i, (o, _) in states.items()] if flags is None else flags
    return Case(name, {"forward": Method(model, states, dims or {})}, [("forward", f) for f in feeds], flags, **more)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def small_cases(work):
    x23 = [{"x": floats(2, 3)} for _ in range(4)]
    yield single("accumulate", graph("g (float[2,3] x, float[2,3] h) => (float[2,3] y, float[2,3] hn) "
                                     "{ hn = Add(x, h) y = Mul(hn, hn) }"), {"h": ("hn", zeros(2, 3))}, x23)
    yield single("output_reads_the_old", graph("g (float[2,3] x, float[2,3] h) => (float[2,3] y, float[2,3] hn) "
                                               "{ hn = Add(x, h) y = Identity(h) }"), {"h": ("hn", zeros(2, 3))}, x23)
    yield single("output_is_a_view_of_the_old",
                 graph("g (float[2,3] x, float[2,3] h) => (float[6] y, float[2,3] hn) "
                       "{ hn = Add(x, h) s = Constant<value_ints=[6]>() y = Reshape(h, s) }"),
                 {"h": ("hn", zeros(2, 3))}, x23)
    yield single("delay", graph("g (float[2,3] x, float[2,3] a, float[2,3] b) => (float[2,3] y, float[2,3] an, float[2,3] bn) "
                                "{ an = Identity(x) bn = Identity(a) y = Identity(b) }"),
                 {"a": ("an", zeros(2, 3)), "b": ("bn", zeros(2, 3))}, x23)
    yield single("swap", graph("g (float[2,3] x, float[2,3] a, float[2,3] b) => (float[2,3] y, float[2,3] an, float[2,3] bn) "
                               "{ an = Identity(b) bn = Add(a, x) y = Sub(a, b) }"),
                 {"a": ("an", zeros(2, 3)), "b": ("bn", zeros(2, 3))}, x23)
    yield single("swap_of_views",
                 graph("g (float[2,3] x, float[2,3] a, float[3,2] b) => (float[2,3] y, float[2,3] an, float[3,2] bn, float[2,3] cn) "
                       "{ s = Constant<value_ints=[2,3]>() t = Constant<value_ints=[3,2]>() an = Reshape(b, s) "
                       "bn = Reshape(a, t) y = Sub(a, x) cn = Add(a, x) }"),
                 {"a": ("an", floats(2, 3)), "b": ("bn", floats(3, 2))}, x23)
    yield single("never_changes", graph("g (float[2,3] x, float[2,3] h) => (float[2,3] y, float[2,3] hn) "
                                        "{ hn = Identity(h) y = Add(x, h) }"), {"h": ("hn", floats(2, 3))}, x23)
    yield single("becomes_a_constant",
                 graph("g (float[2,3] x, float[2,3] h) => (float[2,3] y, float[2,3] hn) <float[2,3] c = {1,2,3,4,5,6}> "
                       "{ hn = Identity(c) y = Add(x, h) }"), {"h": ("hn", zeros(2, 3))}, x23)
    yield single("becomes_the_input", graph("g (float[2,3] x, float[2,3] h) => (float[2,3] y, float[2,3] hn) "
                                            "{ hn = Identity(x) y = Relu(h) }"), {"h": ("hn", zeros(2, 3))}, x23)
    yield single("initializer",
                 graph("g (float[2,3] x, float[2,3] h) => (float[2,3] y, float[2,3] hn) <float[2,3] h = {6,5,4,3,2,1}> "
                       "{ hn = Add(x, h) y = Mul(hn, x) }"),
                 {"h": ("hn", np.array([[6, 5, 4], [3, 2, 1]], np.float32))}, x23)
    counter = graph("g (int64[1] n, bool[2] f) => (int64[1] m, bool[2] fn, int64[1] y) "
                    "{ one = Constant<value_ints=[1]>() m = Add(n, one) fn = Not(f) y = Mul(m, m) }")
    yield single("counter_and_flags", counter, {"n": ("m", np.zeros(1, np.int64)), "f": ("fn", np.zeros(2, bool))}, [{}] * 4)
    yield from cache_cases()
    yield from recurrent_cases()
    yield from streaming_cases()
    yield from method_cases()


def cache_cases():
    """Caches for attention: of fixed size with a position, and growing."""
    fixed = graph("g (float[1,2,1,4] k, int64[1] p, float[1,2,6,4] past) => (float[1,2,4] y, float[1,2,6,4] present) "
                  "{ s = Constant<value_ints=[1,2,1,4]>() q = Constant<value_ints=[1,1,1,1]>() i = Reshape(p, q) j = Expand(i, s) "
                  "present = ScatterElements<axis=2>(past, j, k) a = Constant<value_ints=[2]>() y = ReduceSum<keepdims=0>(present, a) }")
    yield single("cache_scatter_elements", fixed, {"past": ("present", zeros(1, 2, 6, 4))},
                 [{"k": floats(1, 2, 1, 4), "p": np.array([i])} for i in range(6)])
    nd = graph("g (float[1,3] k, int64[1,1] p, float[5,3] past) => (float[3] y, float[5,3] present) "
               "{ present = ScatterND(past, p, k) a = Constant<value_ints=[0]>() y = ReduceMax<keepdims=0>(present, a) }")
    yield single("cache_scatter_nd", nd, {"past": ("present", zeros(5, 3))},
                 [{"k": floats(1, 3), "p": np.array([[i % 5]])} for i in range(7)])
    grow = graph("g (float[1,n,3] x, float[1,p,3] past) => (float[1,n,3] y, float[1,q,3] present) "
                 "{ present = Concat<axis=1>(past, x) t = Transpose<perm=[0,2,1]>(present) s = MatMul(x, t) w = Softmax<axis=-1>(s) "
                 "y = MatMul(w, present) }")
    lengths = (1, 3, 1, 1, 4, 2)
    yield single("growing", grow, {"past": ("present", zeros(1, 0, 3))}, [{"x": floats(1, n, 3)} for n in lengths],
                 dims={"p": "0..12", "n": "1..4"})
    first = floats(1, 2, 3)
    yield single("growing_from_a_file", grow, {"past": ("present", first)}, [{"x": floats(1, n, 3)} for n in lengths],
                 dims={"p": "0..14", "n": "1..4"})
    two = graph("g (float[1,1,3] x, float[1,p,3] a, float[2,p] b) => (float[1,3] y, float[1,q,3] an, float[2,q] bn) "
                "{ an = Concat<axis=1>(a, x) s = Constant<value_ints=[2,1]>() z = Constant<value_ints=[0,0,0]>() "
                "e = Constant<value_ints=[1,1,2]>() c = Slice(x, z, e) r = Reshape(c, s) bn = Concat<axis=1>(b, r) "
                "ax = Constant<value_ints=[1]>() u = ReduceSum<keepdims=0>(an, ax) all = ReduceSum<keepdims=0>(bn) y = Add(u, all) }")
    yield single("growing_together", two, {"a": ("an", zeros(1, 0, 3)), "b": ("bn", zeros(2, 0))},
                 [{"x": floats(1, 1, 3)} for _ in range(5)], dims={"p": "0..4"})
    window = graph("g (float[1,1,3] x, float[1,p,3] past) => (float[1,3] y, float[1,q,3] present) "
                   "{ all = Concat<axis=1>(past, x) s = Constant<value_ints=[-3]>() e = Constant<value_ints=[9223372036854775807]>() "
                   "a = Constant<value_ints=[1]>() present = Slice(all, s, e, a) y = ReduceSum<keepdims=0>(present, a) }")
    yield single("sliding_window", window, {"past": ("present", zeros(1, 0, 3))},
                 [{"x": floats(1, 1, 3)} for _ in range(7)], dims={"p": "0..3"})
    # As optimum merges an encoder-decoder: with caches or without; those of the encoder are made by one of the branches.
    merged = graph(
        "g (float[1,1,4] x, float[1,e,4] h, bool[1] again, float[1,p,4] k, float[1,p,4] v, float[1,q,4] ek, float[1,q,4] ev) => "
        "(float[1,a,4] y, float[1,b,4] kn, float[1,b,4] vn, float[1,c,4] ekn, float[1,c,4] evn) { kn, vn, ekn, evn = If(again)"
        "<then_branch = t () => (float[1,tb,4] tk, float[1,tb,4] tv, float[1,tc,4] tek, float[1,tc,4] tev) "
        "{ tk = Concat<axis=1>(k, x) tv = Concat<axis=1>(v, x) tek = Identity(ek) tev = Identity(ev) }, "
        "else_branch = f () => (float[1,fb,4] fk, float[1,fb,4] fv, float[1,fc,4] fek, float[1,fc,4] fev) "
        "{ fk = Identity(x) fv = Neg(x) fek = Relu(h) fev = Neg(h) }> "
        "kv = Mul(kn, vn) ekv = Mul(ekn, evn) ax = Constant<value_ints=[1]>() s = ReduceSum(ekv, ax) y = Add(kv, s) }")
    yield single("merged_decoder", merged, {n: (f"{n}n", zeros(1, 0, 4)) for n in ("k", "v", "ek", "ev")},
                 [{"x": floats(1, 1, 4), "h": floats(1, 3, 4), "again": np.array([again])} for again in (False, True, True, False, True)],
                 dims={"p": "0..5", "q": "0..3", "e": "1..3"})


def recurrent_cases():
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = {"w": floats(1, gates * 5, 3), "r": floats(1, gates * 5, 5), "b": floats(1, gates * 10)}
        lstm = op == "LSTM"
        states = {"h": ("hn", zeros(1, 1, 5)), **({"c": ("cn", zeros(1, 1, 5))} if lstm else {})}
        names = ["x", "w", "r", "b", "", *states]
        outputs = ["y", *(o for o, _ in states.values())]
        node = onnx.helper.make_node(op, names, outputs, hidden_size=5)
        values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in
                  [("x", [1, 1, 3]), ("h", [1, 1, 5]), ("c", [1, 1, 5]), ("y", [1, 1, 1, 5]), ("hn", [1, 1, 5]), ("cn", [1, 1, 5])]]
        known = {v.name: v for v in values}
        g = onnx.helper.make_graph([node], "g", [known["x"], *(known[s] for s in states)], [known[o] for o in outputs],
                                   [onnx.numpy_helper.from_array(a, n) for n, a in weights.items()])
        model = onnx.helper.make_model(g, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
        yield single(f"{op.lower()}_step", model, states, [{"x": floats(1, 1, 3)} for _ in range(5)])


def streaming_cases():
    """A causal convolution that gets a piece at a time and keeps the end of what it has seen."""
    conv = graph("g (float[1,2,4] x, float[1,2,2] left, float[4,2,3] w) => (float[1,4,4] y, float[1,2,2] next) "
                 "{ all = Concat<axis=2>(left, x) y = Conv(all, w) s = Constant<value_ints=[4]>() e = Constant<value_ints=[6]>() "
                 "a = Constant<value_ints=[2]>() next = Slice(all, s, e, a) }")
    conv.graph.initializer.append(onnx.numpy_helper.from_array(floats(4, 2, 3), "w"))
    del conv.graph.input[2]
    sound = floats(1, 2, 20)
    pieces = [{"x": sound[:, :, i:i + 4]} for i in range(0, 20, 4)]

    def whole(session, outputs):
        weight = onnx.numpy_helper.to_array(conv.graph.initializer[0])
        padded = np.pad(sound, ((0, 0), (0, 0), (2, 0)))
        want = np.stack([np.tensordot(weight, padded[0, :, t:t + 3], ((1, 2), (0, 1))) for t in range(20)], 1)[None]
        return arrays.compare_all([np.concatenate([o[0] for o in outputs], 2)], [want], RTOL, ATOL)
    yield single("streaming_convolution", conv, {"left": ("next", zeros(1, 2, 2))}, pieces, whole=whole)


def method_cases():
    """Two methods, each with states of its own, called in turn."""
    a = graph("g (float[2] x, float[2] h) => (float[2] y, float[2] hn) { hn = Add(x, h) y = Neg(hn) }")
    b = graph("g (float[3] x, float[3] h) => (float[3] y, float[3] hn) { hn = Sub(h, x) y = Mul(hn, x) }")
    calls = [(m, {"x": floats(n)}) for m, n in (("one", 2), ("two", 3), ("two", 3), ("one", 2), ("one", 2), ("two", 3))]
    yield Case("methods_in_turn", {"one": Method(a, {"h": ("hn", zeros(2))}), "two": Method(b, {"h": ("hn", zeros(3))})},
               calls, ["h:hn"])
    c = graph("g (float[2] x, float[2] h) => (float[2] z, float[2] hn) { hn = Sub(h, x) z = Mul(hn, x) }")
    calls = [(m, {"x": floats(2)}) for m in ("one", "two", "two", "one")]
    yield Case("methods_share", {"one": Method(a, {"h": ("hn", zeros(2))}), "two": Method(c, {"h": ("hn", zeros(2))})},
               calls, ["h:hn"], shared="*")
    # Caches that grow, by dims of other names and as inputs in another order.
    prefill = graph("g (float[1,n,3] x, float[1,p,3] past_k, float[1,p,3] past_v) => (float[1,3] y, float[1,r,3] k, float[1,r,3] v) "
                    "{ k = Concat<axis=1>(past_k, x) b = Neg(x) v = Concat<axis=1>(past_v, b) a = Constant<value_ints=[1]>() "
                    "s = ReduceSum<keepdims=0>(k, a) t = ReduceMin<keepdims=0>(v, a) y = Sub(s, t) }")
    decode = graph("g (float[1,3] u, float[1,q,3] past_v, float[1,q,3] past_k) => (float[1,3] y, float[1,r,3] v, float[1,r,3] k) "
                   "{ a = Constant<value_ints=[1]>() x = Unsqueeze(u, a) k = Concat<axis=1>(past_k, x) b = Neg(x) v = Concat<axis=1>(past_v, b) "
                   "s = ReduceSum<keepdims=0>(k, a) t = ReduceMin<keepdims=0>(v, a) y = Sub(s, t) }")
    caches = {"past_k": ("k", zeros(1, 0, 3)), "past_v": ("v", zeros(1, 0, 3))}
    calls = [("one", {"x": floats(1, 4, 3)}), ("two", {"u": floats(1, 3)}), ("two", {"u": floats(1, 3)}), ("one", {"x": floats(1, 2, 3)}),
             ("two", {"u": floats(1, 3)})]
    yield Case("methods_share_caches", {"one": Method(prefill, caches, {"p": "0..8", "n": "1..4"}), "two": Method(decode, caches, {"q": "0..11"})},
               calls, ["past_k:k", "past_v:v"], shared="past*")


def decoder_cases(models):
    for name in sorted(os.listdir(models)):
        path = os.path.join(models, name, "model.onnx")
        model = onnx.load(path, load_external_data=False) if "_kv" in name and os.path.isfile(path) else None
        dynamic = model and any(d.dim_param for i in model.graph.input if "past" in i.name
                                for d in i.type.tensor_type.shape.dim)
        if dynamic:
            yield decoder(f"decoder_{name}", path, model)


def decoder(name, path, model):
    shapes = {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    half = any(i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for i in model.graph.input)
    many = isinstance(shapes["input_ids"][1], str)
    batch = shapes["input_ids"][0]
    shapes = {n: [1 if d == batch else d for d in shape] for n, shape in shapes.items()}
    steps = (5, 1, 1, 3, 1, 1, 1, 1, 2) if many else (1,) * 12
    total = sum(steps)
    pasts = [n for n in shapes if n.startswith("past")]
    outputs = [o.name for o in model.graph.output if o.name.startswith("present")]
    states = {n: (o, np.zeros([0 if isinstance(d, str) else d for d in shapes[n]], np.float16 if half else np.float32))
              for n, o in zip(pasts, outputs)}
    dims = {d: f"0..{total}" for n in pasts for d in shapes[n] if isinstance(d, str)}
    dims.update({d: f"1..{total}" for d in shapes["attention_mask"] if isinstance(d, str)})
    dims.update({d: "1..5" for d in shapes["input_ids"] if isinstance(d, str)})
    dims.update({batch: 1} if isinstance(batch, str) else {})
    tokens = RNG.integers(3, 150, (1, total))

    def feed(begin, end):
        made = {"input_ids": tokens[:, begin:end], "attention_mask": np.ones((1, end), np.int64)}
        if "position_ids" in shapes:
            made["position_ids"] = np.arange(begin, end)[None]
        return made

    def whole(session, results):
        want = session.run(None, {**feed(0, total), **{n: s for n, (_, s) in states.items()}})[0]
        return arrays.compare_all([np.concatenate([r[0] for r in results], 1)], [want], RTOL, ATOL)
    ends = np.cumsum(steps)
    return single(name, path, states, [feed(e - n, e) for n, e in zip(steps, ends)], dims=dims,
                  flags=[f"{os.path.commonprefix(pasts)}*:{os.path.commonprefix(outputs)}*"],
                  whole=whole if many else None)


# --- checking ---

def shared_flags(case):
    return [f"--share-state={case.shared}"] if case.shared else []


def expected_outputs(case, sessions):
    """Of every call, with ONNX Runtime and the states handed on by us."""
    states = {m: {n: first for n, (_, first) in method.states.items()} for m, method in case.methods.items()}
    for name, feed in case.calls:
        session, method = sessions[name], case.methods[name]
        names = [o.name for o in session.get_outputs()]
        out = dict(zip(names, session.run(names, {**feed, **states[name]})))
        new = {n: out[o] for n, (o, _) in method.states.items()}
        states = {m: new for m in states} if case.shared else {**states, name: new}
        kept = {o for o, _ in method.states.values()}
        yield [v for n, v in out.items() if n not in kept]


def check_interpreter(args, work, case, target, expected):
    """None or what is wrong with `etc run` of the model and of the program; of one method."""
    if len(case.methods) > 1:
        return None
    source = os.path.join(work, "forward.onnx")
    inputs = []
    for k, (_, feed) in enumerate(case.calls):
        for n, value in feed.items():
            path = os.path.join(work, f"{n}.{k}.npy".replace("/", "_"))
            arrays.save_npy(path, value)
            inputs += ["--input", f"{n}={path}"]
    if not inputs:
        return None
    folder = os.path.join(work, "out")
    for model, flags in ((source, lower_flags(case)), (target, [])):
        result = etc_command.run([args.etc, "run", model, *flags, *inputs, "--output", folder], args.timeout)
        if result.code != 0:
            return f"etc run {os.path.basename(model)}: {result.summary()}"
        names = [o.name for o in onnx.load(source, load_external_data=False).graph.output]
        kept = {o for o, _ in case.methods["forward"].states.values()}
        for k, want in enumerate(expected):
            got = [np.load(os.path.join(folder, str(k), f"{n}.npy")) for n in names if n not in kept]
            message = arrays.compare_all(got, want, RTOL, ATOL)
            if message:
                return f"etc run {os.path.basename(model)}, call {k}: {message}"
    return None


def lower_flags(case):
    flags = [x for f in case.flags for x in ("--state", f)]
    for method in case.methods.values():
        for name, size in method.dims.items():
            flags += ["--dim", f"{name}={size}" if size != 0 else f"{name}=0..0"]
    return flags


def check(case, args, server, work):
    """None, or what is wrong."""
    sessions, models = {}, []
    case = with_first_values(case, work)
    for name, method in case.methods.items():
        source = os.path.join(work, f"{name}.onnx")
        model = onnx.load(method.model) if isinstance(method.model, str) else method.model
        onnx.save(model, source)
        sessions[name] = cases.ort_session(source)
        models.append(source if name == "forward" else f"--method={name}={source}")
    target = os.path.join(work, "model.pte")
    result = etc_command.run([args.etc, "lower", *models, *lower_flags(case), *shared_flags(case), *args.extra, "-o", target, "--verify-each", "--roundtrip",
                              "--diagnostics=json"], args.timeout)
    if result.code != 0:
        return f"lower: {result.summary()}"
    verified = etc_command.run([args.etc, "verify", target], args.timeout)
    if verified.code != 0:
        return f"verify: {verified.summary()}"
    expected, calls = list(expected_outputs(case, sessions)), []
    for k, ((name, feed), want) in enumerate(zip(case.calls, expected)):
        bundle = os.path.join(work, f"{k}.pkl")
        arrays.save_bundle(bundle, list(feed.values()), want)
        calls.append({"method": name, "bundle": bundle})
    answer = server.run({"pte": target, "calls": calls, "rtol": RTOL, "atol": ATOL}, args.timeout)
    if answer["stage"] != "ok":
        return f"{answer['stage']}: {answer['message']}"
    message = case.whole(next(iter(sessions.values())), expected) if case.whole else None
    return message or check_interpreter(args, work, case, target, expected)


def with_first_values(case, work):
    """States that begin with other values than zeros get them from files, unless the model has them."""
    flags = []
    for flag in case.flags:
        method = next(iter(case.methods.values()))
        name = flag.split(":")[0]
        first = method.states[name][1] if name in method.states else np.zeros(1)
        given = not isinstance(method.model, str) and name in [t.name for t in method.model.graph.initializer]
        if np.any(first) and not given:
            path = os.path.join(work, f"first_{name}.npy")
            np.save(path, first)
            flag += "=" + path
        flags.append(flag)
    return dataclasses.replace(case, flags=flags)


def main():
    p = cases.parser(__doc__, timeout=120.0)
    p.add_argument("--models", help="a folder of models made by tests/zoo/make.py: its decoders too")
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="etc-state-") as work:
        return cases.run([*small_cases(work), *(decoder_cases(args.models) if args.models else [])], check, args)


if __name__ == "__main__":
    sys.exit(main())
