"""Cases of control.py: loops that are cells of recurrent networks, and loops that look like them."""

from control_case import TRUE, Case, floats, whole

W = "w = Constant<value = float[2,4] {0.5, -0.25, 0.75, 0.25, -0.5, 0.5, 0.25, -0.75}>() "
R = "r = Constant<value = float[2,4] {0.25, 0.5, -0.5, 0.25, 0.75, -0.25, 0.5, -0.5}>() "
S = "s = Constant<value = float[2,2] {0.5, -0.25, 0.75, 0.25}>() "
GATES = """g = MatMul(v, w) h = MatMul(p, r) u = Add(g, h) a, b2 = Split<axis = 1, num_outputs = 2>(u) e = Sigmoid(a) f = Tanh(b2)
           d = Mul(e, q) i2 = Sub(f, d) q2 = Add(d, i2) l = Tanh(q2) p2 = Mul(e, l) o = Identity(p2) """


def steps(count):
    return f"m = Constant<value_int = {count}>() "


def cell(name, count, **more):
    """A gated cell over `count` rows."""
    return Case(name, f"float[{count},1,2] x, float[1,2] p0, float[1,2] q0", "float[1,2] pn, float[1,2] qn, float[rows,1,2] y", TRUE + W + R + steps(count) + f"""
        pn, qn, y = Loop (m, t, p0, q0) <body = b (int64 i, bool c, float[1,2] p, float[1,2] q) => (bool k, float[1,2] p2, float[1,2] q2, float[1,2] o) {{
            k = Identity(c) v = Gather<axis = 0>(x, i) {GATES} }}>""", [[floats(count, 1, 2), floats(1, 2), floats(1, 2)]], **more)


