"""Makes a failing case small: as long as it fails in the same way, takes things away."""

import copy
import re
import time

import numpy as np
import onnx

from generate import prune
from graph import Reject, evaluate_all, is_float

BUDGET = 15.0  # seconds for a case


def kind(answer):
    """What counts as the same failure: the stage and its words, but not numbers and names."""
    words = re.sub(r"'[^']*'|[-+]?\d[\d.e+-]*|\(\+.*more\)", "#", answer["message"])
    return answer["stage"], answer["code"], words.split("|")[0][:60] if answer["stage"] in ("refused", "run", "load", "witness") else ""


def shrink(case, answer, worker, say=lambda text: None):
    """The smallest case found, and its answer."""
    wanted, end = kind(answer), time.monotonic() + BUDGET
    case, last = copy.deepcopy(case), answer
    tried = 0
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for smaller in candidates(case):
            if time.monotonic() > end:
                break
            tried += 1
            found = worker.ask({"case": smaller, "witness": wanted[0] == "witness"})
            if kind(found) == wanted:
                case, last, progress = smaller, found, True
                break
    say(f"shrunk to {len(case.nodes())} nodes in {tried} tries")
    return case, last


def candidates(case):
    """Smaller cases, those that take away most first."""
    yield from with_fewer_feeds(case)
    if len(case.outputs) > 1:
        for out in case.outputs:
            yield changed(case, outputs=[out])
    values = known_values(case)
    if values is not None:
        yield from with_fewer_steps(case, values)
    yield from with_smaller_bodies(case)
    yield from with_plain_nodes(case)
    yield from with_plain_constants(case)
    yield from with_smaller_sizes(case)
    yield from with_plain_values(case)


def changed(case, **fields):
    smaller = copy.deepcopy(case)
    for k, v in fields.items():
        setattr(smaller, k, v)
    prune(smaller)
    smaller.feeds = [{k: v for k, v in feeds.items() if k in smaller.inputs} for feeds in smaller.feeds]
    return smaller


def with_fewer_feeds(case):
    if case.symbols:
        yield changed(case, symbols={}, symbolic={}, feeds=[])
        for i, feeds in enumerate(case.feeds):
            yield changed(case, inputs=feeds, symbols={}, symbolic={}, feeds=[])
        for feeds in case.feeds if len(case.feeds) > 1 else []:
            yield changed(case, feeds=[feeds])
    elif case.feeds:
        yield changed(case, feeds=[])
        for feeds in case.feeds:
            yield changed(case, inputs=feeds, feeds=[])


def known_values(case):
    try:
        return evaluate_all(case, case.inputs)[0]
    except Reject:
        return None


