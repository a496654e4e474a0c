#!/usr/bin/env python3
"""Our programs beside those of the official exporter: kernel calls, latency, memory, size.

  latency.py [--etc build/release/etc] [--quick] [-k PATTERN,...] [--rounds N]

For each model the same torch module with the same weights goes both ways: torch.export, to_edge, to_executorch (no
backend, portable kernels; official.py), and through its ONNX file and `etc lower`. Both programs run on the same
runtime in this process, in turn, until each has run --rounds times or the model's share of time is used up; the
fastest runs are compared, since what makes a run slower than the fastest is the machine. Their outputs must agree with
the stored ones of ONNX Runtime. Kernel calls are counted in the files: views that cost nothing are in neither.

Fails when one of our programs is wrong, is slower than the official one by more than the noise of such measurements,
or makes more kernel calls without being faster by a tenth. ONNX Runtime's latency (one thread) is for information. Writes JSON to build/bench, unless
only some models are measured.
The official programs are kept in build/bench/official, since making them takes longer than all measurements.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("zoo", "lib", "conformance", "bench")]

from measure import write_result  # noqa: E402

# A kind of network each, as far as the official program finds its kernels (3-D convolutions and adaptive max pools have
# none); small inputs, since the portable convolution takes 25 ns for each product.
MODELS = {
    "resnet8": "CNN", "mobilenet_v2_dynamo": "CNN, depthwise", "mobilenet_v3": "CNN, squeeze and excitation",
    "shufflenet_v2": "CNN, channel shuffle", "convnext": "CNN, layer norm", "vit": "vision transformer",
    "swin": "windowed attention", "bert": "text encoder", "gpt2_kv": "decoder step, cache",
    "llama_kv_fixed": "decoder step, rotary, cache", "t5_encoder": "encoder, relative positions",
    "unet_nearest": "segmentation", "yolo": "detector", "ssd": "detector", "wav2vec2": "speech",
    "conformer": "speech", "ds_cnn": "keyword spotting", "tcn": "1-D convolutions", "lstm_text": "recurrent",
    "dlrm": "recommender", "ft_transformer": "tabular", "gat_dense": "graph attention", "gcn_scatter": "graph convolution",
    "espcn": "super-resolution", "edsr_dynamo": "super-resolution", "diffusion": "diffusion step",
}
QUICK = ("mobilenet_v2_dynamo", "vit", "gpt2_kv", "lstm_text", "ds_cnn")
LIMIT, NOISE = 1.0, 1.05
PAID = 0.9  # what the time must come down to when there are more kernel calls, as of convolutions in bands
TRIES = 3  # measurements of a model whose latency is above the official one's
SHARE = 4.0  # seconds of measurement a model
RTOL, ATOL = 1e-3, 1e-4


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--etc", type=pathlib.Path, default=ROOT / "build" / "release" / "etc")
    parser.add_argument("--zoo", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}, and short measurements")
    parser.add_argument("-k", metavar="PATTERN,...", help="only these models; other models of the zoo can be named too")
    parser.add_argument("--rounds", type=int, default=200, help="runs of each program at most")
    return parser.parse_args()


def selected(args):
    if args.k:
        import make
        patterns = args.k.split(",")
        return [n for n in make.load_specs() if any(fnmatch.fnmatch(n, p) for p in patterns)]
    return [n for n in MODELS if not args.quick or n in QUICK]


def official_program(folder, spec, source, program_of):
    """(path of the official program or None, why there is none); made unless the one that is there is of the same
    sources."""
    import make
    import torch
    from common import draw, randomize, tensors
    path = folder / f"{spec.name}.pte"
    key, stamp = make.cache_key(source), path.with_suffix(".key")
    if stamp.exists() and stamp.read_text().startswith(key):
        return (path, "") if path.exists() else (None, stamp.read_text()[len(key) + 1:])
    seed = zlib.crc32(spec.name.encode())
    torch.manual_seed(seed)
    model = spec.build().eval()
    if not spec.keep_weights:
        randomize(model, spec.cases, seed)
    inputs = tuple(tensors(draw(spec.cases[0], seed), spec.half))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    why = ""
    try:
        with contextlib.redirect_stdout(None), torch.no_grad():
            path.write_bytes(program_of(model.half() if spec.half else model, inputs))
    except Exception as error:  # whatever the packages raise means that there is nothing to compare with
        why = f"{(str(error).strip() or repr(error)).splitlines()[0][:150]}"
    stamp.write_text(f"{key} {why}")
    return (path, "") if path.exists() else (None, why)


def facts(args, path):
    text = subprocess.run([str(args.etc), "inspect", str(path), "--json"], check=True, capture_output=True, text=True)
    method = json.loads(text.stdout)["methods"][0]
    instructions = method["instructions"]
    return {"kernels": instructions["kernel_calls"], "delegates": instructions["delegate_calls"],
            "arena": method["memory"]["arena_bytes"],
            "bytes": path.stat().st_size}


class Program:
    """A method, ready to run."""

    def __init__(self, path):
        from executorch.runtime import Runtime
        self.program = Runtime.get().load_program(str(path))
        self.method = self.program.load_method("forward")

    def outputs(self, inputs):
        import arrays
        return [arrays.own(arrays.from_torch(x)) for x in self.method.execute(inputs)]


def session_of(path):
    """Of ONNX Runtime, on one thread."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def milliseconds(runs, rounds, share, clock=time.perf_counter):
    """The fastest run of each of the functions, which are called in turn, there and back: what one leaves behind in
    caches and allocators is what the next one finds."""
    best, end, done = [float("inf")] * len(runs), time.perf_counter() + share, 0
    order = list(range(len(runs)))
    while done < rounds and (done < 3 or time.perf_counter() < end):
        for i in order if done % 2 else reversed(order):
            begin = clock()
            runs[i]()
            spent = clock() - begin
            if spent > 0:  # virtual machines have clocks that stand still now and then
                best[i] = min(best[i], spent)
        done += 1
    return [1e3 * b for b in best]


