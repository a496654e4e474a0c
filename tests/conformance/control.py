#!/usr/bin/env python3
"""Branches and loops of the running program: If, Loop and Scan on the real runtime against ONNX Runtime.

    tests/conformance/control.py [-k PATTERN,...] [-v]

Every case is one program, lowered once and loaded once, that runs with several sets of values, which take other
branches and other numbers of iterations, all of them twice. The interpreter runs the model and the program too.
"""

import dataclasses
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx.parser  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import etc_command  # noqa: E402
import witness  # noqa: E402

RNG = np.random.default_rng(11)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def flag(value):
    return np.array(value, dtype=bool)


def whole(value):
    return np.array(value, dtype=np.int64)


def real(value, dtype=np.float32):
    return np.array(value, dtype=dtype)


@dataclasses.dataclass
class Case:
    name: str
    inputs: str
    outputs: str
    body: str
    feeds: list
    dims: dict = dataclasses.field(default_factory=dict)
    opset: int = 18
    jumps: bool = True  # the program must have some
    fails: list = dataclasses.field(default_factory=list)  # inputs with which the call must end with an error

    def model(self):
        return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {self.opset}]> '
                                       f'g ({self.inputs}) => ({self.outputs}) {{ {self.body} }}')


TRUE = "t = Constant<value = bool {1}>() "
X = floats(2, 3)
BOTH = [[X, flag(True)], [X, flag(False)], [floats(2, 3), flag(True)]]


def counts(*values, extra=()):
    return [[floats(2), whole(v), *extra] for v in values]


