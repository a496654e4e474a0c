"""The runner of the scripts that have a list of cases: each has a `name`, and a function says what is wrong with it.

The arguments that all scripts have, and a loop over the chosen cases with one server of the runtime a thread.
"""

import argparse
import contextlib
import fnmatch
import os
import sys
import tempfile
import threading

import etc_command
import runtime

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Skip(str):
    """What a check returns for a case that cannot be run here, with the reason."""


def parser(text, timeout=60.0):
    """The arguments; `text` is the script's own documentation, whose first line is the summary."""
    p = argparse.ArgumentParser(description=text.split("\n")[0])
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command under test")
    p.add_argument("-k", metavar="PATTERN,...", default="*", help="only these cases (shell patterns)")
    p.add_argument("-v", "--verbose", action="store_true", help="name the passing ones too")
    p.add_argument("-j", "--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="cases at a time")
    p.add_argument("--extra", action="append", default=[], metavar="FLAG", help="one more flag for `etc lower` (repeat)")
    p.add_argument("--keep", metavar="DIR", help="keep what each case writes, in a folder of its name")
    p.add_argument("--timeout", type=float, default=timeout, help="seconds for one step of one case")
    return p


def ort_session(model, level="ORT_ENABLE_ALL"):
    """ONNX Runtime on one thread, without its log; a path or the bytes of a model; level: of its optimization."""
    import onnxruntime

    import onnx_runtime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    return onnx_runtime.Session(model, options)


class Runner:
    """check(case, args, server, work) returns None for a case that passes, a Skip, or what is wrong. `work` is a folder
    of the case alone."""

    def __init__(self, cases, check, args):
        self.left, self.check, self.args, self.lock = iter(cases), check, args, threading.Lock()
        self.count, self.failed = {"ok": 0, "skip": 0, "FAIL": 0}, []

    def next_case(self):
        with self.lock:
            return next((c for c in self.left if any(fnmatch.fnmatchcase(c.name, x) for x in self.args.k.split(","))), None)

    def work_off(self):
        server = runtime.Runtime()
        while (case := self.next_case()) is not None:
            with self.folder(case) as work:
                try:
                    wrong = self.check(case, self.args, server, work)
                except Exception as e:  # the others go on; this one has not passed
                    wrong = f"{type(e).__name__}: {e}"
            self.record(case, "ok" if wrong is None else "skip" if isinstance(wrong, Skip) else "FAIL", wrong or "")
        server.close()

    def folder(self, case):
        if not self.args.keep:
            return tempfile.TemporaryDirectory(prefix="etc-cases-")
        kept = os.path.join(self.args.keep, case.name)
        os.makedirs(kept, exist_ok=True)
        return contextlib.nullcontext(kept)

    def record(self, case, result, why):
        with self.lock:
            self.count[result] += 1
            self.failed.extend([case.name] if result == "FAIL" else [])
            if result != "ok" or self.args.verbose:  # no skip is silent
                print(f"{result:4}", case.name, why, flush=True)

    def run(self):
        threads = [threading.Thread(target=self.work_off) for _ in range(self.args.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def run_all(cases, check, args):
    """Runs what -k chooses; the exit status of the script and the names that failed. Nothing run is a failure."""
    runner = Runner(cases, check, args)
    runner.run()
    count = runner.count
    name = os.path.basename(sys.argv[0]).removesuffix(".py")
    print(f"{name}: {count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    if not sum(count.values()):
        print(f"{name}: error: -k '{args.k}' matches no case", file=sys.stderr)
    return (1 if count["FAIL"] or not count["ok"] else 0), runner.failed


def run(cases, check, args):
    """The same; the status alone."""
    return run_all(cases, check, args)[0]
