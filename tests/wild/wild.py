#!/usr/bin/env python3
"""Lowers trained models that packages of the registries carry, and runs them on the real ExecuTorch runtime.

    tests/wild/wild.py                     all of models.tsv, on the portable kernels and on XNNPACK; some 30 minutes
    tests/wild/wild.py -k 'silero*,oww*'   some
    tests/wild/wild.py --light             the few small ones that tools/check runs
    tests/wild/wild.py --write             all of them, and the table in docs/measurements/trained-models.md; with -k or --no-run, too:
                                           rows of models that were never run here stay as they are

packages.tsv names the packages (downloaded once to build/wild, checked by SHA-256), models.tsv the models in them: how the dims are
bounded (NAME=N, or NAME=LO..HI for one program that runs at both ends), which inputs they get (inputs.py), further options of
`etc lower`. A member .ort is written as .onnx by ONNX Runtime; any other holds weights, which export.py makes a model of.

Expected is what ONNX Runtime computes. An element may differ by atol + rtol * |expected|: rtol 1e-3, and as atol the largest of 1e-4,
1e-5 of the output's largest element, and 3 x what ONNX Runtime's own output moves by (reference.py); float16 models 2e-2.
A package that cannot be downloaded makes its models count as skipped, and that is said at the end.
"""

import argparse
import fnmatch
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402

import arrays  # noqa: E402
import etc_command  # noqa: E402
import inputs  # noqa: E402
import packages  # noqa: E402
import reference  # noqa: E402
import report  # noqa: E402
import runtime  # noqa: E402

WEIGHTS = (".pt", ".pth", ".npz", ".safetensors", "pytorch_model.bin")
BACKENDS = {"portable": [], "xnnpack": ["--backend=xnnpack"]}
RTOL, ATOL, NOISE, HALF = 1e-3, 1e-4, 1e-5, 2e-2
MOVEMENTS = 3  # an output may differ by so many times what ONNX Runtime's own moves by


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog=__doc__.split("\n", 2)[2],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--etc", default=etc_command.default_command(ROOT), help="the command under test")
    p.add_argument("-k", metavar="PATTERN,...", default="*", help="only these models (shell patterns)")
    p.add_argument("--backend", choices=[*BACKENDS, "both"], default="both")
    p.add_argument("--light", action="store_true", help="only the models that are marked light")
    p.add_argument("--cache", default=os.path.join(ROOT, "build", "wild"), help="packages, models and programs")
    p.add_argument("--keep", action="store_true", help="keep programs and arrays of each model in the cache")
    p.add_argument("--write", action="store_true", help="write docs/measurements/trained-models.md with the last result of each model")
    p.add_argument("--no-run", action="store_true", help="with --write: only the table")
    p.add_argument("--timeout", type=float, default=300.0, help="seconds for one step of one model, or one download")
    return p.parse_args()


class Model:
    """A row of models.tsv with its file, once that is there."""

    def __init__(self, row, args):
        self.name, self.kind, self.member, self.packages = row["name"], row["kind"], row["member"], row["packages"].split("+")
        self.run = row["run"]
        self.kinds = inputs.parse(row["inputs"] or "")
        self.dims = dict(x.rsplit("=", 1) for x in (row["dims"] or "").split())
        self.options = shlex.split(row["options"] or "")
        self.values = self.constants()
        self.path = os.path.join(args.cache, "models", self.name, "model.onnx")

    def constants(self):
        """{input: number} of --value in the options: those are no inputs of the program."""
        pairs = zip(self.options, self.options[1:])
        return {v.rsplit("=", 1)[0]: float(v.rsplit("=", 1)[1]) for flag, v in pairs if flag == "--value"}

    def prepare(self, args, listed):
        """Downloads, extracts and exports what is not in the cache."""
        archives = [packages.fetch(listed[p], os.path.join(args.cache, "packages"), args.timeout) for p in self.packages]
        if os.path.exists(self.path):
            return
        if self.member.endswith(WEIGHTS):
            weights = os.path.join(os.path.dirname(self.path), os.path.basename(self.member))
            packages.extract(archives, [self.member], weights)
            done = subprocess.run([sys.executable, os.path.join(HERE, "export.py"), self.name, weights, self.path],
                                  capture_output=True, text=True, timeout=args.timeout)
            if done.returncode != 0:
                raise RuntimeError("export.py: " + " | ".join(done.stderr.strip().splitlines()[-2:]))
        elif self.member.endswith(".ort"):
            flat = os.path.join(os.path.dirname(self.path), os.path.basename(self.member))
            packages.extract(archives, [self.member], flat)
            reference.unflatten(flat, self.path)
        else:
            packages.extract(archives, self.member.split("+", len(archives) - 1), self.path)

    def sizes(self):
        """The sizes to run at: one dict a case. Ranges give two, their ends."""
        ends = [{k: int(v.split("..")[i and -1]) for k, v in self.dims.items()} for i in (1, 0)]
        return ends if any(".." in v for v in self.dims.values()) else ends[:1]


