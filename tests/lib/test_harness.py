#!/usr/bin/env python3
"""Tests of the test harness: what must count as a failure does."""

import contextlib
import io
import os
import pickle
import stat
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "conformance")]

import numpy as np  # noqa: E402

import arrays  # noqa: E402
import etc_command  # noqa: E402
import models  # noqa: E402
import report  # noqa: E402
import runtime  # noqa: E402


class Differences(unittest.TestCase):
    def differ(self, got, want, rtol=1e-3, atol=1e-7):
        return arrays.difference(np.asarray(got), np.asarray(want), rtol, atol)

    def test_equal(self):
        self.assertIsNone(self.differ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf]))
        self.assertIsNone(self.differ(np.zeros((0, 3)), np.zeros((0, 3))))
        self.assertIsNone(self.differ(np.float32(2.0), np.float32(2.0)))

    def test_within_and_without_tolerance(self):
        self.assertIsNone(self.differ([1.0005], [1.0]))
        self.assertIn("1 of 1 differ", self.differ([1.002], [1.0]))

    def test_nan_and_sign(self):
        self.assertIsNotNone(self.differ([0.0], [np.nan]))
        self.assertIsNotNone(self.differ([np.nan], [0.0]))
        self.assertIsNotNone(self.differ([np.inf], [-np.inf]))

    def test_dtype_and_shape(self):
        self.assertIn("dtype", self.differ(np.float32([1]), np.float64([1])))
        self.assertIn("shape", self.differ(np.zeros((1, 3)), np.zeros((3,))))
        self.assertIn("shape", self.differ(np.zeros((0, 3)), np.zeros((3, 0))))

    def test_integers_and_booleans(self):
        self.assertIsNotNone(self.differ(np.int64([1]), np.int64([2])))
        self.assertIsNotNone(self.differ(np.uint8([0]), np.uint8([255])))
        self.assertIsNotNone(self.differ([True], [False]))

    def test_bfloat16(self):
        one, near, far = (np.asarray([x], dtype=arrays.BF16) for x in (1.0, 1.0078125, 1.0625))
        self.assertIsNone(arrays.difference(near, one, 1e-3, 1e-7))
        self.assertIsNotNone(arrays.difference(far, one, 1e-3, 1e-7))

    def test_count_of_outputs(self):
        x = np.zeros(2)
        self.assertIsNotNone(arrays.compare_all([x], [x, x], 1e-3, 1e-7))

    def test_torch_round_trip(self):
        for dtype in set(arrays.RUNTIME_DTYPES.values()):
            array = np.arange(6).reshape(2, 3).astype(arrays.BF16 if dtype == "bfloat16" else dtype)
            for shaped in (array, array[:0], array[1, 2]):
                shaped = np.asarray(shaped)
                tensor = arrays.to_torch(shaped)
                self.assertTrue(arrays.same_bits(shaped, arrays.from_torch(tensor)), dtype)
                self.assertEqual(tensor.stride(), tensor.new_empty(tensor.shape).stride())


class Lowering(unittest.TestCase):
    """`etc lower` replaced by a shell script: $4 is the output file."""

    def stage(self, script):
        with tempfile.TemporaryDirectory() as folder:
            fake, out = os.path.join(folder, "etc"), os.path.join(folder, "out.pte")
            with open(fake, "w") as f:
                f.write("#!/bin/sh\n" + script)
            os.chmod(fake, os.stat(fake).st_mode | stat.S_IXUSR)
            return etc_command.lower(fake, "model.onnx", out, timeout=2.0)[0]

    def test_stages(self):
        diagnostic = """echo '{"severity": "error", "code": "E1", "message": "no"}' >&2; """
        self.assertEqual(self.stage('echo x >"$4"'), "ok")
        self.assertEqual(self.stage(diagnostic + "exit 1"), "lower")
        self.assertEqual(self.stage("exit 1"), "crash", "a refusal without a word")
        self.assertEqual(self.stage("true"), "crash", "no file in spite of exit 0")
        self.assertEqual(self.stage(diagnostic + 'echo x >"$4"; exit 1'), "crash", "a file in spite of exit 1")
        self.assertEqual(self.stage(diagnostic + "exit 70"), "crash")
        self.assertEqual(self.stage("kill -SEGV $$"), "crash")
        self.assertEqual(self.stage("exec sleep 10"), "timeout")


class Reports(unittest.TestCase):
    def finish(self, stages, floor, known=None):
        rows = [{"case": f"c{i}", "op": "Op", "kind": "node", "stage": s, "code": "", "seconds": "0", "message": "m"}
                for i, s in enumerate(stages)]
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            code = report.finish(rows, floor, report.collections.Counter({"dtype": 2}), "table", 1.0, False,
                                 known)
        return code, text.getvalue().splitlines()[-1]

    def test_counts(self):
        self.assertEqual(self.finish(["ok", "ok"], {"c0"}), (0, "conformance: 2 passed, 0 failed, 2 skipped"))
        self.assertEqual(self.finish(["ok", "lower"], {"c0"}), (0, "conformance: 1 passed, 0 failed, 3 skipped"))
        self.assertEqual(self.finish(["ok", "lower"], {"c1"}), (1, "conformance: 1 passed, 1 failed, 2 skipped"))
        for stage in ("load", "run", "mismatch", "crash", "timeout"):
            self.assertEqual(self.finish(["ok", stage], set())[0], 1, stage)
        known = {"c1": ("mismatch", "why")}
        self.assertEqual(self.finish(["ok", "mismatch"], set(), known), (0, "conformance: 1 passed, 0 failed, 3 skipped"))
        self.assertEqual(self.finish(["ok", "crash"], set(), known)[0], 1)


