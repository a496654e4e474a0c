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
]