class Case:
    """Inputs of one size, what ONNX Runtime makes of them, and by how much each output may differ."""

    def __init__(self, model, session, plain, sizes, half):
        values = session.get_inputs()
        made = inputs.make(model.name, values, model.kinds | {n: f"const:{v}" for n, v in model.values.items()}, sizes)
        self.outputs = [np.asarray(x) for x in reference.run(session, made)]
        self.movement = reference.movement(model.path, session, plain, made, self.outputs)
        self.all_inputs = made
        self.inputs = [a for v, a in zip(values, made) if v.name not in model.values]
        floor = HALF if half else ATOL
        self.atol = [max(floor, NOISE * largest(x), MOVEMENTS * m) for x, m in zip(self.outputs, self.movement)]
        self.rtol = HALF if half else RTOL


def largest(array):
    """The largest finite element."""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array[:0]
    return float(np.abs(finite).max()) if finite.size else 0.0


def is_half(path):
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    return any(x.data_type in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16) for x in graph.initializer), len(graph.node)


def worst(got, case):
    """(error, what is allowed there, movement of that output) of the element that uses most of its allowance, after its share;
    None if no output has floats."""
    most = None
    for g, want, atol, movement in zip(got, case.outputs, case.atol, case.movement):
        if g.shape != want.shape or want.dtype.kind != "f" or want.size == 0:
            continue
        gap = np.abs(g.astype(np.float64) - want.astype(np.float64))
        allowed = atol + case.rtol * np.abs(want.astype(np.float64))
        share = np.where(np.isfinite(gap), gap / allowed, 0.0)
        at = int(np.argmax(share))
        if most is None or share.flat[at] > most[0]:
            most = (float(share.flat[at]), float(gap.flat[at]), float(allowed.flat[at]), movement)
    return most


def run_program(args, case, program, repeat, server, work):
    """(stage, message, worst, CPU milliseconds)"""
    bundle = os.path.join(work, "bundle.pkl")
    arrays.save_bundle(bundle, case.inputs, case.outputs)
    for old in os.listdir(work):
        if old.startswith("got_"):
            os.unlink(os.path.join(work, old))
    answer = server.run({"pte": program, "bundle": bundle, "rtol": case.rtol, "atol": case.atol, "repeat": repeat, "threads": 1,
                         "save": work}, args.timeout)
    got = [os.path.join(work, f"got_{i}.npy") for i in range(len(case.outputs))]
    figures = worst([arrays.load_npy(p, x.dtype) for p, x in zip(got, case.outputs)], case) if all(map(os.path.exists, got)) else None
    return answer["stage"], " ".join(answer["message"].split()), figures, answer.get("cpu_seconds", 0.0) * 1e3


