#!/usr/bin/env python3
"""Which element types each ONNX operator is lowered with, measured on the real runtime.

    tests/conformance/element_types.py                 every type in src/onnx/element_types.def still works
    tests/conformance/element_types.py --update [-k]   measures anew

An official case of one node is the pattern of its operator. All its tensors that share the type of the first
input get another one that the standard allows there; the model must lower, run, and agree with the reference evaluator,
or, where that does not know the type, with the same computation in double or int64.
"""

import collections
import fnmatch
import os
import re
import sys
import textwrap
import warnings

import single_node
from single_node import HERE, ROOT, Case

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, numpy_helper  # noqa: E402

sys.path[:0] = [HERE]
import arrays  # noqa: E402
import cases  # noqa: E402
import onnx_cases  # noqa: E402

TABLE = os.path.join(ROOT, "src", "onnx", "element_types.def")
# In the order of the tables; ONNX's name, ours, numpy's.
TYPES = [("bool", "bool", np.bool_), ("uint8", "u8", np.uint8), ("int8", "i8", np.int8), ("int16", "i16", np.int16), ("int32", "i32", np.int32),
         ("int64", "i64", np.int64), ("float16", "f16", np.float16), ("bfloat16", "bf16", ml_dtypes.bfloat16), ("float", "f32", np.float32),
         ("double", "f64", np.float64), ("uint16", "u16", np.uint16), ("uint32", "u32", np.uint32), ("uint64", "u64", np.uint64)]
FIXED = ("BitCast", "ImageDecoder")  # an attribute ties the two types together; not lowered
NEXT = "\n  "  # line of a row
ROW = re.compile(r'^ONNX_ELEMENT_TYPES\("([^"]*)",((?:\s+"[^"]*")+)\)', re.M)
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2}


def formal(schema_values, i):
    """The formal parameter of the i-th value; the last one may be variadic."""
    return schema_values[min(i, len(schema_values) - 1)]


class Pattern:
    """A model of one node whose tensors of one type constraint can change their type."""

    def __init__(self, case, model):
        self.model, self.node = model, model.graph.node[0]
        self.inputs, self.outputs = arrays.load_bundle(os.path.join(case["dir"], "data.pkl"))
        opset = next(o.version for o in self.model.opset_import if o.domain in ("", "ai.onnx"))
        self.schema = onnx.defs.get_schema(self.node.op_type, opset, "")
        own = self.schema.inputs[0] if self.schema.inputs else None
        self.constraint = own.type_str if own else ""
        allowed = own.types if own else set()
        self.types = [t for t in TYPES if f"tensor({t[0]})" in allowed]
        self.named = {x: formal(self.schema.inputs, i).type_str for i, x in enumerate(self.node.input) if x and self.schema.inputs}
        self.named.update({x: formal(self.schema.outputs, i).type_str for i, x in enumerate(self.node.output) if x and self.schema.outputs})

    def varies(self, name, dtype, i):
        """Has this input or output the type of the first input? Further outputs only by the standard's word."""
        same = bool(self.inputs) and dtype == self.inputs[0].dtype and not self.named.get(name, "tensor(").startswith("tensor(")
        return self.named.get(name) == self.constraint or (same and (i == 0 or name not in self.node.output))

    def changed(self, name, dtype):
        """(model, inputs) with the type in place, or None where it cannot be."""
        model, number = onnx.ModelProto.FromString(self.model.SerializeToString()), onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        inputs = []
        for i, (value, array) in enumerate(zip(model.graph.input, self.inputs)):
            if self.varies(value.name, array.dtype, i):
                value.type.tensor_type.elem_type = number
                with np.errstate(all="ignore"):
                    array = convert(array, dtype)
            inputs.append(array)
        for i, (value, array) in enumerate(zip(model.graph.output, self.outputs)):
            if self.varies(value.name, array.dtype, i):
                value.type.tensor_type.elem_type = number
        return model, inputs


def convert(array, dtype):
    if np.dtype(dtype).kind in "iub" and array.dtype.kind not in "iub" and np.any(array != np.round(array)):
        array = np.clip(np.round(2 * array.astype(np.float64)), -3, 3)  # products of them do not overflow
    if np.dtype(dtype).kind == "u":
        array = np.abs(array.astype(np.float64))
    return np.asarray(array).astype(dtype)


def declared(results, kinds):
    return [np.asarray(x).astype(onnx.helper.tensor_dtype_to_np_dtype(k)) for x, k in zip(results, kinds)]


