"""Cases of dynamic.py of less used forms: unsigned integers, products at indices, names of dims, lists that arrive
at run time, and others. Their numbers are drawn anew for each case."""

import numpy as np

from dynamic_case import Case, fractions

U16, U32, U64 = np.uint16, np.uint32, np.uint64
EDGES = [0, 1, 2**24 + 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1025, 2**64 - 1]


def drawn():
    return np.random.default_rng(11)


def random(*shape):
    return drawn().standard_normal(shape).astype(np.float32)


def numbers(dtype, *shape, low=0):
    return drawn().integers(low, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def pair(dtype):
    """Two tensors that are equal here and there; the second has no zeros."""
    def feeds(n, m):
        x = numbers(dtype, n, m)
        return [x, np.where(np.arange(n * m).reshape(n, m) % 3 == 1, np.maximum(x, 1), numbers(dtype, m, low=1))]
    return feeds


def edges(n, m):
    return [np.resize(np.array(EDGES, U64), (n, m))]


def at_indices(n, m):
    """Updates of 4 rows by 5, some of them at the same place."""
    return [numbers(np.int64, 4, 5) % 5, numbers(np.int64, n, 3) % 8 - 4, numbers(np.int64, n, 3) % 4]


def unsigned(kind, dtype):
    t = f"{kind}[n,m]"
    compare = " ".join(f"{y} = {op}(x, w)" for y, op in zip("abcde", ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual")))
    yield Case(f"{kind} compared", f"{t} x, {t} w", ", ".join(f"bool[n,m] {y}" for y in "abcde"), compare, pair(dtype))
    arithmetic = " ".join(f"{y} = {op}(x, w)" for y, op in zip("abcdefg", ("Add", "Sub", "Mul", "Div", "Mod", "BitwiseXor", "BitwiseAnd")))
    yield Case(f"{kind} computed", f"{t} x, {t} w", ", ".join(f"{t} {y}" for y in "abcdefg"), arithmetic, pair(dtype))
    to = ((1, "float"), (11, "double"), (6, "int32"), (7, "int64"), (9, "bool"), (2, "uint8"))
    casts = " ".join(f"y{k} = Cast<to = {k}>(x)" for k, _ in to)
    yield Case(f"{kind} converted", f"{t} x", ", ".join(f"{name}[n,m] y{k}" for k, name in to), casts, lambda n, m: [numbers(dtype, n, m)])


CASES = [
    *unsigned("uint16", U16),
    *unsigned("uint32", U32),
    *unsigned("uint64", U64),
    *(Case(f"{kind} shifted", f"{kind}[n,m] x, {kind}[m] k", f"{kind}[n,m] y, {kind}[n,m] z",
           'y = BitShift<direction = "LEFT">(x, k) z = BitShift<direction = "RIGHT">(x, k)',
           lambda n, m, dtype=dtype: [numbers(dtype, n, m), numbers(dtype, m) % dtype(20)]) for kind, dtype in (("uint32", U32), ("uint64", U64))),
    *(Case(f"extremes of {kind}", f"{kind}[n,m] x, {kind}[n,m] w", f"{kind}[n,m] y, {kind}[n,m] z, {kind}[n,m] s",
           "y = Min(x, w) a = Max(x, w) z = Abs(a) s = Sign(x)", pair(dtype)) for kind, dtype in (("uint32", U32), ("uint64", U64))),
    Case("uint64 to floats", "uint64[n,m] x", "float[n,m] y, double[n,m] z", "y = Cast<to = 1>(x) z = Cast<to = 11>(x)", edges),
    Case("floats to unsigned", "float[n,m] x, double[m] w", "uint16[n,m] a, uint32[n,m] b, uint64[n,m] c, uint64[m] d",
         "k = Constant<value = float {0.001}>() s = Mul(x, k) a = Cast<to = 4>(s) b = Cast<to = 12>(x) big = Constant<value = float {1.0e14}>() "
         "t = Mul(x, big) c = Cast<to = 13>(t) d = Cast<to = 13>(w)",
         lambda n, m: [np.resize(np.array([0, 0.5, 3.7, 123456.0], np.float32), (n, m)), np.resize(np.array([1.8e19, 2.0**63, 7.9, 1e19]), m)]),
    # One update after the other: their number is that of a loop.
    Case("products at indices", "int64[4,5] x, int64[n,3] i, int64[n,3] u", "int64[4,5] y, int64[4,5] z",
         'y = ScatterElements<axis = 0, reduction = "mul">(x, i, u) one = Constant<value_ints = [1]>() '
         'a = Constant<value_ints = [0]>() t = Constant<value_ints = [2]>() k = Slice(i, a, t, one) f = Constant<value_ints = [1]>() e = Slice(u, a, f, one) '
         'w = Squeeze(e, one) z = ScatterND<reduction = "mul">(x, k, w)', at_indices, least_n=0, sizes=((3, 0), (0, 0), (8, 0))),
    Case("extremes at indices of unsigned", "uint32[4,5] x, int64[n,3] i, uint32[n,3] u", "uint32[4,5] y", 'y = ScatterElements<axis = 0, reduction = "max">(x, i, u)',
         lambda n, m: [a.astype(U32) if k != 1 else a for k, a in enumerate(at_indices(n, m))]),
    Case("many products at indices", "float[n,2000] x, int64[n,2000] i, float[n,2000] u", "float[n,2000] y", 'y = ScatterElements<axis = 1, reduction = "mul">(x, i, u)',
         lambda n, m: [drawn().uniform(1, 2, (n, 2000)).astype(np.float32), numbers(np.int64, n, 2000) % 2000, drawn().uniform(0.9, 1.1, (n, 2000)).astype(np.float32)],
         sizes=((2, 0), (1, 0))),
    # Dims whose names are expressions in others, as torch names them.
    Case("dims that follow others", 'float[n,m] x, float["16*n",m] z, float["n - 1",m] v, float["2*(m//2) + 1",1] w',
         "float[n,a] y, float[b,m] q, float[c,1] r",
         "e = Constant<value_ints = [1]>() d = Shape<end = 1>(x) t = Constant<value_ints = [16]>() o = Shape<start = 1>(x) "
         "to = Concat<axis = 0>(d, t, o) g = Reshape(z, to) u = Unsqueeze(x, e) h = Add(g, u) y = Flatten(h) q = Concat<axis = 0>(x, v) r = Concat<axis = 0>(w, w)",
         lambda n, m: [random(n, m), random(16 * n, m), random(n - 1, m), random(2 * (m // 2) + 1, 1)]),
    Case("a dim that is a multiple only", 'float["16*n + 3",4] x', "float[n,a] y",
         "b = Constant<value_ints = [3]>() e = Constant<value_ints = [9999]>() f = Constant<value_ints = [0]>() s = Slice(x, b, e, f) "
         "k = Constant<value_ints = [-1, 64]>() v = Reshape(s, k) o = Shape<end = 1>(v) z = Constant<value = int64 {0}>() d = Constant<value = int64 {1}>() l = Squeeze(o) "
         "r = Range(z, l, d) c = Cast<to = 1>(r) g = Constant<value_ints = [1]>() w = Unsqueeze(c, g) y = Add(v, w)",
         lambda n, m: [random(16 * n + 3, 4)], sizes=((3, 0), (1, 0), (8, 0)), flags=("--dim=n=1..8",)),
    # Pads, axes and steps that arrive at run time.
    *(Case(f"pads at run time, {mode}", "float[n,4] x, int64[4] p", "float[a,b] y", f'y = Pad<mode = "{mode}">(x, p)',
           lambda n, m: [random(n, 4), np.array([n % 3, 2, n // 2, 1])], flags=("--bound=y:0=20", "--bound=y:1=7"), opset=19,
           sizes=((3, 0), (4, 0), (7, 0)))
      for mode in ("constant", "reflect", "edge", "wrap")),
    Case("pads at run time that cut, and of one axis", "float[n,4] x, int64[4] p, int64[2] q, int64[1] k, float v", "float[a,b] y, float[c,4] z, float[d,e] w",
         'y = Pad(x, p, v) f = Constant<value_ints = [0]>() z = Pad<mode = "edge">(x, q, , f) zero = Constant<value = int64 {0}>() two = Constant<value = int64 {2}>() g = Clip(q, zero, two) w = Pad(x, g, v, k)',
         lambda n, m: [random(n, 4), np.array([1 - n, -1, 2, 0]), np.array([1, n]), np.array([n % 2 - 1]), np.array(2.5, np.float32)],
         flags=("--bound=y:0=20", "--bound=y:1=7", "--bound=z=20")),
    Case("axes and steps at run time", "float[n,4] x, int64[1] b, int64[1] e, int64[1] k, int64[1] s", "float[p,q] y, float[r,4] z, float[t,u] v",
         "f = Constant<value_ints = [0]>() y = Slice(x, b, e, k, s) z = Slice(x, b, e, f, s) g = Abs(b) v = Slice(x, g, e, k)",
         lambda n, m: [random(n, 4)] + [np.array([i]) for i in ((-1, -100, n % 2, -2), (0, 99, n % 2, 3), (n, -n, 0, -1), (1, 3, -1, 1), (0, 2**63 - 1, -2, 2**62))[m - 1]],
         sizes=tuple((n, m) for n in (1, 4, 7) for m in (1, 2, 3, 4, 5))),
    Case("steps that are sizes", "float[n,4] x, float[m] w", "float[p,4] y, float[q,4] z",
         "f = Constant<value_ints = [0]>() l = Constant<value_ints = [99]>() s = Shape(w) y = Slice(x, f, l, f, s) two = Constant<value_ints = [-2]>() t = Div(s, two) "
         "i = Constant<value_ints = [-1]>() u = Add(t, i) z = Slice(x, l, u, f, u)", lambda n, m: [random(n, 4), random(m)]),
    # Heads of a size, or of a number, that varies; the caches of a rotation tell it where they have a fixed width.
    Case("attention of heads of a dynamic size", "float[2,4,3,n] q, float[2,4,3,n] k, float[m,5,8] x, float[1,n,5,4] u", "float[2,4,3,n] y, float[m,5,8] z, float[1,n,5,4] w",
         "a = Constant<value_ints = [0]>() e = Constant<value_ints = [4]>() b = Constant<value_ints = [2]>() g = Slice(x, a, e, b) y = Attention(q, k, k) z = Attention<q_num_heads = 4, kv_num_heads = 2>(x, g, g) "
         "w = Attention(u, u, u)", lambda n, m: [random(2, 4, 3, n), random(2, 4, 3, n), random(m, 5, 8), random(1, n, 5, 4)], opset=23),
    Case("rotations of a dynamic size", 'float[1,2,3,n] x, float[1,3,m] y, float[1,3,"n//2"] c, float[9,4] k, int64[1,3] p', 'float[1,2,3,n] u, float[1,3,m] v',
         "u = RotaryEmbedding<interleaved = 1>(x, c, c) v = RotaryEmbedding<num_heads = 1>(y, k, k, p)",
         lambda n, m: [random(1, 2, 3, n), random(1, 3, m), random(1, 3, n // 2), random(9, 4), np.array([[4, 0, 8]])], sizes=((8, 8), (2, 8), (4, 8)), opset=23),
    *(Case(f"products of {kind}", f"{kind}[n,m] x, {kind}[m,3] w, {kind}[2,m,n] v", f"{kind}[n,3] y, {kind}[2,m,3] z", "y = MatMul(x, w) z = MatMul(v, y)",
           lambda n, m, dtype=dtype: [numbers(dtype, n, m), numbers(dtype, m, 3), numbers(dtype, 2, m, n)]) for kind, dtype in (("uint32", U32), ("uint64", U64))),
    # Half way in ONNX Runtime's mixture of float and double.
    Case("nearest of symmetric half pixels", "float[1,1,n,5] x, float[1,1,n,7] w", "float[1,1,n,3] y, float[1,1,n,11] z",
         "a = Constant<value = float[4] {1, 1, 1, 0.6}>() b = Constant<value = float[4] {1, 1, 1, 1.7}>() "
         'y = Resize<mode = "nearest", coordinate_transformation_mode = "half_pixel_symmetric", nearest_mode = "floor">(x, , a) '
         'z = Resize<mode = "nearest", coordinate_transformation_mode = "half_pixel_symmetric", nearest_mode = "ceil">(w, , b)',
         lambda n, m: [random(1, 1, n, 5), random(1, 1, n, 7)], opset=19),
    Case("windows of a size at run time", "int64 k, float[n] x", "float[a] y, float[b] z", "y = HannWindow(k) l = Size(x) z = BlackmanWindow<periodic = 0>(l)",
         lambda n, m: [np.array(2 * n), random(n)], flags=("--bound=y=16",), sizes=((3, 0), (2, 0), (8, 0)), least_n=2),
    # Convolutions whose windows fit in no band: some channels or groups at a time, at once, in bands and in loops over rows; transposed ones, too.
    # The samples are small: the rounding of a thousand products in another order is within the absolute tolerance.
    *(Case(f"convolutions in parts: {name}", f"float[{x}] x", f"float[{y}] y", f"w = {fractions(*w)} v = {fractions(8)} c = {op}>(x, w, v) y = Relu(c)",
           lambda n, m, x=x: [random(*({"n": n, "m": m}.get(d) or int(d) for d in x.split(","))) / 64], sizes=sizes, least_m=sizes[1][1], high=sizes[0][0])
      for name, x, y, w, op, sizes in (
          ("channels", "n,128,6,m", "n,8,6,m", (8, 128, 3, 3), "Conv<pads = [1,1,1,1]", ((6, 6), (1, 1), (3, 4))),
          ("rows that vary", "2,64,n,m", "2,8,n,m", (8, 64, 3, 3), "Conv<pads = [1,1,1,1]", ((20, 20), (1, 3), (13, 8))),
          ("groups", "n,48,8,m", "n,8,6,p", (8, 6, 3, 3), "Conv<group = 8", ((40, 40), (1, 3), (13, 8))),
          ("transposed", "n,128,m,6", "n,8,p,12", (128, 8, 4, 4), "ConvTranspose<strides = [2,2], pads = [1,1,1,1]", ((8, 8), (1, 1), (3, 4))))),
    # Pools of a varying number of samples: parts of their channels; an average over more columns than steps are worth.
    Case("pools of samples in parts", "float[n,12,16,m] x", "float[n,12,8,a] y, float[n,12,8,b] z, float[n,12,16,c] u, float[n,24,16,m] v",
         "y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x) z = AveragePool<kernel_shape = [2,2], strides = [2,2]>(x) "
         "u = MaxPool<kernel_shape = [1,3]>(x) v = Concat<axis = 1>(x, x)", lambda n, m: [random(n, 12, 16, m)], sizes=((8, 16), (1, 3), (3, 8)), least_m=3, high=16),
    Case("long averages", "float[n,4,2,90] x", "float[n,4,2,2] y, float[n,24,2,90] z",
         "y = AveragePool<kernel_shape = [1,75], strides = [1,15]>(x) z = Concat<axis = 1>(x, x, x, x, x, x)", lambda n, m: [random(n, 4, 2, 90)], sizes=((8, 1), (1, 1)), high=8),
    # Images that are resized to sizes that vary: in NHWC, and of few channels; by size, by a scale, along one dim alone, and the nearest pixels.
    *(Case(f"resized images: {name}", f"float[{x}] x, float[1,1,{z}] z", f"float[{y}] y, float[{y}] w, float[{y}] u", 
           's = Shape<start = 2>(z) y = Resize<mode = "linear", axes = [2, 3]>(x, , , s) w = Resize<mode = "linear", axes = [2, 3], coordinate_transformation_mode = "align_corners">(x, , , s) '
           'u = Resize<mode = "nearest", axes = [2, 3], coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , , s)',
           lambda n, m, x=x, z=z: [random(*({"n": n, "m": m}.get(d) or int(d) for d in f.split(","))) / 8 for f in (x, f"1,1,{z}")], sizes=sizes, high=64, opset=19)
      for name, x, z, y, sizes in (("channels", "2,9,n,m", "m,n", "2,9,m,n", ((40, 33), (1, 1), (5, 17), (64, 1))), ("few channels", "1,3,n,90", "m,100", "1,3,m,100", ((64, 60), (1, 2), (7, 1))),
                                      ("height", "n,16,m,20", "n,20", "n,16,n,20", ((20, 40), (2, 1), (3, 64))))),
    Case("images resized by a scale", "float[1,12,n,m] x", "float[1,12,a,b] y, float[1,12,a,b] z", "s = Constant<value = float[4] {1, 1, 1.5, 1.5}>() "
         'y = Resize<mode = "linear">(x, , s) z = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , s)',
         lambda n, m: [random(1, 12, n, m) / 8], sizes=((40, 30), (1, 1), (6, 7)), high=40),
]
