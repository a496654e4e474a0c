#!/usr/bin/env python3
"""Makes the zoo: real architectures with seeded random weights as ONNX models with inputs and expected outputs.

  make.py [--out build/zoo] [--jobs 2] [--list] [NAME ...]

Each model gets a folder: model.onnx, meta.json, input_<i>.npy in the order of meta's inputs_names,
output_<i>.npy in graph-output order, and case<k>/ with the same files for further shapes where dims are dynamic.
Expected outputs come from ONNX Runtime on the CPU without graph optimisations and must agree with PyTorch.
A folder is kept when neither the scripts here nor the library versions have changed since it was made.
Needs tests/zoo/requirements.txt. The last line is "zoo: N passed, N failed, N skipped"; exit 1 when any failed.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shutil
import sys
import time
import traceback
import warnings
import zlib

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("vision", "dense", "sequence", "tabular", "hf", "sizes")
LIBRARIES = ("torch", "onnx", "onnxruntime", "onnxscript", "transformers")


class Skip(Exception):
    """The model cannot be made here, for a reason outside it (a library that is not installed)."""


def installed(library):
    return importlib.util.find_spec(library) is not None


def load_specs():
    """{name: (spec, module file)} in the order of MODULES."""
    sys.path.insert(0, str(HERE))
    specs = {}
    for module in MODULES:
        for spec in __import__(module).SPECS:
            if spec.name in specs:
                sys.exit(f"make.py: two models are called '{spec.name}'")
            specs[spec.name] = (spec, HERE / f"{module}.py")
    for twin, source in list(twins(specs)):
        specs[twin.name] = (twin, source)
    return specs


def architecture(name):
    return re.sub(r"(_dynamo|_script|_fp16|_sdpa|_unoptimised|_raw|_op\d+)+$", "", name)


def twins(specs):
    """Another opset for each architecture that the lists hold at one opset only: of its form in several sizes, where there is one, else
    the same model again."""
    opsets, sizes = collections.defaultdict(set), {}
    for name, (spec, _) in specs.items():
        if name.endswith("_sizes"):
            sizes[architecture(name.removesuffix("_sizes"))] = name
        else:
            opsets[architecture(name)].add(spec.opset)
    done = set()
    for name, (spec, source) in specs.items():
        kind = architecture(name)
        if name.endswith("_sizes") or len(opsets[kind]) > 1 or kind in done or spec.half:
            continue
        done.add(kind)
        if kind in sizes:
            spec, source = specs[sizes[kind]]
        other = spec.second or (21 if spec.dynamo else 13 if spec.opset > 13 else 17)
        yield dataclasses.replace(spec, name=sizes.get(kind) or f"{name}_op{other}", opset=other), source


def cache_key(path):
    import importlib.metadata
    digest = hashlib.sha256()
    sources = [HERE / "make.py", HERE / "common.py", HERE / "vision.py", path]  # vision has shared blocks
    if path.stem == "sizes":
        sources += [HERE / f"{module}.py" for module in MODULES]
    for source in sources:
        digest.update(source.read_bytes())
    for library in LIBRARIES:
        digest.update(f"{library} {importlib.metadata.version(library) if installed(library) else None}".encode())
    return digest.hexdigest()


def export(spec, model, inputs, path):
    import torch
    options = dict(input_names=spec.inputs, output_names=spec.outputs, opset_version=spec.opset, dynamo=spec.dynamo)
    if spec.dynamo:
        if spec.dynamic:
            shapes = tuple(spec.dynamic.get(name, {}) for name in spec.inputs)
            takes = inspect.signature(model.forward).parameters.values()
            variadic = any(p.kind is p.VAR_POSITIONAL for p in takes)
            options["dynamic_shapes"] = (shapes,) if variadic else shapes
        options.update(external_data=False, verbose=False)
    elif spec.dynamic:
        options["dynamic_axes"] = spec.dynamic
    options.update(spec.options)
    torch.onnx.export(model, tuple(inputs), str(path), **options)


def run_reference(path, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return [session.run(None, {n: feed[n] for n in names}) for feed in feeds]


def flat(outputs):
    """The tensors of nested tuples and lists, in order."""
    import torch
    if torch.is_tensor(outputs):
        return [outputs]
    return [t for part in outputs if part is not None for t in flat(part)]


def relative_error(actual, expected):
    """Largest difference over the largest magnitude; infinite when shapes differ or values are not finite."""
    import numpy as np
    if actual.shape != expected.shape:
        return float("inf")
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    if not (np.isfinite(a).all() and np.isfinite(e).all()):
        return float("inf")
    return float(np.abs(a - e).max(initial=0) / max(np.abs(e).max(initial=0), 1e-6))


def describe(value):
    import onnx
    tensor = value.type.tensor_type
    return {"name": value.name, "dtype": onnx.TensorProto.DataType.Name(tensor.elem_type),
            "shape": [d.dim_param or ("?" if not d.HasField("dim_value") else d.dim_value) for d in tensor.shape.dim]}


def graph_facts(path):
    import onnx
    model = onnx.load(str(path))
    onnx.checker.check_model(model)
    constants = {i.name for i in model.graph.initializer}
    inputs = [describe(i) for i in model.graph.input if i.name not in constants]
    ops = collections.Counter(n.op_type for n in model.graph.node)
    return {
        "ir_version": model.ir_version,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "opsets": {o.domain or "ai.onnx": o.version for o in model.opset_import},
        "op_histogram": dict(sorted(ops.items(), key=lambda item: (-item[1], item[0]))),
        "nodes": len(model.graph.node),
        "local_functions": len(model.functions),
        "bytes": path.stat().st_size,
        "inputs_names": [i["name"] for i in inputs],
        "inputs": inputs,
        "outputs": [describe(o) for o in model.graph.output],
        "dynamic_dims": sorted({d for i in inputs for d in i["shape"] if isinstance(d, str)}),
    }


def check_outputs(spec, cases):
    """The worst error against PyTorch over all cases; raises when an output is wrong or says nothing."""
    import numpy as np
    worst = 0.0
    for expected, outputs in cases:
        if len(expected) != len(outputs):
            raise ValueError(f"PyTorch gives {len(expected)} outputs, ONNX Runtime {len(outputs)}")
        for e, o in zip(expected, outputs):
            worst = max(worst, relative_error(o, e))
            if o.size > 1 and o.dtype.kind == "f" and float(np.std(o.astype(np.float64))) < 1e-3:
                raise ValueError("an output is constant: weights are not informative")
    if not worst <= (3e-2 if spec.half else spec.tolerance):
        raise ValueError(f"ONNX Runtime differs from PyTorch by {worst:.3g}")
    return worst


def sensitivity(path, spec, feed, outputs, seed):
    """For each output: how far it moves, in its own standard deviations, when all inputs are drawn anew."""
    import numpy as np
    from common import draw
    other = dict(zip(spec.inputs, (a.astype(feed[n].dtype) for n, a in zip(spec.inputs, draw(spec.cases[0], seed)))))
    moved = run_reference(path, [other])[0]
    return [float(np.abs(m.astype(np.float64) - o.astype(np.float64)).mean() / (np.std(o.astype(np.float64)) + 1e-9))
            for m, o in zip(moved, outputs)]


def save_case(folder, arrays, outputs):
    import numpy as np
    folder.mkdir(parents=True, exist_ok=True)
    for kind, values in (("input", arrays), ("output", outputs)):
        for i, value in enumerate(values):
            np.save(folder / f"{kind}_{i}.npy", np.ascontiguousarray(value))


def make(spec, folder):
    """Builds, exports, runs and writes one model into folder; returns its meta data."""
    import torch
    from common import draw, randomize, tensors
    seed = zlib.crc32(spec.name.encode())
    torch.manual_seed(seed)
    model = spec.build().eval()
    if not spec.keep_weights:
        randomize(model, spec.cases, seed)
    if spec.half:
        model = model.half()
    torch_cases = [tensors(draw(case, seed + k), spec.half) for k, case in enumerate(spec.cases)]
    with torch.no_grad():
        expected = [[t.numpy() for t in flat(model(*(t.clone() for t in case)))] for case in torch_cases]
    path = folder / "model.onnx"
    start = time.perf_counter()
    export(spec, model, torch_cases[0], path)
    seconds = time.perf_counter() - start

    meta = {"name": spec.name, "source": spec.source, "opset": spec.opset,
            "exporter": f"torch.onnx.export(dynamo={spec.dynamo})", "torch": torch.__version__,
            "export_seconds": round(seconds, 2), "params": sum(p.numel() for p in model.parameters())}
    meta.update(graph_facts(path))
    feeds = [dict(zip(spec.inputs, (t.numpy() for t in case))) for case in torch_cases]
    outputs = run_reference(path, feeds)
    meta["max_rel_err_vs_torch"] = check_outputs(spec, list(zip(expected, outputs)))
    meta["sensitivity"] = sensitivity(path, spec, feeds[0], outputs[0], seed + 77)
    meta["cases"] = len(feeds)
    for k, (feed, out) in enumerate(zip(feeds, outputs)):
        arrays = [feed[n] for n in meta["inputs_names"]]
        save_case(folder / f"case{k}" if k else folder, arrays, out)
        meta[f"case{k}_inputs" if k else "concrete_inputs"] = [
            {"shape": list(a.shape), "dtype": str(a.dtype)} for a in arrays]
        meta[f"case{k}_outputs" if k else "concrete_outputs"] = [
            {"shape": list(o.shape), "dtype": str(o.dtype)} for o in out]
    return meta


def make_one(name, out):
    """Runs in a worker process. Returns (name, verdict, message, seconds)."""
    start = time.perf_counter()
    spec, source = load_specs()[name]
    target = pathlib.Path(out) / name
    key = cache_key(source)
    meta_path = target / "meta.json"
    if meta_path.exists() and json.loads(meta_path.read_text()).get("key") == key:
        return name, "kept", "", 0.0
    missing = [library for library in ["onnxscript"] * spec.dynamo + spec.needs.split() if not installed(library)]
    if missing:
        return name, "skipped", f"pip package '{missing[0]}' is not installed", 0.0
    work = pathlib.Path(out) / f".{name}.tmp"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log = pathlib.Path(out) / f"{name}.log"
    verdict, message = "made", ""
    with redirected(log):
        try:
            meta = make(spec, work)
            meta["key"] = key
            (work / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
            shutil.rmtree(target, ignore_errors=True)
            work.rename(target)
        except Exception as error:  # any failure of an exporter is a line in the report
            traceback.print_exc()
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            verdict, message = "failed", f"{type(error).__name__}: {first[:150]} (see {log})"
            shutil.rmtree(work, ignore_errors=True)
    if verdict == "made":
        log.unlink()
    return name, verdict, message, time.perf_counter() - start


class redirected:
    """Sends stdout and stderr of this process, C++ included, to a file while active."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        sys.stdout.flush()
        sys.stderr.flush()
        self.saved = [os.dup(1), os.dup(2)]
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.close(handle)

    def __exit__(self, *unused):
        sys.stdout.flush()
        sys.stderr.flush()
        for number, saved in zip((1, 2), self.saved):
            os.dup2(saved, number)
            os.close(saved)


