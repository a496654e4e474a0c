"""Cases of dynamic.py that say which numbers are computed with: quotients that are rounded, codes with a zero point, positions, numbers around convolutions."""

import numpy as np

from dynamic_case import RNG, Case, floats, fractions

CASES = [
    # Quotients by one number that are rounded: to the last bit, not by the reciprocal (41 / 41 would be 0).
    Case('pixels of run-time scales', 'float[1,1,n,m] x', 'float[1,1,255,24] y, float[1,1,n,m] z, bool[1,1,n,m] w',
         'k = Constant<value_ints = [1,1,255,24]>() y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(x, , , k) '
         'c = Constant<value = float {41}>() q = Div(x, c) z = Floor(q) d = Constant<value = float {1}>() p = Shape<start = 2>(x) s = ReduceMin<keepdims = 0>(p) '
         'f = Cast<to = 1>(s) r = Div(x, f) w = Less(r, d)',
         lambda n, m: [np.arange(n * m, dtype=np.float32).reshape(1, 1, n, m)], sizes=((9, 20), (18, 40), (1, 3)), high=40),
    # A table of codes from 0 to 255 with the zero point 127, as quantizers of language models leave it: for rows, and as weights beside floats.
    Case('tied embeddings of bytes', 'int64[n,m] i, float[n,m,64] x', 'float[n,m,40] y, float[n,m,40] z',
         'e = Constant<value = uint8[40,64] {' + ', '.join(str(k * 37 % 256) for k in range(40 * 64)) + '}>() o = Constant<value = uint8 {127}>() '
         's = Constant<value = float {0.0123}>() g = Gather(e, i) h = DequantizeLinear(g, s, o) t = Transpose(e) w = DequantizeLinear(t, s, o) '
         'y = MatMul(h, w) b = ' + fractions(40) + ' p = MatMul(x, w) q = Add(p, b) z = Relu(q)',
         lambda n, m: [RNG.integers(0, 40, (n, m)), floats(n, m, 64)]),
    # The last row of attention whose mask compares positions: of the positions, too, only the last is computed.
    Case('the last row behind a mask of positions', 'float[1,n,8] x, float[1,m,8] c', 'float[1,8] z',
         'y = Concat<axis = 1>(c, x) h = Shape<start = 1, end = 2>(x) n0 = Squeeze(h) j = Shape<start = 1, end = 2>(c) p0 = Squeeze(j) t0 = Add(n0, p0) '
         'o0 = Constant<value = int64 {0}>() o1 = Constant<value = int64 {1}>() a0 = Constant<value_ints = [0]>() a1 = Constant<value_ints = [1]>() '
         'r = Range(o0, t0, o1) r1 = Unsqueeze(r, a0) q = Range(o0, n0, o1) q1 = Add(q, p0) q2 = Unsqueeze(q1, a1) k = LessOrEqual(r1, q2) '
         't = Transpose<perm = [0,2,1]>(y) w = MatMul(x, t) low = Constant<value = float {-10000}>() f = Where(k, w, low) g = Softmax(f) o = MatMul(g, y) '
         'v = ' + fractions(8, 8) + ' l = MatMul(o, v) e = Constant<value = int64 {-1}>() z = Gather<axis = 1>(l, e)',
         lambda n, m: [floats(1, n, 8), floats(1, m, 8)]),
    # Biases, factors and shifts as nodes of their own around convolutions, as paddle2onnx writes them.
    Case('convolutions between numbers', 'float[1,3,n,m] x', 'float[1,4,n,m] y, float[1,4,n,m] z',
         'a = ' + fractions(6, 3, 1, 1) + ' b = ' + fractions(1, 6, 1, 1) + ' f = Constant<value_floats = [1.5]>() s = Constant<value_floats = [0.25]>() '
         'c = Conv(x, a) d = Add(c, b) e = Mul(f, d) g = Sub(e, s) h = HardSwish(g) i = Mul(f, h) j = Add(i, s) '
         'k = ' + fractions(4, 6, 1, 1) + ' y = Conv(j, k) o = ' + fractions(6, 1, 1) + ' p = Add(h, o) q = Mul(p, f) '
         'r = ' + fractions(6, 1, 3, 3) + ' t = Conv<group = 6, pads = [1,1,1,1]>(q, r) u = Sub(t, o) z = Conv(u, k)',
         lambda n, m: [floats(1, 3, n, m)]),
    # `length ** 2` as torch exports it.
    Case('a size squared', 'float[n,m] x', 'float[p] y',
         's = Shape<start = 0, end = 1>(x) e = Constant<value = int64 {2}>() q = Pow(s, e) y = ConstantOfShape<value = float[1] {2.5}>(q)',
         lambda n, m: [floats(n, m)]),
    # Places of rows in a tensor of which more than the first dim varies.
    Case('rows at pairs of indices', 'float[n,m,4] x, int64[96,2] i', 'float[96,4] y', 'y = GatherND(x, i)',
         lambda n, m: [floats(n, m, 4), np.stack([RNG.integers(-n, n, 96), RNG.integers(-m, m, 96)], 1)]),
    # Products over a dim that is 0 in the second call: zeros, or the bias, and not what the memory held before. (ONNX Runtime
    # leaves all but the first matrix of a batch unwritten, so that there is nothing to compare with.)
    Case('products over no rows', 'float[n,4] x, float[4] c', 'float[4,4] y, float[4,4] u, float[4,4] v',
         'o0 = Constant<value_ints = [0]>() o1 = Constant<value_ints = [1]>() e = Constant<value_ints = [-1]>() big = Constant<value_ints = [99]>() '
         'a = Slice(x, o1, big, o0) b = Slice(x, o0, e, o0) t = Transpose<perm = [1,0]>(a) y = MatMul(t, b) '
         'u = Gemm<transA = 1>(a, b, c) f = Transpose<perm = [1,0]>(t) v = MatMul(t, f)',
         lambda n, m: [floats(n, 4), floats(4)]),
    # Sums at indices of which there are none in the second call.
    Case('sums at no indices', 'float[n,64] x, int64[m,1] i, float[m,64] v', 'float[n,64] y',
         'o0 = Constant<value_ints = [0]>() o1 = Constant<value_ints = [1]>() big = Constant<value_ints = [99]>() '
         'j = Slice(i, o1, big, o0) u = Slice(v, o1, big, o0) y = ScatterND<reduction = "add">(x, j, u)',
         lambda n, m: [floats(n, 64), RNG.integers(0, n, (m, 1)), floats(m, 64)]),
    # The mask of Transformer-XL: a triangle that begins behind the memory.
    Case('triangles behind a memory', 'float[n,m] x, float[m,3] c', 'float[n,m] y, float[n,m] z',
         'h = Shape<start = 0, end = 1>(c) o = Constant<value = int64 {1}>() k = Squeeze(h) d = Sub(k, o) y = Trilu(x, d) b = Neg(d) z = Trilu(x, b)',
         lambda n, m: [floats(n, m), floats(m, 3)]),
    # Numbers of windows as torch.ceil of floats gives them (neural codecs): the padding is a size again.
    Case('padding to whole windows by floats', 'float[1,2,m] x', 'float[1,2,p] y, float[1,2,q] z',
         's = Shape<start = 2, end = 3>(x) f = Cast<to = 1>(s) k = Constant<value_floats = [-7.0]>() a = Add(f, k) two = Constant<value_floats = [2.0]>() '
         'b = Add(a, two) four = Constant<value_floats = [4.0]>() c = Div(b, four) one = Constant<value_floats = [1.0]>() d = Add(c, one) e = Ceil(d) '
         'g = Cast<to = 7>(e) o = Constant<value_ints = [4]>() h = Mul(g, o) i = Constant<value_ints = [5]>() j = Add(h, i) r = Sub(j, s) '
         'n0 = Constant<value_ints = [0,0,0,0,0]>() w = Concat<axis = 0>(n0, r) y = Pad(x, w) t = Div(f, four) u = Ceil(t) v = Mul(u, four) l = Cast<to = 7>(v) '
         'q0 = Sub(l, s) q1 = Concat<axis = 0>(n0, q0) z = Pad<mode = "edge">(x, q1)',
         lambda n, m: [floats(1, 2, m)]),
    # Values that a mask selects, which are none in the second call.
    Case('distinct values behind a mask', 'float[n,m] x', 'float[p] y, int64[p] z, int64[q] w',
         'c = Constant<value = float {2}>() k = Greater(x, c) o = Constant<value_ints = [-1]>() f = Reshape(k, o) a = Compress(x, f) y, i, w, z = Unique(a)',
         lambda n, m: [(RNG.integers(0, 9, (n, m)) * (n > 1)).astype(np.float32)]),
    # A length of a transform that is the size of its dim, as dynamo writes it, or that size and one more.
    Case('spectra of any length', 'float[n,m] x', 'float[n,p,2] y, float[n,q,2] z',
         'o = Constant<value_ints = [-1]>() u = Unsqueeze(x, o) s = Shape<start = 1, end = 2>(x) l = Squeeze(s) a = Constant<value = int64 {1}>() '
         'y = DFT<onesided = 1>(u, l, a) k = Add(l, a) z = DFT(u, k, a)',
         lambda n, m: [floats(n, m)], opset=20),
    # One size of a shape replaced, as TorchScript's index_copy does, from its end, and one increased.
    Case('sizes written into a shape', 'float[3,4] c, float[n,1] x', 'float[p,q] y, float[r,s] z, float[t,u] w',
         's = Shape(c) i0 = Constant<value_ints = [0]>() e = Constant<value_ints = [-1]>() d = Shape<start = 0, end = 1>(x) '
         'p = ScatterElements<axis = 0>(s, i0, d) y = Expand(x, p) k = Constant<value = int64[1,1] {1}>() q = ScatterND(s, k, d) '
         't = Transpose<perm = [1,0]>(x) z = Expand(t, q) three = Constant<value_ints = [3]>() '
         'r = ScatterElements<axis = 0, reduction = "add">(p, e, three) w = Expand(x, r)',
         lambda n, m: [floats(3, 4), floats(n, 1)]),
    # Heads joined again, times weights with scales and zero points for blocks (as an output they stay what ONNX Runtime multiplies).
    Case('blocks behind joined heads', 'float[n,m,12,32] x', 'float[n,m,4] y, float[384,4] d',
         'h = Constant<value_ints = [0, 0, 384]>() r = Reshape(x, h) w = Constant<value = uint8[384,4] {' + ', '.join(str(i * 37 % 256) for i in range(384 * 4)) + '}>() '
         's = Constant<value = float[24,4] {' + ', '.join(str((i % 7 + 1) / 512) for i in range(96)) + '}>() '
         'z = Constant<value = uint8[24,4] {' + ', '.join(str(i * 29 % 256) for i in range(96)) + '}>() '
         'd = DequantizeLinear<axis = 0, block_size = 16>(w, s, z) y = MatMul(r, d)',
         lambda n, m: [floats(n, m, 12, 32)], opset=21),
    # Windows of 2 by 2 of every second row and column, filled up, taken apart and joined again, as vision transformers write it: the number
    # of images is what remains of that of windows.
    Case('windows taken apart and joined', 'float[2,n,m,4] x', 'float[2,p,q,4] y',
         'o = Constant<value_ints = [1,1]>() z = Constant<value_ints = [0,0]>() big = Constant<value_ints = [99,99]>() a = Constant<value_ints = [1,2]>() '
         'two = Constant<value_ints = [2]>() steps = Constant<value_ints = [2,2]>() v = Slice(x, z, big, a, steps) h = Shape<start = 1, end = 2>(v) '
         'w = Shape<start = 2, end = 3>(v) hr = Mod(h, two) hs = Sub(two, hr) hp = Mod(hs, two) wr = Mod(w, two) ws = Sub(two, wr) wp = Mod(ws, two) '
         'n0 = Constant<value_ints = [0,0,0,0,0]>() n1 = Constant<value_ints = [0]>() pads = Concat<axis = 0>(n0, hp, wp, n1) f = Pad(v, pads) '
         'hf = Add(h, hp) wf = Add(w, wp) hn = Div(hf, two) wn = Div(wf, two) b = Shape<end = 1>(x) c = Constant<value_ints = [4]>() '
         'parts = Concat<axis = 0>(b, hn, two, wn, two, c) t = Reshape(f, parts) u = Transpose<perm = [0,1,3,2,4,5]>(t) '
         'rows = Constant<value_ints = [-1,2,2,4]>() windows = Reshape(u, rows) r = Relu(windows) count = Shape<end = 1>(r) each = Mul(hn, wn) '
         'images = Div(count, each) rest = Constant<value_ints = [-1]>() apart = Concat<axis = 0>(images, hn, wn, two, two, rest) k = Reshape(r, apart) '
         'j = Transpose<perm = [0,1,3,2,4,5]>(k) whole = Concat<axis = 0>(images, hf, wf, rest) e = Reshape(j, whole) hw = Concat<axis = 0>(h, w) '
         'y = Slice(e, z, hw, a)',
         lambda n, m: [floats(2, n, m, 4)]),
    # Half of the size and of its third, by float16, as conversions to it leave sizes that floats computed.
    Case('sizes by float16', 'float[n,m] x', 'float[p,n] y, float[n,q] z',
         's = Shape<start = 1, end = 2>(x) h = Cast<to = 10>(s) two = Constant<value = float16[1] {16384}>() three = Constant<value = float16[1] {16896}>() '
         'a = Div(h, two) b = Ceil(a) c = Cast<to = 7>(b) d = Div(a, three) e = Floor(d) f = Cast<to = 7>(e) '
         'z0 = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() n = Shape<end = 1>(x) p = Concat<axis = 0>(c, n) k = Slice(x, z0, c, o) y = Reshape(k, p) '
         'z = Slice(x, f, s, o)',
         lambda n, m: [floats(n, m)]),
    # size // 2 and size // size as transformers' exporter and torchlib write them: the quotient, less 1 where signs differ and something is left.
    Case('floor division of sizes by their signs', 'float[n,m] x', 'int64[a] u, int64[b] v, int64[c] w',
         'o = Constant<value = int64 {0}>() i = Constant<value = int64 {1}>() two = Constant<value = int64 {2}>() f = Constant<value = int64 {-4}>() '
         'r = Shape<start = 0, end = 1>(x) n = Squeeze(r) c = Shape<start = 1, end = 2>(x) m = Squeeze(c) e = Add(n, f) '
         + ''.join(f'{k}q = Div({s}, {d}) {k}s = Sign({s}) {k}t = Sign({d}) {k}e = Equal({k}s, {k}t) {k}n = Not({k}e) {k}m = Mod({s}, {d}) {k}b = Cast<to = 9>({k}m) '
                   f'{k}a = And({k}n, {k}b) {k}i = Cast<to = 7>({k}a) {k}f = Sub({k}q, {k}i) ' for k, s, d in (('a', 'n', 'two'), ('b', 'm', 'n'), ('c', 'e', 'two')))
         + 'u = Range(o, af, i) v = Range(o, bf, i) w = Range(cf, two, i)',
         lambda n, m: [np.zeros((n, m), np.float32)], sizes=((3, 5), (1, 1), (6, 2), (2, 7), (4, 8))),
    # Conditions on sizes that another size of the range decides otherwise, and what is made of them.
    Case('sizes by conditions', 'float[n,m] x', ', '.join(f'int64[l{k}] y{k}' for k in 'abcdefghij'),
         'o = Constant<value = int64 {0}>() i = Constant<value = int64 {1}>() two = Constant<value = int64 {2}>() five = Constant<value = int64 {5}>() '
         'r = Shape<start = 0, end = 1>(x) n = Squeeze(r) p = Shape<start = 1, end = 2>(x) m = Squeeze(p) d = Sub(n, m) g = Greater(n, five) l = LessOrEqual(m, n) '
         'q = Mod(n, two) even = Equal(q, o) odd = Not(even) same = Equal(n, m) h = Div(n, two) an = Abs(d) cn = Where(g, five, n) dn = Where(even, n, m) '
         'en0 = Cast<to = 7>(odd) en = Add(h, en0) fn0 = Xor(g, l) fn1 = Cast<to = 7>(fn0) fn = Add(fn1, i) gn0 = Or(same, odd) gn1 = Cast<to = 7>(gn0) gn = Mul(gn1, m) '
         'hn0 = And(g, even) hn1 = Cast<to = 6>(hn0) hn = Cast<to = 7>(hn1) in0 = Mod<fmod = 1>(d, two) in = Add(in0, i) jn0 = Sign(d) jn1 = Cast<to = 9>(jn0) jn2 = Where(jn1, an, five) '
         'jn = Sub(jn2, jn0) bn0 = GreaterOrEqual(n, m) bn1 = Less(n, five) bn2 = Or(bn1, bn0) bn3 = Cast<to = 1>(bn2) bn4 = Abs(bn3) bn = Cast<to = 7>(bn4) '
         + ' '.join(f'y{k} = Range(o, {k}n, i)' for k in 'abcdefghij'),
         lambda n, m: [np.zeros((n, m), np.float32)], sizes=tuple((n, m) for n in (1, 2, 4, 5, 6, 7, 8) for m in (1, 3, 5, 8))),
]
