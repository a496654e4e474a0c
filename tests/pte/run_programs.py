"""Runs the hand-built programs of programs.c on the real ExecuTorch runtime and compares with numpy.

usage: run_programs.py PTE_PROGRAMS ETC    (with a Python that has executorch; see with_runtime.sh)
Exit: 0 all right, 1 a difference.
"""

import math
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import arrays  # noqa: E402
import runtime  # noqa: E402


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def cases():
    """(program, method, inputs, expected outputs, stage): expected None and the stage of the refusal for a call that must fail."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    y = np.float32([[1, 0, 2], [0, 3, 0]])
    c = np.float32([1, -2, 3, -4, 5, -6]).reshape(2, 3)
    d = np.float32([10, 20, 30])
    yield "add", "forward", [x, y], [x + 2 * y], "ok"
    yield "constants", "forward", [x], [np.maximum(x + c, 0) + gelu_tanh(c) * d], "ok"
    yield "empty_constant", "forward", [x], [x], "ok"
    picks = np.int64([2, 0])
    yield ("shapes", "forward", [x.ravel(), picks],
           [x[:, 2:3], x.max(axis=1, keepdims=True), x.argmax(axis=1).reshape(2, 1), x[:, picks]], "ok")
    for n in (1, 3, 8):
        z = np.linspace(-1, 1, 4 * n, dtype=np.float32).reshape(n, 4)
        yield "dynamic", "forward", [z], [-np.exp(z).reshape(2 * n, 2)], "ok"
    yield "dynamic", "forward", [np.zeros((9, 4), np.float32)], None, "run"
    t = np.float32([5, 6, 7])
    yield "methods", "forward", [t], [t + np.float32([1, 2, 3])], "ok"
    yield "methods", "twice", [t], [(t + np.float32([1, 2, 3])) * 2], "ok"
    yield "factories", "forward", [t], [t * (np.arange(3, dtype=np.float32) + np.float32(0.5))], "ok"
    yield "control", "forward", [t, np.array(True)], [t * 4], "ok"
    yield "control", "forward", [t, np.array(False)], [-t], "ok"


def check(server, folder, name, method, inputs, expected, stage):
    bundle = os.path.join(folder, "case.npz")
    arrays.save_bundle(bundle, inputs, [] if expected is None else expected)
    answer = server.run({"pte": os.path.join(folder, name + ".pte"), "method": method, "bundle": bundle, "rtol": 1e-5, "atol": 1e-6})
    good = answer["stage"] == stage
    shapes = " ".join(str(list(i.shape)) for i in inputs)
    print(f"{'ok  ' if good else 'FAIL'} {name}.{method} {shapes}: {answer['stage']} {answer['message']}")
    return good


def main():
    server, failures = runtime.Runtime(), 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        for case in cases():
            failures += not check(server, folder, *case)
    server.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
