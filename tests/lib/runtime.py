"""Runs .pte files on the real ExecuTorch runtime without letting it take the test run down.

A bad program can make the runtime abort, jump through a null pointer or loop for ever. Importing torch and
executorch takes seconds, so a fresh process per program is too slow. Each `Runtime` therefore owns one server
process that imports everything once and forks a child, so that a crash is an ordinary answer. A fork costs up to
0.1 s, which was half of the time of the tests, so the child runs many programs, as long as all is well: what did not
go well runs once more in a new child, whose answer counts. A program that is wrong only after others have run is
wrong. The server itself never runs a program, so no thread exists in it when it forks.

The runtime's own log goes to stderr; its last lines usually hold the real reason and are returned with a failure.
"""

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import types

LOG_TAIL = 4000
LIFE = 200  # programs that a child runs: what they leave behind adds up


class Runtime:
    """Client side. `run` returns a dict: stage (ok, load, run, mismatch, crash, timeout) and message, and on
    success seconds (the fastest call), cpu_seconds (the median) and outputs (if asked for). A request with `threads`
    gives the delegates so many."""

    def __init__(self):
        self.server = None

    def run(self, request, timeout=60.0):
        if self.server is None or self.server.poll() is not None:
            self.start()
        request = dict(request, timeout=timeout)
        self.server.stdin.write(json.dumps(request).encode() + b"\n")
        self.server.stdin.flush()
        line = self.server.stdout.readline()
        if not line:
            code = self.server.wait()
            self.server.stdin.close()
            self.server.stdout.close()
            self.server = None
            return {"stage": "crash", "message": f"the runtime server died with status {code}"}
        return json.loads(line)

    def start(self):
        self.server = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        hello = self.server.stdout.readline()
        if not hello:
            self.server.wait()
            probe = subprocess.run([sys.executable, "-c", "import executorch.runtime"], capture_output=True, text=True)
            raise RuntimeError("executorch cannot be imported (tools/setup --runtime installs it):\n" + probe.stderr)

    def close(self):
        if self.server is not None:
            self.server.stdin.close()
            self.server.wait()
            self.server.stdout.close()
            self.server = None


def execute_series(request, tell):
    """Several sets of values through one loaded method, all of them twice: what one run leaves behind must not show
    in the next."""
    from executorch.runtime import Runtime as ExecuTorch

    import arrays

    sets = [arrays.load_bundle(path) for path in request["bundles"]]
    stage = "load"
    try:
        tell(stage)
        program = ExecuTorch.get().load_program(request["pte"])
        method = program.load_method(request.get("method", "forward"))
        stage = "run"
        tell(stage)
        for i in [*range(len(sets)), *reversed(range(len(sets)))]:
            inputs, expected = sets[i]
            got = [own_output(x) for x in method.execute([arrays.to_torch(x) for x in inputs])]
            message = arrays.compare_all(got, expected, request["rtol"], request["atol"])
            if message is not None:
                return {"stage": "mismatch", "message": f"values {i}: {message}"}
    except Exception as e:  # whatever the binding raises is the answer
        return {"stage": stage, "message": f"{type(e).__name__}: {e}"}
    return {"stage": "ok", "message": "", "seconds": 0.0}


def load_kernels(path):
    """The library of quantized kernels, which a plain runtime has not, where the program calls one."""
    with open(path, "rb") as f:
        if b"quantized_decomposed::" not in f.read():
            return
    import executorch.kernels.quantized  # noqa: F401


