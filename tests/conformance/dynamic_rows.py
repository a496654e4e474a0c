"""Cases of dynamic.py: long rows that are transformed, rows that are cut off, quantized at run time, or gathered."""

import numpy as np

from dynamic_case import Case, codes, floats, fractions, quantized, rows_at_run, weights


def low_weights(*shape):
    """Codes of 7 bits: ONNX Runtime adds products in pairs of 16 bits where the CPU has no better instruction."""
    return f"Constant<value = int8[{','.join(map(str, shape))}] {{{', '.join(str(i * 37 % 121 - 60) for i in range(int(np.prod(shape))))}}}>()"


CASES = [
    # Long transforms are two products; also of half a spectrum, of rows that are too short or too long, and of frames.
    Case('dft of long rows', 'double[n,1000,1] x, double[n,1201,2] u', 'double[n,1537,2] y, double[n,2400,1] z, double[n,2048,2] v, double[n,1536,2] w',
         'l = Constant<value_int = 3072>() k = Constant<value_int = 2400>() i = Constant<value_int = 2048>() j = Constant<value_int = 1536>() '
         'y = DFT<axis = 1, onesided = 1>(x, l) z = DFT<axis = 1, inverse = 1, onesided = 1>(u, k) '
         'v = DFT<axis = 1>(u, i) w = DFT<axis = 1, inverse = 1>(u, j)', feeds=lambda n, m: [floats(n, 1000, 1).astype(float), floats(n, 1201, 2).astype(float)], sizes=((1, 2), (3, 2))),
    Case('stft of long frames', 'double[n,3000,1] x', 'double[n,k,1025,2] y, double[n,k,1537,2] z',
         's = Constant<value_int = 450>() l = Constant<value_int = 2048>() i = Constant<value_int = 3072>() t = Constant<value = double {0.001}>() o = Constant<value_int = 1>() '
         'e = Constant<value_int = 0>() f = Range(e, l, o) g = Cast<to = 11>(f) h = Mul(g, t) m = Neg(h) w = Exp(m) y = STFT(x, s, w, l) '
         'p = Concat<axis = 1>(x, x) z = STFT(p, s, , i)', feeds=lambda n, m: [floats(n, 3000, 1).astype(float)], sizes=((1, 2), (2, 2))),
    # Of a long length that varies they are convolutions of a fixed length.
    Case('dft of a long length that varies', 'double[1,n,1] x, double[1,n,2] u',
         'double[1,k,2] y, double[1,l,1] z, double[1,n,2] v, double[1,n,2] w',
         'y = DFT<axis = 1, onesided = 1>(x) z = DFT<axis = 1, inverse = 1, onesided = 1>(u) v = DFT<axis = 1>(u) w = DFT<axis = 1, inverse = 1>(x)',
         feeds=lambda n, m: [floats(1, n, 1).astype(float), floats(1, n, 2).astype(float)], sizes=((200, 1), (2, 1), (131, 1), (64, 1)),
         least_n=2, high=200),
    # Causal convolutions: padded at both ends, and cut at one or both.
    Case('convolutions that are cut', 'float[2,3,n] x, float[1,3,n,m] u', 'float[2,4,n] y, float[1,2,n,m] z',
         'w = ' + fractions(4, 3, 3) + ' v = ' + fractions(2, 3, 3, 3) + 'o = Constant<value_ints = [0]>() i = Constant<value_ints = [1]>() '
         'e = Constant<value_ints = [-4]>() a = Constant<value_ints = [2]>() f = Constant<value_ints = [-1]>() d = Constant<value_ints = [3]>() '
         'p = Conv<pads = [4, 4], dilations = [2]>(x, w) y = Slice(p, o, e, a) '
         'q = Conv<pads = [1, 2, 1, 2]>(u, v) z = Slice(q, i, f, d)', lambda n, m: [floats(2, 3, n), floats(1, 3, n, m)]),
    # XNNPACK would make limits that leave out zero a part of the convolutions that such products become.
    Case('limits of rows quantized at run time', 'float[n,m,8] x, float[m,8] w', 'float[n,m,5] y, float[m,5] z',
         't = Constant<value = float {0.001}>() l = Constant<value = float {0.01}>() h = Constant<value = float {-0.02}>() '
         + rows_at_run('a', 'x', weights(8, 5)) + 'y = Clip(a, l) ' + rows_at_run('b', 'w', weights(8, 5)) + 'z = Clip(b, , h)',
         lambda n, m: [codes(n, m, 8), codes(m, 8)]),
    # Places that are the same for samples and heads, or for channels.
    Case('gathers of rows', 'float[n,4,m,9] x, float[8,16,n] u', 'float[n,4,m,m] y, float[8,16,k] z',
         's = Shape(x) o = Constant<value_int = 0>() i = Constant<value_int = 1>() t = Constant<value_int = 2>() e = Gather(s, t) r = Range(o, e, i) '
         'a = Constant<value_ints = [1]>() b = Unsqueeze(r, a) c = Sub(b, r) d = Constant<value_int = -4>() g = Max(c, d) h = Constant<value_int = 4>() '
         'p = Min(g, h) q = Constant<value_int = 4>() v = Add(p, q) w = Gather(s, o) f0 = Unsqueeze(w, o0) f1 = Unsqueeze(e, o0) four = Constant<value_ints = [4]>() '
         'shape = Concat<axis = 0>(f0, four, f1, f1) l = Expand(v, shape) y = GatherElements<axis = 3>(x, l) '
         'k0 = Constant<value = int64[8,1,3] {0, -1, 0, -1, 0, 0, 0, -1, 0, -1, 0, 0, 0, -1, 0, -1, 0, 0, 0, -1, 0, -1, 0, 0}>() ks = Constant<value_ints = [8, 16, 3]>() kk = Expand(k0, ks) z = GatherElements<axis = 2>(u, kk)'
         .replace('s = Shape(x)', 'o0 = Constant<value_ints = [0]>() s = Shape(x)', 1),
         lambda n, m: [floats(n, 4, m, 9), floats(8, 16, n)]),
    # The kernel would divide by 0; the last dim of a grid tells nothing but that it is 2.
    Case('log softmax over no rows', 'float[n,4] x, float[m,3] u', 'float[n,4] y, float[m,3] z', 'y = LogSoftmax<axis = 0>(x) z = LogSoftmax<axis = -1>(u)',
         lambda n, m: [floats(n, 4), floats(m, 3)], sizes=((0, 1), (3, 2), (8, 8), (1, 2)), least_n=0),
    # -1 in the shape of an Expand stands for a dim that stays: where the number is known, so is the choice.
    Case('repeats of rows', 'float[n,1,3] x, int64[1] r', 'float[n,k,3] y',
         'o = Constant<value_ints = [1]>() t = Constant<value_ints = [3]>() l = Constant<value = int64 {5}>() z = Constant<value = int64 {0}>() '
         'a = Max(r, z) b = Min(a, l) s = Concat<axis = 0>(o, b, t) d = Shape(s) i = ConstantOfShape<value = int64[1] {1}>(d) j = Constant<value = int64 {-1}>() '
         'k0 = Mul(i, j) e = Equal(s, k0) w = Where(e, i, s) y = Expand(x, w)',
         lambda n, m: [floats(n, 1, 3), np.array([m], np.int64)], sizes=((3, 2), (8, 5), (1, 1))),
    # More inputs than products of a window: each input is multiplied by all its weights, and windows are added up of that.
    Case('transposed convolutions of lines to few channels', 'float[1,32,n] x', ', '.join(f'float[1,{c},n{k}] {k}' for c, k in zip((1, 2, 1, 3, 2), 'abcde')),
         f'v = {fractions(2)} ' + ''.join(f'{k}_w = {fractions(32, *w)} {k} = ConvTranspose<{a}>(x, {k}_w{v}) ' for k, w, a, v in (
             ('a', (1, 8), 'strides = [4]', ''), ('b', (2, 4), 'strides = [2], pads = [1,1]', ', v'), ('c', (1, 3), 'strides = [2], pads = [1,1], output_padding = [1]', ''),
             ('d', (3, 5), 'strides = [5]', ''), ('e', (2, 7), 'strides = [2], pads = [3,2]', ', v'))),
         lambda n, m: [floats(1, 32, n)], sizes=((200, 1), (3, 1), (77, 1)), least_n=3, high=200),
    # Rows of a value that each expert takes, up to an end that the data decide: not more than there are (no --bound).
    Case('rows of experts', 'float[n,4] x, int64[2] e', 'float[p,5] y',
         f'v = {fractions(4, 5)} w = {fractions(4, 5)} zero = Constant<value_int = 0>() one = Constant<value_int = 1>() '
         'a, b = Split<axis = 0, num_outputs = 2>(e) s = Squeeze(a) t = Squeeze(b) r = Range(zero, s, one) q = Range(s, t, one) '
         'f = Gather(x, r) g = Gather<axis = -2>(x, q) h = MatMul(f, v) i = MatMul(g, w) y = Concat<axis = 0>(h, i)',
         lambda n, m: [floats(n, 4), np.array([n // 2, n], np.int64)], sizes=((8, 1), (1, 1), (5, 1))),
    # Whole numbers, which lie between no two codes; the second convolution takes the images that the first one gives.
    Case('quantized convolutions of lines', 'float[n,4,m] x', 'float[n,3,m] y',
         's = Constant<value_float = 1.0>() u = Constant<value_float = 11.3>() v = Constant<value_float = 651.7>() o = Constant<value = int8 {3}>() z = Constant<value = int8 {0}>() '
         + quantized('a', 'x') + f'wq = {low_weights(5, 4, 3)} w = DequantizeLinear(wq, s, z) b = Conv<pads = [1,1]>(a, w) c = Relu(b) cq = QuantizeLinear(c, u, o) d = DequantizeLinear(cq, u, o) '
         + f'pq = {low_weights(3, 5, 1)} p = DequantizeLinear(pq, s, z) e = Conv(d, p) eq = QuantizeLinear(e, v, o) y = DequantizeLinear(eq, v, o)',
         lambda n, m: [np.round(floats(n, 4, m) * 8)], sizes=((1, 1), (8, 8), (3, 5), (1, 8))),
    # A start or limit with a fraction, and one that is a size: centers of pixels.
    Case('ranges of sizes and fractions', 'float[n,m] x', 'float[a] y, float[b] z, float[c] u, float[d] v',
         's = Shape(x) i = Constant<value_int = 0>() j = Gather(s, i) k = Cast<to = 1>(j) h = Constant<value_float = 0.5>() o = Constant<value_float = 1.0>() '
         'p = Constant<value_float = 40.25>() t = Constant<value_float = -3.0>() y = Range(h, k, o) z = Range(k, p, o) u = Range(p, k, t) '
         'q = Neg(p) v = Range(k, q, t)',
         lambda n, m: [floats(n, m)]),
    # Pads of sizes as TensorFlow has them, a row a dim: a matrix that is joined of rows, or of columns, is known as a list is.
    Case('pads as a matrix', 'float[n,m] x', 'float[a,m] y, float[a,b] z',
         'i = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() k = Constant<value_ints = [9]>() all = Constant<value_ints = [-1]>() zz = Constant<value_ints = [0, 0]>() '
         's = Shape(x) r = Slice(s, i, o) c = Slice(s, o, k) d = Sub(k, r) e = Sub(k, c) none = Unsqueeze(zz, i) f = Concat<axis = 0>(i, d) rows = Unsqueeze(f, i) '
         'p0 = Concat<axis = 0>(rows, none) p1 = Transpose(p0) p = Reshape(p1, all) y = Pad(x, p) '
         'g = Concat<axis = 0>(d, e) ends = Unsqueeze(g, o) begins = Unsqueeze(zz, o) q0 = Concat<axis = 1>(begins, ends) q1 = Transpose(q0) q = Reshape(q1, all) z = Pad(x, q)',
         lambda n, m: [floats(n, m)]),
]
