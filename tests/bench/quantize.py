#!/usr/bin/env python3
"""Accuracy of quantized programs of trained networks, beside ONNX Runtime's quantizer.

  quantize.py NETS [--etc build/release/etc] [-k PATTERN,...] [--scheme int8] [--samples | --random] [--backend xnnpack] [-n SAMPLES]
              [--compare] [--official] [--extra OPTION]... [--json FILE]

NETS has a folder for each network: model_ts.onnx (or model.onnx), calib.npz, test.npz (an array an input, and `labels`)
and meta.json ("inputs": names in order, "metric": accuracy or perplexity). Each model is lowered with --quantize (and
--calibrate: int8 always, int4-weight-only with --samples, or made-up ones with --random), and the program runs on the ExecuTorch runtime, one sample a
call, on one thread. Printed are the task's metric, the ratio of signal to noise against the float model on ONNX Runtime
(SQNR), how often the largest logit is the same, bytes, calls, and the processor time of the fastest half of the runs.
--compare also quantizes by onnxruntime.quantization (min-max and percentile).

--official measures time instead: the int8 program that the official flow (torch, XNNPACKQuantizer) makes of the same
network, ours, our float program and the int8 model of onnxruntime.quantization (min-max) run in turn in one process,
one thread; milliseconds are the median of the processor time. Official programs are kept in build/bench/official.
What a peer cannot make is said, and counts as a failure. Limits: OFFICIAL, FLOAT and ONNX below.

Fails when a network of the table below does not reach its SQNR, or loses more than half a point of accuracy.
"""
import argparse
import fnmatch
import gc
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# dB that int8 has to reach: what the better of the official flow and ONNX Runtime reaches, or, where both fail, what the
# network reaches when what they fail at is taken out by hand.
INT8 = {"digits_mobile": 32.3, "digits_resnet8": 37.0, "kws_dscnn": 29.7, "kws_crnn": 33.7, "digits_vit": 31.0,
        "lang_bert": 34.0, "char_gpt": 26.0, "kws_rescaled": 28.7}