CASES = [
    Case("if-work", "float[2,3] x, bool c", "float[2,3] y", """
         z = Neg(x)
         y = If (c) <then_branch = a () => (float[2,3] p) { q = Relu(z) p = Exp(q) },
                     else_branch = b () => (float[2,3] r) { r = Abs(x) }>""", BOTH),
    Case("if-shapes", "float[2,3] x, bool c", "float[n,3] y", """
         y = If (c) <then_branch = a () => (float[4,3] p) { p = Concat<axis = 0>(x, x) },
                     else_branch = b () => (float[2,3] r) { r = Abs(x) }>""", BOTH),
    Case("if-shapes-used", "float[2,3] x, bool c", "float[3] y, float[m,3] z", """
         w = If (c) <then_branch = a () => (float[4,3] p) { p = Concat<axis = 0>(x, x) },
                     else_branch = b () => (float[2,3] r) { r = Abs(x) }>
         k = Constant<value_ints = [0]>()
         y = ReduceSum<keepdims = 0>(w, k) z = Softmax<axis = 0>(w)""", BOTH),
    Case("if-outer", "float[2,3] x, bool c", "float[2,3] y, float[2,3] z, float[2,3] w", """
         n = Neg(x)
         y, z, w = If (c) <
           then_branch = a () => (float[2,3] p, float[2,3] q, float[2,3] u) {
             p = Identity(x) q = Identity(n) u = Identity(n) },
           else_branch = b () => (float[2,3] r, float[2,3] s, float[2,3] v) {
             r = Identity(n) s = Identity(x)
             v = Constant<value = float[2,3] {1., 2., 3., 4., 5., 6.}>() }>""", BOTH),
    Case("if-nested", "float[2,3] x, bool c, bool d", "float[2,3] y", """
         y = If (c) <
           then_branch = a () => (float[2,3] p) {
             p = If (d) <then_branch = aa () => (float[2,3] s) { s = Add(x, x) },
                         else_branch = ab () => (float[2,3] u) { u = Mul(x, x) }> },
           else_branch = b () => (float[2,3] r) {
             m = ReduceMax<keepdims = 1>(x)
             r = If (d) <then_branch = ba () => (float[2,3] v) { v = Sub(x, m) },
                         else_branch = bb () => (float[2,3] w) { w = Div(x, m) }> }>""",
         [[X, flag(c), flag(d)] for c in (0, 1) for d in (0, 1)]),
    Case("if-data", "float[2,3] x", "float[2,3] y", """
         s = ReduceSum<keepdims = 0>(x) o = Constant<value_float = 0.0>() c = Greater(s, o)
         y = If (c) <then_branch = a () => (float[2,3] p) { p = Sqrt(x) },
                     else_branch = b () => (float[2,3] r) { r = Neg(x) }>""", [[abs(X)], [-abs(X)]]),
    Case("if-many-types", "float16[3] h, int64[3] i, bool[3] b, bool c", "float16[3] x, int64[3] y, bool[3] z", """
         x, y, z = If (c) <
           then_branch = a () => (float16[3] p, int64[3] q, bool[3] r) { p = Add(h, h) q = Mul(i, i) r = Not(b) },
           else_branch = d () => (float16[3] s, int64[3] u, bool[3] v) { s = Neg(h) u = Neg(i) v = Identity(b) }>""",
         [[real([1, -2, 0.5], np.float16), whole([3, -4, 5]), flag([0, 1, 1]), flag(c)] for c in (0, 1)]),
    Case("if-sequence", "float[4,3] x, bool c", "float[2,3] y", """
         s = If (c) <then_branch = a () => (seq(float[2,3]) p) { p = SplitToSequence<axis = 0>(x, two) },
                     else_branch = b () => (seq(float[2,3]) r) { n = Neg(x) r = SplitToSequence<axis = 0>(n, two) }>
         i = Constant<value_int = 1>() y = SequenceAt(s, i)""".replace(
             "s = If", "two = Constant<value_int = 2>() s = If", 1), [[floats(4, 3), flag(c)] for c in (0, 1)]),
    Case("if-batch", "float[n,3] x, bool c", "float[n,3] y", """
         y = If (c) <then_branch = a () => (float[n,3] p) { q = Shape(x) r = Expand(k, q) p = Add(x, r) },
                     else_branch = b () => (float[n,3] r) { r = Softmax<axis = 1>(x) }>""".replace(
             "y = If", "k = Constant<value_float = 2.0>() y = If", 1),
         [[floats(n, 3), flag(c)] for n, c in ((1, 1), (5, 0), (8, 1), (2, 0))], {"n": "1..8"}),
    Case("loop-trip", "float[2] x, int64 m", "float[2] y", TRUE + """
         y = Loop (m, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] n) {
             k = Identity(c) f = Cast<to = 1>(i) n = Add(s, f) }>""", counts(3, 0, 7, 1)),
    Case("loop-large", "float[2] x", "float[2] y", TRUE + """
         m = Constant<value_int = 5000>()
         y = Loop (m, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] n) {
             k = Identity(c) h = Constant<value_float = 0.999>() p = Mul(s, h) n = Sin(p) }>""", [[floats(2)], [floats(2)]]),
    Case("loop-condition", "float[2] x, float e", "float[2] y", """
         a = ReduceSum<keepdims = 0>(x) t = Greater(a, e)
         y = Loop (, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] n) {
             h = Constant<value_float = 0.5>() n = Mul(s, h) r = ReduceSum<keepdims = 0>(n) k = Greater(r, e) }>""",
         [[abs(floats(2)), real(v)] for v in (1e-3, 10.0, 0.1)]),
    Case("loop-trip-condition", "float[2] x, int64 m, float e", "float[2] y", TRUE + """
         y = Loop (m, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] n) {
             h = Constant<value_float = 0.5>() n = Mul(s, h) r = ReduceSum<keepdims = 0>(n) k = Greater(r, e) }>""",
         [[abs(floats(2)), whole(m), real(v)] for m, v in ((3, 1e-3), (50, 0.1), (0, 0.1), (4, 100.0))]),
    Case("loop-scan", "float[2] x, int64 m", "float[2] y, float[10,2] z", TRUE + """
         y, z = Loop (m, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] n, float[2] o) {
             k = Identity(c) f = Cast<to = 1>(i) n = Add(s, f) o = Mul(n, x) }>""", counts(10, 10)),
    Case("loop-scan-count", "float[2] x, int64 m", "float[2] y, float[cap,2] z, float w", TRUE + """
         y, z = Loop (m, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] n, float[2] o) {
             k = Identity(c) f = Cast<to = 1>(i) n = Add(s, f) o = Mul(n, x) }>
         w = ReduceSum<keepdims = 0>(z)""", counts(6, 0, 3, 1), {"cap": "1..6"}),
    Case("loop-fibonacci", "float a, float b, int64 m", "float x, float y", TRUE + """
         x, y = Loop (m, t, a, b) <body = l (int64 i, bool c, float p, float q) => (bool k, float q2, float r) {
             k = Identity(c) q2 = Identity(q) r = Add(p, q) }>""",
         [[real(0), real(1), whole(m)] for m in (10, 0, 1, 30)]),
    Case("loop-swap", "float[2] a, float[2] b, int64 m", "float[2] x, float[2] y, float[2] z", TRUE + """
         x, y, z = Loop (m, t, a, b, a) <
             body = l (int64 i, bool c, float[2] p, float[2] q, float[2] r) => (bool k, float[2] q2, float[2] p2, float[2] r2) {
             k = Identity(c) q2 = Identity(q) p2 = Identity(p) r2 = Identity(r) }>""",
         [[floats(2), floats(2), whole(m)] for m in (3, 0, 2, 1)]),
    Case("loop-outer", "float[2] a, float[2] b, int64 m", "float[2] x, float[2] y, float[2] z, float[2] w", TRUE + """
         n = Neg(b)
         x, y, z = Loop (m, t, a, b, n) <
             body = l (int64 i, bool c, float[2] p, float[2] q, float[2] r) => (bool k, float[2] u, float[2] v, float[2] s) {
             k = Identity(c) u = Identity(n) v = Constant<value = float[2] {1., 2.}>() s = Add(r, n) }>
         w = Add(n, b)""",
         [[floats(2), floats(2), whole(m)] for m in (3, 0, 2, 1)]),
    Case("loop-in-loop", "float[2] x, int64 m, int64 n", "float[2] y", TRUE + """
         y = Loop (m, t, x) <body = o (int64 i, bool c, float[2] s) => (bool k, float[2] r) {
             k = Identity(c) f = Cast<to = 1>(i)
             r = Loop (n, t, s) <body = l (int64 j, bool d, float[2] u) => (bool e, float[2] v) {
                 e = Identity(d) g = Cast<to = 1>(j) h = Add(f, g) w = Mul(h, x) v = Add(u, w) }> }>""",
         [[floats(2), whole(m), whole(n)] for m, n in ((3, 4), (0, 5), (5, 0), (2, 2))]),
    Case("if-in-loop", "float[2] x, int64 m", "float[2] y", TRUE + """
         two = Constant<value_int = 2>() zero = Constant<value_int = 0>() neg = Neg(x)
         y = Loop (m, t, x) <body = o (int64 i, bool c, float[2] s) => (bool k, float[2] r) {
             k = Identity(c) f = Mod(i, two) e = Equal(f, zero)
             r = If (e) <then_branch = a () => (float[2] p) { p = Add(s, x) },
                         else_branch = b () => (float[2] q) { q = Mul(s, neg) }> }>""", counts(0, 1, 2, 7)),
    Case("loop-in-if", "float[2] x, int64 m, bool c", "float[2] y", TRUE + """
         y = If (c) <
           then_branch = a () => (float[2] p) {
             p = Loop (m, t, x) <body = o (int64 i, bool d, float[2] s) => (bool k, float[2] r) {
                 k = Identity(d) r = Add(s, x) }> },
           else_branch = b () => (float[2] q) { q = Neg(x) }>""",
         [[floats(2), whole(m), flag(c)] for m, c in ((3, 1), (0, 1), (4, 0))]),
    Case("loop-grow", "float[1,2] x", "float[n,2] y", TRUE + """
         m = Constant<value_int = 200>()
         y = Loop (m, t, x) <body = b (int64 i, bool c, float[r,2] s) => (bool k, float[q,2] n) {
             k = Identity(c) z = Constant<value_ints = [-1]>() e = Constant<value_ints = [1000]>() a = Constant<value_ints = [0]>()
             l = Slice(s, z, e, a) p = Sin(l) g = Cos(s) h = Abs(g) w = Neg(h) v = Exp(w) u = Mul(v, g)
             n = Concat<axis = 0>(s, p) }>""", [[floats(1, 2)], [floats(1, 2)]]),
    Case("loop-grow-condition", "float[1,2] x, float e", "float[20,2] y", TRUE + """
         m = Constant<value_int = 19>()
         y = Loop (m, t, x) <body = b (int64 i, bool c, float[r,2] s) => (bool k, float[q,2] n) {
             p = ReduceMax<axes = [0], keepdims = 1>(s) h = Constant<value_float = 1.5>() d = Mul(p, h) n = Concat<axis = 0>(s, d)
             r0 = ReduceMax<keepdims = 0>(d) k = Less(r0, e) }>""",
         [[abs(floats(1, 2)) + 0.1, real(e)] for e in (1e9,)], opset=13),
    Case("newton", "float a", "float y, int64 n", """
         one = Constant<value_float = 1.0>() zero = Constant<value_int = 0>() t = Constant<value = bool {1}>() m = Constant<value_int = 100>()
         y, n = Loop (m, t, one, zero) <body = b (int64 i, bool c, float x, int64 j) => (bool k, float z, int64 l) {
             q = Div(a, x) s = Add(x, q) h = Constant<value_float = 0.5>() z = Mul(s, h) d = Sub(z, x) e = Abs(d)
             eps = Constant<value_float = 1e-5>() k = Greater(e, eps) u = Constant<value_int = 1>() l = Add(j, u) }>""",
         [[real(v)] for v in (2.0, 10.0, 0.25, 1.0)]),
    Case("decode", "int64[1,1] start, float[8,4] table, float[4,8] head, int64 m", "int64[1,1] last, int64[12,1,1] tokens, int64[f] line", """
         t = Constant<value = bool {1}>()
         last, tokens = Loop (m, t, start) <body = b (int64 i, bool c, int64[1,1] tok) => (bool k, int64[1,1] next, int64[1,1] o) {
             e = Gather(table, tok) q = Tanh(e) l = MatMul(q, head) next = ArgMax<axis = 2, keepdims = 0>(l) o = Identity(next)
             z = Constant<value_int = 7>() w = ReduceMin<keepdims = 0>(next) k = Less(w, z) }>
         f = Constant<value_ints = [-1]>() line = Reshape(tokens, f)""",
         [[whole([[s]]), floats(8, 4), floats(4, 8), whole(m)] for s, m in ((0, 12), (3, 5), (1, 12), (2, 12), (4, 0))]),
    Case("beam", "float[3] score, float[3,5] step, int64 m", "float[3] y, int64[3] z", """
         t = Constant<value = bool {1}>() k3 = Constant<value_ints = [3]>() z0 = Constant<value = int64[3] {0, 0, 0}>()
         y, z = Loop (m, t, score, z0) <body = b (int64 i, bool c, float[3] s, int64[3] p) => (bool k, float[3] v, int64[3] r) {
             k = Identity(c) one = Constant<value_ints = [3, 1]>() col = Reshape(s, one) all = Add(col, step)
             f = Constant<value_ints = [-1]>() flat = Reshape(all, f) v, at = TopK(flat, k3)
             five = Constant<value_int = 5>() r0 = Div(at, five) r = Gather(r0, p) }>""".replace(" z = ", " z = ", 1),
         [[floats(3), floats(3, 5), whole(m)] for m in (1, 4, 0)]),
    Case("scan-long", "float[2] h, float[5000,2] x", "float[2] y, float[5000,2] z", """
         y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] v) => (float[2] n, float[2] o) {
             a = Constant<value_float = 0.9>() p = Mul(s, a) q = Add(p, v) n = Tanh(q) o = Neg(n) }> (h, x)""",
         [[floats(2), floats(5000, 2)], [floats(2), floats(5000, 2)]]),
    Case("scan-dynamic", "float[2] h, float[seq,2] x", "float[2] y, float[seq,2] z", """
         y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] v) => (float[2] n, float[2] o) {
             n = Add(s, v) o = Mul(n, v) }> (h, x)""",
         [[floats(2), floats(n, 2)] for n in (16, 1, 5)], {"seq": "1..16"}),
    Case("scan-axes", "float[2] h, float[2,seq] x, float[seq,2] w", "float[2] y, float[2,seq] z, float[seq,2] r", """
         y, z, r = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],
             scan_output_axes = [1, 0], scan_output_directions = [0, 1],
             body = b (float[2] s, float[2] v, float[2] u) => (float[2] n, float[2] o, float[2] q) {
             n = Add(s, v) o = Mul(n, u) q = Sub(n, u) }> (h, x, w)""",
         [[floats(2), floats(2, n), floats(n, 2)] for n in (9, 1, 4)], {"seq": "1..16"}),
    Case("loop-batch", "float[n,3] x, int64 m", "float[n,3] y", TRUE + """
         y = Loop (m, t, x) <body = b (int64 i, bool c, float[n,3] s) => (bool k, float[n,3] v) {
             k = Identity(c) a = Softmax<axis = 1>(s) b2 = Shape(s) h = Constant<value_float = 0.1>() e = Expand(h, b2) v = Add(a, e) }>""",
         [[floats(n, 3), whole(m)] for n, m in ((1, 3), (8, 2), (4, 0))], {"n": "1..8"}),
    Case("loop-types", "float16[2] h, int64[2] i, bool[2] b, int64 m", "float16[2] x, int64[2] y, bool[2] z", TRUE + """
         x, y, z = Loop (m, t, h, i, b) <
             body = l (int64 j, bool c, float16[2] p, int64[2] q, bool[2] r) => (bool k, float16[2] p2, int64[2] q2, bool[2] r2) {
             k = Identity(c) p2 = Add(p, p) q2 = Add(q, j) r2 = Not(r) }>""",
         [[real([1, 2], np.float16), whole([3, 4]), flag([0, 1]), whole(m)] for m in (3, 0, 4)]),
    Case("loop-static", "float[2] x", "float[2] y, float[3,2] z", TRUE + """
         m = Constant<value_int = 3>()
         y, z = Loop (m, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] n, float[2] o) {
             k = Identity(c) f = Cast<to = 1>(i) n = Add(s, f) o = Mul(n, x) }>""", [[floats(2)]], jumps=False),
    Case("if-fails-else", "float[a,b] x, bool c", "float[a,b] y", """
         z = Exp(x)
         y = If (c) <then_branch = f () => (float[a,b] p) { q = Relu(z) p = Neg(q) },
                     else_branch = g () => (float[a,b] r) { q = Relu(x) r = MatMul(q, z) }>""",
         [[X, flag(True)], [floats(2, 3), flag(True)]], {"a": 2, "b": 3}, fails=[[X, flag(False)]]),
    Case("if-fails-then", "float[a,b] x, bool c", "float[a,b] y, float[n,b] z", """
         z, w = If (c) <then_branch = f () => (float[b,b] p, float[a,b] p2) { q = Relu(x) p = MatMul(q, x) p2 = Neg(q) },
                     else_branch = g () => (float[n,b] r, float[a,b] r2) { r = Concat<axis = 0>(x, x) r2 = Abs(x) }>
         y = Exp(w)""",
         [[X, flag(False)], [floats(2, 3), flag(False)]], {"a": 2, "b": 3}, fails=[[X, flag(True)]]),
    Case("if-fails-within", "float[a,b] x, bool c, bool d", "float[a,b] y", """
         y = If (c) <then_branch = f () => (float[a,b] p) {
                 p = If (d) <then_branch = h () => (float[a,b] s) { s = MatMul(x, x) },
                              else_branch = i () => (float[a,b] t) { t = Neg(x) }> },
             else_branch = g () => (float[a,b] r) { r = Abs(x) }>""",
         [[X, flag(True), flag(False)], [X, flag(False), flag(True)], [X, flag(False), flag(False)]], {"a": 2, "b": 3},
         fails=[[X, flag(True), flag(True)]]),
    Case("if-known", "float[2] x", "float[2] y", TRUE + """
         y = If (t) <then_branch = a () => (float[2] p) { p = Neg(x) },
                     else_branch = b () => (float[2] q) { q = Abs(x) }>""", [[floats(2)]], jumps=False),
]


