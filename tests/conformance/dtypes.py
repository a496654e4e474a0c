#!/usr/bin/env python3
"""Every operator of the default domain with every element type that its newest version allows, on the real runtime.

    tests/conformance/dtypes.py [-k PATTERN,...] [-v] [--update]

The smallest official case of an operator gives its attributes and values; each type variable is set to each type in turn.
What comes out must be what ONNX Runtime says, or the reference evaluator where that has no kernel (or another opinion).
Types of 64 bits are held to the precision of 64 bits. A wrong value always fails; dtypes-floor.txt has what is right and
what is refused and why, and a change of that fails until --update writes it anew. All variants of an operator that are
right run as one program.
"""

import argparse
import collections
import fnmatch
import os
import re
import sys
import tempfile
import threading
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper  # noqa: E402

import arrays  # noqa: E402
import etc_command  # noqa: E402
import onnx_cases  # noqa: E402
import runtime  # noqa: E402
from cases import ort_session  # noqa: E402

FLOOR = os.path.join(HERE, "dtypes-floor.txt")
TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": arrays.BF16, "int8": np.int8, "int16": np.int16,
         "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
         "bool": np.bool_}
TYPES = {f"tensor({k})": np.dtype(v) for k, v in TYPES.items()}
TOLERANCE = {"float32": (1e-4, 1e-5), "float64": (1e-7, 1e-9), "float16": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2)}
# Division by zero ends ONNX Runtime's process; large shifts and powers are not defined.
OPERAND_RANGE = {"Div": (1, 9), "Mod": (1, 9), "BitShift": (0, 5), "Pow": (0, 3)}
# Their factors are attributes of 32 bits, or the reference computes in f32 (stash_type).
SINGLE = {"BatchNormalization", "GroupNormalization", "HardSwish"}
OUTPUT_BOUND = {"Dropout": 1}  # outputs beyond are random


def templates():
    """{operator: (model, inputs)} of the newest version: the official case of one node with the fewest values."""
    found = {}
    for case in onnx_cases.load(os.path.join(ROOT, "build", "conformance")):
        if case["class"] != "runnable" or "_expanded" in case["name"]:
            continue
        model = onnx.load(os.path.join(case["dir"], "model.onnx"))
        if len(model.graph.node) != 1 or model.graph.initializer or model.graph.node[0].domain not in ("", "ai.onnx"):
            continue
        op = model.graph.node[0].op_type
        inputs, _ = arrays.load_bundle(os.path.join(case["dir"], "data.pkl"))
        version = model.opset_import[0].version
        schema = onnx.defs.get_schema(op)
        if onnx.defs.get_schema(op, version).since_version != schema.since_version or schema.deprecated:
            continue
        key = (-len(inputs), sum(x.size for x in inputs), case["name"])
        if any(x.size == 0 for x in inputs):
            continue
        if op not in found or key < found[op][0]:
            found[op] = (key, model, inputs)
    return {op: (model, inputs) for op, (_, model, inputs) in sorted(found.items())}


def as_type(op, index, array, dtype):
    """The values of `array` as another type, in the domain of the operator."""
    if array.dtype == dtype:
        return array
    if dtype == np.bool_:
        return array.astype(np.float32) > 0
    if dtype.kind in "iu":
        whole = np.rint(array.astype(np.float64) * (4 if array.dtype.kind == "f" or array.dtype == arrays.BF16 else 1))
        low, high = (0, 100) if dtype.kind == "u" else (-100, 100)
        if index and op in OPERAND_RANGE:
            low, high = OPERAND_RANGE[op]
        return np.clip(np.abs(whole) if dtype.kind == "u" else whole, low, high).astype(dtype)
    return array.astype(np.float32).astype(dtype) if dtype == arrays.BF16 else array.astype(dtype)