def execute(request, tell):
    """In a forked child. `tell(stage)` records how far it got, for the case that it dies."""
    import numpy as np
    import torch
    from executorch.runtime import Runtime as ExecuTorch

    import arrays

    torch.set_num_threads(1)
    inputs, expected = arrays.load_bundle(request["bundle"])
    tensors = [arrays.to_torch(x) for x in inputs]
    before = [x.clone() for x in tensors]
    stage = "load"
    try:
        tell(stage)
        limit_threads(request)
        load_kernels(request["pte"])
        program = ExecuTorch.get().load_program(request["pte"])
        method = program.load_method(request.get("method", "forward"))
        stage = "run"
        tell(stage)
        results, times, cpu = [], [], []
        for _ in range(max(2, request.get("repeat", 2))):
            begin, begin_cpu = time.perf_counter(), time.process_time()
            out = method.execute(tensors)
            cpu.append(time.process_time() - begin_cpu)
            times.append(time.perf_counter() - begin)
            if len(results) < 2:
                results.append([own_output(x) for x in out])
            if sum(times) > 20.0:
                break
    except Exception as e:  # whatever the binding raises is the answer
        return {"stage": stage, "message": f"{type(e).__name__}: {e}"}
    tell("compare")
    first, second = results[0], results[-1]
    message = arrays.compare_all(first, expected, request["rtol"], request["atol"])
    if message is None:
        for i, (a, b) in enumerate(zip(before, tensors)):
            # Through bytes, since NaN is not equal to itself.
            if not arrays.same_bits(arrays.from_torch(a), arrays.from_torch(b)):
                message = f"input {i} was written to"
        again = arrays.compare_all(second, expected, request["rtol"], request["atol"])
        if again is not None:
            message = f"right in the first run, wrong in the second: {again}"
    if request.get("save"):
        for i, array in enumerate(first):
            np.save(os.path.join(request["save"], f"got_{i}.npy"), array)
    if message is not None:
        return {"stage": "mismatch", "message": message}
    return {"stage": "ok", "message": "", "seconds": min(times), "cpu_seconds": float(np.median(cpu))}


def limit_threads(request):
    """Before a method is loaded: its delegates keep the pool of that time."""
    if "threads" in request:
        from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool

        _unsafe_reset_threadpool(request["threads"])


def execute_calls(request, tell):
    """Calls of the methods of one loaded program, one after the other: each has the outputs of its own bundle. All of
    them twice, the second time with the program loaded again, whose states begin anew."""
    import torch
    from executorch.runtime import Runtime as ExecuTorch

    import arrays

    torch.set_num_threads(1)
    at = "load"
    try:
        for attempt in ("", "loaded again, "):
            at = "load"
            tell(at)
            program = ExecuTorch.get().load_program(request["pte"])
            methods = {m: program.load_method(m) for m in sorted({c["method"] for c in request["calls"]})}
            at = "run"
            tell(at)
            for k, call in enumerate(request["calls"]):
                inputs, expected = arrays.load_bundle(call["bundle"])
                out = methods[call["method"]].execute([arrays.to_torch(x) for x in inputs])
                got = [own_output(x) for x in out]
                message = arrays.compare_all(got, expected, request["rtol"], request["atol"])
                if message is not None:
                    return {"stage": "mismatch", "message": f"{attempt}call {k}: {message}"}
    except Exception as e:  # whatever the binding raises is the answer
        return {"stage": at, "message": f"{type(e).__name__}: {e}"}
    return {"stage": "ok", "message": ""}


def own_output(value):
    import torch

    import arrays

    if not isinstance(value, torch.Tensor):
        raise TypeError(f"the program returned {type(value).__name__}, not a tensor")
    return arrays.own(arrays.from_torch(value))


def answer_of(request, tell):
    run = execute_calls if "calls" in request else execute_series if "bundles" in request else execute
    try:
        return run(request, tell)
    except BaseException as e:
        return {"stage": "crash", "message": f"harness: {type(e).__name__}: {e}"}


def write_line(fd, value):
    data = json.dumps(value).encode() + b"\n"
    while data:
        data = data[os.write(fd, data):]