def expected(path, feeds):
    session = cases.ort_session(path)
    return [session.run(None, {x.name: a for x, a in zip(session.get_inputs(), inputs)}) for inputs in feeds]


def succeeds_wrongly(case, args, server, work, path, program):
    """None when the call ends with an error, on the runtime and in the interpreter, with each of case.fails."""
    names = [x.name for x in case.model().graph.input]
    for inputs in case.fails:
        bundle = os.path.join(work, "fails.pkl")
        arrays.save_bundle(bundle, inputs, [])
        answer = server.run({"pte": program, "bundles": [bundle], "rtol": 0, "atol": 0}, args.timeout)
        if answer["stage"] != "run":
            return f"no error on the runtime: {answer['stage']} {answer['message']}"
        try:
            expected(path, [inputs])
            return "ONNX Runtime has no error"
        except Exception as error:  # noqa: BLE001 (whatever it raises)
            if "RUNTIME_EXCEPTION" not in str(error) and "INVALID_ARGUMENT" not in str(error) and "FAIL" not in str(error):
                raise
        for source in (path, program):
            flags = []
            for i, value in enumerate(inputs):
                np.save(os.path.join(work, f"fails{i}.npy"), value)
                flags += ["--input", f"{names[i]}={work}/fails{i}.npy"]
            done = subprocess.run([args.etc, "run", source, *flags], capture_output=True, text=True, timeout=args.timeout)
            if done.returncode != 1 or "E0707" not in done.stderr or "cannot run" not in done.stderr:
                return f"etc run {os.path.basename(source)}: exit {done.returncode}: {done.stderr}"
    return None


