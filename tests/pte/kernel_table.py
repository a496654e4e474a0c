"""Proves schema/ops.def against the released runtime: a program of each kernel on every element type of its row, many shapes and arguments.

usage: kernel_table.py ETC OPS_DEF [-k PART] [--only QUESTION]    (with a Python that has executorch; see with_runtime.sh)

Three questions, each put to programs that `etc lower` writes from textual graphs at level edge, so that no pass makes other ops of them:
  kernel    does the runtime take the call, and give what `etc run` of the same file (our reference kernel) gives? The types of the
            results are those of torch's meta kernels, so the shape rules are compared with torch on the way.
  in place  for each bit of .alias: the operand made and last used right there, so that the greedy planner lets the result overwrite
            it (which is checked); the bits must be those of the naive plan, in which nothing shares memory.
  dynamic   the same calls with a batch dimension of 1 to 7, run at 1, 4 and 7.
Many calls go into one program, since starting things is what takes time; a program that fails is halved until the calls at fault are
alone. What is not asked is listed with its reason. Exit: 0 all right, 1 findings.
"""

import argparse
import collections
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, HERE)

import arrays  # noqa: E402
import kernel_cases  # noqa: E402
import runtime  # noqa: E402
from kernel_cases import Dtype, Size, T  # noqa: E402

BATCH = 96  # calls in a program
FIXED = 3  # n of kernel_cases when sizes are fixed
DYNAMIC = (1, 4, 7)
KEEP = [x for p in ("canonicalize", "eliminate_views", "convolution_to_matmul", "linear_to_matmul") for x in ("--skip-pass", p)]
# Products are summed in the element type itself by some kernels, in a wider one by others.
TOLERANCE = {"f64": (1e-9, 1e-9), "f16": (4e-3, 4e-3), "bf16": (1.6e-2, 1e-2), "sums f16": (2e-2, 4e-2), "sums bf16": (5e-2, 0.4),
             "sums f64": (1e-5, 1e-5), "random": (0, 30)}
SUMS = ("addmm", "bmm", "mm", "linear", "convolution", "cumsum", "sum", "mean", "prod", "grid_sampler_2d", "_native_batch_norm_legit", "native_group_norm",
        "native_layer_norm", "_adaptive_avg_pool2d")
SKIP = {
    "executorch_prim::et_copy_index.tensor": "grows a tensor in a loop: tests/conformance/control.py",
    "aten::repeat_interleave.Tensor": "etc run refuses the program that etc writes: its result has no bound when read back",
}
NOT_RESIZED = ("aten::split_copy.Tensor", "aten::unbind_copy.int")

Call = collections.namedtuple("Call", "op args dtype types kept")  # kept: index of the operand to overwrite, or None


def at(size, value):
    return size.a * value + size.b if isinstance(size, Size) else size


def tensors(args):
    for a in args:
        if isinstance(a, list):
            yield from tensors(a)
        elif isinstance(a, T):
            yield a


def dynamic(args):
    return any(isinstance(a, Size) or isinstance(a, T) and any(isinstance(d, Size) for d in a.shape) or isinstance(a, list) and dynamic(a) for a in args)


# The arguments that are written, which must not be inputs: all of a call are the same tensor.
WRITTEN = {"aten::copy_": [0], "aten::index_put_": [0], "aten::max_pool2d_with_indices_backward": [1, 8]}


class Types:
    """Result types of a call by torch: by its kernels of the CPU, which take microseconds, and by its meta kernels, which take
    milliseconds, where those have not the element type or refuse the values, which are zeros. None where torch has none."""

    def __init__(self):
        import torch

        self.torch = torch
        self.names = {getattr(torch, "bool" if k == "bool" else v): k for k, v in kernel_cases.DTYPES.items()}
        self.dtypes = {v: k for k, v in self.names.items()}

    def argument(self, a, dtype, n):
        if isinstance(a, list):
            return [self.argument(x, dtype, n) for x in a]
        if isinstance(a, T):
            return self.torch.zeros([at(d, n) for d in a.shape], dtype=self.dtypes[a.dtype or dtype], device=self.device)
        if isinstance(a, Dtype):
            return self.dtypes[a.name or dtype]
        return at(a, n)

    def of(self, name, schema, args, dtype, n):
        names = [a.split()[-1].split("=")[0] for a in re.split(r", (?![^\[(]*[\])])", schema[schema.index("(") + 1: schema.index(") ->")])]
        star = names.index("*") if "*" in names else len(names)
        names = [x for x in names if x != "*"]
        space, base = name.split("::")
        left_out = ("memory_format", "grad_input")
        if space == "dim_order_ops":
            space, left_out = "aten", {x for x in names if x != "dtype"}
            base = {"_to_dim_order_copy": "_to_copy", "_clone_dim_order": "clone"}[base]
        if base == "et_view.default":
            space, base = "aten", "view_copy"
        base = base.replace("replication_pad", "reflection_pad")  # the same sizes, for bool too
        packet, _, overload = base.partition(".")
        op = getattr(getattr(getattr(self.torch.ops, space), packet), overload or "default")
        for self.device in ("cpu", "meta"):
            values = [self.argument(a, dtype, n) for a in args]
            kw = {k: v for k, v in zip(names[star:], values[star:]) if k not in left_out}
            try:
                results = op(*values[:star], **kw)
            except (NotImplementedError, RuntimeError, IndexError, TypeError):
                continue
            results = [results] if isinstance(results, self.torch.Tensor) else list(results)
            return [(self.names[r.dtype], list(r.shape)) for r in results]
        return None


