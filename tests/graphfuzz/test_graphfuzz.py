#!/usr/bin/env python3
"""Tests of the fuzzer itself: a wrong compiler must be caught, and its fault made small.

    tests/graphfuzz/test_graphfuzz.py [--etc PATH]
"""

import os
import stat
import sys
import tempfile
import unittest
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
from onnx import helper  # noqa: E402

import etc_command  # noqa: E402
import generate  # noqa: E402
import graph  # noqa: E402
import refusals  # noqa: E402
import shrink  # noqa: E402
from worker import Worker  # noqa: E402

ETC = etc_command.default_command(ROOT)

# Swaps the operands of each Sub in the model ($2) before the real command sees it.
WRONG = """#!{python}
import os, sys, onnx
if sys.argv[1] == "lower":
    model = onnx.load(sys.argv[2])
    for node in model.graph.node:
        if node.op_type == "Sub":
            node.input[0], node.input[1] = node.input[1], node.input[0]
    onnx.save(model, sys.argv[2])
os.execv("{etc}", ["etc"] + sys.argv[1:])
"""
DYING = """#!/bin/sh
kill -SEGV $$
"""


def one_node(op, *arrays):
    case = graph.Case(17, [graph.Step([helper.make_node(op, [f"x{i}" for i in range(len(arrays))], ["y"])], True)])
    case.inputs = {f"x{i}": v for i, v in enumerate(arrays)}
    case.outputs = ["y"]
    graph.evaluate_all(case, case.inputs)
    return case


class Generator(unittest.TestCase):
    def test_same_graph_for_the_same_seed(self):
        worker = Worker(ETC)
        for seed in (1, 7, 12):
            here = generate.generate(seed)
            there = worker.ask({"seed": seed, "generate": True})
            self.assertEqual(here.digest(), there["digest"])
            for name, x in here.inputs.items():
                self.assertEqual(x.tobytes(), there["case"].inputs[name].tobytes())
        worker.close()

    def test_rounding_may_not_decide(self):
        near = np.array([1.0, 2.0], np.float32)
        case = graph.Case(17, [graph.Step([helper.make_node("Sin", ["x"], ["s"])], False),
                               graph.Step([helper.make_node("Sin", ["x"], ["t"])], False),
                               graph.Step([helper.make_node("Less", ["s", "t"], ["y"])], True)], {"x": near})
        with self.assertRaises(graph.Reject):
            graph.evaluate_all(case, case.inputs)

    def test_special_values_come_through(self):
        case = one_node("Neg", np.array([np.nan, np.inf, -0.0], np.float32))
        values, errors = graph.evaluate_all(case, case.inputs)
        self.assertTrue(np.isnan(values["y"][0]) and errors["y"] == 0.0)


class Failures(unittest.TestCase):
    def fake(self, folder, text):
        path = os.path.join(folder, "etc")
        with open(path, "w") as f:
            f.write(text.format(python=sys.executable, etc=os.path.abspath(ETC)))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def test_wrong_operands_are_found_and_shrunk(self):
        with tempfile.TemporaryDirectory() as folder:
            worker = Worker(self.fake(folder, WRONG), {"Sub", "Add", "Mul", "Transpose"})
            seed, answer = next((s, a) for s in range(100) for a in [worker.ask({"seed": s, "witness": False})]
                                if a["nodes"] > 4 and a["stage"] != "ok")
            self.assertEqual(answer["stage"], "mismatch", (seed, answer["message"]))
            case, last = shrink.shrink(answer["case"], answer, worker)
            self.assertEqual([n.op_type for n in case.nodes()], ["Sub"])
            self.assertEqual(last["stage"], "mismatch")
            worker.close()

    def test_a_dying_command_is_a_crash(self):
        with tempfile.TemporaryDirectory() as folder:
            worker = Worker(self.fake(folder, DYING))
            self.assertEqual(worker.ask({"case": one_node("Neg", np.ones(2, np.float32))})["stage"], "crash")
            worker.close()

    def test_a_dying_worker_is_replaced(self):
        worker = Worker(ETC)
        case = one_node("Neg", np.ones(2, np.float32))
        self.assertEqual(worker.ask({"case": case})["stage"], "ok")
        worker.send({"seed": 5})
        worker.process.kill()
        worker.process.join()
        answer = None
        while answer is None:
            answer = worker.receive()
        self.assertIn(answer["stage"], ("crash", "ok"))
        self.assertEqual(worker.ask({"case": case, "witness": True})["stage"], "ok")
        worker.close()

    def test_refusals(self):
        self.assertIsNone(refusals.reason("E0402", "the place of result 0 overlaps"))
        self.assertIsNotNone(refusals.reason("E0303", "'AveragePool': this average pool needs fixed spatial sizes"))


if __name__ == "__main__":
    if "--etc" in sys.argv:
        at = sys.argv.index("--etc")
        ETC = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    warnings.simplefilter("ignore")
    program = unittest.main(exit=False, verbosity=1)
    sys.stderr.flush()
    bad = len(program.result.failures) + len(program.result.errors)
    print(f"graphfuzz harness: {program.result.testsRun - bad} passed, {bad} failed", flush=True)
    sys.exit(1 if bad or program.result.testsRun == 0 else 0)