def measure(args, name, spec, source):
    """One row of the table, or a message instead of it."""
    import arrays
    import models
    from official import program_of
    model = models.Model(str(args.zoo / name))
    _, inputs, expected = model.cases[0]
    path = args.out / "ours" / f"{name}.pte"
    path.parent.mkdir(parents=True, exist_ok=True)
    dims = [flag for dim, size in model.dims(inputs).items() for flag in ("--dim", f"{dim}={size}")]
    subprocess.run([str(args.etc), "lower", model.path, "-o", str(path), *dims], check=True)
    rtol, atol = model.tolerance() if model.half else (RTOL, ATOL)
    tensors = [arrays.to_torch(x) for x in inputs]
    row = {"model": name, "kind": MODELS.get(name, ""), "ours": facts(args, path)}
    ours = Program(path)
    wrong = arrays.compare_all(ours.outputs(tensors), expected, rtol, atol)
    if wrong:
        return f"{name}: our outputs: {wrong}"
    programs = [ours]
    other, why = official_program(args.out / "official", spec, source, program_of)
    if not other:
        print(f"{name}: no official program: {why}", flush=True)
    if other:
        row["official"] = facts(args, other)
        try:
            program = Program(other)
            row["official"]["wrong"] = arrays.compare_all(program.outputs(tensors), expected, rtol, atol)
            programs.append(program)
        except RuntimeError as error:
            row["official"]["wrong"] = f"does not run ({error})"
    share, spent = SHARE / 4 if args.quick else SHARE, None
    for _ in range(TRIES):
        again = milliseconds([lambda p=p: p.method.execute(tensors) for p in programs], args.rounds, share)
        spent = [min(pair) for pair in zip(spent or again, again)]
        if len(spent) == 1 or spent[0] <= LIMIT * spent[1]:
            break
    row["ours"]["ms"] = spent[0]
    if len(programs) > 1:
        row["official"]["ms"] = spent[1]
        row["kernel_ratio"] = row["ours"]["kernels"] / row["official"]["kernels"]
        row["latency_ratio"] = spent[0] / spent[1]
    row["onnxruntime_ms"] = models.reference_ms(model, inputs)
    return row


def format_row(row):
    ours, official = row["ours"], row.get("official", {})

    def pair(key, form):
        return f"{form.format(ours[key])} / {form.format(official[key]) if key in official else '-'}"

    ratios = [f"{row[key]:.2f}" if key in row else "-" for key in ("kernel_ratio", "latency_ratio")]
    reference = row["onnxruntime_ms"]
    return [row["model"], row["kind"], pair("kernels", "{}"), ratios[0], pair("ms", "{:.3g}"), ratios[1],
            pair("arena", "{}"), pair("bytes", "{}"), f"{reference:.3g}" if reference else "-"]


HEAD = ("model", "kind", "kernels ours / official", "ratio", "ms ours / official", "ratio", "arena bytes", "file bytes",
        "ONNX Runtime ms")


def above_limits(row):
    """What is worse than the official program's."""
    faults = []
    if row.get("kernel_ratio", 0) > LIMIT and row.get("latency_ratio", 1) > PAID:
        faults.append(f"{row['model']}: {row['kernel_ratio']:.2f} times the kernel calls")
    if row.get("latency_ratio", 0) > NOISE:
        faults.append(f"{row['model']}: {row['latency_ratio']:.2f} times the latency")
    if "arena" in row.get("official", {}) and row["ours"]["arena"] > row["official"]["arena"]:
        print(f"note: {row['model']}: arena {row['ours']['arena']} above {row['official']['arena']}")
    return faults


def write(args, part, rows):
    print(f"wrote {write_result(args.out, {part: {'rows': rows}})}")


def main():
    args = parse_arguments()
    if not os.access(args.etc, os.X_OK):
        sys.exit(f"latency.py: there is no command {args.etc}; build it or say --etc PATH")
    import make
    import torch
    torch.set_num_threads(1)
    specs, rows, faults = make.load_specs(), [], []
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for name in selected(args):
        try:
            row = measure(args, name, *specs[name])
        except (OSError, subprocess.CalledProcessError) as error:
            row = f"{name}: {error} (tests/zoo/make.py makes the models)"
        if isinstance(row, str):
            faults.append(row)
            continue
        rows.append(row)
        faults += above_limits(row)
        print("| " + " | ".join(format_row(row)) + " |", flush=True)
    if not args.k and not args.quick:
        write(args, "latency", rows)
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"latency: {len(rows)} compared, {len(faults)} failed")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