def dim_text(d):
    if not isinstance(d, Size):
        return str(d)
    return (f"s0*{d.a}" if d.a != 1 else "s0") + (f" + {d.b}" if d.b else "")


def type_text(dtype, shape):
    return f"{dtype}[{', '.join(map(dim_text, shape))}]"


class Program:
    """The text of a program of calls, and its inputs."""

    def __init__(self, calls, fixed):
        self.lines, self.inputs, self.outputs, self.owners, self.count, self.tested = [], [], [], [], 0, []
        self.fixed = fixed
        body = []
        for call in calls:
            body += self.call(call)
        self.text = "\n".join(["graph @forward level(edge) {", *([] if fixed else [f'  sym s0 "n" in [{DYNAMIC[0]}, {DYNAMIC[-1]}]']), *self.lines, *body,
                               "  output " + ", ".join(self.outputs), "}", ""])

    def size(self, d):
        return at(d, self.fixed) if self.fixed else d

    def value(self):
        self.count += 1
        return f"%{self.count}"

    def argument(self, a, dtype, operands):
        if isinstance(a, list):
            return "[" + ", ".join(self.argument(x, dtype, operands) for x in a) + "]"
        if isinstance(a, T):
            shape = [self.size(d) for d in a.shape]
            v, t = self.value(), type_text(a.dtype or dtype, shape)
            self.inputs.append((a.kind, a.dtype or dtype, shape))
            self.lines.append(f'  {v}: {t} = input "i{len(self.inputs) - 1}"')
            operands.append((v, t))
            return v
        if isinstance(a, Dtype):
            return a.name or dtype
        if isinstance(a, str):
            return f'"{a}"'
        if a is None or isinstance(a, bool):
            return str(a).lower()
        return dim_text(self.size(a)) if isinstance(a, Size) else str(a)

    def call(self, call):
        operands = []
        args = [self.argument(a, call.dtype, operands) for a in call.args]
        body = []
        if call.kept is not None:
            old, t = operands[call.kept]
            v = self.value()
            body.append(f"  {v}: {t} = aten::clone({old}, none)")
            args = [re.sub(rf"{old}\b", v, a) for a in args]
        written = WRITTEN.get(call.op, [])
        if written:
            v, (old, t) = self.value(), operands[written[0]]
            body.append(f"  {v}: {t} = aten::clone({old}, none)")
            for i in written:
                args[i] = v
        results = [(self.value(), type_text(d, s)) for d, s in call.types]
        body.append(f"  {', '.join(f'{v}: {t}' for v, t in results)} = {call.op}({', '.join(args)})")
        if written:  # the operand again, which has no name of its own in the program
            results.append((self.value(), results[0][1]))
            body.append(f"  {results[1][0]}: {results[1][1]} = aten::clone({results.pop(0)[0]}, none)")
        if call.kept is None:
            self.outputs += [v for v, _ in results]
            self.owners += [call] * len(results)
            return body
        self.tested.append(call)
        for v, t in results + [o for k, o in enumerate(operands) if k != call.kept]:  # the consumer; others live longer than the call
            copy = self.value()
            body.append(f"  {copy}: {t} = aten::clone({v}, none)")
            self.outputs.append(copy)
            self.owners.append(call)
        return body


