#!/usr/bin/env python3
"""Our programs with XNNPACK delegates beside those of the official flow, and beside ONNX Runtime.

  xnnpack.py [--etc build/release/etc] [--quick] [-k PATTERN,...] [--rounds N]

For each network (networks.py: published sizes; --quick: some of the zoo) the same torch module with the same weights
goes both ways: to_edge_transform_and_lower with XnnpackPartitioner, and through its ONNX file and `etc lower --backend
xnnpack`. Both programs and ONNX Runtime, all on one thread, run in turn in this process. Two times are shown: the
processor time of the fastest run, and the median time of all runs by the clock on the wall. The limits are on the first,
which is the latency of an idle machine and comes out the same on a busy one; there the other one is mostly about how
often a run was interrupted. Loading
(reading the file and initialising the method, which packs the weights) is measured in turn as well, from copies of both
files that were made in one way; the anonymous memory that loading and a first run add in a process of its own for each
(fresh.py); and so is lowering: with the backend, without, and copying the model, which is what one
pass over the weights costs.

Fails when one of our programs is wrong, or one of the limits below is not kept. Writes JSON to build/bench unless only
some networks are measured. Official programs and models are kept in build/bench, since making them takes longer than
all measurements.
"""
import argparse
import fnmatch
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("zoo", "lib", "conformance", "bench")]

import latency  # noqa: E402
from fresh import Fresh  # noqa: E402

QUICK = ("mobilenet_v3", "vit", "gpt2_kv", "unet", "swin")
TRANSFORMERS = ("vit_tiny", "qwen2_tiny", "bert_mini", "whisper_encoder", "whisper_decoder", "gpt2_tiny", "gpt2_kv",
                "llama_kv", "t5_decoder", "swin_tiny", "segformer_b0", "mobilevit_xxs")
# Of one network, and of the geometric mean over all.
LATENCY, MEAN_LATENCY, MEAN_REFERENCE = 1.03, 0.75, 1.1
SIZE, LOAD, DELEGATES = 1.005, 1.0, 4
MEMORY, SPARE, MEAN_MEMORY = 1.5, 2 << 20, 0.8  # times what ONNX Runtime adds, and bytes besides; in the mean
LOWERING = 2.0  # times lowering without a backend, and one copy of the model besides
NOISE, QUICK_NOISE = 1.03, 1.25  # of two measurements of the same thing; of short ones
TRIES, LOAD_TRIES = 3, 10  # measurements of a network that is above a limit; page faults make loading vary by a quarter
SHARE, LOADS, LOWERINGS = 6.0, 10, 7  # seconds of runs, and numbers of times, for a network


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etc", type=pathlib.Path, default=ROOT / "build" / "release" / "etc")
    parser.add_argument("--zoo", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)} of the zoo, measured shortly")
    parser.add_argument("-k", metavar="PATTERN,...", help="only these networks")
    parser.add_argument("--rounds", type=int, default=200, help="runs of each program at most")
    return parser.parse_args()


def networks(args):
    """[(spec, file that it is written in, folder of its models)]"""
    import make
    import networks
    if args.quick:
        specs, folder = make.load_specs(), args.zoo
        found = [(*specs[name], folder) for name in QUICK]
    else:
        source = pathlib.Path(networks.__file__)
        found = [(spec, source, args.out / "networks") for spec in networks.SPECS]
    patterns = args.k.split(",") if args.k else ["*"]
    return [n for n in found if any(fnmatch.fnmatch(n[0].name, p) for p in patterns)]


def model_of(args, spec, source, folder):
    """The folder with the model, made unless it is there."""
    import make
    target = folder / spec.name
    stamp, key = target / "key", make.cache_key(source)
    if not args.quick and not (stamp.exists() and stamp.read_text() == key):
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        with make.redirected(target / "log"):
            make.make(spec, target)
        (target / "meta.json").write_text(json.dumps({"inputs_names": spec.inputs}))
        stamp.write_text(key)
    return target


def reference_run(model, inputs):
    """A function that runs the model once in ONNX Runtime on one thread."""
    session = latency.session_of(model.path)
    feeds = {x.name: array for x, array in zip(model.inputs, inputs)}
    return lambda: session.run(None, feeds)


def seconds(command):
    """Of all processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lowering(args, model, path, dims):
    """Milliseconds of lowering with the backend and without, and of a copy of the model; the program is in path."""
    plain = path.with_suffix(".plain")
    lower = [args.etc, "lower", model.path, *dims, "-o"]
    commands = ([*lower, path, "--backend", "xnnpack"], [*lower, plain], ["cp", model.path, plain])
    best = [float("inf")] * len(commands)
    for _ in range(2 if args.quick else LOWERINGS):
        best = [min(b, seconds(c)) for b, c in zip(best, commands)]
    plain.unlink()
    return dict(zip(("lower_ms", "plain_ms", "copy_ms"), (1e3 * b for b in best)))


def copies(args, paths):
    """The files, copied: how the pages of a file came into the cache decides how long it takes to map them."""
    made = []
    for i, path in enumerate(paths):
        made.append(args.out / f"loaded-{i}.pte")
        shutil.copyfile(path, made[-1])
    return made


def load_seconds(path):
    """In a process of its own: a heap that other programs have used gives memory faster, or slower."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        begin = time.process_time()
        program = latency.Program(path)
        os.write(theirs, struct.pack("d", time.process_time() - begin))
        os._exit(0 if program else 1)
    os.close(theirs)
    answer = os.read(ours, 8)
    os.close(ours)
    os.waitpid(child, 0)
    if len(answer) != 8:
        raise RuntimeError(f"{path} does not load")
    return struct.unpack("d", answer)[0]


