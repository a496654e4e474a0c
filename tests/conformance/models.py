#!/usr/bin/env python3
"""Runs a folder of real models through `etc lower` and the real ExecuTorch runtime.

    tests/conformance/models.py --models build/zoo                 all of them
    tests/conformance/models.py --models build/zoo -k 'vit*,gpt2'  some
    tests/conformance/models.py --models build/zoo --dynamic       symbolic dims bounded, one program for all shapes

A model is a folder with model.onnx, meta.json ("inputs_names": order of the input files), input_<i>.npy and
output_<i>.npy in graph order, and case<k>/ with the same files for other shapes. Without --dynamic every shape is
lowered by itself with --dim NAME=N; with it, once with --dim NAME=LO..HI over all the shapes there are. Models called
*_sizes are there for --dynamic alone.

Compared with the stored outputs at rtol 1e-3, atol 1e-4, or 1e-5 of the largest element (float16 models 2e-2). models-floor.txt lists what must pass;
a model not in it that etc refuses with a diagnostic counts as skipped, everything else that is not ok as failed.

    tests/conformance/models.py --extra=--backend=xnnpack:min-ops=1 --delegates tests/conformance/delegates-floor.txt

Besides, no model may have more kernels with floats outside of delegates, or with as many more calls of delegates or more
transposes in them, than that file says; --update-floor writes it. Models of the families WHOLE compute no floats outside at
all with fixed shapes, and have at most MOST_DELEGATES of them.
"""

import argparse
import fnmatch
import glob
import json
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

import numpy as np  # noqa: E402

import arrays  # noqa: E402
import delegates  # noqa: E402
import etc_command  # noqa: E402
import pte as pte_file  # noqa: E402
import runtime  # noqa: E402
import witness  # noqa: E402

COLUMNS = ("model", "stage", "instructions", "arena", "pte", "onnx", "lower_ms", "run_ms", "ort_ms", "delegates", "outside",
           "transposes", "code", "message")
DELEGATION = ("outside", "delegates", "transposes")
# ViT, BERT, GPT, Llama, T5, Whisper; CNNs, U-Net, YOLO (but `yolo` itself, whose outputs are double).
WHOLE = """vit* hf_vit* deit* beit* dinov2* clip_* swin* hf_swin* yolos* segformer* mobilevit* hf_mobilevit* levit* dpt* pvt*
    bert* albert* roberta* distilbert* electra* mobilebert* squeezebert* deberta* gpt2* gpt_neox* nano_gpt* bloom* opt* phi*
    llama* mistral* qwen2* qwen3* gemma2* t5_* bart* whisper* wav2vec2* hubert* conformer*
    alexnet* convnext* densenet* efficientnet* ghostnet* inception* lenet* mobilenet* hf_* poolformer* regnet* resnet* resnext*
    shufflenet* squeezenet* vgg* deeplab* style_transfer* espcn* edsr* unet* diffusion* vae* yolo3* yolo_*""".split()