CASES = [
    cell("cell", 12, states=3),
    cell("cell-few", 4, jumps=False),
    Case("cell-counted", "float[9,1,2] x, float[1,2] p0, float[1,2] q0", "int64 n, float[1,2] pn, float[1,2] qn, float[rows,1,2] y", TRUE + W + R + steps(9) + f"""
        z = Constant<value_int = 0>() one = Constant<value_int = 1>() t0 = Less(z, m)
        n, pn, qn, y = Loop (, t0, z, p0, q0) <
            body = b (int64 i, bool c, int64 j, float[1,2] p, float[1,2] q) => (bool k, int64 j2, float[1,2] p2, float[1,2] q2, float[1,2] o) {{
            j2 = Add(j, one) k = Less(j2, m) v = Gather<axis = 0>(x, j) {GATES} }}>""", [[floats(9, 1, 2), floats(1, 2), floats(1, 2)]], states=4),
    # Each step has a matrix of its own: they are known when there is no loop.
    Case("layers", "float[1,2] x", "float[1,2] y", TRUE + steps(6) + """
        w = Constant<value = float[6,2,2] {0.5, -0.25, 0.75, 0.25, -0.5, 0.5, 0.25, -0.75, 1.0, 0.5, -0.5, 0.25,
                                           0.5, 0.25, -0.75, 0.25, -0.5, 0.5, 0.25, -0.5, 1.0, -0.5, 0.5, 0.75}>()
        y = Loop (m, t, x) <body = b (int64 i, bool c, float[1,2] p) => (bool k, float[1,2] p2) {
            k = Identity(c) v = Gather<axis = 0>(w, i) g = MatMul(p, v) p2 = Tanh(g) }>""", [[floats(1, 2)]], jumps=False),
    Case("cell-grows", "float[1,2] x", "float[7,2] y", TRUE + S + steps(6) + """
        y = Loop (m, t, x) <body = b (int64 i, bool c, float[a,2] p) => (bool k, float[d,2] p2) {
            k = Identity(c) g = MatMul(p, s) f = Tanh(g) u = ReduceMean<keepdims = 1>(f, zero) p2 = Concat<axis = 0>(p, u) }>"""
         .replace("y = Loop", "zero = Constant<value_ints = [0]>() y = Loop", 1), [[floats(1, 2)]], jumps=False),
    # The number of the step is a vector of one element where the body declares it so, as the pieces of tensor_split are exported.
    Case("numbers-of-rank-1", "float[7,2] x, int64[3] at", "float[a,2] y, float[b,2] z", TRUE + """
        m = Constant<value_ints = [3]>() zero = Constant<value_ints = [0]>() all = Concat<axis = 0>(zero, at) none = SequenceEmpty<dtype = 1>()
        s = Loop (m, t, none) <body = b (int64[1] i, bool c, seq(float[r,2]) q) => (bool k, seq(float[p,2]) q2) {
            k = Identity(c) one = Constant<value_int = 1>() j = Add(i, one) u = Gather<axis = 0>(all, i) v = Gather<axis = 0>(all, j)
            w = Slice(x, u, v, zero) q2 = SequenceInsert(q, w) }>
        p0 = Constant<value_int = 0>() p2 = Constant<value_int = 2>() y = SequenceAt(s, p0) z = SequenceAt(s, p2)""",
         [[floats(7, 2), whole(v)] for v in ([1, 3, 7], [0, 0, 2], [7, 7, 7])], jumps=False),
    # `for row in x.unbind(1)` as torch scripts it: pieces of 1 without their dim, of a known number or not, in order or in reverse.
    *(Case(f"rows-{n}", f"float[2,{n},3] x, float[2,3] h", "float[steps,2,3] y", """
         one = Constant<value_int = 1>() s = SplitToSequence<axis = 1, keepdims = 0>(x, one) m = SequenceLength(s)
         l, y = Loop (m, t, h) <body = b (int64 i, bool c, float[2,3] p) => (bool k, float[2,3] p2, float[2,3] o) {
             k = Identity(c) v = SequenceAt(s, i) g = Add(p, v) p2 = Tanh(g) o = Identity(p2) }>""".replace("one =", TRUE + "one =", 1),
           [[floats(2, f or n, 3), floats(2, 3)] for f in found], {"n": "1..6"} if n == "n" else {}, jumps=n == "n")
      for n, found in ((4, (0,)), ("n", (3, 1, 6)))),
    Case("rows-backwards", "float[2,n,3] x, float[2,3] h", "float[steps,2,3] y", TRUE + """
         shape = Shape<start = 1, end = 2>(x) n0 = Squeeze(shape) one = Constant<value_int = 1>() last = Sub(n0, one) before = Constant<value_int = -1>()
         d = Sub(before, last) e = Cast<to = 1>(d) f = Constant<value_float = -1.0>() q = Div(e, f) u = Ceil(q) m = Cast<to = 7>(u)
         l, y = Loop (m, t, h) <body = b (int64 i, bool c, float[2,3] p) => (bool k, float[2,3] p2, float[2,3] o) {
             k = Identity(c) j = Sub(last, i) v = Gather<axis = 1>(x, j) g = Add(p, v) p2 = Tanh(g) o = Identity(p2) }>""",
         [[floats(2, n, 3), floats(2, 3)] for n in (3, 1, 6)], {"n": "1..6"}),
    # Lists that hold something before the loop that appends to them: tensors, or what another loop appended.
    Case("list-begun", "float[2,3] x, float[n] v, int64 i", "float[rows,3] y, float[2,3] z, int64 l", TRUE + """
         a = Neg(x) e = SequenceConstruct(x, a) steps = Size(v)
         w, s = Loop (steps, t, x, e) <body = b (int64 i, bool c, float[2,3] p, seq(float[2,3]) q) => (bool k, float[2,3] p2, seq(float[2,3]) q2) {
             k = Identity(c) p2 = Sin(p) q2 = SequenceInsert(q, p2) }>
         u, r = Loop (steps, t, w, s) <body = d (int64 i2, bool c2, float[2,3] g, seq(float[2,3]) h) => (bool k2, float[2,3] g2, seq(float[2,3]) h2) {
             k2 = Identity(c2) g2 = Cos(g) h2 = SequenceInsert(h, g2) }>
         y = ConcatFromSequence<axis = 0>(r) z = SequenceAt(r, i) l = SequenceLength(r)""",
         [[floats(2, 3), floats(n), whole(i)] for n, i in ((3, 0), (1, 3), (5, -4))], {"n": "1..5"}),
    # The states of several layers, as a list that each step makes anew of as many tensors; beside it a tensor, a list that grows, and rows.
    Case("list-remade", "float[n,2] x, float[1,2] h", "float[1,2] y, float[rows,2] z, float[steps,1,2] o, int64 l", TRUE + """
         e = SequenceEmpty<dtype = 1>() a = Neg(h) s = SequenceConstruct(h, a) shape = Shape<start = 0, end = 1>(x) steps = Squeeze(shape)
         q, g, f, o = Loop (steps, t, s, h, e) <
             body = b (int64 i, bool c, seq(float[1,2]) s1, float[1,2] p, seq(float[1,2]) f1)
                 => (bool k, seq(float[1,2]) s2, float[1,2] p2, seq(float[1,2]) f2, float[1,2] o2) {
             k = Identity(c) zero = Constant<value_int = 0>() one = Constant<value_int = 1>() first = Constant<value_ints = [0]>()
             row = Gather<axis = 0>(x, i) v = Unsqueeze(row, first) u0 = SequenceAt(s1, zero) u1 = SequenceAt(s1, one)
             m0 = Add(v, u0) d0 = Tanh(m0) m1 = Sub(d0, u1) d1 = Tanh(m1) s2 = SequenceConstruct(d0, d1)
             p2 = Add(p, d1) f2 = SequenceInsert(f1, d1) last = SequenceAt(s2, zero) o2 = Mul(last, p) }>
         begin = Constant<value_int = 0>() next = Constant<value_int = 1>() y0 = SequenceAt(q, begin) y1 = SequenceAt(q, next) y2 = Sub(y0, y1) y = Add(y2, g)
         z = ConcatFromSequence<axis = 0>(f) l = SequenceLength(q)""",
         [[floats(n, 2), floats(1, 2)] for n in (3, 1, 6)], {"n": "1..6"}),
]