def start_worker():
    warnings.filterwarnings("ignore")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch
    torch.set_num_threads(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=str(HERE.parent.parent / "build" / "zoo"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    specs = load_specs()
    unknown = [n for n in args.names if n not in specs]
    if unknown:
        sys.exit(f"make.py: there is no model '{unknown[0]}' (see --list)")
    names = args.names or list(specs)
    if args.list:
        for name in names:
            spec = specs[name][0]
            print(f"{name:28} opset {spec.opset:2}  {'dynamo' if spec.dynamo else 'script'}  {spec.source}")
        return 0
    pathlib.Path(args.out).mkdir(parents=True, exist_ok=True)
    counts = collections.Counter()
    # "fork" would share torch's threads with the children; spawn starts clean ones.
    import multiprocessing
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(args.jobs, mp_context=context, initializer=start_worker) as pool:
        pending = {pool.submit(make_one, n, args.out): n for n in names}
        for future in concurrent.futures.as_completed(pending):
            try:
                name, verdict, message, seconds = future.result()
            except Exception as error:  # the worker died
                name, verdict, message, seconds = pending[future], "failed", f"worker: {error!r}", 0.0
            counts[verdict] += 1
            if verdict != "kept":
                print(f"{verdict:8} {name:28} {seconds:5.1f} s  {message}", flush=True)
    print(f"zoo: {counts['made'] + counts['kept']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