MOST_DELEGATES = 4
TOLERANCE, TOLERANCE_HALF = (1e-3, 1e-4), (2e-2, 2e-2)
NOISE = 1e-5  # of sums in float32, relative to the largest element: what cancels out may differ by that


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog=__doc__.split("\n", 2)[2],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default=os.path.join(ROOT, "build", "zoo"), help="folder of model folders")
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command under test")
    p.add_argument("-k", metavar="PATTERN,...", action="append", default=[], help="only these models (shell patterns)")
    p.add_argument("-j", "--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="models at a time")
    p.add_argument("--dynamic", action="store_true", help="bound the symbolic dims instead of fixing them")
    p.add_argument("--extra", action="append", default=[], metavar="FLAG", help="one more flag for `etc lower` (repeat)")
    p.add_argument("--interp", action="store_true", help="also run the .pte with `etc run`")
    p.add_argument("--work", default=os.path.join(ROOT, "build", "conformance"), help="table and temporary files")
    p.add_argument("--keep", metavar="DIR", help="keep the .pte files")
    p.add_argument("--floor", default=os.path.join(HERE, "models-floor.txt"), help="names of what must pass")
    p.add_argument("--delegates", metavar="FILE", help="what is left of each model outside of delegates, at most")
    p.add_argument("--update-floor", action="store_true", help="write the passing ones to the floor files")
    p.add_argument("--timeout", type=float, default=300.0, help="seconds for one step of one model")
    return p.parse_args()


class Model:
    """What is in a folder. `cases` is a list of (name suffix, inputs, outputs)."""

    def __init__(self, folder):
        import onnx

        self.name = os.path.basename(folder)
        self.path = os.path.join(folder, "model.onnx")
        with open(os.path.join(folder, "meta.json")) as f:
            names = json.load(f)["inputs_names"]
        graph = onnx.load(self.path, load_external_data=False).graph
        initial = {x.name for x in graph.initializer}
        self.inputs = [x for x in graph.input if x.name not in initial]
        self.outputs = [x.name for x in graph.output]
        order = [names.index(x.name) for x in self.inputs]
        self.half = any(x.data_type == onnx.TensorProto.FLOAT16 for x in graph.initializer)
        self.cases = []
        for where in [folder, *sorted(glob.glob(os.path.join(folder, "case*")))]:
            inputs = [arrays.load_npy(os.path.join(where, f"input_{i}.npy")) for i in order]
            outputs = [arrays.load_npy(os.path.join(where, f"output_{i}.npy")) for i in range(len(graph.output))]
            self.cases.append(("" if where == folder else "/" + os.path.basename(where), inputs, outputs))

    def dims(self, inputs):
        """{symbol: size} for these inputs."""
        sizes = {}
        for value, array in zip(self.inputs, inputs):
            for dim, size in zip(value.type.tensor_type.shape.dim, array.shape):
                if dim.dim_param:
                    sizes[dim.dim_param] = size
        return sizes

    def ranges(self):
        """{symbol: 'LO..HI'} over all cases."""
        sizes = [self.dims(inputs) for _, inputs, _ in self.cases]
        return {name: f"{min(s[name] for s in sizes)}..{max(s[name] for s in sizes)}" for name in sizes[0]}

    def tolerance(self):
        return TOLERANCE_HALF if self.half else TOLERANCE


def reference_ms(model, inputs):
    """ONNX Runtime on one thread, the best of a few runs; None if it cannot run the model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
        feeds = {x.name: array for x, array in zip(model.inputs, inputs)}
        best = None
        for _ in range(3):
            begin = time.perf_counter()
            session.run(None, feeds)
            spent = time.perf_counter() - begin
            best = spent if best is None else min(best, spent)
        return best * 1e3
    except Exception:
        return None


def work_items(args, model):
    """(row name, dims for lower, indices of the cases to run on the program)"""
    if args.dynamic:
        ranges = model.ranges()
        return [(model.name + "@dynamic", ranges, range(len(model.cases)))] if ranges else []
    if model.name.endswith("_sizes"):
        return []
    return [(model.name + suffix, model.dims(inputs), [i]) for i, (suffix, inputs, _) in enumerate(model.cases)]


def run_item(args, model, item, server, work):
    name, dims, indices = item
    row = dict.fromkeys(COLUMNS, "")
    row.update(model=name, onnx=os.path.getsize(model.path))
    path = os.path.join(args.keep or work, name.replace("/", "_") + ".pte")
    if os.path.exists(path):
        os.unlink(path)
    stage, row["code"], message, result = etc_command.lower(args.etc, model.path, path, dims, args.extra, args.timeout)
    row["lower_ms"] = result.seconds * 1e3
    if stage == "ok":
        row["pte"] = os.path.getsize(path)
        stage, message = run_cases(args, model, indices, path, row, server, work)
        if stage == "ok":
            stage, message = check_size(args, path)
        if not args.keep:
            os.unlink(path)
    row["stage"], row["message"] = stage, " ".join(message.split())
    return row


def run_cases(args, model, indices, path, row, server, work):
    figures = pte_file.methods(path)["forward"]
    row["instructions"], row["arena"] = figures["instructions"], figures["arena"]
    use = delegates.figures(path)
    row.update(delegates=use["delegates"], outside=use["outside"].total(), transposes=use["transposes"])
    (rtol, least), loosest = model.tolerance(), 0.0
    bundles = {i: os.path.join(work, f"{row['model'].replace('/', '_')}.{i}.pkl") for i in indices}
    for i in indices:
        suffix, inputs, outputs = model.cases[i]
        arrays.save_bundle(bundles[i], inputs, outputs)
        noise = max((NOISE * float(np.abs(x).max()) for x in outputs if x.dtype == np.float32 and x.size), default=0.0)
        atol = max(least, noise)
        loosest = max(loosest, atol)
        answer = server.run({"pte": path, "bundle": bundles[i], "rtol": rtol, "atol": atol, "repeat": 3}, args.timeout)
        if answer["stage"] != "ok":
            return answer["stage"], f"{suffix[1:]}: {answer['message']}" if len(indices) > 1 else answer["message"]
        message = interpret(args, model, i, path, work) if args.interp else None
        if message:
            return "mismatch", f"{suffix[1:]}: etc run: {message}"
        if i == indices[0]:
            row["run_ms"], row["ort_ms"] = answer["seconds"] * 1e3, reference_ms(model, inputs)
    if len(indices) > 1:  # once more without loading the program anew: one call leaves plans of the delegates to the next
        answer = server.run({"pte": path, "bundles": list(bundles.values()), "rtol": rtol, "atol": loosest}, args.timeout)
        if answer["stage"] != "ok":
            return answer["stage"], f"one shape after the other: {answer['message']}"
    for bundle in bundles.values():
        os.unlink(bundle)
    return "ok", ""


def check_size(args, path):
    """No arena has more in use than it has bytes."""
    done = etc_command.run([args.etc, "size", "--json", path], args.timeout)
    if done.code != 0:
        return "size", done.summary()[1]
    for method in json.loads(done.stdout)["methods"]:
        for arena in method["arenas"]:
            if arena["peak_bytes"] > arena["bytes"]:
                return "size", f"{arena['peak_bytes']} bytes in use of an arena of {arena['bytes']}"
    return "ok", ""


def interpret(args, model, i, path, work):
    """The program on etc's own interpreter; None if it gives the expected outputs."""
    _, inputs, outputs = model.cases[i]
    folder = tempfile.mkdtemp(prefix="interp-", dir=work)
    message = witness.disagreement(args.etc, path, list(zip([x.name for x in model.inputs], inputs)),
                                   list(zip(model.outputs, outputs)), folder, *model.tolerance(), args.timeout)
    shutil.rmtree(folder)
    return message


def run_all(args, models):
    tasks = queue.Queue()
    for model in models:
        for item in work_items(args, model):
            tasks.put((model, item))
    rows, failure, lock = [], [], threading.Lock()
    work = tempfile.mkdtemp(prefix="models-", dir=args.work)

    def loop():
        server = runtime.Runtime()
        try:
            while not failure:
                row = run_item(args, *tasks.get_nowait(), server, work)
                with lock:
                    rows.append(row)
                    print(line(row), flush=True)
        except queue.Empty:
            pass
        except BaseException as e:
            failure.append(e)
        finally:
            server.close()

    threads = [threading.Thread(target=loop) for _ in range(args.jobs)]
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if failure:
        raise failure[0]
    return sorted(rows, key=lambda r: r["model"])


def number(value, scale=1.0, digits=1):
    return "-" if value in ("", None) else f"{value / scale:.{digits}f}"


def line(row):
    if row["stage"] != "ok":
        return f"{row['stage']:8} {row['model']:28} " + (f"{row['code']}: " if row["code"] else "") + row["message"]
    use = (f"{row['delegates']} delegates, {row['outside']} float kernels outside, {row['transposes']} transposes, "
           if row["delegates"] else "")
    ratio = f"{row['run_ms'] / row['ort_ms']:.1f} x ort" if row["ort_ms"] else "no ort"
    return (f"ok       {row['model']:28} {row['instructions']:5} instructions, arena {number(row['arena'], 1024)} KiB, "
            f"file {number(row['pte'], 2**20, 2)} MiB (onnx {number(row['onnx'], 2**20, 2)}), "
            f"{use}lower {number(row['lower_ms'])} ms, run {number(row['run_ms'])} ms ({ratio})")


def read_floor(path):
    if not os.path.exists(path):
        return set()
    with open(path) as f:
        return {x.strip() for x in f if x.strip() and not x.startswith("#")}


def update_floor(path, rows):
    passed = {r["model"] for r in rows if r["stage"] == "ok"}
    new = (read_floor(path) - {r["model"] for r in rows}) | passed
    with open(path, "w") as f:
        f.write("# Models that must pass; written by tests/conformance/models.py --update-floor.\n")
        f.writelines(f"{name}\n" for name in sorted(new))
    print(f"floor: {len(new)} in {path}")


def read_delegation(path):
    """{model: figures in the order of DELEGATION}"""
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        lines = [x.split() for x in f if x.strip() and not x.startswith("#")]
    return {x[0]: tuple(map(int, x[1:])) for x in lines}


def check_delegation(args, rows):
    """The rows that have more of something than they had; they are not ok any more."""
    allowed = read_delegation(args.delegates)
    if args.update_floor:
        allowed.update({r["model"]: tuple(r[c] for c in DELEGATION) for r in rows if r["stage"] == "ok"})
        with open(args.delegates, "w") as f:
            f.write("# Model, float kernels outside, calls of delegates, transposes inside: at most these; written by\n"
                    "# tests/conformance/models.py --extra=--backend=xnnpack:min-ops=1 --delegates FILE --update-floor.\n")
            f.writelines(" ".join(map(str, (name, *allowed[name]))) + "\n" for name in sorted(allowed))
    for row in rows:
        whole = not args.dynamic and any(fnmatch.fnmatchcase(row["model"].split("/")[0], p) for p in WHOLE)
        if row["stage"] == "ok" and whole and (row["outside"] or row["delegates"] > MOST_DELEGATES):
            row.update(stage="delegate", message=f"{row['outside']} outside, {row['delegates']} delegates (of a family that is whole)")
        most = allowed.get(row["model"])
        if row["stage"] != "ok" or not most:
            continue
        had = tuple(row[c] for c in DELEGATION)
        # What was taken from kernels may cost delegates and transposes.
        if had[0] > most[0] or had[0] == most[0] and (had[1] > most[1] or had[2] > most[2]):
            row.update(stage="delegate", message=", ".join(f"{h} {c} (were {m})" for c, h, m in zip(DELEGATION, had, most)))


def finish(args, rows, everything):
    if args.delegates:
        check_delegation(args, rows)
    name = "models-dynamic" if args.dynamic else "models"
    with open(os.path.join(args.work, f"{name}.tsv"), "w") as f:
        f.write("\t".join(COLUMNS) + "\n")
        for row in rows:
            f.write("\t".join(str(row[c]) for c in COLUMNS) + "\n")
    if args.update_floor:
        update_floor(args.floor, rows)
    floor = read_floor(args.floor)
    passed = [r for r in rows if r["stage"] == "ok"]
    refused = [r for r in rows if r["stage"] == "lower" and r["model"] not in floor]
    failed = [r for r in rows if r["stage"] != "ok" and r not in refused]
    # Only a complete run can tell that a model of the floor was not there at all.
    absent = set() if not everything else {
        n for n in floor - {r["model"] for r in rows} if n.endswith("@dynamic") == args.dynamic}
    print()
    for row in failed:
        print(("FLOOR " if row["model"] in floor else "FAIL  ") + line(row))
    for row in refused:
        print(f"skipped: {row['model']}: refused by etc lower: {row['code']} {row['message']}")
    for absentee in sorted(absent):
        print(f"skipped: {absentee}: on the floor, but not in {args.models}")
    print(f"models: {len(passed)} passed, {len(failed)} failed, {len(refused) + len(absent)} skipped")
    return 1 if failed or not passed else 0


def main():
    args = parse_arguments()
    patterns = [p for group in args.k for p in group.split(",")]
    folders = sorted(os.path.dirname(p) for p in glob.glob(os.path.join(args.models, "*", "meta.json")))
    chosen = [f for f in folders if not patterns or any(fnmatch.fnmatchcase(os.path.basename(f), p) for p in patterns)]
    if not chosen:
        print(f"models.py: no model in {args.models}" + (" fits -k" if folders else ""), file=sys.stderr)
        return 2
    if not os.path.isfile(args.etc):
        print(f"models.py: no executable at {args.etc}; build it or give --etc", file=sys.stderr)
        return 2
    args.etc = os.path.abspath(args.etc)
    os.makedirs(args.work, exist_ok=True)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    rows = run_all(args, [Model(f) for f in chosen])
    return finish(args, rows, not patterns)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
