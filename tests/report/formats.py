#!/usr/bin/env python3
"""What other tools are given, by the rules of their formats: traces of `etc run --profile` for Perfetto, graphs of `etc print --format
model-explorer`. viewers.py opens such files in the tools themselves.

    tests/report/formats.py --etc build/release/etc

Traces: the Trace Event Format as Perfetto imports it (perfetto.dev/docs/getting-started/other-formats): complete events that nest on each
thread, metadata with names. Graphs: the classes of model_explorer.graph_builder.
"""

import argparse
import copy
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "cli", "data")
METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
options = argparse.Namespace()


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)


def complete_event(event):
    if not all(is_number(event.get(key)) and event[key] >= 0 for key in ("ts", "dur")):
        yield "ts and dur are microseconds from 0 on"
    if not isinstance(event.get("cat", ""), str):
        yield "cat is not text"


def metadata_event(event):
    if event.get("name") not in METADATA:
        yield f"no such metadata: {event.get('name')}"
    if event.get("name") in ("process_name", "thread_name") and not isinstance(event.get("args", {}).get("name"), str):
        yield "a name in args is missing"


def nesting(events):
    """Slices of a thread lie within each other, or apart."""
    tracks = {}
    for event in events:
        if event.get("ph") == "X":
            tracks.setdefault((event.get("pid"), event.get("tid")), []).append(event)
    for track in tracks.values():
        open_ends = []
        for event in sorted(track, key=lambda e: (e["ts"], -e["dur"])):
            begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            if open_ends and end > open_ends[-1]:
                yield f"overlaps without being nested: {event['name']}"
            open_ends.append(end)


def check_trace(trace):
    """What is wrong with it."""
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["traceEvents is no list"]
    wrong = [] if trace.get("displayTimeUnit", "ms") in ("ms", "ns") else ["displayTimeUnit"]
    for event in trace["traceEvents"]:
        if not isinstance(event.get("name"), str) or not all(isinstance(event.get(key), int) for key in ("pid", "tid")):
            wrong.append(f"name, pid or tid: {event}")
        if not isinstance(event.get("args", {}), dict):
            wrong.append("args is no object")
        by_phase = {"X": complete_event, "M": metadata_event}.get(event.get("ph"))
        wrong += by_phase(event) if by_phase else [f"phase {event.get('ph')}"]
    return wrong or list(nesting(trace["traceEvents"]))


def pairs(where, items):
    for item in items:
        if set(item) != {"key", "value"} or not all(isinstance(x, str) for x in item.values()):
            yield f"{where}: not a key and its value: {item}"


def outputs(node):
    return {m["id"] for m in node.get("outputsMetadata", [])}


def check_node(node, nodes):
    known = {"id", "label", "namespace", "attrs", "incomingEdges", "outputsMetadata"}
    if set(node) - known or not all(isinstance(node.get(key), str) for key in ("id", "label", "namespace")):
        yield f"members of {node.get('id')}: {sorted(node)}"
    yield from pairs(node["id"], node.get("attrs", []))
    for m in node.get("outputsMetadata", []):
        yield from pairs(node["id"], m["attrs"])
    if len(outputs(node)) != len(node.get("outputsMetadata", [])):
        yield f"outputs of {node['id']}"
    inputs = [e["targetNodeInputId"] for e in node.get("incomingEdges", [])]
    if len(set(inputs)) != len(inputs):
        yield f"inputs of {node['id']}"
    for edge in node.get("incomingEdges", []):
        source = nodes.get(edge["sourceNodeId"])
        if source is None or edge["sourceNodeOutputId"] not in outputs(source):
            yield f"{node['id']} has an edge from nowhere: {edge}"


def check_graph(graph):
    """What is wrong with one graph of Model Explorer."""
    nodes = {n["id"]: n for n in graph["nodes"]}
    wrong = [] if len(nodes) == len(graph["nodes"]) else ["ids that are there twice"]
    for node in graph["nodes"]:
        wrong += check_node(node, nodes)
    return wrong if isinstance(graph.get("id"), str) else [*wrong, "a graph without id"]


def etc(*arguments):
    return subprocess.run([options.etc, *arguments], check=True, capture_output=True).stdout


MODELS = {"mixed": ("mixed.onnx", "--dim", "batch=2"), "accumulate": ("accumulate.onnx", "--state", "h:hn"),
          "why": ("why.onnx",), "regulator": ("regulator.onnx", "--bound", "places=90"), "two": ("two_outputs.onnx",)}


