#!/usr/bin/env python3
"""Branches and loops of the running program: If, Loop and Scan on the real runtime against ONNX Runtime.

    tests/conformance/control.py [-k PATTERN,...] [-v]

Every case is one program, lowered once and loaded once, that runs with several sets of values, which take other
branches and other numbers of iterations, all of them twice. The interpreter runs the model and the program too.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "lib")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402

import arrays  # noqa: E402
import cases  # noqa: E402
import control_cells  # noqa: E402
import etc_command  # noqa: E402
import witness  # noqa: E402
from control_case import TRUE, Case, flag, floats, real, whole  # noqa: E402

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
    Case("loop-scan-slice", "float[1] s0, float[5] x, int64 m", "float[1] y, float[5,1] z", TRUE + """
         at = Constant<value_ints = [0]>() one = Constant<value_int = 1>()
         y, z = Loop (m, t, s0) <body = b (int64 i, bool c, float[1] s) => (bool k, float[1] n, float[1] o) {
             k = Identity(c) j = Add(i, one) p = Unsqueeze(i, at) q = Unsqueeze(j, at) e = Slice(x, p, q) n = Add(s, e) o = Identity(n) }>""",
         [[floats(1), floats(5), whole(5)], [floats(1), floats(5), whole(5)]]),
    Case("loop-fibonacci", "float a, float b, int64 m", "float x, float y", TRUE + """
         x, y = Loop (m, t, a, b) <body = l (int64 i, bool c, float p, float q) => (bool k, float q2, float r) {
             k = Identity(c) q2 = Identity(q) r = Add(p, q) }>""",
         [[real(0), real(1), whole(m)] for m in (10, 0, 1, 30)]),
    Case("loop-swap", "float[2] a, float[2] b, int64 m", "float[2] x, float[2] y, float[2] z", TRUE + """
         x, y, z = Loop (m, t, a, b, a) <
             body = l (int64 i, bool c, float[2] p, float[2] q, float[2] r) => (bool k, float[2] q2, float[2] p2, float[2] r2) {
             k = Identity(c) q2 = Identity(q) p2 = Identity(p) r2 = Identity(r) }>""",
         [[floats(2), floats(2), whole(m)] for m in (3, 0, 2, 1)]),
    Case("loop-kept", "float[2] x, float[2] w, int64 m", "float[2] y, float[2] p, float[2] q, float[rows,2] z", TRUE + """
         v = Exp(w)
         y, p, q, z = Loop (m, t, x, w, v) <body = b (int64 i, bool c, float[2] s, float[2] e, float[2] f)
                 => (bool k, float[2] n, float[2] g, float[2] h, float[2] r) {
             k = Identity(c) g = Identity(e) h = Identity(f) l = Mul(s, g) n = Tanh(l) r = Add(n, f) }>""",
         [[floats(2), floats(2), whole(n)] for n in (3, 0, 7, 1)], {"rows": 9}, states=2),
    Case("loop-kept-only", "float[2] x, int64 m", "float[2] y, float[2] z", TRUE + """
         y, z = Loop (m, t, x, x) <body = b (int64 i, bool c, float[2] s, float[2] e) => (bool k, float[2] n, float[2] g) {
             k = Identity(c) n = Identity(s) g = Identity(e) }>""", counts(3, 0), states=0),
    Case("loop-kept-swapped", "float[2] x, int64 m", "float[2] y, float[2] z, float[2] u", TRUE + """
         w = Exp(x)
         y, z, u = Loop (m, t, x, w, x) <body = b (int64 i, bool c, float[2] s, float[2] e, float[2] f)
                 => (bool k, float[2] n, float[2] g, float[2] h) { k = Identity(c) n = Identity(e) g = Identity(s) h = Identity(f) }>""",
         counts(3, 0, 6), states=2),
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
    Case("loop-in-loop-dead", "int64 n", "int64 y", """
         zero = Constant<value_int = 0>() one = Constant<value_int = 1>() c0 = Constant<value = bool {1}>()
         y = Loop (, c0, zero) <body = o (int64 t, bool c, int64 i) => (bool k, int64 j) {
             j = Add(i, one)
             u = Loop (, c0, zero) <body = l (int64 s, bool d, int64 p) => (bool e, int64 q) { q = Add(p, one) e = Less(q, n) }>
             k = Less(j, n) }>""", [[whole(5)], [whole(0)]]),
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
    Case("loop-rows", "int64[b] o, float[16] x", "float[b] y", """
         b = Size(o) end = Constant<value_ints = [16]>() ends = Concat<axis = 0>(o, end)
         one = Constant<value_ints = [1]>() line = Constant<value_ints = [-1]>() t = Constant<value = bool {1}>()
         y = Loop (b, t) <body = l (int64 i, bool c) => (bool k, float r) { k = Identity(c) i0 = Reshape(i, line) i1 = Add(i0, one) i2 = Add(i1, one)
             from = Slice(ends, i0, i1) to = Slice(ends, i1, i2) part = Slice(x, from, to) r = ReduceSum<keepdims = 0>(part) }>""",
         [[whole(o), floats(16)] for o in ([0, 3, 3, 9], [0], [0, 5, 6, 8, 9, 16, 16])], {"b": "1..7"}),
    Case("loop-far-steps", "float[1,s,3] x", "float[1,r,3] y", """
         d = Shape(x) at = Constant<value_int = 1>() n = Gather(d, at) t = Constant<value = bool {1}>()
         far = Constant<value_ints = [1000000000]>() one = Constant<value_ints = [1]>() line = Constant<value_ints = [-1]>()
         z = Loop (n, t) <body = l (int64 i, bool c) => (bool k, float[1,3] r) { k = Identity(c) i0 = Reshape(i, line) q = Slice(x, i0, far, one, far) p = Squeeze(q, one) e = Exp(p) u = ReduceMax<keepdims = 1>(p) r = Div(e, u) }>
         y = Transpose<perm = [1, 0, 2]>(z)""", [[floats(1, s, 3)] for s in (1, 4, 9)], {"s": "1..9"}),
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
    # One branch hands on what is there, the other gives another rank: as scikit-learn's KNNImputer is written.
    Case("if-rank-then", "float[a,b] x, bool c", "float[n,b] y", """
         w = Exp(x)
         z = If (c) <then_branch = f () => (float[p,q,r] p1) { o = Constant<value_ints=[1]>() q1 = Neg(w) p1 = Unsqueeze(q1, o) },
                     else_branch = g () => (float[a,b] r1) { r1 = Identity(w) }>
         y = Concat<axis = 0>(z, x)""",
         [[X, flag(False)], [floats(2, 3), flag(False)]], {"a": 2, "b": 3}, fails=[[X, flag(True)]]),
    Case("if-rank-else", "float[a,b] x, bool c", "float[n,b] y", """
         z = If (c) <then_branch = f () => (float[a,b] r1) { r1 = Identity(x) },
                     else_branch = g () => (float[p,q,r] p1) { o = Constant<value_ints=[1]>() q1 = Neg(x) p1 = Unsqueeze(q1, o) }>
         y = Concat<axis = 0>(z, x)""",
         [[X, flag(True)], [floats(2, 3), flag(True)]], {"a": 2, "b": 3}, fails=[[X, flag(False)]]),
    Case("if-fails-within", "float[a,b] x, bool c, bool d", "float[a,b] y", """
         y = If (c) <then_branch = f () => (float[a,b] p) {
                 p = If (d) <then_branch = h () => (float[a,b] s) { s = MatMul(x, x) },
                              else_branch = i () => (float[a,b] t) { t = Neg(x) }> },
             else_branch = g () => (float[a,b] r) { r = Abs(x) }>""",
         [[X, flag(True), flag(False)], [X, flag(False), flag(True)], [X, flag(False), flag(False)]], {"a": 2, "b": 3},
         fails=[[X, flag(True), flag(True)]]),
    Case("one-hot-unknown", "int64[2,3] x", "float[2,3,3] y", """
         y = ai.onnx.ml.OneHotEncoder<cats_int64s = [1, 4, 7], zeros = 0>(x)""", [[whole([[1, 4, 7], [7, 7, 1]])], [whole([[4, 4, 4], [1, 1, 4]])]],
         fails=[[whole([[1, 4, 7], [7, 2, 1]])], [whole([[0, 4, 7], [7, 7, 1]])]], says="unknown category"),
    Case("if-known", "float[2] x", "float[2] y", TRUE + """
         y = If (t) <then_branch = a () => (float[2] p) { p = Neg(x) },
                     else_branch = b () => (float[2] q) { q = Abs(x) }>""", [[floats(2)]], jumps=False),
]


def while_case(name, first, again, begin=0, step=1, feeds=None, inputs="float[2] x", trip="", **more):
    """A loop that goes on while its condition holds. `first` gives it before the loop (with the counter i0), `again` in each step (with
    the counter j of the next one, the number t of this one and the accumulator n)."""
    return Case(name, inputs, "float[2] y, int64 w, float[rows,2] z", f"""
        i0 = Constant<value_int = {begin}>() by = Constant<value_int = {step}>() zero = Constant<value_int = 0>() {first}
        y, w, z = Loop ({trip}, c0, x, i0) <body = b (int64 t, bool c, float[2] s, int64 i) => (bool k, float[2] n, int64 j, float[2] o) {{
            j = Add(i, by) f = Cast<to = 1>(i) n = Add(s, f) o = Mul(n, x) {again} }}>""",
                feeds or [[floats(2)], [floats(2)]], **more)


def number(name, value):
    return f"{name} = Constant<value_int = {value}>() "


def of_sizes(*sizes, extra=()):
    return [[floats(2), floats(n, 3), *extra] for n in sizes]


# The size of an input as a scalar, which is a symbol when the dim is.
SIZE = "of = Shape(r) at = Constant<value_int = 0>() m = Gather(of, at) "
ROWS = {"inputs": "float[2] x, float[len,3] r", "dims": {"len": "1..9"}, "feeds": of_sizes(9, 1, 4)}
HALF = "h = Constant<value_float = 0.5>() q = ReduceSum<keepdims = 0>(n) "

CASES += [
    while_case("while-constant", number("m", 600) + "c0 = Less(i0, m)", "k = Less(j, m)", rows="600"),
    while_case("while-half", number("m", 600) + "c0 = Less(i0, m)", "a = Cast<to = 10>(j) b = Cast<to = 10>(m) k = Less(a, b)", rows="600"),
    while_case("while-short", number("m", 3) + "c0 = Less(i0, m)", "k = Less(j, m)", rows="3", jumps=False),
    while_case("while-at-most", number("m", 600) + "c0 = LessOrEqual(i0, m)", "k = LessOrEqual(j, m)", rows="601"),
    while_case("while-down", number("m", 7) + "c0 = Greater(i0, m)", "k = Greater(j, m)", 900, -1, rows="893"),
    while_case("while-down-to", number("m", 7) + "c0 = GreaterOrEqual(i0, m)", "k = GreaterOrEqual(j, m)", 900, -3, rows="298"),
    while_case("while-two", number("m", 901) + "c0 = Less(i0, m)", "k = Less(j, m)", 0, 2, rows="451"),
    while_case("while-not-equal", number("m", 500) + "d = Equal(i0, m) c0 = Not(d)", "e = Equal(j, m) k = Not(e)", rows="500"),
    while_case("while-once", number("m", 3) + "c0 = Constant<value = bool {1}>()", "k = Less(j, m)", 50, rows="1", jumps=False),
    while_case("while-number", number("m", 500) + "c0 = Constant<value = bool {1}>()", "k = Less(t, m)", rows="501"),
    while_case("while-trip", number("m", 600) + number("most", 700) + "c0 = Less(i0, m)", "k = Less(j, m)", trip="most", rows="600"),
    while_case("while-huge-trip", number("m", 600) + number("most", 2**63 - 1) + "c0 = Less(i0, m)", "k = Less(j, m)", trip="most", rows="600"),
    while_case("while-two-tests", number("m", 600) + number("u", 500) + "d = Less(i0, m) e = Less(i0, u) c0 = And(d, e)",
               "d2 = Less(j, m) e2 = Less(j, u) k = And(d2, e2)", rows="500"),
    while_case("while-float", number("m", 600) + "g = Cast<to = 1>(m) h = Cast<to = 1>(i0) c0 = Less(h, g)", "l = Cast<to = 1>(j) k = Less(l, g)",
               rows="600"),
    while_case("while-size", SIZE + "c0 = Less(i0, m)", "k = Less(j, m)", rows="len", **ROWS),
    while_case("while-size-float", SIZE + "g = Cast<to = 1>(m) h = Cast<to = 1>(i0) c0 = Less(h, g)", "l = Cast<to = 1>(j) k = Less(l, g)",
               rows="len", **ROWS),
    while_case("while-size-at-most", SIZE + "c0 = LessOrEqual(i0, m)", "k = LessOrEqual(j, m)", rows="len + 1", **ROWS),
    while_case("while-size-two", SIZE + "c0 = Less(i0, m)", "k = Less(j, m)", 0, 2, rows="floordiv(len + 1, 2)", **ROWS),
    while_case("while-size-from", SIZE + "c0 = Less(i0, m)", "k = Less(j, m)", 4, rows="max(0, len - 4)", **ROWS),
    while_case("while-size-down", SIZE + "c0 = Less(i0, m)", "p = Neg(m) k = Greater(j, p)", 0, -1, rows="len", **ROWS),
    while_case("while-size-true", SIZE + "c0 = Constant<value = bool {1}>()", "k = Less(j, m)", 5, rows="max(0, len - 6) + 1", **ROWS),
    while_case("while-size-number", SIZE + "c0 = Constant<value = bool {1}>()", "k = Less(t, m)", rows="len + 1", **ROWS),
    while_case("while-first-otherwise", SIZE + number("u", 4) + "c0 = Less(u, m)", "k = Less(j, m)", rows="?", **ROWS),
    while_case("while-first-input", number("m", 400), "k = Less(j, m)", inputs="float[2] x, bool c0",
               feeds=[[floats(2), flag(True)], [floats(2), flag(False)]], rows="?"),
    while_case("while-data", number("m", 600) + "c0 = Less(i0, m)", "q = ReduceSum<keepdims = 0>(n) g = Less(q, e) l = Less(j, m) k = And(l, g)",
               inputs="float[2] x, float e", feeds=[[floats(2), real(v)] for v in (1e9, 30.0, -1e9)], rows="?"),
    while_case("while-data-size", SIZE + "c0 = Less(i0, m)", "q = ReduceSum<keepdims = 0>(n) g = Less(q, e) l = Less(j, m) k = And(g, l)",
               inputs="float[2] x, float[len,3] r, float e", dims={"len": "1..9"},
               feeds=[[floats(2), floats(n, 3), real(v)] for n, v in ((9, 1e9), (9, 20.0), (1, -1e9), (5, 1e9))], rows="?"),
    while_case("while-trip-input", number("m", 400) + "c0 = Less(i0, m)", "k = Less(j, m)", inputs="float[2] x, int64 most", trip="most",
               feeds=[[floats(2), whole(v)] for v in (500, 7, 0)], rows="?"),
    while_case("while-wraps", number("m", 2**31 - 1) + number("twelve", 12) + "c0 = Constant<value = bool {1}>()",
               "p = Cast<to = 6>(j) l = Cast<to = 6>(m) d = Less(p, l) e = Less(t, most) k = And(d, e)",
               step=2**30, inputs="float[2] x, int64 most", feeds=[[floats(2), whole(v)] for v in (5, 0)], trip="twelve", rows="?"),
    while_case("while-ends-of-int64", number("m", 2**63 - 1) + number("twelve", 12) + "c0 = Constant<value = bool {1}>()",
               "d = Less(j, m) e = Less(t, most) k = And(d, e)", begin=2**63 - 10, step=4,
               inputs="float[2] x, int64 most", feeds=[[floats(2), whole(v)] for v in (5, 0)], trip="twelve", rows="?"),
    Case("while-grow", "float[len,2] x", "float[grown,2] y", """
         i0 = Constant<value_int = 0>() one = Constant<value_int = 1>() of = Shape(x) m = Gather(of, i0) c0 = Less(i0, m)
         y, w = Loop (, c0, x, i0) <body = b (int64 t, bool c, float[a,2] s, int64 i) => (bool k, float[d,2] n, int64 j) {
             j = Add(i, one) e = ReduceMax<axes = [0], keepdims = 1>(s) n = Concat<axis = 0>(s, e) k = Less(j, m) }>""",
         [[floats(n, 2)] for n in (6, 1, 3)], {"len": "1..6"}, opset=13),
    *(Case(f"while-grow-{name}", "float[2,2] x, int64 most", "float[grown,2] y, int64 w, float[rows,2] z", """
         i0 = Constant<value_int = 0>() one = Constant<value_int = 1>() five = Constant<value_int = 5>() c0 = Constant<value = bool {1}>()
         y, w, z = Loop (, c0, x, i0) <body = b (int64 t, bool c, float[a,2] s, int64 i) => (bool k, float[d,2] n, int64 j, float[2] o) {
             j = Add(i, one) o = ReduceMax<axes = [0], keepdims = 0>(s) e = ReduceMax<axes = [0], keepdims = 1>(s)
             n = Concat<axis = 0>(s, e) of = Shape(n) m = Gather(of, i0) u = Less(j, m) v = Less(t, five) %s }>""" % more,
           [[floats(2, 2), whole(v)] for v in (9, 2)], opset=13, rows=rows)
      for name, more, rows in (("itself", "k = And(u, v)", "?"), ("until", "p = And(u, v) q = Less(t, most) k = And(p, q)", "?"))),
    Case("while-gather", "float[len,2] x", "float[rows,2] y", """
         i0 = Constant<value_int = 0>() one = Constant<value_int = 1>() of = Shape(x) m = Gather(of, i0) c0 = Less(i0, m)
         w, y = Loop (, c0, i0) <body = b (int64 t, bool c, int64 i) => (bool k, int64 j, float[2] n) {
             j = Add(i, one) g = Gather(x, i) n = Exp(g) k = Less(j, m) }>""",
         [[floats(n, 2)] for n in (6, 1, 3)], {"len": "1..6"}, rows="len"),
    Case("while-in-while", "float[len,2] x", "float[rows,2] y", """
         i0 = Constant<value_int = 0>() one = Constant<value_int = 1>() of = Shape(x) m = Gather(of, i0) c0 = Less(i0, m)
         z0 = Constant<value = float[2] {0., 0.}>()
         w, y = Loop (, c0, i0) <body = b (int64 t, bool c, int64 i) => (bool k, int64 j, float[2] n) {
             d0 = LessOrEqual(i0, i)
             u, n = Loop (, d0, i0, z0) <body = l (int64 t2, bool c2, int64 p, float[2] s) => (bool k2, int64 p2, float[2] v) {
                 p2 = Add(p, one) g = Gather(x, p) v = Add(s, g) k2 = LessOrEqual(p2, i) }>
             j = Add(i, one) k = Less(j, m) }>""",
         [[floats(n, 2)] for n in (6, 1, 3)], {"len": "1..6"}, rows="len"),
    Case("while-bags", "float[6,3] x, int64[4] at", "float[3,3] y", TRUE + """
         i0 = Constant<value_int = 0>() one = Constant<value_int = 1>() three = Constant<value_int = 3>() axis = Constant<value_ints = [0]>()
         none = SequenceEmpty()
         w, s = Loop (, t, i0, none) <body = b (int64 n, bool c, int64 i, seq(float[1,3]) q) => (bool k, int64 j, seq(float[1,3]) r) {
             j = Add(i, one) a = Unsqueeze(i, axis) b1 = Unsqueeze(j, axis) b2 = Add(b1, one) begin = Slice(at, a, b1) end = Slice(at, b1, b2)
             g = Slice(x, begin, end) m = ReduceSum(g, axis) r = SequenceInsert(q, m) k = Less(j, three) }>
         y = ConcatFromSequence<axis = 0>(s)""",
         [[floats(6, 3), whole(v)] for v in ([0, 2, 3, 6], [0, 0, 5, 6])], jumps=False),
    # Lists to which scripted loops append.
    Case("loop-lists", "float[len,2] x", "float[2] h, float[len,2] y, float[2,cols] z, int64 n, float[rows,2] w", TRUE + """
         zero = Constant<value_int = 0>() of = Shape(x) m = Gather(of, zero) h0 = Constant<value_floats = [1.0, -1.0]>()
         a0 = SequenceEmpty() b0 = SequenceEmpty()
         a, h, b, w = Loop (m, t, a0, h0, b0) <body = l (int64 i, bool c, seq(float[2]) p, float[2] g, seq(float[2,2]) q)
             => (bool k, seq(float[2]) p2, float[2] g2, seq(float[2,2]) q2, float[2] o) {
             k = Identity(c) e = Gather(x, i) g2 = Add(g, e) p2 = SequenceInsert(p, g2) o = Mul(e, e)
             one = Constant<value_ints = [1]>() u = Unsqueeze(g2, one) v = Concat<axis = 1>(u, u) q2 = SequenceInsert(q, v) }>
         y = ConcatFromSequence<axis = 0, new_axis = 1>(a) z = ConcatFromSequence<axis = -1>(b) n = SequenceLength(a)""",
         [[floats(n, 2)] for n in (6, 1, 3)], {"len": "1..6"}, rows="len"),
    Case("while-list", "float[len,2] x, float e", "float[cols] y", """
         i0 = Constant<value_int = 0>() one = Constant<value_int = 1>() of = Shape(x) m = Gather(of, i0) c0 = Less(i0, m) a0 = SequenceEmpty()
         w, a = Loop (, c0, i0, a0) <body = b (int64 t, bool c, int64 i, seq(float[2]) p) => (bool k, int64 j, seq(float[2]) p2) {
             j = Add(i, one) g = Gather(x, i) n = Exp(g) p2 = SequenceInsert(p, n)
             r = ReduceSum<keepdims = 0>(n) u = Less(j, m) v = Less(r, e) k = And(u, v) }>
         y = ConcatFromSequence<axis = 0>(a)""",
         [[floats(n, 2), real(v)] for n, v in ((6, 1e9), (6, -1.0), (3, 3.0))], {"len": "1..6"}),
    # tf2onnx hands the step of a counter and its limit from step to step.
    Case("while-carried-step", "float[700,5] x, float[5] h", "float[rows,5] y", """
         i0 = Constant<value_int = 0>() by = Constant<value_int = 2>() m = Constant<value_int = 700>() c0 = Less(i0, m) o = Constant<value_ints = [0]>()
         a, b, d, e, y = Loop (, c0, i0, by, m, h) <
             body = l (int64 t, bool c, int64 i, int64 step, int64 most, float[5] s) => (bool k, int64 j, int64 step2, int64 most2, float[5] r, float[5] z) {
             j = Add(i, step) p = Identity(step) step2 = Identity(p) most2 = Identity(most) u = Cast<to = 1>(j) v = Cast<to = 1>(most) k = Less(u, v)
             g = Gather(x, i) r = Add(s, g) z = Tanh(r) }>""",
         [[floats(700, 5), floats(5)]], rows="350"),
    # A step that a step changes counts nothing.
    Case("while-changed-step", "float[2] x", "float[rows,2] y", """
         i0 = Constant<value_int = 0>() by = Constant<value_int = 1>() m = Constant<value_int = 300>() c0 = Less(i0, m) most = Constant<value_int = 3000>()
         a, b, d, y = Loop (most, c0, i0, by, x) <
             body = l (int64 t, bool c, int64 i, int64 step, float[2] s) => (bool k, int64 j, int64 step2, float[2] r, float[2] z) {
             j = Add(i, step) step2 = Add(step, step) k = Less(j, m) f = Cast<to = 1>(i) r = Add(s, f) z = Neg(r) }>""",
         [[floats(2)]], rows="?"),
    # A flag without and with a dim of 1, as PaddlePaddle's exporter writes them, from two branches and in the state of a loop.
    Case("if-flag-ranks", "float[2] x, bool c, bool d", "float[2] y", """
         f = If (c) <then_branch = t () => (bool p) { p = Constant<value = bool {1}>() },
                     else_branch = e () => (bool q) { o = Constant<value_ints = [0]>() i = Cast<to = 7>(d) j = Add(i, o) q = Cast<to = 9>(j) }>
         g = Not(f) h = Cast<to = 1>(g) y = Add(x, h)""",
         [[floats(2), flag(c), flag(d)] for c, d in ((True, False), (False, True), (False, False))]),
    Case("loop-flag-ranks", "float[2,3] x, float most, int64 steps", "float[2,3] y, bool z", TRUE + """
         p0 = Constant<value = bool {0}>()
         y, z = Loop (steps, t, x, p0) <body = b (int64 i, bool c, float[2,3] a, bool p) => (bool k, float[2,3] r, bool q) {
             k = Identity(c) r = Add(a, a) m = ReduceMax<keepdims = 0>(r) o = Constant<value_ints = [1]>() over = Greater(m, most)
             f = If (over) <then_branch = t1 () => (bool u) { u = Constant<value = bool {1}>() },
                            else_branch = e1 () => (bool v) { h = Constant<value_ints = [0]>() n = Cast<to = 7>(p) g = Add(n, h) v = Cast<to = 9>(g) }>
             l = Cast<to = 7>(f) w = Sub(o, l) q = Cast<to = 9>(w) }>""",
         [[floats(2, 3), real(m), whole(n)] for m, n in ((100, 3), (-100, 4), (3, 5))]),
    # A variable that has no value before the loop.
    Case("loop-unset-state", "float[2] x, int64 most", "float[1,2] y, float[2] z", TRUE + """
         n = Constant<value_int = 700>() none = Constant<value_float = 0.0>() i0 = Constant<value_int = 0>()
         u, y, z = Loop (n, t, i0, none, x) <body = b (int64 i, bool c, int64 j, float v, float[2] s) => (bool k, int64 l, float w, float[2] r) {
             o = Constant<value_int = 1>() a = Constant<value_ints = [0]>() l = Add(j, o) k = Less(l, most) r = Neg(s) w = Unsqueeze(r, a) }>""",
         [[floats(2), whole(n)] for n in (3, 1, 6)]),
    # x[:, i:i + 1] = v with a counter that passes through floats: the range has one element at most, whatever i is.
    Case("loop-set-column", "float[2,6] x, int64 most", "float[2,6] y", TRUE + """
         n = Constant<value_int = 700>() i0 = Constant<value_int = 0>()
         u, y = Loop (n, t, i0, x) <body = b (int64 i, bool c, int64 j, float[2,6] s) => (bool k, int64 l, float[2,6] r) {
             o = Constant<value_float = 1.0>() f = Cast<to = 1>(j) g = Add(f, o) l = Cast<to = 7>(g) k = Less(l, most)
             one = Constant<value_ints = [1]>() two = Constant<value_ints = [1,-1]>() rows = Constant<value_ints = [2,1]>() zero = Constant<value_ints = [0]>()
             b0 = Reshape(j, one) b1 = Reshape(l, one) size = Constant<value_ints = [6]>() b2 = Min(size, b1) part = Slice(s, b0, b2, one)
             e = Exp(part) d0 = Squeeze(b0) d1 = Squeeze(b2) by = Squeeze(one) at = Range(d0, d1, by) row = Reshape(at, two) index = Tile(row, rows)
             r = ScatterElements<axis = 1>(s, index, e) }>""",
         [[floats(2, 6), whole(n)] for n in (3, 1, 6)]),
    # The position in a list is data, also in one that a loop makes.
    Case("list-at", "float[3,4] x, int64 i", "float[4] y, float[1,4] z", """
         s = SplitToSequence<axis = 0, keepdims = 0>(x) y = SequenceAt(s, i) t = SplitToSequence<axis = 0>(x) z = SequenceAt(t, i)""",
         [[floats(3, 4), whole(i)] for i in (0, 2, -1, -3)], jumps=False, fails=[[floats(3, 4), whole(3)], [floats(3, 4), whole(-4)]], says="out of range"),
    Case("list-of-loop-at", "float[3] x, float[n] v, int64 i", "float[3] y, float[3] z", TRUE + """
         e = SequenceEmpty<dtype = 1>() steps = Size(v) last = Constant<value_int = -1>()
         w, s = Loop (steps, t, x, e) <body = b (int64 i, bool c, float[3] a, seq(float[3]) l) => (bool k, float[3] r, seq(float[3]) m) {
             k = Identity(c) r = Sin(a) m = SequenceInsert(l, r) }>
         y = SequenceAt(s, i) z = SequenceAt(s, last)""",
         [[floats(3), floats(n), whole(i)] for n, i in ((3, 1), (1, 0), (5, -4))], {"n": "1..5"}),
    # Lists at the end: a known number of tensors, and as many as there are steps.
    Case("list-output", "float[4,6] x", "seq(float[4,k]) y, float[4,6] z",
         "s = Constant<value_ints = [1,2,3]>() z = Neg(x) y = SplitToSequence<axis = 1>(x, s)", [[floats(4, 6)]], jumps=False),
    Case("list-output-of-loop", "float[2,3] x, float[n] v", "seq(float[2,3]) y, float[2,3] z", TRUE + """
         e = SequenceEmpty<dtype = 1>() steps = Size(v)
         z, y = Loop (steps, t, x, e) <body = b (int64 i, bool c, float[2,3] a, seq(float[2,3]) l) => (bool k, float[2,3] r, seq(float[2,3]) m) {
             k = Identity(c) r = Exp(a) m = SequenceInsert(l, r) }>""",
         [[floats(2, 3), floats(n)] for n in (3, 1, 5)], {"n": "1..5"}, stacked=True),
]

CASES += control_cells.CASES


def tensors(name, value, stacked):
    """Name and value of the outputs that a program has for one of the model."""
    if not isinstance(value, list):
        return [(name, value)]
    return [(name, np.stack(value))] if stacked else [(f"{name}.{i}", x) for i, x in enumerate(value)]


def expected(case, path, feeds):
    """The names of the outputs, and their values for each of the feeds."""
    session, want = cases.ort_session(path), []
    for inputs in feeds:
        values = session.run(None, {x.name: a for x, a in zip(session.get_inputs(), inputs)})
        want.append([t for x, y in zip(session.get_outputs(), values) for t in tensors(x.name, y, case.stacked)])
    return [name for name, _ in want[0]], [[y for _, y in outputs] for outputs in want]


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
            expected(case, path, [inputs])
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
            if done.returncode != 1 or "E0707" not in done.stderr or case.says not in done.stderr:
                return f"etc run {os.path.basename(source)}: exit {done.returncode}: {done.stderr}"
    return None


def differs(case, folder):
    """What the program of the artifacts in `folder` has otherwise than the case says, or None."""
    with open(os.path.join(folder, "01-import.etir")) as f:
        text = f.read()
    if case.jumps != ("control::" in text):
        return "it has no control flow" if case.jumps else "it has control flow"
    if case.states >= 0:
        states = re.search(r"control::loop\([^\[]*\[(.*?)\]", text)[1].count("%")
        if states != case.states:
            return f"its first loop has {states} states, not {case.states}"
    value = re.findall(r"^  output .*%(\d+)", text, re.M)[-1]
    size = re.search(rf"%{value}: \w+\[((?:\([^)]*\)|[^],(])*)", text)[1]
    size = re.sub(r"s\d+", lambda s: re.search(rf'sym {s[0]} "(.*?)"', text)[1] or "?", size)
    return None if case.rows in ("", size) else f"{size} rows, not {case.rows}"


def check(case, args, server, work):
    """None when all values are right, else what went wrong."""
    path, program, artifacts = (os.path.join(work, x) for x in ("model.onnx", "model.pte", "artifacts"))
    model = case.model()
    onnx.save(model, path)
    names, want = expected(case, path, case.feeds)
    flags = [*args.extra, "--artifacts", artifacts]
    stage, code, message, _ = etc_command.lower(args.etc, path, program, case.dims, flags, args.timeout)
    if stage != "ok":
        return f"{stage}: {code} {message}"
    wrong = differs(case, artifacts)
    if wrong:
        return wrong
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
    model_inputs = [x.name for x in model.graph.input]
    dims = {k: v for k, v in case.dims.items() if f"[{k}" not in case.inputs and f",{k}" not in case.inputs}
    # Of known sizes a list has a known number of tensors.
    for source in (program,) if case.stacked else (path, program):
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
