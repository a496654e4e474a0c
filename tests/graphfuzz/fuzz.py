#!/usr/bin/env python3
"""Random graphs on the real runtime against ONNX Runtime.

    tests/graphfuzz/fuzz.py [--etc PATH] [--graphs N] [--seed BASE] [--jobs N]     many graphs, seeds BASE, BASE+1, ...
    tests/graphfuzz/fuzz.py --seed N --replay                                      one graph again, with its text
    tests/graphfuzz/fuzz.py --only Nested --no-floor [...]                         If, Loop and Scan within each other (nested.py)
    tests/graphfuzz/fuzz.py --replay build/graphfuzz/SEED.case                     a shrunk one again

The graphs of a seed are the same on every machine (with the same releases of onnx and onnxruntime), so a run of CI checks
the same graphs each time; another --seed gives fresh ones. A failure is made smaller as long as it stays the same failure;
the smallest graph is printed and kept in build/graphfuzz with its values. Ends with what was covered and with the counts; the exit
status is 1 if a graph failed or if fewer operators were exercised than the floor says.
"""

import argparse
import collections
import multiprocessing.connection
import os
import pickle
import sys
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import etc_command  # noqa: E402
import refusals  # noqa: E402
from worker import Worker  # noqa: E402

BASE_SEED = 1_000_000
FLOOR_OPS, FLOOR_DTYPES = 180, 10  # what 2,000 graphs must exercise at least
MOST_SHRUNK = 12  # of a run; further failures are only named


def run_many(seeds, args, on_answer):
    """Asks for all seeds, each worker one at a time."""
    workers = [Worker(args.etc, args.only, args.extra) for _ in range(args.jobs)]
    waiting, busy = collections.deque(seeds), {}
    for worker in workers:
        feed(worker, waiting, busy)
    while busy:
        multiprocessing.connection.wait([w.connection for w in busy], timeout=1.0)
        for worker in list(busy):
            answer = worker.receive()
            if answer is not None:
                on_answer(busy.pop(worker), answer)
                feed(worker, waiting, busy)
    for worker in workers:
        worker.close()


def feed(worker, waiting, busy):
    if waiting:
        busy[worker] = waiting.popleft()
        worker.send({"seed": busy[worker]})


class Tally:
    def __init__(self, args):
        self.args, self.begin = args, time.monotonic()
        self.passed, self.failures, self.refused = 0, [], collections.Counter()
        self.ops, self.dtypes, self.opsets = collections.Counter(), collections.Counter(), collections.Counter()
        self.nodes = self.symbolic = 0

    def __call__(self, seed, answer):
        self.ops.update(answer.get("ops", ()))
        self.dtypes.update(answer.get("dtypes", ()))
        self.opsets.update([answer["opset"]] if "opset" in answer else [])
        self.nodes += answer.get("nodes", 0)
        self.symbolic += answer.get("symbols", False)
        why = refusals.reason(answer["code"], answer["message"]) if answer["stage"] == "refused" else None
        if answer["stage"] == "ok":
            self.passed += 1
        elif why:
            self.refused[why] += 1
        else:
            self.failures.append((seed, answer))
            print(f"FAIL seed {seed}: {answer['stage']} {answer['code']} {answer['message'][:300]}", flush=True)

    def covered(self):
        """Whether the operators and element types that must be exercised were."""
        count = len(self.passed_ops())
        print(f"graphfuzz: {count} operators, {len(self.dtypes)} kinds of elements, opsets {min(self.opsets)}-{max(self.opsets)}, {self.nodes} nodes, "
              f"{self.symbolic} graphs with symbolic sizes")
        if self.args.floor and (count < FLOOR_OPS or len(self.dtypes) < FLOOR_DTYPES):
            print(f"graphfuzz: at least {FLOOR_OPS} operators and {FLOOR_DTYPES} kinds of elements must be exercised")
            return False
        return True

    def passed_ops(self):
        return self.ops

    def close(self):
        for why, count in self.refused.most_common():
            print(f"graphfuzz: {count} refused: {why}")
        total = self.passed + len(self.failures) + sum(self.refused.values())
        print(f"graphfuzz: {total} graphs in {time.monotonic() - self.begin:.0f} s: {self.passed} passed, {len(self.failures)} failed, "
              f"{sum(self.refused.values())} refused")


def report(seed, answer, args):
    """Shrinks a failure, prints it and keeps it."""
    import onnx

    import shrink

    worker = Worker(args.etc, args.only, args.extra)
    case = answer.get("case") or worker.ask({"seed": seed, "generate": True}).get("case")
    again = worker.ask({"case": case, "witness": answer["stage"] == "witness"}) if case else answer
    if case is None or again["stage"] == "ok":
        print(f"-- seed {seed}: {answer['message']}\n   alone it passes: the fault is left over from another graph, or it is chance")
        worker.close()
        return
    if not args.no_shrink and again["stage"] != "invalid":
        case, again = shrink.shrink(case, again, worker, lambda text: print(f"-- seed {seed}: {text}"))
    worker.close()
    folder = os.path.join(ROOT, "build", "graphfuzz")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, str(seed))
    keep(case, path)
    print(f"   {again['stage']} {again['code']} {again['message'][:600]}")
    print("   " + onnx.printer.to_text(case.model()).replace("\n", "\n   "))
    print_values(case)
    print(f"   {path}.onnx; again: tests/graphfuzz/fuzz.py --replay {os.path.relpath(path, ROOT)}.case", flush=True)


def keep(case, path):
    import numpy as np
    import onnx

    onnx.save(case.model(), path + ".onnx")
    np.savez(path + ".npz", **case.inputs)
    with open(path + ".case", "wb") as f:
        pickle.dump(case, f)


def print_values(case):
    for k, v in [*case.inputs.items(), *case.constants.items()]:
        if v.size <= 24:
            print(f"   {k} = {v.tolist()}")


def replay(args):
    import onnx

    worker = Worker(args.etc, args.only, args.extra)
    if args.replay is True:
        answer = worker.ask({"seed": args.seed, "generate": True})
    else:
        with open(args.replay, "rb") as f:
            answer = {"case": pickle.load(f)}
    if answer.get("case") is None:
        print(answer["message"])
        return 1
    print(onnx.printer.to_text(answer["case"].model()))
    again = worker.ask({"case": answer["case"], "witness": True})
    worker.close()
    print(f"{again['stage']} {again['code']} {again['message']}")
    if again["stage"] not in ("ok", "invalid") and args.replay is True and not args.no_shrink:
        report(args.seed, {**again, "case": answer["case"]}, args)
    return 0 if again["stage"] == "ok" else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", default=etc_command.default_command(ROOT))
    p.add_argument("--graphs", type=int, default=2000)
    p.add_argument("--seed", type=int, default=BASE_SEED)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--replay", nargs="?", const=True, metavar="CASE")
    p.add_argument("--only", type=lambda x: set(x.split(",")), help="operators that the nodes are taken from, as patterns of the shell")
    p.add_argument("--extra", action="append", default=[], help="one more argument of etc lower")
    p.add_argument("--no-shrink", action="store_true")
    p.add_argument("--no-floor", dest="floor", action="store_false", help="any number of operators will do")
    args = p.parse_args()
    warnings.simplefilter("ignore")
    if args.replay is not None:
        return replay(args)
    tally = Tally(args)
    run_many(range(args.seed, args.seed + args.graphs), args, tally)
    for seed, answer in tally.failures[:MOST_SHRUNK]:
        report(seed, answer, args)
    whole = tally.covered()
    tally.close()
    return 0 if whole and not tally.failures else 1


if __name__ == "__main__":
    sys.exit(main())