def reference(pattern, dtype, model, inputs):
    """Expected outputs, or None when no reference knows."""
    from onnx.reference import ReferenceEvaluator

    names = [v.name for v in model.graph.input]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        kinds = [v.type.tensor_type.elem_type for v in model.graph.output]
        try:
            return declared(ReferenceEvaluator(model).run(None, dict(zip(names, inputs))), kinds)
        except Exception:
            pass
        try:
            if dtype is not ml_dtypes.bfloat16:
                return [np.asarray(x) for x in cases.ort_session(model.SerializeToString()).run(None, dict(zip(names, inputs)))]
        except Exception:
            pass
        for name, _, other in TYPES:
            if other not in ((np.int64, ) if np.dtype(dtype).kind in "iub" else (np.float32, np.float64)):
                continue
            try:
                again, _ = pattern.changed(name, other)
                values = [x.astype(other) if x.dtype == dtype else x for x in inputs]
                return declared(ReferenceEvaluator(again).run(None, dict(zip(names, values))), kinds)
            except Exception:
                pass
    return None


class Measured(Case):
    def __init__(self, pattern, name, kind, dtype):
        self.name = f"{pattern.node.op_type}-{kind}"
        self.model, inputs = pattern.changed(name, dtype)
        self.feeds = [dict(zip((v.name for v in self.model.graph.input), inputs))]
        self.rtol = self.atol = TOLERANCE.get(name, 1e-3)
        if pattern.node.op_type == "Resize" and np.dtype(dtype).kind in "iu":
            self.atol = 1  # the reference rounds, ONNX Runtime cuts off
        self.key, self.kind = ("", pattern.node.op_type), kind
        self.pattern, self.dtype = pattern, dtype

    def expected(self, path, feed):
        results = reference(self.pattern, self.dtype, self.model, list(feed.values()))
        if results is None:
            raise ValueError("no reference knows this type")
        return results


def patterns(cache, wanted):
    """The first official case of each operator that is its only node."""
    found = {}
    for case in onnx_cases.load(cache):
        if case["class"] != "runnable" or case["kind"] != "node" or case["op"] in found or not fnmatch.fnmatchcase(case["op"], wanted):
            continue
        model = onnx.load(os.path.join(case["dir"], "model.onnx"))
        if case["op"] not in FIXED and [(n.op_type, n.domain) for n in model.graph.node] == [(case["op"], "")]:
            found[case["op"]] = Pattern(case, model)
    return found


def read_table():
    if not os.path.exists(TABLE):
        return {}
    with open(TABLE) as f:
        return {("", name): kinds.split() for kinds, names in ROW.findall(f.read()) for name in re.findall(r"\w+", names)}


def write_table(table):
    by_types = collections.defaultdict(list)
    for (_, name), kinds in sorted(table.items()):
        by_types[" ".join(kinds)].append(name)
    with open(TABLE, "w") as f:
        f.write("/* Element types of the first input with which operators of ONNX's own domain were lowered and gave right results on the runtime;\n"
                " * written by tests/conformance/element_types.py --update. ONNX_ELEMENT_TYPES(types, operators) */\n")
        for kinds, names in by_types.items():
            lines = [f'"{line.replace(" ", "")}"' for line in textwrap.wrap("| ".join(names), 140, break_long_words=False)]
            f.write(f'ONNX_ELEMENT_TYPES("{kinds}",{" " if len(lines[0]) < 80 else NEXT}{NEXT.join(lines)})\n')


def main():
    p = single_node.parser(__doc__)
    p.add_argument("--cache", default=os.path.join(ROOT, "build", "conformance"), help="the written-out official cases")
    p.add_argument("--update", action="store_true", help="write what works to src/onnx/element_types.def")
    args = p.parse_args()
    table = read_table()
    measured = []
    for op, pattern in patterns(args.cache, args.k).items():
        for name, kind, dtype in pattern.types:
            if args.update or kind in table.get(("", op), ()):
                measured.append(Measured(pattern, name, kind, dtype))
    if not measured:
        print(f"element_types: error: -k '{args.k}' matches no operator of the official cases that {TABLE} lists", file=sys.stderr)
        return 1
    args.k = "*"  # has chosen operators; all their types follow
    status, failed = cases.run_all(measured, single_node.check, args)
    if args.update:
        for case in measured:
            if case.name not in failed:
                table[case.key] = [k for _, k, _ in TYPES if k == case.kind or k in table.get(case.key, ())]
            elif case.kind in table.get(case.key, ()):
                table[case.key].remove(case.kind)
        write_table(table)
    return 0 if args.update else status


if __name__ == "__main__":
    sys.exit(main())
