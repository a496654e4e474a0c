#!/usr/bin/env python3
"""Speed and memory of `etc lower`, as ratios to something else that ran in the same minute on the same disk.

  bench.py [--etc build/release/etc] [--zoo build/zoo] [--models FOLDER] [--part NAME ...] [--check]

Parts: copy    etc lower of mobilenet_v2 (14 MB) against cp of the model
       python  the same against the official Python packages (skipped when they are not installed)
       large   a generated model with external data against cp; anonymous memory against the small model's
       streamed  the same model with --quantize, its weights quantized while the program is written: portable and XNNPACK,
               against cp of the weights; anonymous memory
       nodes   graphs of 1k, 10k and 100k nodes: how the time per node grows
       arena   memory plan of every model, portable and XNNPACK: --plan greedy, --plan best, and how far the latter may be
               above the smallest arena that the order of its kernels allows
Paired commands run in turn and the fastest run of each is judged (the median is printed beside it): what makes a run
slower than the fastest is the machine, not the program. Prints Markdown tables and writes JSON to build/bench.
With --check the exit code is 1 when a target is missed or a part could not run. See measure.py on memory.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import generate
import measure

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARTS = ("copy", "python", "large", "streamed", "nodes", "arena")
MIB = 1 << 20

class Missing(Exception):
    """Something a part needs is not here; the message says what and how to get it."""


class Report:
    """Collects rows and verdicts; a target is (name, value, limit, unit)."""

    def __init__(self):
        self.data, self.missed, self.skipped = {}, [], []

    def table(self, title, head, rows):
        print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
        for row in rows:
            print(f"| {' | '.join(str(cell) for cell in row)} |")
        print(flush=True)

    def target(self, part, name, value, limit, unit=""):
        met = value <= limit
        self.data.setdefault(part, {}).setdefault("targets", []).append(
            {"name": name, "value": value, "limit": limit, "unit": unit, "met": met})
        print(f"{'met   ' if met else 'MISSED'} {name}: {value:.3g}{unit}, at most {limit:.3g}{unit}", flush=True)
        if not met:
            self.missed.append(name)

    def record(self, part, **values):
        self.data.setdefault(part, {}).update(values)

    def skip(self, part, why):
        self.skipped.append(part)
        self.record(part, skipped=why)
        print(f"\nskipped {part}: {why}", flush=True)


def dim_flags(folder):
    """--dim NAME=N for each symbolic dimension of a model folder, from the shapes of its case 0."""
    meta = json.loads((folder / "meta.json").read_text())
    sizes = {}
    for declared, concrete in zip(meta["inputs"], meta["concrete_inputs"]):
        for name, size in zip(declared["shape"], concrete["shape"]):
            if isinstance(name, str):
                sizes[name] = size
    return [flag for name, size in sizes.items() for flag in ("--dim", f"{name}={size}")]


def milliseconds(runs):
    return f"{1e3 * measure.fastest(runs):.1f}", f"{1e3 * measure.middle(runs):.1f}"


def timings(runs):
    return {name: [round(r.seconds, 6) for r in group] for name, group in runs.items()}


def small_model(args):
    folder = args.zoo / "mobilenet_v2"
    if not (folder / "model.onnx").exists():
        raise Missing(f"{folder} is not there; tests/zoo/make.py mobilenet_v2 makes it")
    return folder


def bench_copy(args, report):
    folder, out = small_model(args), args.out / "small.out"
    model = folder / "model.onnx"
    commands = {"cp": ["cp", model, out],
                "etc lower": [args.etc, "lower", model, "--dim", "batch=1", "-o", out]}
    runs = measure.interleaved(commands, [out], args.repeat)
    cp, lower = measure.fastest(runs["cp"]), measure.fastest(runs["etc lower"])
    report.table(f"mobilenet_v2, {model.stat().st_size / 1e6:.1f} MB, {args.repeat} paired runs",
                 ["command", "fastest ms", "median ms", "ratio to cp"],
                 [["cp", *milliseconds(runs["cp"]), "1"],
                  ["etc lower", *milliseconds(runs["etc lower"]), f"{lower / cp:.2f}"]])
    report.record("copy", seconds=timings(runs), ratio=lower / cp)
    limit = max(2 * cp, 0.030)
    report.target("copy", "etc lower of mobilenet_v2 against max(2 cp, 30 ms)", lower * 1e3, limit * 1e3, " ms")


def bench_python(args, report):
    for library in ("torch", "executorch"):
        if importlib.util.find_spec(library) is None:
            report.skip("python", f"pip package '{library}' is not installed in this Python")
            return
    folder, out = small_model(args), args.out / "python.out"
    lower = [args.etc, "lower", folder / "model.onnx", *dim_flags(folder), "-o", out]
    official = [sys.executable, ROOT / "tests" / "bench" / "official.py", out]
    inner = float(subprocess.run([str(c) for c in official], check=True, capture_output=True, text=True)
                  .stdout.split()[-1])
    slow, fast = measure.run(official, memory=True), [measure.run(lower, memory=True) for _ in range(args.repeat)]
    out.unlink()
    best = measure.fastest(fast)
    memory = max(r.anonymous for r in fast)
    report.table("mobilenet_v2 against the official Python packages (one run after one to warm up)",
                 ["", "seconds", "ratio", "peak anonymous MiB"],
                 [["etc lower", f"{best:.4f}", "1", f"{memory / MIB:.1f}"],
                  ["torch.export + to_edge + to_executorch", f"{inner:.2f}", f"{inner / best:.0f}", ""],
                  ["the same, as a process with its imports", f"{slow.seconds:.2f}", f"{slow.seconds / best:.0f}",
                   f"{slow.anonymous / MIB:.0f}"]])
    report.record("python", etc=best, calls=inner, process=slow.seconds, ratio=inner / best,
                  process_ratio=slow.seconds / best, etc_anonymous=memory, process_anonymous=slow.anonymous,
                  etc_resident=max(r.resident for r in fast), process_resident=slow.resident,
                  etc_installed=measure.linked_bytes(args.etc),
                  process_installed=measure.installed_bytes(("torch", "executorch")))


def bench_large(args, report):
    folder = args.out / "large"
    try:
        model = generate.weight_model(args.large_gb, folder)
        weights, out = folder / "weights.bin", folder / "out.bin"
        commands = {"cp": ["cp", weights, out], "etc lower": [args.etc, "lower", model, "-o", out]}
        runs = measure.interleaved(commands, [out], args.large_repeat)
        peak = measure.run(commands["etc lower"], memory=True)
        written = out.stat().st_size
    except OSError as error:
        report.skip("large", str(error))
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    small = small_model(args)
    small_out = args.out / "small.out"
    base = [measure.run([args.etc, "lower", small / "model.onnx", *dim_flags(small), "-o", small_out], memory=True)
            for _ in range(5)]
    small_out.unlink()
    base_peak = max(r.anonymous for r in base)
    cp, lower = measure.fastest(runs["cp"]), measure.fastest(runs["etc lower"])
    report.table(f"{args.large_gb:.1f} GB of external weights, {args.large_repeat} paired runs",
                 ["command", "fastest ms", "median ms", "ratio to cp", "peak anonymous MiB", "peak resident MiB"],
                 [["cp weights.bin", *milliseconds(runs["cp"]), "1", "", ""],
                  ["etc lower", *milliseconds(runs["etc lower"]), f"{lower / cp:.2f}", f"{peak.anonymous / MIB:.1f}",
                   f"{peak.resident / MIB:.0f}"],
                  ["etc lower, mobilenet_v2", "", "", "", f"{base_peak / MIB:.1f}",
                   f"{max(r.resident for r in base) / MIB:.0f}"]])
    report.record("large", seconds=timings(runs), ratio=lower / cp, bytes=written, anonymous=peak.anonymous,
                  resident=peak.resident, small_anonymous=base_peak)
    report.target("large", f"etc lower of {args.large_gb:.1f} GB against cp", lower / cp, 1.5, " x")
    report.target("large", "anonymous memory above the small model's", (peak.anonymous - base_peak) / MIB, 64, " MiB")


# name, options of `etc lower`, whether time and memory are judged: scales of blocks of 4 bits are kept in memory.
STREAMED = (("int8-weight-only, portable", ("--quantize", "int8-weight-only"), True),
            ("int8-weight-only, XNNPACK", ("--quantize", "int8-weight-only", "--backend", "xnnpack"), True),
            ("int8-dynamic, XNNPACK", ("--quantize", "int8-dynamic", "--backend", "xnnpack"), True),
            ("int4-weight-only, XNNPACK", ("--quantize", "int4-weight-only", "--backend", "xnnpack"), False))


def bench_streamed(args, report):
    folder, peaks, sizes = args.out / "streamed", {}, {}
    try:
        model = generate.weight_model(args.large_gb, folder)
        out = folder / "out.bin"
        commands = {"cp": ["cp", folder / "weights.bin", out]}
        commands.update({name: [args.etc, "lower", model, *options, "-o", out] for name, options, _ in STREAMED})
        runs = measure.interleaved(commands, [out], args.large_repeat)
        for name, _, _ in STREAMED:
            peaks[name] = measure.run(commands[name], memory=True)
            sizes[name] = out.stat().st_size
    except OSError as error:
        report.skip("streamed", str(error))
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    cp = measure.fastest(runs["cp"])
    ratios = {name: measure.fastest(runs[name]) / cp for name in peaks}
    report.table(f"{args.large_gb:.1f} GB of external weights, quantized, {args.large_repeat} paired runs",
                 ["command", "fastest ms", "median ms", "ratio to cp", "peak anonymous MiB", "peak resident MiB", "MB written"],
                 [["cp weights.bin", *milliseconds(runs["cp"]), "1", "", "", ""]] +
                 [[name, *milliseconds(runs[name]), f"{ratios[name]:.2f}", f"{peaks[name].anonymous / MIB:.1f}",
                   f"{peaks[name].resident / MIB:.0f}", f"{sizes[name] / 1e6:.0f}"] for name in peaks])
    report.record("streamed", seconds=timings(runs), ratio=ratios, bytes=sizes,
                  anonymous={name: run.anonymous for name, run in peaks.items()},
                  resident={name: run.resident for name, run in peaks.items()})
    for name, _, judged in STREAMED:
        if judged:
            report.target("streamed", f"{name} of {args.large_gb:.1f} GB against cp", ratios[name], 3, " x")
            report.target("streamed", f"{name}: anonymous memory", peaks[name].anonymous / MIB, 16, " MiB")


def node_count_model(args, count):
    path = args.out / f"nodes_{count}.onnx"
    if not path.exists():
        import onnx
        part = path.with_suffix(".tmp")
        onnx.save(generate.node_graph(count), str(part))
        part.rename(path)
    return path


def bench_nodes(args, report):
    counts, out = (1000, 10000, 100000), args.out / "nodes.out"
    commands = {n: [args.etc, "lower", node_count_model(args, n), "-o", out] for n in counts}
    runs = measure.interleaved(commands, [out], args.repeat)
    memory = {n: measure.run(commands[n], memory=True).anonymous for n in counts}
    out.unlink()
    per_node = {n: measure.fastest(runs[n]) / n for n in counts}
    report.table(f"generated graphs, {args.repeat} interleaved runs (the start of the process weighs on the smallest)",
                 ["nodes", "fastest ms", "median ms", "us per node", "growth from 1k", "growth from 10k",
                  "peak anonymous MiB"],
                 [[n, *milliseconds(runs[n]), f"{1e6 * per_node[n]:.2f}", f"{per_node[n] / per_node[1000]:.2f}",
                   f"{per_node[n] / per_node[10000]:.2f}", f"{memory[n] / MIB:.1f}"] for n in counts])
    report.record("nodes", seconds=timings(runs), anonymous=memory)
    report.target("nodes", "growth of the time per node from 1k to 100k", per_node[100000] / per_node[1000], 1.5, " x")
    report.target("nodes", "100k nodes", measure.fastest(runs[100000]), 2.0, " s")


def plan_of(args, folder, backend, plan):
    """(arena bytes, bytes that it may be above the least) of a model folder, as `etc lower` sums them up."""
    out = args.out / "arena.pte"
    command = [args.etc, "lower", folder / "model.onnx", *dim_flags(folder), "-o", out, "--plan", plan, "--diagnostics=json"]
    done = subprocess.run([*map(str, command), *(["--backend", "xnnpack"] if backend == "xnnpack" else [])],
                          check=True, capture_output=True, text=True)
    out.unlink()
    lines = map(json.loads, done.stderr.splitlines())
    summary = next(line for line in lines if line.get("id") == "SUMMARY")
    return summary["arena_bytes"], summary["arena_excess_bytes"]


def bench_arena(args, report):
    rows, plans, failed = [], {}, []
    for root in (args.zoo, *args.models):
        for folder in sorted(p for p in root.iterdir() if (p / "meta.json").exists()):
            for backend in ("portable", "xnnpack"):
                try:
                    (greedy, _), (best, excess) = (plan_of(args, folder, backend, plan) for plan in ("greedy", "best"))
                    plans.setdefault(backend, {})[folder.name] = greedy, best, excess
                except subprocess.CalledProcessError as error:
                    failed.append(folder.name)
                    rows.append([folder.name, backend, "failed", error.stderr[:160].replace("\n", " ").replace("|", "/"), "", ""])
                    continue
                if greedy != best or excess:
                    rows.append([folder.name, backend, greedy, best, f"{100 * (best - greedy) / greedy:.1f} %",
                                 f"{100 * excess / (best - excess):.2f} %"])
    if not plans:
        raise Missing(f"no model in {args.zoo}; tests/zoo/make.py makes them")
    report.table("arenas that differ, or are not proven optimal",
                 ["model", "kernels", "greedy bytes", "best bytes", "difference", "at most above the optimum"], rows)
    report.record("arena", plans=plans, failed=failed)
    gaps = [excess / (best - excess) for of in plans.values() for _, best, excess in of.values() if excess]
    report.target("arena", "most that an arena may be above the optimum", 100 * max(gaps, default=0), 0.5, " %")
    report.target("arena", "models that could not be lowered", len(failed), 0)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etc", type=pathlib.Path, default=ROOT / "build" / "release" / "etc")
    parser.add_argument("--zoo", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--models", type=pathlib.Path, action="append", default=[],
                        help="a further folder of model folders for the arena part (repeat)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part (repeat)")
    parser.add_argument("--repeat", type=int, default=10, help="paired runs of the short commands")
    parser.add_argument("--large-gb", type=float, default=3.0)
    parser.add_argument("--large-repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    return parser.parse_args()


def main():
    args = parse_arguments()
    if not os.access(args.etc, os.X_OK):
        sys.exit(f"bench.py: there is no command {args.etc}; build it or say --etc PATH")
    args.out.mkdir(parents=True, exist_ok=True)
    report = Report()
    for part in PARTS:
        if args.part and part not in args.part:
            continue
        try:
            globals()[f"bench_{part}"](args, report)
        except (Missing, measure.CommandFailed, subprocess.CalledProcessError) as error:
            print(f"\nMISSED {part}: {error}", flush=True)
            report.record(part, error=str(error))
            report.missed.append(part)
    path = measure.write_result(args.out, report.data)
    print(f"\nwrote {path}\nbench: {len(report.missed)} missed, {len(report.skipped)} skipped")
    return 1 if args.check and report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
