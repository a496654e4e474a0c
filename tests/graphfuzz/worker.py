"""Checks cases in a process of its own: lowers, runs on the real runtime and with `etc run`, compares.

Loading the runtime takes seconds, so a worker lives long and runs the programs itself. If one takes it down, `Worker` says
at which stage and starts a new one.
"""

import multiprocessing
import os
import sys
import tempfile
import time
import warnings

TIMEOUT = 60.0
WITNESS_SHARE = 4  # every so many graphs are also run by `etc run`


class Failed(Exception):
    def __init__(self, stage, message, code=""):
        super().__init__(message)
        self.stage, self.message, self.code = stage, message, code


class Worker:
    """Client side: `ask` answers {stage, message, ...}; the stage is ok, invalid, refused, crash, timeout, load, run, mismatch
    or witness."""

    def __init__(self, etc, only=None, extra=()):
        self.etc, self.only, self.extra, self.process = etc, only, tuple(extra), None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, self.etc, self.only, self.extra), daemon=True)
        self.process.start()
        other.close()

    def send(self, request):
        if self.process is None:
            self.start()
        self.at, self.deadline = "start", time.monotonic() + 2 * TIMEOUT
        self.connection.send(request)

    def receive(self):
        """The answer, or None as long as there is none."""
        try:
            while self.connection.poll(0):
                answer = self.connection.recv()
                if isinstance(answer, dict):
                    return answer
                self.at = answer
            if time.monotonic() > self.deadline:
                return self.end("timeout", f"no answer in {self.at}")
        except (EOFError, ConnectionResetError):
            self.process.join()
            return self.end("crash", f"the worker died in {self.at} with status {self.process.exitcode}")
        return None

    def end(self, stage, message):
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.process = None
        return {"stage": stage, "message": message, "code": ""}

    def ask(self, request):
        self.send(request)
        while True:
            self.connection.poll(0.2)
            answer = self.receive()
            if answer is not None:
                return answer

    def close(self):
        if self.process is not None:
            self.end("", "")


def serve(connection, etc, only, extra):
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [here, os.path.join(os.path.dirname(here), "lib")]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="etc-graphs-") as work:
        log = open(os.path.join(work, "log"), "w+b")
        os.dup2(log.fileno(), 2)
        while True:
            try:
                request = connection.recv()
            except EOFError:
                return
            connection.send(answer(request, etc, only, extra, work, log, connection.send))


def answer(request, etc, only, extra, work, log, tell):
    import generate

    begin = time.monotonic()
    seed, case = request.get("seed", 0), request.get("case")
    log.truncate(0)
    found = {"stage": "ok", "message": "", "code": ""}
    try:
        if case is None:
            tell("generate")
            case = generate.generate(seed, only)
        found.update(ops=generate.op_types(case), dtypes=generate.dtypes(case), nodes=len(case.nodes()), symbols=bool(case.symbols),
                     digest=case.digest(), opset=case.opset)
        if not request.get("generate"):
            check(case, etc, extra, work, tell, request.get("witness", seed % WITNESS_SHARE == 0))
    except Failed as e:
        found.update(stage=e.stage, message=e.message + log_tail(log, e.stage), code=e.code)
    if found["stage"] != "ok" or request.get("generate"):
        found["case"] = case
    found["seconds"] = time.monotonic() - begin
    return found


def log_tail(log, stage):
    """What the runtime said."""
    if stage not in ("load", "run"):
        return ""
    log.flush()
    log.seek(0)
    lines = [x for x in log.read().decode(errors="replace").splitlines() if x.strip()]
    telling = [x for x in lines if "arg " not in x or "type id" not in x] or lines
    return " | " + " | ".join(x[x.find("] ") + 2:] if x.startswith("[") else x for x in telling[-3:])


def check(case, etc, extra, work, tell, witness):
    import onnx

    import arrays
    import etc_command
    import graph

    tell("reference")
    sets = []
    for feeds in [case.inputs, *case.feeds]:
        try:
            values, errors = graph.evaluate_all(case, feeds)
        except graph.Reject as e:
            raise Failed("invalid", str(e)) from e
        sets.append((feeds, [(values[x], errors.get(x, 0.0)) for x in case.outputs]))
    model = case.model()
    try:
        onnx.checker.check_model(model)
    except Exception as e:
        raise Failed("invalid", f"checker: {e}") from e
    source, target = os.path.join(work, "model.onnx"), os.path.join(work, "model.pte")
    onnx.save(model, source)
    if os.path.exists(target):
        os.remove(target)
    tell("lower")
    dims = {s: f"{lo}..{hi}" for s, (lo, hi) in case.symbols.items()}
    stage, code, message, _ = etc_command.lower(etc, source, target, dims, extra, timeout=TIMEOUT)
    if stage != "ok":
        raise Failed("refused" if stage == "lower" else stage, message, code)
    tell("load")
    run_program(target, sets, tell)
    if witness:
        tell("witness")
        feeds, wanted = sets[0]
        for file in (source,) if extra else (source, target):  # what a backend made is run by the runtime only
            run_witness(etc, file, case, feeds, wanted, work, arrays)


def compare(got, wanted, where, stage, arrays):
    import graph

    if len(got) != len(wanted):
        raise Failed(stage, f"{where}{len(got)} outputs, expected {len(wanted)}")
    for i, (x, (y, error)) in enumerate(zip(got, wanted)):
        text = arrays.difference(x, y, *graph.tolerance(y, error))
        if text:
            raise Failed(stage, f"{where}output {i}: {text}")


def run_program(path, sets, tell):
    import runtime

    runtime.without_exporter()
    import torch
    from executorch.runtime import Runtime

    import arrays

    torch.set_num_threads(1)
    stage = "load"
    try:
        method = Runtime.get().load_program(path).load_method("forward")
        stage = "run"
        tell(stage)
        # The first values once more at the end: nothing may be left over from the others.
        for number, (feeds, wanted) in enumerate([*sets, sets[0]]):
            tensors = [arrays.to_torch(x) for x in feeds.values()]
            before = [x.clone() for x in tensors]
            got = [arrays.own(arrays.from_torch(x)) for x in method.execute(tensors)]
            where = f"run {number + 1}: " if number else ""
            compare(got, wanted, where, "mismatch", arrays)
            for i, (a, b) in enumerate(zip(before, tensors)):
                if not arrays.same_bits(arrays.from_torch(a), arrays.from_torch(b)):
                    raise Failed("mismatch", f"{where}input {i} was written to")
    except Failed:
        raise
    except Exception as e:
        raise Failed(stage, f"{type(e).__name__}: {e}") from e


def run_witness(etc, file, case, feeds, wanted, work, arrays):
    import numpy as np

    import etc_command

    paths, out = {}, tempfile.mkdtemp(dir=work)
    for i, (k, v) in enumerate(feeds.items()):
        paths[k] = os.path.join(work, f"in{i}.npy")
        arrays.save_npy(paths[k], v)
    result = etc_command.run_model(etc, file, paths, out, timeout=TIMEOUT)
    name = os.path.splitext(file)[1]
    if result.code != 0:
        code, text = result.summary()
        raise Failed("witness", f"etc run {name}: exit {result.code}: {text}", code)
    got = [arrays.load_npy(os.path.join(out, x + ".npy"), np.asarray(y).dtype) for x, (y, _) in zip(case.outputs, wanted)]
    compare(got, wanted, f"etc run {name}: ", "witness", arrays)