def run_backend(args, model, backend, cases, server, work):
    """What the table says of a model on a backend."""
    result = {"figures": None}
    program = os.path.join(work, f"{backend}.pte")
    result["stage"], result["code"], result["message"], _ = etc_command.lower(
        args.etc, model.path, program, model.dims, [*BACKENDS[backend], *model.options], args.timeout)
    if result["stage"] != "ok":
        return result
    result["bytes"] = os.path.getsize(program)
    for i, case in enumerate(cases):
        stage, message, figures, cpu = run_program(args, case, program, 9 if backend == "xnnpack" else 2, server, work)
        if figures and (result["figures"] is None or figures > result["figures"]):
            result["figures"] = figures
        if i == 0:
            result["cpu_ms"] = cpu
        if stage != "ok":
            result.update(stage=stage, message=f"size {i}: {message}" if len(cases) > 1 else message)
            break
    return result


def backends_of(args, model):
    """On the portable kernels some models take many minutes."""
    chosen = list(BACKENDS) if args.backend == "both" else [args.backend]
    return [b for b in chosen if b == "xnnpack" or model.run != "xnnpack"]


def empty_row(model, listed, wrong=""):
    package = listed[model.packages[0]]
    return {"name": model.name, "package": f"{package['package']} {package['version']}", "skipped": "", "wrong": wrong, "backends": {}}


def saved(args, model):
    """The last result of a model; None if it was never run here."""
    try:
        with open(os.path.join(args.cache, "results", model.name + ".json")) as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def save(args, model, row):
    """A run on one backend leaves what is known of the other."""
    folder = os.path.join(args.cache, "results")
    os.makedirs(folder, exist_ok=True)
    before = saved(args, model)
    whole = dict(row, backends=(before["backends"] if before else {}) | row["backends"])
    with open(os.path.join(folder, model.name + ".json"), "w") as f:
        json.dump(whole, f)


def run_model(args, model, listed, server):
    row = empty_row(model, listed)
    try:
        model.prepare(args, listed)
    except packages.NotReachable as e:
        row["skipped"] = str(e)
        return row
    except packages.WrongContents as e:
        row["wrong"] = str(e)
        return row
    half, row["nodes"] = is_half(model.path)
    row["bytes"] = os.path.getsize(model.path)
    session, plain = reference.session(model.path), reference.session(model.path, optimise=False)
    cases = [Case(model, session, plain, sizes, half) for sizes in model.sizes()]
    row["reference_ms"] = reference.cpu_ms(reference.session(model.path, exact=False), cases[0].all_inputs)
    del session, plain
    work = os.path.join(args.cache, "work", model.name) if args.keep else tempfile.mkdtemp(prefix="wild-")
    os.makedirs(work, exist_ok=True)
    for backend in backends_of(args, model):
        row["backends"][backend] = run_backend(args, model, backend, cases, server, work)
    if not args.keep:
        shutil.rmtree(work)
    return row


def run_all(args, models, listed):
    server, rows = runtime.Runtime(), []
    for model in models:
        try:
            row = run_model(args, model, listed, server)
        except Exception as e:  # the others go on; this one has not passed
            row = empty_row(model, listed, f"{type(e).__name__}: {' '.join(str(e).split())[:300]}")
        save(args, model, row)
        rows.append(row)
        print(report.line(row), flush=True)
    server.close()
    return rows


def main():
    args = parse_arguments()
    args.etc = os.path.abspath(args.etc)
    if not os.access(args.etc, os.X_OK):
        print(f"wild.py: there is no command {args.etc}; build it or say --etc PATH", file=sys.stderr)
        return 2
    models = [Model(r, args) for r in packages.read_table("models.tsv")]
    listed = {p["package"]: p for p in packages.read_table("packages.tsv")}
    chosen = [] if args.no_run else [m for m in models if any(fnmatch.fnmatchcase(m.name, k) for k in args.k.split(","))
                                     and (m.run == "light" or not args.light)]
    rows = run_all(args, chosen, listed)
    if args.write:
        report.write(os.path.join(ROOT, "docs", "measurements", "trained-models.md"), [(m, saved(args, m)) for m in models])
    if args.no_run:
        return 0
    return report.finish(rows)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
