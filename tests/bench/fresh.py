"""What loading a program and its first run cost in a fresh process: processor time of loading, and anonymous memory
(RssAnon of /proc/self/status: heap and stacks, without the pages of mapped files) that is there after the run.

One server process imports both runtimes once and runs nothing itself: each measurement is a child of it. A process that
has run other programs would have memory to give again, and the workspace that all delegates of XNNPACK share.
"""
import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("lib", "conformance", "bench")]

ANSWER = struct.Struct("dq")  # milliseconds, bytes


class Fresh:
    """Client side. The server ends with it."""

    def __init__(self):
        self.server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.file = tempfile.NamedTemporaryFile()

    def added(self, path, inputs, times=3):
        """(milliseconds of loading, bytes that loading and the first run add) of a .pte, or of an .onnx by ONNX Runtime, on one
        thread: the least of some processes. inputs: arrays in order."""
        import arrays
        arrays.save_bundle(self.file.name, inputs, [])
        self.server.stdin.write(json.dumps({"path": str(path), "inputs": self.file.name, "times": times}) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline() or "null")
        if not answer:
            raise RuntimeError(f"{path} does not load and run")
        return tuple(answer)


def anonymous():
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def onnx_runtime(inputs):
    """(what loads a model, what runs it)"""
    from latency import session_of

    def run(session):
        session.run(None, dict(zip((x.name for x in session.get_inputs()), inputs)))
    return session_of, run


def executorch(inputs):
    import arrays
    import torch
    from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
    from latency import Program
    torch.set_num_threads(1)
    _unsafe_reset_threadpool(1)
    tensors = [arrays.to_torch(x) for x in inputs]
    return Program, lambda program: program.method.execute(tensors)


def measured(request):
    """In a child."""
    import arrays
    inputs, _ = arrays.load_bundle(request["inputs"])
    load, run = (onnx_runtime if request["path"].endswith(".onnx") else executorch)(inputs)
    ctypes.CDLL(None).malloc_trim(0)
    before, begin = anonymous(), time.process_time()
    program = load(request["path"])
    spent = time.process_time() - begin
    run(program)
    return ANSWER.pack(1e3 * spent, anonymous() - before)


def in_child(request):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(theirs, measured(request))
        finally:
            os._exit(0)
    os.close(theirs)
    answer = os.read(ours, ANSWER.size)
    os.close(ours)
    os.waitpid(child, 0)
    return ANSWER.unpack(answer) if len(answer) == ANSWER.size else None


def serve():
    out = os.fdopen(os.dup(1), "w")  # what runtimes print goes elsewhere
    os.dup2(2, 1)
    import runtime
    runtime.without_exporter()
    import executorch.runtime  # noqa: F401
    import onnxruntime  # noqa: F401
    import torch  # noqa: F401
    for line in sys.stdin:
        request = json.loads(line)
        answers = [in_child(request) for _ in range(request["times"])]
        print(json.dumps(None if None in answers else [min(column) for column in zip(*answers)]), file=out, flush=True)


if __name__ == "__main__":
    serve()
