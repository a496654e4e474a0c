"""Models of one node, lowered and run on the real runtime, compared with a reference.

A table of cases gives `main` its models. Values are made from a seed; a case says what is an input of the program
and what is a constant of the model.
"""

import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.parser  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import etc_command  # noqa: E402
import pte  # noqa: E402
import witness  # noqa: E402

BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(20)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def whole(dtype, low, high, *shape):
    return RNG.integers(low, high, shape).astype(dtype)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


class Case:
    """One node, or `nodes` that compute outputs y0, y1, ... `constants` are initializers; `feeds` are the sets of input values, all with the same names.

    oracle: "ort", or "onnx" for the reference evaluator where ONNX Runtime lacks the operator at this type or version or
    departs from the standard; or a list of arrays, the values that the standard gives.
    refused: the diagnostic with which `etc lower` must refuse the model, instead of a result.
    kernels: how many operators of the runtime the program may name, and must."""

    # What a case of another kind need not say.
    dims, refused, kernels, fails, oracle, rtol, atol = {}, None, None, (), "ort", 1e-3, 1e-4

    def __init__(self, name, op, inputs, feeds, constants=(), outputs=1, out_type=np.float32, domain="", dims=None,
                 shapes=None, opset=17, oracle="ort", rtol=1e-3, atol=1e-4, refused=None, kernels=None, nodes=None, **attributes):
        feeds = feeds if isinstance(feeds, list) else [feeds]
        self.name, self.dims = name, dims or {}
        self.feeds = [{k: np.asarray(v) for k, v in feed.items()} for feed in feeds]
        self.oracle, self.rtol, self.atol, self.refused, self.kernels = oracle, rtol, atol, refused, kernels
        outputs = ["y%d" % i for i in range(outputs)] if isinstance(outputs, int) else outputs
        nodes = nodes or [helper.make_node(op, inputs, outputs, domain=domain, **attributes)]
        constants = {k: np.asarray(v) for k, v in dict(constants).items()}
        types = out_type if isinstance(out_type, (list, tuple)) else [out_type] * len(outputs)
        values = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), (shapes or {}).get(k, v.shape))
                  for k, v in self.feeds[0].items()]
        results = [helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(np.dtype(t)), None)
                   for o, t in zip(outputs, types) if o]
        # Before IR version 4 every initializer had to be an input too; the versions from then on hold for all operator sets.
        graph = helper.make_graph(nodes, "operator", values, results,
                                  initializer=[numpy_helper.from_array(v, k) for k, v in constants.items()])
        self.model = helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])

    def expected(self, path, feed):
        if isinstance(self.oracle, list):
            return self.oracle
        if self.oracle == "onnx":
            from onnx.reference import ReferenceEvaluator

            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return [np.asarray(x) for x in ReferenceEvaluator(self.model).run(None, feed)]
        return cases.ort_session(path).run(None, feed)

    def computed(self):
        """What ONNX Runtime gives for the first feeds."""
        return cases.ort_session(self.model.SerializeToString()).run(None, self.feeds[0])


class TextCase(Case):
    """A graph in the text form of onnx.parser. The program must fail, and not compute anything, at the values of `fails`."""

    def __init__(self, name, text, feeds, fails=(), dims=None, refused=None, rtol=1e-3, atol=1e-4):
        self.name, self.dims, self.refused, self.rtol, self.atol = name, dims or {}, refused, rtol, atol
        self.feeds, self.fails, self.model = feeds, fails, onnx.parser.parse_model(text)


def check(case, args, server, work):
    """None, or what is wrong."""
    source, target, bundle = (os.path.join(work, x) for x in ("model.onnx", "model.pte", "data.pkl"))
    onnx.save(case.model, source)
    stage, code, message, _ = etc_command.lower(args.etc, source, target, case.dims, args.extra, args.timeout)
    if case.refused:
        return None if (stage, code) == ("lower", case.refused) else f"{stage}: {code} {message}; not refused with {case.refused}"
    if stage != "ok":
        return f"{stage}: {code} {message}"
    if case.kernels is not None:
        kernels = sum(m["operators"] for m in pte.methods(target).values())
        if kernels != case.kernels:
            return f"{kernels} operators outside of the delegate instead of {case.kernels}"
    for feed in case.feeds:
        try:
            expected = case.expected(source, feed)
        except Exception as e:
            return f"the reference: {' '.join(str(e).split())[:200]}"
        arrays.save_bundle(bundle, list(feed.values()), expected)
        answer = server.run({"pte": target, "bundle": bundle, "rtol": case.rtol, "atol": case.atol}, args.timeout)
        if answer["stage"] != "ok":
            return f"{answer['stage']}: {answer['message']}"
        if args.interp:
            names = [x.name for x in case.model.graph.output]
            message = witness.disagreement(args.etc, target, list(feed.items()), list(zip(names, expected)), work,
                                           case.rtol, case.atol, args.timeout)
            if message:
                return f"etc run: {message}"
    for feed in case.fails:
        arrays.save_bundle(bundle, list(feed.values()), [])
        answer = server.run({"pte": target, "bundle": bundle, "rtol": 0, "atol": 0}, args.timeout)
        if answer["stage"] != "run":
            return f"did not fail while running, but: {answer['stage']}: {answer['message']}"
    return None


def parser(text, extra=(), interp=False):
    p = cases.parser(text)
    p.add_argument("--interp", action="store_true", default=interp, help="also run the .pte with `etc run`")
    p.set_defaults(extra=list(extra))
    return p


def main(text, nodes, extra=(), interp=False):
    return cases.run(nodes, check, parser(text, extra, interp).parse_args())