def check(case, args, server, work):
    """None when all values are right, else what went wrong."""
    path, program = (os.path.join(work, x) for x in ("model.onnx", "model.pte"))
    model = case.model()
    onnx.save(model, path)
    want = expected(path, case.feeds)
    stage, code, message, _ = etc_command.lower(args.etc, path, program, case.dims, args.extra, args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    bundles = []
    for i, (inputs, outputs) in enumerate(zip(case.feeds, want)):
        bundles.append(os.path.join(work, f"data{i}.pkl"))
        arrays.save_bundle(bundles[-1], inputs, outputs)
    answer = server.run({"pte": program, "bundles": bundles, "rtol": 1e-4, "atol": 1e-5}, args.timeout)
    if answer["stage"] != "ok":
        return f"{answer['stage']}: {answer['message']}"
    done = subprocess.run([args.etc, "verify", program], capture_output=True, text=True, timeout=args.timeout)
    if done.returncode:
        return "verify: " + done.stderr
    names, model_inputs = [x.name for x in model.graph.output], [x.name for x in model.graph.input]
    dims = {k: v for k, v in case.dims.items() if f"[{k}" not in case.inputs and f",{k}" not in case.inputs}
    for source in (path, program):
        for inputs, outputs in zip(case.feeds[:2], want):
            flags = [x for k, v in dims.items() if source == path for x in ("--dim", f"{k}={v}")]
            wrong = witness.disagreement(args.etc, source, list(zip(model_inputs, inputs)), list(zip(names, outputs)), work,
                                         1e-4, 1e-5, args.timeout, flags)
            if wrong:
                return f"etc run {os.path.basename(source)}: {wrong}"
    return succeeds_wrongly(case, args, server, work, path, program)


def main():
    return cases.run(CASES, check, cases.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