# The same of int4-weight-only with samples: 4 dB more than the official flow reaches without.
INT4 = {"digits_vit": 27.0, "lang_bert": 31.0, "char_gpt": 26.6}
# The same without samples: half a dB more than the official flow.
INT4_RANDOM = {"digits_vit": 23.4, "lang_bert": 27.6, "char_gpt": 23.1}
TARGETS = {"int8": INT8, "int4-weight-only, samples": INT4, "int4-weight-only, random": INT4_RANDOM}
PERPLEXITY, LOSS = 6.5, 0.005
# The most that the int8 program may take, times the official one, our float one, and the model of ONNX Runtime; others
# may take more. On digits_mobile a third of the time is in depthwise kernels, which are no faster on 8 bits.
OFFICIAL = {"digits_mobile": 1.0, "digits_resnet8": 1.0, "digits_vit": 1.0}
FLOAT = {"digits_mobile": 0.95, "digits_resnet8": 0.7, "lang_bert": 0.7}
ONNX = 1.2
PASSES, SHARE = 2000, 10  # runs of each program at most, and seconds for all
CALIBRATE = 128


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", type=pathlib.Path)
    parser.add_argument("--etc", type=pathlib.Path, default=ROOT / "build" / "release" / "etc")
    parser.add_argument("-k", metavar="PATTERN,...", default="*", help="only these networks")
    parser.add_argument("--scheme", default="int8", help="of --quantize, or float")
    parser.add_argument("--samples", action="store_true", help="calibrate int4-weight-only, too")
    parser.add_argument("--random", action="store_true", help="calibrate int4-weight-only with --calibrate random")
    parser.add_argument("--backend", default="xnnpack", help="of --backend; none: the runtime's own kernels")
    parser.add_argument("--extra", action="append", default=[], help="one more option of etc lower")
    parser.add_argument("-n", type=int, default=1000, help="samples to test with")
    parser.add_argument("--compare", action="store_true", help="with onnxruntime.quantization")
    parser.add_argument("--official", action="store_true", help="time beside the official int8 program")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows there")
    parser.add_argument("--program", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--race", type=pathlib.Path, nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def session_of(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Network:
    def __init__(self, folder, count):
        import numpy as np
        self.folder, self.name = folder, folder.name
        self.model = next(f for f in (folder / "model_ts.onnx", folder / "model.onnx") if f.exists())
        meta = json.loads((folder / "meta.json").read_text())
        self.inputs, self.kind = meta["inputs"], meta["metric"]
        test = np.load(folder / "test.npz")
        self.labels = test["labels"][:count]
        self.test = [test[name][:count] for name in self.inputs]

    def samples(self):
        return ([a[i:i + 1] for a in self.test] for i in range(len(self.labels)))

    def metric(self, y):
        import numpy as np
        if self.kind == "accuracy":
            return float((y.argmax(1) == self.labels).mean())
        y = y.astype(np.float64) - y.max(-1, keepdims=True)
        likelihood = y - np.log(np.exp(y).sum(-1, keepdims=True))
        return float(np.exp(-np.take_along_axis(likelihood, self.labels[:, :, None], -1).mean()))

    def run_onnx(self, path):
        import numpy as np
        session = session_of(path)
        outputs, times = [], []
        for sample in self.samples():
            begin = time.process_time()
            outputs.append(session.run(None, dict(zip(self.inputs, sample)))[0])
            times.append(time.process_time() - begin)
        return np.concatenate(outputs), times


def run_program(args):
    """In a process of its own: writes the outputs and times to PROGRAM.npz."""
    import numpy as np
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime
    portable_lib._unsafe_reset_threadpool(1)  # before a method is loaded: delegates keep the pool
    network = Network(args.nets, args.n)
    method = Runtime.get().load_program(str(args.program)).load_method("forward")
    outputs, times = [], []
    for sample in network.samples():
        tensors = [torch.from_numpy(np.ascontiguousarray(a)) for a in sample]
        begin = time.process_time()
        y = method.execute(tensors)[0]
        times.append(time.process_time() - begin)
        outputs.append(np.array(y.numpy(), copy=True))
    np.savez(f"{args.program}.npz", y=np.concatenate(outputs), times=np.array(times))
    return 0


def row(network, flow, y, times, reference, **more):
    import numpy as np
    y, wide = y.astype(np.float64), reference.astype(np.float64)
    noise = ((wide - y) ** 2).sum()
    times = sorted(times)
    return dict(network=network.name, flow=flow, metric=network.metric(y), float_metric=network.metric(reference),
                sqnr_db=round(float(10 * np.log10((wide ** 2).sum() / max(noise, 1e-30))), 2),
                same_top1=round(float((y.argmax(-1) == reference.argmax(-1)).mean()) * 100, 2),
                ms=round(times[len(times) // 4] * 1e3, 4), **more)


def calls(etc, program):
    text = subprocess.run([etc, "inspect", program, "--json"], capture_output=True, text=True).stdout
    try:
        method = json.loads(text)["methods"][0]
        return {key: method["instructions"][key] for key in ("kernel_calls", "delegate_calls")}
    except (ValueError, KeyError, IndexError, TypeError):
        return {}


def lower(args, network, scheme, program):
    command = [args.etc, "lower", network.model, "--dim", "batch=1", "-o", program, "-q", *args.extra]
    if scheme != "float":
        command += ["--quantize", scheme]
    if scheme == "int8" or (args.samples and scheme != "float"):
        command += ["--calibrate", network.folder / "calib.npz"]
    elif args.random:
        command += ["--calibrate", "random"]
    if args.backend != "none":
        command += ["--backend", args.backend]
    subprocess.run([str(c) for c in command], check=True)


def flow_of(args):
    return args.scheme + (", samples" if args.samples else ", random" if args.random else "")


def our_row(args, network, reference, folder):
    import numpy as np
    program = folder / f"{network.name}.pte"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    lower(args, network, args.scheme, program)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, __file__, str(network.folder), "--program", str(program), "-n", str(args.n)],
                   check=True, stderr=subprocess.DEVNULL)
    ran = np.load(f"{program}.npz")
    return row(network, flow_of(args), ran["y"], list(ran["times"]), reference, bytes=program.stat().st_size,
               cpu=round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2), **calls(args.etc, program))


def quantize_onnx(network, folder, methods):
    """(method, path, processor time) of what onnxruntime.quantization makes, a method of calibration at a time."""
    import numpy as np
    import onnxruntime.quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process
    data = np.load(network.folder / "calib.npz")
    prepared = folder / "prepared.onnx"
    quant_pre_process(str(network.model), str(prepared))
    for name in methods:
        class Reader(q.CalibrationDataReader):
            def __init__(self):
                self.samples = ({n: data[n][i:i + 1] for n in network.inputs} for i in range(len(data[network.inputs[0]])))

            def get_next(self):
                return next(self.samples, None)
        path, begin = folder / "quantized.onnx", time.process_time()
        q.quantize_static(str(prepared), str(path), Reader(), quant_format=q.QuantFormat.QDQ, per_channel=True,
                          activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8,
                          calibrate_method=q.CalibrationMethod[name])
        yield name, path, round(time.process_time() - begin, 2)


def onnx_rows(network, reference, folder):
    for name, path, spent in quantize_onnx(network, folder, ("MinMax", "Percentile")):
        y, times = network.run_onnx(path)
        flow = {"MinMax": "onnxruntime min-max", "Percentile": "onnxruntime percentile"}[name]
        yield row(network, flow, y, times, reference, bytes=path.stat().st_size, cpu=spent)


# --- time beside others ---


def official_program(network):
    """The path of the official int8 program, made unless it is there; raises what its packages raise."""
    import hashlib

    import numpy as np
    import torch
    from official import int8_program_of
    from torch_of_onnx import module_of
    here = pathlib.Path(__file__).parent
    key = hashlib.sha256()
    for path in (network.model, network.folder / "calib.npz", here / "official.py", here / "torch_of_onnx.py"):
        key.update(path.read_bytes())
    path = ROOT / "build" / "bench" / "official" / f"{network.name}.int8.{key.hexdigest()[:16]}.pte"
    if path.exists():
        return path
    data = np.load(network.folder / "calib.npz")
    arrays = [torch.from_numpy(data[name][:CALIBRATE]) for name in network.inputs]
    samples = [tuple(a[i:i + 1] for a in arrays) for i in range(len(arrays[0]))]
    model = module_of(network.model)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(int8_program_of(model, samples))
    return path


def race(args):
    """In a process of its own: prints the median milliseconds of each program and model, which run in turn."""
    import statistics

    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime
    torch.set_num_threads(1)
    portable_lib._unsafe_reset_threadpool(1)
    network = Network(args.nets, args.n)
    sample = next(network.samples())
    tensors, feed, runs = [torch.from_numpy(a.copy()) for a in sample], dict(zip(network.inputs, sample)), []
    for path in args.race:
        if path.suffix == ".onnx":
            runs.append(lambda s=session_of(path): s.run(None, feed))
        else:
            runs.append(lambda m=Runtime.get().load_program(str(path)).load_method("forward"): m.execute(tensors))
    gc.disable()
    times, end = [[] for _ in runs], time.perf_counter() + SHARE
    for done in range(PASSES):
        for i in range(len(runs)) if done % 2 else reversed(range(len(runs))):
            begin = time.process_time_ns()
            runs[i]()
            times[i].append(time.process_time_ns() - begin)
        if time.perf_counter() > end:
            break
    print(json.dumps([statistics.median(t) / 1e6 for t in times]))
    return 0


def time_row(args, network, folder):
    """The row of a network, and what went wrong."""
    wrong, paths = [], {"int8": folder / "int8.pte", "float": folder / "float.pte"}
    for scheme, path in paths.items():
        lower(args, network, scheme, path)
    try:
        paths["official"] = official_program(network)
    except Exception as error:  # whatever its packages raise
        wrong.append(f"{network.name}: no official program: {(str(error).strip() or repr(error)).splitlines()[0][:200]}")
    paths["onnxruntime"] = next(quantize_onnx(network, folder, ("MinMax",)))[1]
    ran = subprocess.run([sys.executable, __file__, str(network.folder), "--race", *map(str, paths.values())], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    r = dict(network=network.name, ms=dict(zip(paths, json.loads(ran.stdout.splitlines()[-1]))),
             calls={name: calls(args.etc, path) for name, path in paths.items() if path.suffix == ".pte"})
    for peer, limits in (("official", OFFICIAL), ("float", FLOAT), ("onnxruntime", {network.name: ONNX})):
        if peer in r["ms"]:
            ratio = r["ms"]["int8"] / r["ms"][peer]
            if ratio > limits.get(network.name, ratio):
                wrong.append(f"{network.name}: {ratio:.2f} x the time of {peer}, not {limits[network.name]}")
    return r, wrong


def print_time(r):
    ours = r["ms"]["int8"]
    print(f"{r['network']:16}{ours:9.4f} ms", end="")
    for peer in ("official", "float", "onnxruntime"):
        spent = r["ms"].get(peer)
        print(f"  {peer} " + (f"{spent:.4f} ({ours / spent:.2f} x)" if spent else "none"), end="")
    counts = ["/".join(str(c) for c in r["calls"][name].values()) for name in ("int8", "official") if name in r["calls"]]
    print("  calls " + " against ".join(counts), flush=True)


def faults(r):
    found = []
    least = TARGETS.get(r["flow"], {}).get(r["network"], 0)
    if r["sqnr_db"] < least:
        found.append(f"{r['network']}: {r['sqnr_db']} dB, not {least}")
    better = r["float_metric"] - r["metric"]
    if r["flow"].startswith("int8") and r["metric"] <= 1 and better > LOSS:
        found.append(f"{r['network']}: accuracy {r['metric']:.3f}, float {r['float_metric']:.3f}")
    if r["flow"] == "int8" and r["network"] == "char_gpt" and r["metric"] > PERPLEXITY:
        found.append(f"{r['network']}: perplexity {r['metric']:.3f}")
    return found


def main():
    args = parse_arguments()
    if args.program:
        return run_program(args)
    if args.race:
        return race(args)
    rows, wrong = [], []
    folders = sorted(f.parent for f in args.nets.glob("*/meta.json"))
    if not args.official:
        print(f"{'network':16}{'flow':24}{'metric':>9}{'float':>9}{'dB':>8}{'top-1':>8}{'bytes':>10}{'ms':>9}{'cpu s':>8}  calls")
    for folder in folders:
        if not any(fnmatch.fnmatch(folder.name, p) for p in args.k.split(",")):
            continue
        network = Network(folder, args.n)
        if args.official:
            with tempfile.TemporaryDirectory() as temporary:
                r, found = time_row(args, network, pathlib.Path(temporary))
            print_time(r)
            rows.append(r)
            wrong += found
            continue
        reference, _ = network.run_onnx(network.model)
        with tempfile.TemporaryDirectory() as temporary:
            found = []
            try:
                found.append(our_row(args, network, reference, pathlib.Path(temporary)))
            except subprocess.CalledProcessError as error:
                wrong.append(f"{network.name}: {error}")
            if args.compare:
                found += onnx_rows(network, reference, pathlib.Path(temporary))
        for r in found:
            counts = "/".join(str(r[key]) for key in ("kernel_calls", "delegate_calls") if key in r)
            print(f"{r['network']:16}{r['flow']:24}{r['metric']:9.4f}{r['float_metric']:9.4f}{r['sqnr_db']:8.2f}"
                  f"{r['same_top1']:8.2f}{r['bytes']:10}{r['ms']:9.4f}{r['cpu']:8.2f}  {counts}", flush=True)
            rows.append(r)
            if r["flow"] == flow_of(args):
                wrong += faults(r)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