class Variant:
    """One operator with one type variable set. `expected` is a list of acceptable answers."""

    def __init__(self, op, variable, dtype, node, feeds, opset):
        self.op, self.variable, self.dtype, self.node, self.feeds, self.opset = op, variable, dtype, node, feeds, opset
        self.key = f"{op} {variable} {dtype}"
        # Element types of outputs are found out by way of shape inference.
        inferred = onnx.shape_inference.infer_shapes(self.untyped())
        self.declared = {v.name: v for v in inferred.graph.value_info}
        self.expected = [x for x in (self.ort(), self.reference()) if x is not None]

    def tolerance(self, dtype):
        if self.op == "Resize" and dtype.kind in "iu":
            return 0, 1  # halves go either way
        name = str(self.dtype if str(self.dtype) in ("float16", "bfloat16") else dtype)
        return TOLERANCE["float32" if name == "float64" and self.op in SINGLE else name] if dtype.kind not in "iub" else (0, 0)

    def ort(self):
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "m.onnx")
            model = self.untyped()
            if any(o and o not in self.declared for o in self.node.output):
                return None
            model.graph.output.extend(self.declared[o] for o in self.node.output if o)
            onnx.save(model, path)
            try:
                return [np.asarray(x) if not hasattr(x, "dtype") else x for x in ort_session(path).run(None, self.feeds)]
            except Exception:
                return None

    def untyped(self):
        values = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in self.feeds.items()]
        graph = helper.make_graph([self.node], "dtypes", values, [])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", self.opset)])

    def reference(self):
        from onnx.reference import ReferenceEvaluator

        model = self.untyped()
        model.graph.output.extend(helper.make_empty_tensor_value_info(o) for o in self.node.output if o)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                answer = ReferenceEvaluator(model).run(None, self.feeds)
            if not all(hasattr(x, "dtype") for x in answer):
                return None
            types = [self.declared[o].type.tensor_type.elem_type if o in self.declared else 0 for o in self.node.output if o]
            return [np.asarray(x).astype(helper.tensor_dtype_to_np_dtype(t)) if t else np.asarray(x) for x, t in zip(answer, types)]
        except Exception:
            return None

    def wrong(self, got):
        """None, or what is wrong with these outputs."""
        first = None
        for expected in self.expected:
            bound = OUTPUT_BOUND.get(self.op, len(expected))
            lines = [arrays.difference(g, w, *self.tolerance(w.dtype)) for g, w in zip(got[:bound], expected[:bound])]
            message = next((f"output {i}: {x}" for i, x in enumerate(lines) if x), None)
            if message is None and len(got) == len(expected):
                return None
            first = first or message or "number of outputs"
        return first