def run_trace(name, *more):
    model, *dims = MODELS[name]
    with tempfile.TemporaryDirectory(prefix="etc-formats-") as work:
        path = os.path.join(work, "trace.json")
        etc("run", os.path.join(DATA, model), *dims, "--random", "--repeat", "3", "-q", "--profile", path, *more)
        with open(path, encoding="utf-8") as f:
            return f.read()


class Traces(unittest.TestCase):
    def test_rules(self):
        for name in MODELS:
            with self.subTest(name):
                text = run_trace(name)
                trace = json.loads(text)
                self.assertEqual(check_trace(trace), [])
                self.assertIn("X", {e["ph"] for e in trace["traceEvents"]})
                self.assertNotRegex(text, r'"(ts|dur)":[0-9.]*[eE]')

    def test_delegate(self):
        """A program with a delegate: the category tells it from kernels."""
        with tempfile.TemporaryDirectory(prefix="etc-formats-") as work:
            program, path = os.path.join(work, "m.pte"), os.path.join(work, "trace.json")
            etc("lower", os.path.join(DATA, "mixed.onnx"), "--dim", "batch=2", "--backend", "xnnpack:min-ops=1", "-q", "-o", program)
            etc("run", program, "--random", "-q", "--profile", path)
            with open(path, encoding="utf-8") as f:
                trace = json.load(f)
        self.assertEqual(check_trace(trace), [])
        self.assertEqual({e["cat"] for e in trace["traceEvents"] if e["ph"] == "X"}, {"delegate", "node"})

    def test_rules_can_fail(self):
        good = json.loads(run_trace("mixed"))
        first = next(i for i, e in enumerate(good["traceEvents"]) if e["ph"] == "X")

        def broken(**members):
            trace = copy.deepcopy(good)
            trace["traceEvents"][first].update(members)
            return check_trace(trace)

        for members in ({"ts": -1}, {"dur": "1"}, {"ph": "Q"}, {"pid": "x"}, {"name": 3}, {"args": []}, {"ts": float("nan")}):
            self.assertNotEqual(broken(**members), [], members)
        second = good["traceEvents"][first + 1]
        self.assertNotEqual(broken(dur=second["ts"] - good["traceEvents"][first]["ts"] + second["dur"] / 2 + 0.001), [])
        self.assertNotEqual(check_trace({"events": []}), [])


class Graphs(unittest.TestCase):
    def test_rules(self):
        for name, (model, *more) in MODELS.items():
            for stage in ((), ("--stage", "to_executorch"), ("--stage", "to_executorch", "--backend", "xnnpack:min-ops=1")):
                with self.subTest(f"{name} {stage}"):
                    graphs = json.loads(etc("print", os.path.join(DATA, model), *more, *stage, "--format", "model-explorer", "-q"))
                    graphs = graphs["graphs"] if isinstance(graphs, dict) else graphs
                    self.assertGreater(len(graphs), 0)
                    self.assertEqual([w for g in graphs for w in check_graph(g)], [])

    def test_rules_can_fail(self):
        graphs = json.loads(etc("print", os.path.join(DATA, "mixed.onnx"), "--dim", "batch=1", "--format", "model-explorer", "-q"))
        graph = (graphs["graphs"] if isinstance(graphs, dict) else graphs)[0]
        node = next(i for i, n in enumerate(graph["nodes"]) if n.get("incomingEdges"))
        for member, value in (("id", graph["nodes"][0]["id"]), ("label", 3), ("attrs", [{"key": "a"}]), ("outputsMetadata", [])):
            bad = copy.deepcopy(graph)
            bad["nodes"][node][member] = value
            self.assertNotEqual(check_graph(bad), [], member)


class Dot(unittest.TestCase):
    def test_quotes(self):
        """Netron ends a string at each quote, escaped or not."""
        text = ('graph @odd level(aten) {\n  %0: f32[2] = input "a \\"b\\" c"\n  %1: f32[2] = aten::gelu(%0, "tanh") loc("q\\"", "Gelu", 0)\n'
                '  output %1 "y"\n}\n')
        with tempfile.TemporaryDirectory(prefix="etc-formats-") as work:
            path = os.path.join(work, "odd.etir")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            dot = etc("print", path, "--format", "dot", "-q").decode()
        self.assertIn("a &quot;b&quot; c", dot)
        self.assertNotIn('\\"', dot)
        for line in dot.splitlines():
            self.assertEqual(line.count('"') % 2, 0, line)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", required=True)
    p.add_argument("tests", nargs="*")
    args = p.parse_args(namespace=options)
    return not unittest.main(argv=[sys.argv[0], *args.tests], exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