class Bench:
    def __init__(self, etc, folder):
        self.etc, self.folder, self.server, self.programs = etc, folder, runtime.Runtime(), 0

    def run(self, *args):
        return subprocess.run([self.etc, *args], capture_output=True, text=True)

    def lower(self, text, *options):
        """The .pte, or what etc said."""
        path, pte = os.path.join(self.folder, "graph.etir"), os.path.join(self.folder, "graph.pte")
        with open(path, "w") as f:
            f.write(text)
        if os.path.exists(pte):
            os.remove(pte)
        done = self.run("lower", path, "-o", pte, "--quiet", *KEEP, *options)
        self.programs += 1
        return (pte, "") if done.returncode == 0 else (None, done.stderr)

    def reference(self, pte, inputs):
        command = ["run", pte, "-o", os.path.join(self.folder, "out")]
        for path in glob.glob(os.path.join(self.folder, "out", "*.npy")):
            os.remove(path)
        for i, array in enumerate(inputs):
            arrays.save_npy(os.path.join(self.folder, f"in_{i}.npy"), array)
            command += ["-i", f"{i}=" + os.path.join(self.folder, f"in_{i}.npy")]
        return self.run(*command)

    def outputs(self, names):
        return [arrays.load_npy(os.path.join(self.folder, "out", f"{x}.npy"), arrays.BF16) for x in names]

    def real(self, pte, inputs, expected, tolerance, save=None):
        bundle = os.path.join(self.folder, "case.bundle")
        arrays.save_bundle(bundle, inputs, expected)
        return self.server.run({"pte": pte, "bundle": bundle, "rtol": tolerance[0], "atol": tolerance[1], **({"save": save} if save else {})})

    def judge(self, calls, tolerance, fixed, sizes, plan=None):
        """The program of these calls, and None or what is wrong with it."""
        program = Program(calls, fixed)
        return program, self.wrong(program, tolerance, sizes, plan)

    def wrong(self, program, tolerance, sizes, plan):
        names = [f"o{i}" for i in range(len(program.outputs))]
        text = program.text.replace("  output " + ", ".join(program.outputs), "  output " + ", ".join(f'{v} "{x}"' for v, x in zip(program.outputs, names)))
        bits = {}
        for option in plan or ("greedy",):
            pte, why = self.lower(text, "--plan", option)
            if pte is None:
                return "refused by etc: " + why.strip().replace("\n", " ")
            if option == "greedy" and plan:
                missing = self.not_in_place(pte, program)
                if missing:
                    return missing
            for size in sizes:
                rng = np.random.default_rng(1)
                inputs = [kernel_cases.values(k, d, [at(x, size) for x in s], rng, arrays.BF16) for k, d, s in program.inputs]
                done = self.reference(pte, inputs)
                if done.returncode != 0:
                    return "etc run: " + done.stderr.strip().replace("\n", " ")
                answer = self.real(pte, inputs, self.outputs(names), tolerance, self.folder if plan else None)
                if answer["stage"] != "ok":
                    return f"n={size} {option}: {answer['stage']}: {answer['message']}"
                if plan:
                    got = [open(os.path.join(self.folder, f"got_{i}.npy"), "rb").read() for i in range(len(names))]
                    if bits.setdefault(size, got) != got:
                        return f"n={size}: other bits when the result overwrites the operand"
        return None

    def single(self, text, inputs):
        pte, why = self.lower(text)
        if pte is None:
            return "refused by etc: " + why.strip().replace("\n", " ")
        done = self.reference(pte, inputs)
        if done.returncode != 0:
            return "etc run: " + done.stderr.strip().replace("\n", " ")
        answer = self.real(pte, inputs, self.outputs(["o0"]), (1e-9, 1e-9))
        return None if answer["stage"] == "ok" else f"{answer['stage']}: {answer['message']}"

    def not_in_place(self, pte, program):
        """Whether each call under test has its result where its operand was."""
        text = self.run("print", pte).stdout
        places = {}
        for value, place in re.findall(r"(%\d+): [^=\n]*?@(\d+\+\d+|%\d+)", text):
            places[value] = places.get(place, place)  # a view has that of its base
        calls = [line for line in text.splitlines() if not line.endswith("// no call")]
        kernels = [re.findall(r"(%\d+)\b", line.split("loc(")[0]) for line in calls if re.search(r"= (?!aten::clone\(|input|aten::sym_)[\w]+::", line)]
        tested = [c for c in program.tested if c.op != "aten::clone"]  # it cannot be told from the copies around the calls
        if len(kernels) != len(tested):
            return f"{len(kernels)} kernels under test, {len(tested)} written"
        for call, values in zip(tested, kernels):
            results = len(call.types)
            if places[values[results + call.kept]] != places[values[0]]:
                return "not done in place, though the table says so"
        return None