def make_model(variants):
    """All of them side by side."""
    nodes, inputs, outputs = [], [], []
    for i, v in enumerate(variants):
        node = onnx.NodeProto()
        node.CopyFrom(v.node)
        node.name = f"n{i}"
        node.input[:] = [f"{x}.{i}" if x else "" for x in v.node.input]
        node.output[:] = [f"{x}.{i}" if x else "" for x in v.node.output]
        nodes.append(node)
        inputs += [helper.make_tensor_value_info(f"{k}.{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in v.feeds.items()]
        outputs += [helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(w.dtype), w.shape)
                    for o, w in zip([o for o in node.output if o], v.expected[0])]
    graph = helper.make_graph(nodes, "dtypes", inputs, outputs)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", variants[0].opset)])


def variants_of(op, model, inputs):
    """Each type variable of the inputs at each type; without a reference there is nothing to compare with."""
    schema, node = onnx.defs.get_schema(op), model.graph.node[0]
    position = {x.name: a for x, a in zip(model.graph.input, inputs)}
    formal = [schema.inputs[min(i, len(schema.inputs) - 1)].type_str for i in range(len(node.input))]
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    fixed = onnx.defs.get_schema(op).since_version
    opset = max(fixed, model.opset_import[0].version)
    for variable in dict.fromkeys(t for t, name in zip(formal, node.input) if name and t in allowed):
        for name, dtype in TYPES.items():
            if name not in allowed[variable]:
                continue
            feeds = {n: as_type(op, i, position[n], dtype) if t == variable else position[n]
                     for i, (n, t) in enumerate(zip(node.input, formal)) if n}
            yield Variant(op, variable, dtype, node, feeds, opset)


# --- running ---

def lower_and_run(variants, args, server, work):
    """(stage, text, outputs for each variant)"""
    source, target, bundle = (os.path.join(work, x) for x in ("model.onnx", "model.pte", "data.pkl"))
    onnx.save(make_model(variants), source)
    if os.path.exists(target):
        os.unlink(target)
    stage, code, message, _ = etc_command.lower(args.etc, source, target, timeout=args.timeout)
    if stage != "ok":
        return stage, f"{code} {message}", None
    counts = [len([o for o in v.node.output if o]) for v in variants]
    expected = [w for v in variants for w in v.expected[0]]
    arrays.save_bundle(bundle, [a for v in variants for a in v.feeds.values()], expected)
    answer = server.run({"pte": target, "bundle": bundle, "rtol": 0, "atol": 0, "save": work}, args.timeout)
    if answer["stage"] not in ("ok", "mismatch"):
        return answer["stage"], answer["message"], None
    got = [arrays.load_npy(os.path.join(work, f"got_{i}.npy"), w.dtype) for i, w in enumerate(expected)]
    return "ok", "", [[got.pop(0) for _ in range(n)] for n in counts]


def results_of(variants, args, server, work):
    """{key: ("ok" | "refused" | "wrong", text)}, together where that works, else one by one."""
    results = {}
    stage, _, outputs = lower_and_run(variants, args, server, work) if len(variants) > 1 else ("", "", None)
    for i, v in enumerate(variants):
        text, got = "", outputs and outputs[i]
        if got is None:
            stage, text, alone = lower_and_run([v], args, server, work)
            got = alone and alone[0]
        if got is None:
            results[v.key] = ("refused" if stage == "lower" else "wrong", text)
        else:
            text = v.wrong(got)
            results[v.key] = ("wrong", text) if text else ("ok", "")
    return results


def sweep(args, floor):
    """Results of all operators, and the keys for which there is no reference."""
    left = iter([(op, t) for op, t in templates().items() if any(fnmatch.fnmatchcase(op, x) for x in args.k.split(","))])
    results, unknown, lock = {}, [], threading.Lock()

    def work_off():
        server = runtime.Runtime()
        with tempfile.TemporaryDirectory(prefix="etc-dtypes-") as work:
            while True:
                with lock:
                    op, template = next(left, (None, None))
                if op is None:
                    break
                all_variants = list(variants_of(op, *template))
                known = [v for v in all_variants if v.expected]
                right = [v for v in known if floor.get(v.key, ("ok",))[0] == "ok"]
                more = results_of(right, args, server, work)
                for v in known:
                    if v not in right:
                        more.update(results_of([v], args, server, work))
                with lock:
                    results.update(more)
                    unknown.extend(v.key for v in all_variants if not v.expected)
                    for key, (status, text) in more.items():
                        if status == "wrong" or args.verbose:
                            print(status.ljust(8), key, text, flush=True)
        server.close()

    threads = [threading.Thread(target=work_off) for _ in range(args.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results, unknown


# --- the table ---

def read_floor():
    floor = {}
    if os.path.exists(FLOOR):
        with open(FLOOR) as f:
            for line in f:
                fields = line.rstrip("\n").split("\t")
                if line.startswith("#") or len(fields) < 4:
                    continue
                status, op, variable, dtypes = fields[:4]
                floor.update({f"{op} {variable} {d}": (status, "\t".join(fields[4:])) for d in dtypes.split(" ")})
    return floor


def reason(text):
    """What does not depend on the model's names."""
    return re.sub(r"\s+", " ", re.sub(r"^(\S+) 'n0': ", r"\1 ", text)).split(" (+")[0][:160]


def write_floor(results, old):
    rows = collections.defaultdict(list)
    for key, (status, text) in {**old, **results}.items():
        op, variable, dtype = key.split(" ")
        rows[op, variable, status, reason(text) if status != "ok" else ""].append(dtype)
    order = [str(t) for t in TYPES.values()]
    with open(FLOOR, "w") as f:
        f.write("# Status, operator, type variable, element types, reason, separated by tabs; tests/conformance/dtypes.py --update writes it.\n")
        for (op, variable, status, text), dtypes in sorted(rows.items()):
            f.write("\t".join([status, op, variable, " ".join(sorted(dtypes, key=order.index)), *([text] if text else [])]) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--etc", default=etc_command.default_command(ROOT))
    p.add_argument("-k", metavar="PATTERN,...", default="*", help="only these operators")
    p.add_argument("-v", "--verbose", action="store_true", help="print every variant")
    p.add_argument("--update", action="store_true", help="write dtypes-floor.txt")
    p.add_argument("-j", "--jobs", type=int, default=min(os.cpu_count() or 1, 8))
    p.add_argument("--timeout", type=float, default=60.0)
    args = p.parse_args()
    floor = read_floor()
    results, unknown = sweep(args, floor)
    changed = []
    for key, (status, text) in sorted(results.items()):
        if status != floor.get(key, ("",))[0]:
            changed.append(f"{key}: {floor.get(key, ('new',))[0]} before, now {status} {text}")
    count = collections.Counter(status for status, _ in results.values())
    if args.update:
        write_floor(results, {k: v for k, v in floor.items() if k in results or args.k != "*"})
    else:
        print(*changed, sep="\n", end="\n" if changed else "")
    print(f"dtypes: {count['ok']} passed, {count['wrong'] + (0 if args.update else len(changed))} failed, "
          f"{count['refused']} refused as written down, {len(unknown)} without a reference")
    return 1 if count["wrong"] or not results or (changed and not args.update) else 0


if __name__ == "__main__":
    sys.exit(main())