def read_answers(read_fd, deadline):
    """The lines that the child wrote up to its answer, and whether the deadline passed before."""
    data = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read_fd], [], [], left)[0]:
            return whole_lines(data), True
        block = os.read(read_fd, 65536)
        data += block
        lines = whole_lines(data)
        if not block or lines and "stage" in lines[-1]:
            return lines, False


def whole_lines(data):
    return [json.loads(x) for x in data.split(b"\n")[:-1]]


class Worker:
    """A forked child that runs programs, one after the other."""

    def __init__(self):
        self.count, self.log = 0, tempfile.TemporaryFile()
        requests, self.requests = os.pipe()
        self.answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.requests)
            os.close(self.answers)
            self.work(requests, answers)
        os.close(requests)
        os.close(answers)

    def work(self, requests, answers):
        os.dup2(self.log.fileno(), 1)
        os.dup2(self.log.fileno(), 2)
        for line in os.fdopen(requests, "rb"):
            write_line(answers, answer_of(json.loads(line), lambda stage: write_line(answers, {"at": stage})))
        os._exit(0)

    def run(self, request):
        self.count += 1
        self.log.seek(0)  # the offset is the child's, too
        self.log.truncate()
        write_line(self.requests, request)
        lines, late = read_answers(self.answers, time.monotonic() + request["timeout"])
        at = next((x["at"] for x in reversed(lines) if "at" in x), "start")
        if lines and "stage" in lines[-1]:
            answer = lines[-1]
        elif late:
            answer = {"stage": "timeout", "message": f"in {at} after {request['timeout']:.0f} s"}
        else:
            answer = {"stage": "crash", "message": f"{self.death()} in {at}"}
        if answer["stage"] not in ("ok", "mismatch"):
            answer["message"] = " | ".join([answer["message"], *self.log_tail()[-4:]])
        return answer

    def death(self):
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"

    def log_tail(self):
        """The runtime's own words, a line each, without its time stamps."""
        size = self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, size - LOG_TAIL))
        lines = [x.strip() for x in self.log.read().decode(errors="replace").splitlines()]
        lines = [x[x.index("] ") + 2:] if x.startswith("[") and "] " in x else x for x in lines]
        return [x for x in lines if x and "op_table" not in x]

    def end(self):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.death()
        os.close(self.requests)
        os.close(self.answers)
        self.log.close()


class Workers:
    """The child for the next request: the last one, if it has answered rightly so far."""

    def __init__(self):
        self.worker = None

    def run(self, request):
        if "threads" in request:  # which changes the process
            return self.alone(request)
        self.worker = self.worker or Worker()
        answer, count = self.worker.run(request), self.worker.count
        if answer["stage"] == "ok" and count < LIFE:
            return answer
        self.worker.end()
        self.worker = None
        if answer["stage"] == "ok" or count == 1:
            return answer
        again = self.alone(request)
        if again["stage"] != "ok":
            return again
        return dict(answer, message=f"right in a new process, but after {count - 1} other programs: {answer['message']}")

    @staticmethod
    def alone(request):
        worker = Worker()
        answer = worker.run(request)
        worker.end()
        return answer


def without_exporter():
    """Before executorch.runtime is imported: keeps its exporter out, which takes three quarters of the time that the
    import takes. The runtime wants one module of it, a decorator of deprecated functions."""
    folders = importlib.util.find_spec("executorch").submodule_search_locations
    package = types.ModuleType("executorch.exir")
    package.__path__ = [os.path.join(f, "exir") for f in folders]
    sys.modules.setdefault("executorch.exir", package)


def serve():
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    without_exporter()
    import torch  # noqa: F401  imported here so that the children inherit it
    from executorch.runtime import Runtime as ExecuTorch

    import arrays  # noqa: F401

    ExecuTorch.get()
    out.write(b"{}\n")
    out.flush()
    workers = Workers()
    for line in sys.stdin.buffer:
        out.write(json.dumps(workers.run(json.loads(line))).encode() + b"\n")
        out.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides; its end closes our stdin
    serve()