def describe(call):
    def show(a):
        if isinstance(a, list):
            return "[" + ", ".join(map(show, a)) + "]"
        if isinstance(a, T):
            return type_text(a.dtype or call.dtype, a.shape)
        return a.name or call.dtype if isinstance(a, Dtype) else dim_text(a) if isinstance(a, Size) else str(a)
    return f"{call.op} {call.dtype or ''}({', '.join(map(show, call.args))})" + (f" over operand {call.kept}" if call.kept is not None else "")


class Test:
    def __init__(self, bench, types, ops, alias, part):
        self.bench, self.types, self.alias = bench, types, alias
        self.ops = [o for o in ops if o["kernel"] and part in o["op"]]
        self.passed, self.failed, self.skipped = 0, [], []

    def calls(self, dynamic_only=False):
        """All calls with result types: of fixed sizes, or in n."""
        for o in self.ops:
            cases = kernel_cases.cases_of(o["op"], o["schema"])
            if o["op"] in SKIP or cases is None:
                if not dynamic_only:
                    self.skipped.append((o["op"], SKIP.get(o["op"], "no calls of it are listed")))
                continue
            for args in cases:
                free = any(t.dtype is None for t in tensors(args)) or any(isinstance(a, Dtype) and a.name is None for a in args)
                if dynamic_only and not dynamic(args):
                    continue
                if dynamic_only and o["op"] in NOT_RESIZED:
                    self.skipped.append((o["op"], "etc refuses dynamic sizes of it, since the kernel does not resize the pieces"))
                    continue
                for dtype in [d for d in o["dtypes"] if d in kernel_cases.DTYPES] if free else [None]:
                    call = self.typed(o, args, dtype, dynamic_only) if kernel_cases.possible(o["op"], args, dtype) else None
                    if call:
                        yield call

    def typed(self, o, args, dtype, symbolic):
        results = [self.types.of(o["op"], o["schema"], args, dtype, n) for n in ((FIXED, 41, 43) if symbolic else (FIXED,))]
        if any(r is None for r in results):
            self.skipped.append((f"{o['op']} {dtype}", "torch has no such call to take the types from"))
            return None
        results = [self.as_kernel(o["op"], r, dtype) for r in results]
        types = results[0]
        if symbolic:
            first, second = results[1], results[-1]
            types = []
            for (d, s1), (_, s2) in zip(first, second):
                types.append((d, [x if x == y else Size((y - x) // 2, x - 41 * ((y - x) // 2)) for x, y in zip(s1, s2)]))
        return Call(o["op"], args, dtype, types, None)

    @staticmethod
    def as_kernel(op, types, dtype):
        """Where the runtime's kernel has other results than torch."""
        if op.split(".")[0] == "aten::any":
            return [("bool", s) for _, s in types]  # u8 for u8
        if op == "aten::_native_batch_norm_legit_no_training":
            return [types[0], (dtype, [0]), (dtype, [0])]  # the statistics of the batch, which nothing needs
        if "norm" in op:
            return [(dtype, s) for _, s in types]  # f32 for f16 and bf16
        return types

    def refuses(self):
        """Calls that the runtime would get wrong or refuse: etc must say so and write nothing."""
        count = 0
        for op, args, dtypes, words in kernel_cases.REFUSED:
            for o in self.ops:
                for dtype in dtypes if o["op"] == op else ():
                    call = self.typed(o, args, dtype, False)
                    pte, why = self.bench.lower(Program([call], FIXED).text)
                    good = pte is None and "E0504" in why and words in why
                    self.passed, count = self.passed + good, count + 1
                    if not good:
                        self.failed.append(f"refused: {describe(call)}: {why or 'etc wrote a program'}")
                        print("FAIL", self.failed[-1])
        print(f"refused: {count} calls")

    def programs(self):
        """Scalars, and sizes from data: a program a call."""
        seen, before = set(), self.passed
        wanted = {o["op"] for o in self.ops}
        for op, text, inputs in [*kernel_cases.scalar_programs(), *kernel_cases.data_programs()]:
            if op not in wanted:
                continue
            seen.add(op)
            why = self.bench.single(text, inputs)
            self.passed += why is None
            if why is not None:
                self.failed.append(f"program: {op} {[x.tolist() for x in inputs]}: {why}")
                print("FAIL", self.failed[-1][:700])
        print(f"program: {self.passed - before} of {len(seen)} ops passed")
        self.skipped = [(o, w) for o, w in self.skipped if o not in seen]

    def in_place(self, calls):
        for call in calls:
            flat = [i for i, a in enumerate(call.args) if isinstance(a, T)]
            if not flat or any(isinstance(a, list) and list(tensors(a)) for a in call.args):
                continue  # no row with a list of tensors has a mask
            for k, position in enumerate(flat):
                operand, result = call.args[position], call.types[0]
                bit = sum(a is None or isinstance(a, T) for a in call.args[:position])
                shape = [at(d, FIXED) for d in operand.shape]
                fits = self.width(operand.dtype or call.dtype) == self.width(result[0]) and shape == [at(d, FIXED) for d in result[1]]
                if self.alias.get(call.op, 0) >> bit & 1 and fits and 0 not in shape:
                    yield call._replace(kept=k)

    @staticmethod
    def width(dtype):
        return 1 if dtype == "bool" else 2 if dtype == "bf16" else np.dtype(kernel_cases.DTYPES[dtype]).itemsize

    def all(self, what, calls, **how):
        groups = collections.defaultdict(list)
        for c in calls:
            wide = [d for d in [c.dtype, *(d for d, _ in c.types)] if d]
            kind = "random" if "rand" in c.op else "bf16" if "bf16" in wide else "f16" if "f16" in wide else "f64" if "f64" in wide and "f32" not in wide else "f32"
            groups["sums " + kind if kind in ("f16", "bf16", "f64") and c.op.split("::")[1].split(".")[0] in SUMS else kind].append(c)
        before = self.passed, len(self.failed)
        for kind, group in groups.items():
            for i in range(0, len(group), BATCH):
                self.halve(what, group[i:i + BATCH], TOLERANCE.get(kind, (2e-5, 1e-5)), how)
        print(f"{what}: {self.passed - before[0]} calls of {len({c.op for g in groups.values() for c in g})} ops passed, {len(self.failed) - before[1]} failed", flush=True)

    def halve(self, what, calls, tolerance, how):
        program, why = self.bench.judge(calls, tolerance, **how)
        at_fault = re.search(r"mismatch: output (\d+):", why or "")
        if why is None:
            self.passed += len(calls)
        elif at_fault and len(calls) > 1:
            guilty = program.owners[int(at_fault[1])]
            self.halve(what, [guilty], tolerance, how)
            self.halve(what, [c for c in calls if c is not guilty], tolerance, how)
        elif len(calls) == 1:
            self.failed.append(f"{what}: {describe(calls[0])}: {why}")
            print("FAIL", self.failed[-1][:700], flush=True)
        else:
            self.halve(what, calls[: len(calls) // 2], tolerance, how)
            self.halve(what, calls[len(calls) // 2:], tolerance, how)


def alias_masks(folder):
    text = "".join(path.read_text() for path in sorted(pathlib.Path(folder).glob("*.def")))
    rows = re.findall(r'^OP\(\w+, \.schema = "([\w:.]+)\((.*?)^ {3}\.doc', text, re.M | re.S)
    found = {name: re.search(r"\.alias = (\d+)", rest) for name, rest in rows}
    return {name: int(m.group(1)) for name, m in found.items() if m}


def memory_folder():
    """A folder in memory, where there is one with room: thousands of small files are written."""
    shm = "/dev/shm"
    return shm if os.path.isdir(shm) and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 1 << 28 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("etc")
    parser.add_argument("op_table", help="the folder schema/ops")
    parser.add_argument("-k", default="", help="only ops with this in their names")
    parser.add_argument("--only", choices=["kernel", "in place", "dynamic"], help="one of the three questions")
    options = parser.parse_args()
    ops = json.loads(subprocess.run([options.etc, "ops", "--json"], capture_output=True, text=True, check=True).stdout)["ops"]
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        bench = Bench(options.etc, folder)
        test = Test(bench, Types(), ops, alias_masks(options.op_table), options.k)
        fixed = list(test.calls())
        if options.only in (None, "kernel"):
            test.all("kernel", fixed, fixed=FIXED, sizes=[FIXED])
            test.refuses()
            test.programs()
        if options.only in (None, "in place"):
            test.all("in place", test.in_place(fixed), fixed=FIXED, sizes=[FIXED], plan=("naive", "greedy"))
        if options.only in (None, "dynamic"):
            test.all("dynamic", test.calls(dynamic_only=True), fixed=None, sizes=DYNAMIC)
        bench.server.close()
    reasons = collections.Counter(why for _, why in test.skipped)
    for why, count in reasons.items():
        names = sorted({name.split()[0] for name, w in test.skipped if w == why})
        print(f"skipped {count}: {why}: {', '.join(names)}")
    print(f"{bench.programs} programs")
    print(f"kernel_table: {test.passed} passed, {len(test.failed)} failed, {len(test.skipped)} skipped")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