def with_fewer_steps(case, values):
    """Some results become inputs that hold their values. Halves first, then single steps."""
    count = len(case.steps)
    spans = [(0, count // 2)] if count > 3 else []
    spans += [(i, i + 1) for i in range(count)]
    for low, high in spans:
        outs = {x for step in case.steps[low:high] for x in step.outputs()}
        rest = case.steps[:low] + case.steps[high:]
        needed = {x for step in rest for x in step.inputs()} & outs
        outputs = [x for x in case.outputs if x not in outs]
        if not outputs or case.symbols:
            continue
        inputs = {**case.inputs, **{k: np.asarray(values[k]) for k in sorted(needed)}}
        yield changed(case, steps=rest, outputs=outputs, inputs=inputs, feeds=[])
    for i, step in enumerate(case.steps):
        # An earlier result as the output of the graph instead of a later one.
        if step.outputs() and step.outputs()[0] not in case.outputs and i < count - 1:
            yield changed(case, outputs=[step.outputs()[0]])


def with_plain_nodes(case):
    """Attributes and optional inputs left out."""
    for i, step in enumerate(case.steps):
        for j, node in enumerate(step.nodes):
            for a in node.attribute:
                if a.type != onnx.AttributeProto.GRAPH:
                    yield edited(case, i, j, lambda n, name=a.name: drop_attribute(n, name))
            for k, name in enumerate(node.input):
                if name and k > 0:
                    yield edited(case, i, j, lambda n, k=k: drop_input(n, k))


def edited(case, i, j, edit):
    smaller = copy.deepcopy(case)
    edit(smaller.steps[i].nodes[j])
    return changed(smaller)


def drop_attribute(node, name):
    for a in list(node.attribute):
        if a.name == name:
            node.attribute.remove(a)


def drop_input(node, k):
    node.input[k] = ""
    while node.input and not node.input[-1]:
        node.input.pop()


def with_smaller_bodies(case):
    """Nodes of branches and bodies replaced by one of their operands; results of control flow left out."""
    for i, step in enumerate(case.steps):
        for j, node in enumerate(step.nodes):
            for path in bodies(node):
                for k in reversed(range(len(at_path(node, path).node))):
                    yield edited(case, i, j, lambda n, path=path, k=k: unwrap(at_path(n, path), k, None))
                    for name in at_path(node, path).node[k].input:
                        if name:
                            yield edited(case, i, j, lambda n, path=path, k=k, name=name: unwrap(at_path(n, path), k, name))
                    for r in range(len(at_path(node, path).node[k].output)):
                        yield edited(case, i, j, lambda n, path=path, k=k, r=r: drop_result(at_path(n, path).node[k], r))
            if j == len(step.nodes) - 1 and len(node.output) > 1:
                for r, out in enumerate(node.output):
                    if out not in case.outputs:
                        yield edited(case, i, j, lambda n, r=r: drop_result(n, r))


def bodies(node, path=()):
    """The graphs within a node, as paths of (attribute, node) indices."""
    for a, attribute in enumerate(node.attribute):
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield (*path, a)
            for k, inner in enumerate(attribute.g.node):
                yield from bodies(inner, (*path, a, k))


def at_path(node, path):
    graph = node.attribute[path[0]].g
    return at_path(graph.node[path[1]], path[2:]) if len(path) > 1 else graph


def unwrap(graph, k, name):
    """Leaves out node k; what used its results uses `name`."""
    gone = set(graph.node[k].output)
    del graph.node[k]
    if name is not None:
        rename(graph, gone, name)


def rename(graph, gone, name):
    for node in graph.node:
        for i, x in enumerate(node.input):
            if x in gone:
                node.input[i] = name
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                rename(a.g, gone, name)
    for out in graph.output:
        if out.name in gone:
            out.name = name


def drop_result(node, r):
    """Leaves out result r of If or Loop, with what makes it."""
    if node.op_type not in ("If", "Loop"):
        return
    carried = len(node.input) - 2 if node.op_type == "Loop" else 0
    del node.output[r]
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH:
            del a.g.output[r + (node.op_type == "Loop")]
            if r < carried:
                del a.g.input[r + 2]
    if r < carried:
        del node.input[r + 2]


def with_plain_constants(case):
    if case.as_nodes:
        yield changed(case, as_nodes=set())


def with_smaller_sizes(case):
    """One size of the inputs and constants everywhere smaller."""
    if case.symbols:
        return
    sizes = sorted({d for x in [*case.inputs.values(), *case.constants.values()] for d in x.shape if d > 1}, reverse=True)
    for size in sizes:
        for to in (1, 2) if size > 2 else (1,):
            cut = lambda x: x[tuple(slice(0, to) if d == size else slice(None) for d in x.shape)]  # noqa: E731
            yield changed(case, inputs={k: cut(v) for k, v in case.inputs.items()}, constants={k: cut(v) for k, v in case.constants.items()},
                          feeds=[])
            yield changed(case, inputs={k: cut(v) for k, v in case.inputs.items()}, feeds=[])


def with_plain_values(case):
    for group in ("inputs", "constants"):
        for k, v in getattr(case, group).items():
            if v.size == 0 or group == "constants" and not is_float(v):
                continue
            for plain in (np.zeros_like(v), np.ones_like(v), (np.arange(v.size).reshape(v.shape) + 1).astype(v.dtype)):
                if not np.array_equal(plain, v) and simpler(plain, v):
                    yield changed(case, **{group: {**getattr(case, group), k: plain}, "feeds": [] if not case.symbols else case.feeds})


def simpler(a, b):
    return complexity(a) < complexity(b)


def complexity(x):
    """0: zeros, 1: ones, 2: counting, 3: anything."""
    if not np.any(x):
        return 0
    if np.all(x == 1):
        return 1
    return 2 if np.array_equal(x.reshape(-1), (np.arange(x.size) + 1).astype(x.dtype)) else 3