def load_ms(paths):
    """Milliseconds of the fastest load of each program; until the first is within its limit beside the second, or LOAD_TRIES times."""
    best = [float("inf")] * len(paths)
    for _ in range(LOAD_TRIES):
        for i in range(LOADS):
            for k in range(len(paths)) if i % 2 else reversed(range(len(paths))):
                best[k] = min(best[k], load_seconds(paths[k]))
        if len(best) < 2 or best[0] <= LOAD * best[1]:
            break
    return [1e3 * b for b in best]


def timed(runs, rounds, share):
    """[(fastest processor time, median time on the wall)] in milliseconds, of functions that are called in turn, there and
    back. Each of them is as often the one where the turn is: it then finds the caches as it left them."""
    spent, done = [[] for _ in runs], 0
    end = time.perf_counter() + share
    while done < rounds and (done < 2 * len(runs) or time.perf_counter() < end):
        order = [(done // 2 + i) % len(runs) for i in range(len(runs))]
        for i in reversed(order) if done % 2 else order:
            wall, busy = time.perf_counter(), time.process_time()
            runs[i]()
            spent[i].append((time.process_time() - busy, time.perf_counter() - wall))
        done += 1
    return [(1e3 * min(busy for busy, _ in column), 1e3 * statistics.median(wall for _, wall in column))
            for column in spent]


def official_of(args, spec, source, inputs, expected, atol, row):
    """The official program ready to run, or None; the row says what is wrong with it."""
    import arrays
    from official import xnnpack_program_of
    path, why = latency.official_program(args.out / "official-xnnpack", spec, source, xnnpack_program_of)
    if not path:
        row["official_failure"] = why
        return None, None
    row["official"] = latency.facts(args, path)
    try:
        program = latency.Program(path)
        wrong = arrays.compare_all(program.outputs(inputs), expected, latency.RTOL, atol)
    except RuntimeError as error:
        row["official_failure"] = f"does not run ({error})"
        return None, None
    if wrong:
        row["official_failure"] = f"wrong: {wrong}"
    return program, path


def measure(args, spec, source, folder, fresh):
    """One row of the table, or a message instead of it."""
    import arrays
    import models
    model = models.Model(str(model_of(args, spec, source, folder)))
    _, inputs, expected = model.cases[0]
    path = args.out / "ours-xnnpack" / f"{spec.name}.pte"
    path.parent.mkdir(parents=True, exist_ok=True)
    dims = [flag for dim, size in model.dims(inputs).items() for flag in ("--dim", f"{dim}={size}")]
    row = {"model": spec.name, **lowering(args, model, path, dims), "ours": latency.facts(args, path)}
    tensors = [arrays.to_torch(x) for x in inputs]
    ours = latency.Program(path)
    atol = latency.ATOL * max(1, *(float(abs(x).max(initial=0)) for x in expected))
    wrong = arrays.compare_all(ours.outputs(tensors), expected, latency.RTOL, atol)
    if wrong:
        return f"{spec.name}: our outputs: {wrong}"
    official, official_path = official_of(args, spec, source, tensors, expected, atol, row)
    runs = [lambda: ours.method.execute(tensors), reference_run(model, inputs)]
    if official:
        runs.append(lambda: official.method.execute(tensors))
    copied = copies(args, [p for p in (path, official_path) if p])
    best, loads = None, load_ms(copied)
    for _ in range(TRIES):
        again = timed(runs, args.rounds, SHARE / 4 if args.quick else SHARE)
        best = [tuple(map(min, *pair)) for pair in zip(best or again, again)]
        if not official or best[0][0] <= LATENCY * best[2][0]:
            break
    row["ours"].update(ms=best[0][0], wall_ms=best[0][1], load_ms=loads[0])
    row["onnxruntime_ms"], row["onnxruntime_wall_ms"] = best[1]
    row["reference_ratio"], row["reference_wall_ratio"] = (a / b for a, b in zip(best[0], best[1]))
    if official:
        row["official"].update(ms=best[2][0], wall_ms=best[2][1], load_ms=loads[1])
        row["latency_ratio"], row["wall_ratio"] = (a / b for a, b in zip(best[0], best[2]))
        row["load_ratio"] = loads[0] / loads[1]
        row["size_ratio"] = row["ours"]["bytes"] / row["official"]["bytes"]
    memory = [fresh.added(p, inputs)[1] for p in (path, model.path, official_path) if p]
    row["ours"]["memory"], row["onnxruntime_memory"] = memory[:2]
    row["memory_ratio"] = memory[0] / memory[1]
    if official:
        row["official"]["memory"] = memory[2]
    return row


HEAD = ("network", "calls / delegates", "official", "ms", "official", "ratio", "wall ms", "official", "ratio",
        "ONNX Runtime", "ratio", "wall ms", "ratio", "file", "load", "arena KiB", "official", "MiB added", "official", "ONNX Runtime", "ratio", "lowering ms")


def mib(count):
    return f"{count / (1 << 20):.1f}"


def format_row(row):
    ours, official = row["ours"], row.get("official")

    def ratio(key):
        return f"{row[key]:.3f}" if key in row else "-"

    def of(side, form):
        return form.format(**side) if side else "-"

    measured = official if "latency_ratio" in row else None
    return [row["model"], of(ours, "{kernels} / {delegates}"), of(official, "{kernels} / {delegates}"),
            of(ours, "{ms:.3g}"), of(measured, "{ms:.3g}"), ratio("latency_ratio"),
            of(ours, "{wall_ms:.3g}"), of(measured, "{wall_ms:.3g}"), ratio("wall_ratio"),
            f"{row['onnxruntime_ms']:.3g}", ratio("reference_ratio"), f"{row['onnxruntime_wall_ms']:.3g}",
            ratio("reference_wall_ratio"), ratio("size_ratio"), ratio("load_ratio"),
            str(ours["arena"] // 1024), str(official["arena"] // 1024) if official else "-",
            mib(ours["memory"]), mib(official["memory"]) if measured else "-", mib(row["onnxruntime_memory"]), ratio("memory_ratio"),
            f"{row['lower_ms']:.0f} ({row['plain_ms']:.0f} + {row['copy_ms']:.0f})"]


def faults_of(args, row):
    faults, name = [], row["model"]
    noise = QUICK_NOISE if args.quick else NOISE

    def limit(what, value, most):
        if value > most:
            faults.append(f"{name}: {what} {value:.3f}, at most {most:.3f}")
    limit("latency / official", row.get("latency_ratio", 0), LATENCY * (noise if args.quick else 1))
    limit("file size / official", row.get("size_ratio", 0), SIZE)
    limit("load time / official", row.get("load_ratio", 0), LOAD * noise)
    limit("memory MiB", row["ours"]["memory"] / (1 << 20), (MEMORY * row["onnxruntime_memory"] + SPARE) / (1 << 20))
    limit("lowering ms", row["lower_ms"], (LOWERING * row["plain_ms"] + row["copy_ms"]) * noise)
    if "official" in row:
        limit("delegates", row["ours"]["delegates"], max(1, row["official"]["delegates"]))
    if name in TRANSFORMERS:
        limit("delegates", row["ours"]["delegates"], DELEGATES)
    return faults


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def means_of(rows):
    """[(what, value, limit or None)]"""
    pairs = (("latency / official", "latency_ratio", MEAN_LATENCY), ("wall time / official", "wall_ratio", None),
             ("latency / ONNX Runtime", "reference_ratio", MEAN_REFERENCE),
             ("wall time / ONNX Runtime", "reference_wall_ratio", None), ("load time / official", "load_ratio", LOAD),
             ("memory / ONNX Runtime", "memory_ratio", MEAN_MEMORY))
    return [(what, geometric_mean([r[key] for r in rows if key in r]), most) for what, key, most in pairs
            if any(key in r for r in rows)]


def main():
    args = parse_arguments()
    if not os.access(args.etc, os.X_OK):
        sys.exit(f"xnnpack.py: there is no command {args.etc}; build it or say --etc PATH")
    import torch
    from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
    torch.set_num_threads(1)
    _unsafe_reset_threadpool(1)
    rows, faults, fresh = [], [], Fresh()
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for spec, source, folder in networks(args):
        try:
            row = measure(args, spec, source, folder, fresh)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            row = f"{spec.name}: {str(error).strip() or error!r}"
        if isinstance(row, str):
            print(row, flush=True)
            faults.append(row)
            continue
        rows.append(row)
        faults += faults_of(args, row)
        print("| " + " | ".join(format_row(row)) + " |", flush=True)
        if "official_failure" in row:
            print(f"note: {spec.name}: the official program: {row['official_failure']}", flush=True)
    for what, value, most in means_of(rows):
        print(f"geometric mean: {what} {value:.3f}{f', at most {most}' if most else ''}")
        if most and value > most and not args.k and not args.quick:
            faults.append(f"geometric mean: {what} {value:.3f}, at most {most}")
    if not args.k and not args.quick:
        latency.write(args, "xnnpack", rows)
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"xnnpack: {len(rows)} compared, {len(faults)} failed")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
