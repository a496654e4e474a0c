#!/usr/bin/env python3
"""Runs the official ONNX backend cases through `etc lower` and the real ExecuTorch runtime.

    tests/conformance/run.py                                all runnable cases, table in build/conformance/table.tsv
    tests/conformance/run.py -k 'test_resize*' -v           some of them, with full messages
    tests/conformance/run.py -k Conv,Gemm --keep /tmp/x     by op; keep model, .pte and arrays
    tests/conformance/run.py --list dtype                   what is not runnable, and why

Every case ends in one stage:
    ok        right numbers, twice, inputs untouched
    lower     etc refused it with a diagnostic and exit 1
    load, run the runtime refused the program
    mismatch  wrong numbers, shape or dtype
    crash     etc or the runtime died, or etc broke a promise of its command line
    timeout

floor.txt lists the cases that must pass. A case below it that etc refuses with a diagnostic is counted as skipped:
an honest "not supported yet". Everything else that is not ok is a failure, on the floor or not.
"""

import argparse
import collections
import fnmatch
import os
import queue
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import arrays  # noqa: E402
import etc_command  # noqa: E402
import onnx_cases  # noqa: E402
import report  # noqa: E402
import runtime  # noqa: E402
import witness  # noqa: E402

FLOOR = os.path.join(HERE, "floor.txt")


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog=__doc__.split("\n", 2)[2],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command under test")
    p.add_argument("-k", metavar="PATTERN,...", action="append", default=[],
                   help="only cases whose name or op fits one of these (shell patterns; repeat)")
    p.add_argument("-v", "--verbose", action="store_true", help="one line per case, messages in full")
    p.add_argument("-j", "--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="cases at a time")
    p.add_argument("--values", type=int, default=1, choices=(1, 2),
                   help="1: the stored values; 2: fresh ones of the same shapes, expected values from a reference")
    p.add_argument("--interp", action="store_true", help="also run the .pte with `etc run`")
    p.add_argument("--extra", action="append", default=[], metavar="FLAG", help="one more flag for `etc lower` (repeat)")
    p.add_argument("--work", default=os.path.join(ROOT, "build", "conformance"), help="tables and temporary files")
    p.add_argument("--cache", default=os.path.join(ROOT, "build", "conformance"), help="the written-out cases")
    p.add_argument("--keep", metavar="DIR", help="keep model, .pte and arrays of every case that ran")
    p.add_argument("--floor", default=FLOOR, help="file with the names of the cases that must pass")
    p.add_argument("--update-floor", action="store_true", help="write the passing cases to the floor file")
    p.add_argument("--timeout", type=float, default=60.0, help="seconds for one step of one case")
    p.add_argument("--list", metavar="CLASS", nargs="?", const="*", help="print the cases of a class and stop")
    return p.parse_args()


def wanted(case, patterns):
    if not patterns:
        return True
    for pattern in patterns:
        low = pattern.lower()
        if fnmatch.fnmatchcase(case["name"], pattern) or fnmatch.fnmatchcase(case["op"].lower(), low):
            return True
    return False


class Runner:
    """Takes cases from a queue in `jobs` threads; each thread has a runtime server of its own."""

    def __init__(self, args, data):
        self.args = args
        self.data = data  # case name -> {"bundle": path of inputs and expected outputs, "atol": ...}
        self.rows = {}
        self.lock = threading.Lock()
        self.work = tempfile.mkdtemp(prefix="run-", dir=args.work)
        self.queue = queue.Queue()
        self.failure = None

    def run(self, cases):
        # The big ones first, so that the end is not one thread with a long case.
        for case in sorted(cases, key=lambda c: (c["kind"] != "light", c["name"])):
            self.queue.put(case)
        threads = [threading.Thread(target=self.work_off) for _ in range(min(self.args.jobs, len(cases)))]
        try:
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        except KeyboardInterrupt:
            self.failure = self.failure or KeyboardInterrupt()
            raise
        finally:
            shutil.rmtree(self.work, ignore_errors=True)
        if self.failure:
            raise self.failure
        return [self.rows[c["name"]] for c in cases]

    def work_off(self):
        server = runtime.Runtime()
        try:
            while self.failure is None:
                try:
                    case = self.queue.get_nowait()
                except queue.Empty:
                    break
                row = self.one(case, server)
                with self.lock:
                    self.rows[case["name"]] = row
                    if self.args.verbose:
                        print(report.case_line(row), flush=True)
        except BaseException as e:
            self.failure = e
        finally:
            server.close()

    def one(self, case, server):
        begin = time.perf_counter()
        folder = os.path.join(self.args.keep or self.work, case["name"])
        os.makedirs(folder, exist_ok=True)
        stage, code, message = self.steps(case, server, folder)
        if self.args.keep:
            self.keep(case, folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return {"case": case["name"], "op": case["op"], "kind": case["kind"], "stage": stage, "code": code,
                "seconds": f"{time.perf_counter() - begin:.2f}", "message": " ".join(message.split())}

    def steps(self, case, server, folder):
        pte = os.path.join(folder, "model.pte")
        if os.path.exists(pte):
            os.unlink(pte)
        stage, code, message, _ = etc_command.lower(
            self.args.etc, os.path.join(case["dir"], "model.onnx"), pte, case["dims"], self.args.extra,
            self.args.timeout)
        if stage != "ok":
            return stage, code, message
        request = {"pte": pte, "rtol": case["rtol"], **self.data[case["name"]]}
        if self.args.keep:
            request["save"] = os.path.abspath(folder)
        # The light cases are whole networks: minutes of convolutions on portable kernels.
        answer = server.run(request, self.args.timeout * (10 if case["kind"] == "light" else 1))
        if answer["stage"] == "ok" and self.args.interp:
            message = self.interpret(case, pte, folder)
            return ("ok", "", "") if message is None else ("mismatch", "", f"etc run: {message}")
        return answer["stage"], "", answer["message"]

    def interpret(self, case, pte, folder):
        """The .pte on etc's own interpreter; None if it gives the expected outputs."""
        inputs, expected = arrays.load_bundle(self.data[case["name"]]["bundle"])
        return witness.disagreement(
            self.args.etc, pte, list(zip(case["inputs"], inputs)), list(zip(case["outputs"], expected)), folder,
            case["rtol"], self.data[case["name"]]["atol"], self.args.timeout)

    def keep(self, case, folder):
        shutil.copy(os.path.join(case["dir"], "model.onnx"), folder)
        inputs, outputs = arrays.load_bundle(self.data[case["name"]]["bundle"])
        for stem, group in (("input", inputs), ("output", outputs)):
            for i, array in enumerate(group):
                arrays.save_npy(os.path.join(folder, f"{stem}_{i}.npy"), array)


def read_floor(path):
    if not os.path.exists(path):
        return set()
    with open(path) as f:
        return {line.strip() for line in f if line.strip() and not line.startswith("#")}


def read_known(path):
    """known.txt: case, stage, reason, separated by tabs."""
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    return {case: (stage, why) for case, stage, why in rows}


def write_floor(path, names):
    with open(path, "w") as f:
        f.write("# Cases that must pass; written by tests/conformance/run.py --update-floor.\n")
        f.writelines(f"{name}\n" for name in sorted(names))


def update_floor(args, rows):
    ran = {r["case"] for r in rows}
    passed = {r["case"] for r in rows if r["stage"] == "ok"}
    old = read_floor(args.floor)
    new = (old - ran) | passed
    write_floor(args.floor, new)
    print(f"floor: {len(new)} cases (+{len(new - old)} -{len(old - new)}) in {args.floor}")
    for name in sorted(old - new):
        print(f"  no longer on the floor: {name}")


def main():
    args = parse_arguments()
    patterns = [p for group in args.k for p in group.split(",")]
    os.makedirs(args.work, exist_ok=True)
    everything = onnx_cases.load(args.cache)
    if args.list is not None:
        for case in everything:
            if fnmatch.fnmatchcase(case["class"], args.list) and wanted(case, patterns):
                print(f"{case['name']}\t{case['op']}\t{case['class']}\t{case['reason']}")
        return 0
    if not os.path.isfile(args.etc):
        print(f"run.py: no executable at {args.etc}; build it or give --etc", file=sys.stderr)
        return 2
    args.etc = os.path.abspath(args.etc)
    selected = [c for c in everything if wanted(c, patterns)]
    cases = [c for c in selected if c["class"] == "runnable"]
    skipped = collections.Counter(f"{c['class']}: {c['reason']}" for c in selected if c["class"] != "runnable")
    data = {c["name"]: {"bundle": os.path.join(c["dir"], "data.pkl"), "atol": c["atol"]} for c in cases}
    if args.values == 2:
        import values

        data, unknown = values.prepare(cases, args.cache, args.jobs)
        cases = [c for c in cases if c["name"] in data]
        skipped.update(f"second values: {reason}" for reason in unknown.values())
    if not cases:
        print("run.py: no runnable case selected", file=sys.stderr)
        report.skips(skipped)
        return 2
    begin = time.perf_counter()
    rows = Runner(args, data).run(cases)
    seconds = time.perf_counter() - begin
    table = os.path.join(args.work, ("table-values2" if args.values == 2 else "table") +
                         ("-selected" if patterns else "") + ".tsv")
    report.write_table(table, rows)
    if args.update_floor:
        update_floor(args, rows)
    floor = read_floor(args.floor) & data.keys()
    known = read_known(os.path.join(HERE, "known.txt"))
    return report.finish(rows, floor, skipped, table, seconds, args.verbose, known)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