class Delegation(unittest.TestCase):
    def stage(self, figures, floor="m 1 2 3\n", name="m", dynamic=False):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "floor.txt")
            with open(path, "w") as f:
                f.write("# comment\n" + floor)
            row = {"model": name, "stage": "ok", **dict(zip(models.DELEGATION, figures))}
            models.check_delegation(types.SimpleNamespace(delegates=path, update_floor=False, dynamic=dynamic), [row])
            return row["stage"]

    def test_floor(self):
        self.assertEqual(self.stage((1, 2, 3)), "ok")
        self.assertEqual(self.stage((0, 0, 0)), "ok")
        self.assertEqual(self.stage((0, 9, 9)), "ok", "taken from kernels")
        for more in (2, 2, 3), (1, 3, 3), (1, 2, 4), (2, 0, 0):
            self.assertEqual(self.stage(more), "delegate")
        self.assertEqual(self.stage((9, 9, 9), floor=""), "ok", "a model that the floor does not know")

    def test_families(self):
        """Whatever the floor says."""
        for name in "vit_dynamo", "llama_kv/case1", "yolo3":
            floor = f"{name} 1 9 9\n"
            self.assertEqual(self.stage((0, models.MOST_DELEGATES, 9), floor, name), "ok")
            self.assertEqual(self.stage((1, 1, 1), floor, name), "delegate")
            self.assertEqual(self.stage((0, models.MOST_DELEGATES + 1, 9), floor, name), "delegate")
            self.assertEqual(self.stage((1, 9, 9), floor, name, dynamic=True), "ok")


class Isolation(unittest.TestCase):
    def test_runtime_survives_bad_programs(self):
        server = runtime.Runtime()
        with tempfile.TemporaryDirectory() as folder:
            bundle, bad = os.path.join(folder, "data.pkl"), os.path.join(folder, "bad.pte")
            arrays.save_bundle(bundle, [], [])
            with open(bad, "wb") as f:
                f.write(b"\x1c\0\0\0ET12" + bytes(200))
            request = {"bundle": bundle, "rtol": 0, "atol": 0}
            self.assertEqual(server.run({**request, "pte": bad})["stage"], "load")
            self.assertEqual(server.run({**request, "pte": os.path.join(folder, "none.pte")})["stage"], "load")
            pid = server.server.pid
            # A pipe that nobody writes to: the child hangs, its server does not.
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            self.assertEqual(server.run({**request, "bundle": fifo, "pte": bad}, timeout=1.0)["stage"], "timeout")
            with open(bundle, "wb") as f:
                pickle.dump(Bomb(), f)
            answer = server.run({**request, "pte": bad})
            self.assertEqual((answer["stage"], answer["message"].split()[0]), ("crash", "SIGABRT"))
            self.assertEqual(server.server.pid, pid)
        server.close()


class Workers(unittest.TestCase):
    """Which child runs a program: children are played by answers, those of a new child and of one that has run others."""

    def play(self, requests, first="ok", later="ok"):
        born = []

        class Child:
            def __init__(self):
                born.append(self)
                self.count = 0

            def run(self, request):
                self.count += 1
                return {"stage": first if self.count == 1 else later, "message": "words"}

            def end(self):
                pass

        real, runtime.Worker = runtime.Worker, Child
        try:
            workers = runtime.Workers()
            return [workers.run(r) for r in requests], len(born)
        finally:
            runtime.Worker = real

    def test_one_child_while_all_is_well(self):
        answers, born = self.play([{}] * 5)
        self.assertEqual(([a["stage"] for a in answers], born), (["ok"] * 5, 1))
        self.assertEqual(self.play([{}] * (runtime.LIFE + 1))[1], 2)

    def test_threads_want_a_child_of_their_own(self):
        self.assertEqual(self.play([{}, {"threads": 1}, {}])[1], 2)

    def test_what_fails_in_a_new_child_fails(self):
        answers, born = self.play([{}] * 2, first="run", later="ok")
        self.assertEqual(([a["message"] for a in answers], born), (["words"] * 2, 2))

    def test_what_fails_only_behind_others_fails(self):
        answers, _ = self.play([{}] * 2, later="mismatch")
        self.assertEqual([a["stage"] for a in answers], ["ok", "mismatch"])
        self.assertIn("after 1 other programs: words", answers[1]["message"])

    def test_the_answer_of_a_new_child_counts(self):
        workers = runtime.Workers()
        workers.worker = types.SimpleNamespace(count=7, run=lambda request: {"stage": "crash", "message": "old"}, end=lambda: None)
        with unittest.mock.patch.object(workers, "alone", lambda request: {"stage": "run", "message": "new"}):
            self.assertEqual(workers.run({})["message"], "new")
        self.assertIsNone(workers.worker)


class Bomb:
    """Unpickling it ends the process."""

    def __reduce__(self):
        return os.abort, ()


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=1)
    sys.stderr.flush()
    bad = len(program.result.failures) + len(program.result.errors)
    skipped = len(program.result.skipped)
    print(f"harness: {program.result.testsRun - bad - skipped} passed, {bad} failed, {skipped} skipped", flush=True)
    sys.exit(1 if bad or program.result.testsRun == 0 else 0)
