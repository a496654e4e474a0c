"""From a seed to a case: which operators, how many, which outputs, further inputs, other sizes."""

import fnmatch
import random

import numpy as np
import onnx

import attention  # noqa: F401  each family registers its operators
import control  # noqa: F401
import convolution  # noqa: F401
import elementwise  # noqa: F401
import indexing  # noqa: F401
import layout  # noqa: F401
import nested  # noqa: F401
import normalization  # noqa: F401
import quantized  # noqa: F401
import recurrent  # noqa: F401
import reduction  # noqa: F401
import signal_ops  # noqa: F401
import contrib  # noqa: F401  last: it imports families, whose order the graphs of all seeds depend on
from builder import FAMILIES, SYMBOL_SIZES, Builder
from graph import Reject, evaluate_all, is_float

OPSETS = [7, 8, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 21, 22, 23, 24, 25, 26, 26, 27, 28]
SYMBOLIC_SHARE = 0.2
LOWEST, HIGHEST = 2, 13  # the range of each symbol; SYMBOL_SIZES lie in it


def candidates(opset, only=None):
    """(name, function, weight) of what exists at this opset."""
    found = []
    for name, rows in FAMILIES.items():
        for since, until, function, weight in rows:
            if since <= opset <= until and (only is None or any(fnmatch.fnmatchcase(name, x) for x in only)):
                found.append((name, function, weight or float(only is not None)))
    return found


def generate(seed, only=None, rejected=None):
    """The case of a seed. `only`: patterns of names of operators. `rejected` counts (operator, reason) of what did not come to be."""
    rng = random.Random(seed)
    opset = rng.choice([o for o in OPSETS if only is None or candidates(o, only)] or OPSETS)
    builder = Builder(seed, opset, rng.random() < SYMBOLIC_SHARE)
    available = candidates(opset, only)
    wanted = rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25])
    attempts = 0
    while available and len(builder.case.steps) < wanted and attempts < 3 * wanted + 12:
        attempts += 1
        name, function, _ = rng.choices(available, [w for _, _, w in available])[0]
        kept = builder.snapshot()
        try:
            function(builder)
        except (Reject, onnx.defs.SchemaError, onnx.checker.ValidationError) as e:
            builder.restore(kept)
            if rejected is not None:
                rejected[(name, str(e)[:200])] += 1
    finish(builder)
    return builder.case


def finish(builder):
    """Chooses outputs, removes what nothing uses, adds further inputs."""
    case = builder.case
    results = [x for step in case.steps for x in step.outputs()]
    loose = [x for x in results if x not in builder.used]
    case.outputs = [x for x in results if x in loose and builder.chance(0.9) or builder.chance(0.08)] or loose[-1:] or results[-1:]
    prune(case)
    if builder.symbolic and any(isinstance(d, str) for shape in case.symbolic.values() for d in shape):
        case.symbols = {s: (LOWEST, HIGHEST) for s in SYMBOL_SIZES
                        if any(s in shape for shape in case.symbolic.values())}
        for sizes in ({s: LOWEST for s in SYMBOL_SIZES}, {"n": 13, "m": 3}, {"n": 5, "m": 12}):
            try:
                feeds = {k: draw(builder, k, tuple(sizes.get(d, d) for d in case.symbolic[k])) for k in case.inputs}
                evaluate_all(case, feeds)
                case.feeds.append(feeds)
            except Reject:
                case.symbols = {}
        if not case.symbols:
            case.feeds, case.symbolic = [], {}
    else:
        case.symbolic = {}
    if not case.symbols:
        try:
            feeds = {k: draw(builder, k, v.shape) for k, v in case.inputs.items()}
            evaluate_all(case, feeds)
            case.feeds.append(feeds)
        except Reject:
            pass


def draw(builder, name, shape):
    x = np.asarray(builder.recipes[name](shape))
    if x.shape != shape:
        raise Reject("only for one size")
    return x


def prune(case):
    """Leaves out what no output needs; an input that nothing uses stays now and then, as models have them."""
    needed = set(case.outputs)
    kept = []
    for step in reversed(case.steps):
        if any(x in needed for x in step.outputs()):
            kept.append(step)
            needed.update(step.inputs())
    case.steps = kept[::-1]
    case.inputs = {k: v for k, v in case.inputs.items() if k in needed}
    case.constants = {k: v for k, v in case.constants.items() if k in needed}
    case.as_nodes &= set(case.constants)
    case.symbolic = {k: v for k, v in case.symbolic.items() if k in case.inputs}
    called = {n.op_type for n in case.nodes()}
    case.functions = [f for f in case.functions if f.name in called]


def op_types(case):
    found = set()

    def walk(nodes):
        for node in nodes:
            found.add(node.op_type)
            for a in node.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    walk(a.g.node)

    walk(case.nodes())
    for f in case.functions:
        walk(f.node)
    if case.as_nodes:
        found.add("Constant")
    return found - {f.name for f in case.functions}


def dtypes(case):
    return {str(x.dtype) for x in [*case.inputs.values(), *case.constants.values()]} | (
        {"special values"} if any(is_float(x) and not np.isfinite(x.astype(np.float64)).all() for x in case.inputs.values()) else set())
