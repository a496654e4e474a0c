"""Cases of dynamic.py: operators over dims n and m. New ones at the end: they share a random generator."""

import numpy as np

import dynamic_data
import dynamic_forms
import dynamic_numbers
import dynamic_rows
from dynamic_case import RNG, Case, at_run, codes, floats, fractions, product_at_run, quantized, rows_at_run, weights


def in_bands(name, dims, kernel, attributes, bias, sizes, least_n, least_m=1):
    """A convolution whose result is needed three times, so that there is memory for its windows, but not for all at once."""
    samples, channels, *image = dims.split(",")
    more = f" b = {fractions(kernel[0])}" if bias else ""
    return Case(name, f'float[{dims}] x', f'float[{samples},{3 * kernel[0]},{"p,q" if len(image) == 2 else "p"}] y',
                f'a = {fractions(*kernel)}{more} r = Relu(x) c = Conv{attributes}(r, a{", b" if bias else ""}) y = Concat<axis = 1>(c, c, c)',
                lambda n, m: [floats(int(samples), int(channels), *(n, m)[:len(image)])],
                sizes=sizes, least_n=least_n, least_m=least_m, high=max(sizes[0]))


CASES = [
    # Two dims vary in each: heads split, transposed, multiplied, joined again, also from and to rows.
    Case('attention', 'float[n,m,12] x', 'float[n,m,12] y',
         'a = Constant<value = float[12,36] {' + ",".join(f"{(i * 7 % 23 - 11) / 12:.3f}" for i in range(432)) + '}>() '
         's = Constant<value_ints = [0, 0, 3, 4, 3]>() t = Constant<value_ints = [0, 0, 12]>() z = Constant<value = float {0.5}>() '
         'p = MatMul(x, a) h = Reshape(p, s) hs = Transpose<perm = [4, 0, 2, 1, 3]>(h) '
         'i0 = Constant<value_int = 0>() i1 = Constant<value_int = 1>() i2 = Constant<value_int = 2>() '
         'q = Gather(hs, i0) k = Gather(hs, i1) v = Gather(hs, i2) kt = Transpose<perm = [0, 1, 3, 2]>(k) '
         'w = MatMul(q, kt) ws = Mul(w, z) e = Softmax(ws) o = MatMul(e, v) ot = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(ot, t)',
         lambda n, m: [floats(n, m, 12)]),
    Case('heads shuffled', 'float[n,m,12] x', 'float[n,b,c] y, float[n,1,m,1,12] z',
         's = Constant<value_ints = [0, 0, 3, 4]>() t = Constant<value_ints = [0, 12, -1]>() u = Constant<value_ints = [1, 3]>() '
         'h = Reshape(x, s) k = Transpose<perm = [0, 3, 2, 1]>(h) y = Reshape(k, t) z = Unsqueeze(x, u)',
         lambda n, m: [floats(n, m, 12)]),
    Case('convolutions over lines', 'float[n,3,m] x', 'float[n,2,m] y, float[n,4,m] z',
         'a = Constant<value = float[4,3,3] {' + ",".join(f"{(i * 5 % 17 - 8) / 4:.2f}" for i in range(36)) + '}>() '
         'b = Constant<value = float[4] {1,-1,2,0.5}>() h = Constant<value = float {0.5}>() '
         'c = Constant<value = float[4,1,3] {' + ",".join(f"{(i * 7 % 11 - 5) / 4:.2f}" for i in range(12)) + '}>() '
         'q = Conv<pads = [1, 1]>(x, a, b) r = Relu(q) s = Mul(r, h) d = Conv<pads = [2, 2], dilations = [2], group = 4>(s, c) '
         't, u = Split<axis = 1, num_outputs = 2>(d) v = Tanh(t) w = Sigmoid(u) y = Mul(v, w) z = Add(q, d)',
         lambda n, m: [floats(n, 3, m)]),
    Case('means over what varies', 'float[n,m,4] x', 'float[n,4] a, float[n,1,4] b, float[n,m] c, float[n,4,1] d, float[1,1,4] e, float[n,1,1] f',
         'i = Constant<value_ints = [1]>() j = Constant<value_ints = [2]>() k = Constant<value_ints = [0, 1]>() l = Constant<value_ints = [1, 2]>() '
         'a = ReduceMean<keepdims = 0>(x, i) b = ReduceMean(x, i) c = ReduceSum<keepdims = 0>(x, j) t = Transpose<perm = [0, 2, 1]>(x) '
         'r = Relu(t) d = ReduceMean(r, j) e = ReduceMean(x, k) f = ReduceMean(x, l)'),
    Case('products of rows', 'float[n,m,4] x', 'float[m,n,2,3] y',
         'a = Constant<value = float[4,6] {1,2,3,4,5,6,-1,2,-3,4,-5,6,1,0,0,1,0,2,3,1,4,1,5,9}>() '
         's = Constant<value_ints = [-1, 4]>() p = Shape(x) i = Constant<value_ints = [1, 0]>() d = Gather(p, i) '
         'f = Constant<value_ints = [2, 3]>() r = Concat<axis = 0>(d, f) '
         'v = Transpose<perm = [1, 0, 2]>(x) w = Reshape(v, s) g = MatMul(w, a) h = Relu(g) y = Reshape(h, r)'),
    # Indices counted from the end, the same for all of a row: wrapped before they are repeated.
    Case('scatter of expanded indices', 'float[n,m] x, int64[n] k', 'float[a,b] y',
         'last=Constant<value_ints=[1]>() c=Unsqueeze(k,last) s=Shape(x) e=Expand(c,s) '
         'z=Sub(x,x) y=ScatterElements<axis=0,reduction="add">(z,e,x)',
         feeds=lambda n, m: [floats(n, m), RNG.integers(-n, n, n)]),
    # The number of frames follows the length of the signal; of rank 2 as torch.onnx writes it.
    Case('dft of real rows', 'float[n,m,1] x', 'float[n,m,2] y, float[n,k,2] z', 'y = DFT<axis = 1>(x)  z = DFT<axis = 1, onesided = 1>(x)',
         feeds=lambda n, m: [floats(n, m, 1)]),
    Case('dft of complex rows, and back', 'float[n,m,2] x', 'float[n,m,2] y, float[n,m,2] z, float[n,m,2] c',
         'y = DFT<axis = 1>(x)  z = DFT<axis = 1, inverse = 1>(x)  c = DFT<axis = 0>(x)', feeds=lambda n, m: [floats(n, m, 2)]),
    Case('dft of a length', 'float[n,m,2] x', 'float[n,5,2] y, float[n,5,2] z',
         'l = Constant<value_int = 5>()  y = DFT<axis = 1>(x, l)  z = DFT<axis = 1, inverse = 1>(x, l)', feeds=lambda n, m: [floats(n, m, 2)],
         sizes=((3, 5), (1, 2), (6, 8))),
    Case('stft', 'float[n,m,1] x', 'float[n,f,3,2] y',
         's=Constant<value_int=2>() w=Constant<value=float[4]{0.5,1.0,-1.0,2.0}>() y=STFT(x,s,w)',
         feeds=lambda n, m: [floats(n, m, 1)], sizes=((2, 8), (1, 4), (3, 7)), least_m=4),
    Case('stft of rank 2', 'float[n,m] x', 'float[n,f,5,2] y',
         's=Constant<value_int=1>() l=Constant<value_int=5>() y=STFT<onesided=0>(x,s,,l)',
         feeds=lambda n, m: [floats(n, m)], sizes=((2, 8), (1, 5), (3, 7)), least_m=5),
    Case('reshape-1', 'float[n,m,4] x', 'float[a,b] y',
         's=Constant<value_ints=[0,-1]>() y=Reshape(x,s)', fixed=True),
    Case('reshape-shape', 'float[n,m,4] x', 'float[a,b] y',
         'i1=Constant<value_int=1>() s=Shape(x) b=Gather<axis=0>(s,i1) k=Constant<value_ints=[-1]>() '
         'ax=Constant<value_ints=[0]>() b1=Unsqueeze(b,ax) t=Concat<axis=0>(k,b1) x2=Reshape(x,t) '
         'y=Neg(x2)'),
    # As torch.onnx exports F.pad: pads in pairs, turned round as a matrix.
    Case('pad-odd', 'float[n,m,4] x', 'float[a,b,c] y',
         's=Shape<start=1,end=2>(x) two=Constant<value_ints=[2]>() h=Div(s,two) t=Mul(h,two) odd=Sub(s,t) '
         'z=Constant<value_ints=[0]>() p=Concat<axis=0>(z,z,odd,z,z,z) d=Constant<value_ints=[-1,2]>() q=Reshape(p,d) '
         'k=Constant<value_ints=[-1]>() e=Constant<value_ints=[-9223372036854775807]>() r=Slice(q,k,e,z,k) '
         'u=Transpose<perm=[1,0]>(r) v=Reshape(u,k) y=Pad(x,v)'),
    # Half of a difference of unknown sign rounds to zero.
    Case('pad-half-difference', 'float[n,m,4] x', 'float[a,b,c] y',
         'n1=Shape<start=0,end=1>(x) m1=Shape<start=1,end=2>(x) d=Sub(n1,m1) two=Constant<value_ints=[2]>() h=Div(d,two) '
         'z=Constant<value_ints=[0]>() w=Sub(z,h) p=Concat<axis=0>(h,z,z,w,z,z) ten=Constant<value_ints=[10,0,0,0,10,0]>() '
         'q=Add(p,ten) y=Pad(x,q)'),
    # Padded to whole windows, cut into them and put together again, with -1 for their number.
    Case('windows', 'float[n,m,4] x', 'float[a,b,c] y',
         'n1=Shape<start=0,end=1>(x) m1=Shape<start=1,end=2>(x) w=Constant<value_ints=[3]>() f=Constant<value_ints=[4]>() '
         'z=Constant<value_ints=[0]>() nr=Mod(n1,w) nl=Sub(w,nr) np=Mod(nl,w) mr=Mod(m1,w) ml=Sub(w,mr) mp=Mod(ml,w) '
         'p=Concat<axis=0>(z,z,z,np,mp,z) xp=Pad(x,p) N=Shape<start=0,end=1>(xp) M=Shape<start=1,end=2>(xp) nw=Div(N,w) '
         'mw=Div(M,w) t=Concat<axis=0>(nw,w,mw,w,f) v=Reshape(xp,t) u=Transpose<perm=[0,2,1,3,4]>(v) '
         'k=Constant<value_ints=[-1]>() wt=Concat<axis=0>(k,w,w,f) r=Reshape(u,wt) g=Mul(r,r) '
         'st=Concat<axis=0>(k,mw,w,w,f) o=Reshape(g,st) q=Transpose<perm=[0,2,1,3,4]>(o) et=Concat<axis=0>(N,M,f) '
         'y=Reshape(q,et)'),
    Case('flatten', 'float[n,m,4] x', 'float[a,b] y',
         'y=Flatten<axis=2>(x)'),
    Case('unsq', 'float[n,m,4] x', 'float[a,b,c,d,e] y',
         'a=Constant<value_ints=[0,-1]>() y=Unsqueeze(x,a)'),
    Case('transpose', 'float[n,m,4] x', 'float[a,b,c] y',
         'y=Transpose<perm=[2,0,1]>(x)', fixed=True),
    Case('concat', 'float[n,m,4] x', 'float[a,b,c] y',
         'y=Concat<axis=1>(x,x)', fixed=True),
    Case('slice', 'float[n,m,4] x', 'float[a,b,c] y',
         's=Constant<value_ints=[1]>() e=Constant<value_ints=[9223372036854775807]>() '
         'a=Constant<value_ints=[1]>() y=Slice(x,s,e,a)'),
    Case('slice-neg', 'float[n,m,4] x', 'float[a,b,c] y',
         's=Constant<value_ints=[-2]>() e=Constant<value_ints=[9223372036854775807]>() '
         'a=Constant<value_ints=[0]>() y=Slice(x,s,e,a)'),
    Case('slice-rev', 'float[n,m,4] x', 'float[a,b,c] y',
         's=Constant<value_ints=[-1]>() e=Constant<value_ints=[-9223372036854775807]>() '
         'a=Constant<value_ints=[1]>() st=Constant<value_ints=[-1]>() y=Slice(x,s,e,a,st)'),
    Case('slice-rev2', 'float[n,m,4] x', 'float[a,b,c] y',
         's=Constant<value_ints=[-1]>() e=Constant<value_ints=[0]>() a=Constant<value_ints=[1]>() '
         'st=Constant<value_ints=[-2]>() y=Slice(x,s,e,a,st)'),
    Case('slice-half', 'float[n,m,4] x', 'float[a,b,c] y, float[a,d,c] w',
         'sh=Shape<start=1,end=2>(x) two=Constant<value_ints=[2]>() h=Div(sh,two) '
         'z=Constant<value_ints=[0]>() a=Constant<value_ints=[1]>() y=Slice(x,z,h,a) w=Slice(x,h,sh,a)'),
    Case('split-eq', 'float[n,m,4] x', 'float[a,b,c] y, float[a,d,c] z',
         'y,z=Split<axis=1,num_outputs=2>(x)',
         sizes=((3, 4), (2, 2), (6, 8)), least_m=2),
    Case('expand', 'float[n,m,4] x', 'float[a,b,c] y',
         's=Shape(x) o=Constant<value=float[1] {2.0}>() y=Expand(o,s)'),
    Case('tile', 'float[n,m,4] x', 'float[a,b,c] y',
         'r=Constant<value_ints=[2,1,3]>() y=Tile(x,r)', fixed=True),
    Case('gather0', 'float[n,m,4] x', 'float[a,b] y',
         'i=Constant<value_int=-1>() y=Gather<axis=1>(x,i)'),
    Case('gather1', 'float[n,m,4] x, int64[m,2] i', 'float[a,b,c,d] y',
         'y=Gather<axis=0>(x,i)',
         feeds=lambda n, m: [floats(n, m, 4), RNG.integers(-n, n, (m, 2))]),
    Case('gatherc', 'float[n,m,4] x', 'float[a,b,c] y',
         'i=Constant<value_ints=[0,-1]>() y=Gather<axis=1>(x,i)'),
    Case('gatherel', 'float[n,m] x, int64[n,m] i', 'float[a,b] y',
         'y=GatherElements<axis=1>(x,i)',
         feeds=lambda n, m: [floats(n, m), RNG.integers(-m, m, (n, m))]),
    Case('gathernd', 'float[n,m] x, int64[m,2] i', 'float[a] y',
         'y=GatherND(x,i)',
         feeds=lambda n, m: [floats(n, m), np.stack([RNG.integers(-n, n, (m, )), RNG.integers(-m, m, (m, ))], 1)]),
    Case('gathernd-known', 'float[3,4,n,m] x', 'float[2,2,c,d] y, float[2,e,f] z',
         'i=Constant<value=int64[2,2,2]{0,1,-1,2,2,-4,-3,3}>() y=GatherND(x,i) j=Constant<value=int64[2,2]{1,3,2,0}>() z=GatherND(x,j)',
         feeds=lambda n, m: [floats(3, 4, n, m)]),
    Case('gathernd-b', 'float[n,m,4] x, int64[n,2,1] i', 'float[a,b,c] y',
         'y=GatherND<batch_dims=1>(x,i)',
         feeds=lambda n, m: [floats(n, m, 4), RNG.integers(-m, m, (n, 2, 1))]),
    Case('scatternd', 'float[n,m] x, int64[m,1] i, float[m,m] u', 'float[a,b] y',
         'y=ScatterND(x,i,u)',
         feeds=lambda n, m: [floats(n, m), RNG.permutation(n)[:m].reshape(m, 1), floats(m, m)],
         sizes=((5, 3), (1, 1), (6, 2))),
    Case('scatterel', 'float[n,m] x, int64[n,1] i, float[n,1] u', 'float[a,b] y',
         'y=ScatterElements<axis=1>(x,i,u)',
         feeds=lambda n, m: [floats(n, m), RNG.integers(-m, m, (n, 1)), floats(n, 1)]),
    Case('scatterel-max', 'float[n,m] x, int64[n,m] i, float[n,m] u', 'float[a,b] y',
         'y=ScatterElements<axis=1,reduction="max">(x,i,u)',
         feeds=lambda n, m: [floats(n, m), RNG.integers(-m, m, (n, m)), floats(n, m)]),
    Case('scatternd-min', 'float[n,m] x, int64[m,1] i, float[m,m] u', 'float[a,b] y',
         'y=ScatterND<reduction="min">(x,i,u)',
         feeds=lambda n, m: [floats(n, m), RNG.integers(-n, n, (m, 1)), floats(m, m)]),
    Case('pad', 'float[n,m,4] x', 'float[a,b,c] y',
         'p=Constant<value_ints=[0,1,0,0,2,1]>() y=Pad(x,p)'),
    # Swin and restoration nets: filled up to whole windows, rolled by 2, cut into windows
    Case('pad-roll-windows', 'float[n,m,4] x', 'float[a,b,c,d] y',
         's=Shape<start=1,end=2>(x) two=Constant<value_ints=[2]>() four=Constant<value_ints=[4]>() one=Constant<value_ints=[1]>()'
         ' zero=Constant<value_ints=[0]>() last=Constant<value_ints=[9223372036854775807]>() r=Mod(s,four) q=Sub(four,r) p=Mod(q,four)'
         ' e=Concat<axis=0>(zero,zero,zero,zero,p,zero) f=Pad(x,e) t=Shape<start=1,end=2>(f) k=Mod(two,t)'
         ' g=Slice(f,k,last,one) h=Slice(f,zero,k,one) j=Concat<axis=1>(g,h)'
         ' n=Shape<end=1>(x) w=Div(t,four) v=Concat<axis=0>(n,w,four,four) y=Reshape(j,v)'),
    Case('pad-crop', 'float[n,m,4] x', 'float[a,b,c] y',
         'p=Constant<value_ints=[0,0,-1,0,2,-1]>() y=Pad(x,p)'),
    Case('pad-edge', 'float[n,m,4] x', 'float[a,b,c] y',
         'p=Constant<value_ints=[0,1,0,0,2,1]>() y=Pad<mode="edge">(x,p)'),
    Case('pad-refl', 'float[n,m,4] x', 'float[a,b,c] y',
         'p=Constant<value_ints=[0,0,1,0,0,2]>() y=Pad<mode="reflect">(x,p)'),
    Case('pad-refl-dyn', 'float[n,m,4] x', 'float[a,b,c] y',
         'p=Constant<value_ints=[0,1,0,0,1,0]>() y=Pad<mode="reflect">(x,p)',
         sizes=((3, 5), (1, 2), (6, 3)), least_m=2),
    Case('shape-out', 'float[n,m,4] x', 'int64[3] s, int64 z',
         's=Shape(x) z=Size(x)'),
    Case('cos', 'float[n,m,4] x', 'int64[a,b] y',
         's=Shape<end=2>(x) y=ConstantOfShape<value=int64[1] {7}>(s)'),
    Case('range', 'float[n,m,4] x', 'int64[a] y',
         's=Shape(x) i=Constant<value_int=1>() n0=Gather<axis=0>(s,i) z=Constant<value_int=0>() '
         'y=Range(z,n0,i)'),
    Case('eye', 'float[n,m] x', 'float[a,b] y',
         'y=EyeLike<k=1>(x)',
         feeds=lambda n, m: [floats(n, m)]),
    Case('onehot', 'int64[n,m] i', 'float[a,b,c] y',
         'd=Constant<value_int=5>() v=Constant<value_floats=[0.0,1.0]>() y=OneHot<axis=1>(i,d,v)',
         feeds=lambda n, m: [RNG.integers(-5, 5, (n, m))]),
    Case('nonzero', 'float[n,m] x', 'int64[a,b] y',
         'y=NonZero(x)',
         feeds=lambda n, m: [(RNG.random((n, m))>.5).astype(np.float32)]),
    Case('nonzero-count', 'float[n,m] x, bool[n] c', 'int64 y, int64 z',
         'p=NonZero(x) y=Size(p) q=Compress<axis=0>(x,c) z=Size(q)',
         feeds=lambda n, m: [(RNG.random((n, m))>.5).astype(np.float32), RNG.random(n)>.5]),
    Case('compress', 'float[n,m] x, bool[n] c', 'float[a,b] y',
         'y=Compress<axis=0>(x,c)',
         feeds=lambda n, m: [floats(n, m), RNG.random(n)>.5]),
    Case('cumprod', 'float[n,m] x', 'float[n,m] y, float[n,m] z',
         'a=Constant<value_int=1>() y=CumProd(x,a) b=Constant<value_int=0>() z=CumProd<exclusive=1,reverse=1>(x,b)',
         feeds=lambda n, m: [floats(n, m)], opset=26),
    # x[x < y] = y[x < y], as torch.onnx.export writes it by TorchScript and by dynamo, whose Expand has the number of true elements as its shape.
    Case('masked', 'float[n,m] x, float[n,m] y', 'float[n,m] z',
         'm=Less(x,y) s=Shape(x) e=Expand(m,s) p=NonZero(m) i=Transpose<perm=[1,0]>(p) v=GatherND(y,i) q=NonZero(e) j=Transpose<perm=[1,0]>(q) '
         't=Shape(j) zero=Constant<value_ints=[0]>() k=Gather(t,zero) w=Slice(v,zero,k,zero) z=ScatterND(x,j,w)',
         feeds=lambda n, m: [floats(n, m), floats(n, m)], fixed=True),
    Case('masked-dynamo', 'float[n,m] x, float[n,m] y', 'float[n,m] z',
         'm=Less(x,y) p=NonZero(m) i=Transpose<perm=[1,0]>(p) v=GatherND(y,i) all=Constant<value_ints=[-1]>() r=Reshape(m,all) '
         'c=Cast<to=7>(r) zero=Constant<value_ints=[0]>() k=ReduceSum(c,zero) w=Expand(v,k) u=Reshape(w,all) z=ScatterND(x,i,u)',
         feeds=lambda n, m: [floats(n, m), floats(n, m)], fixed=True),
    Case('masked-rows', 'float[n,m] x, bool[n] c', 'float[n,m] z',
         'p=NonZero(c) i=Transpose<perm=[1,0]>(p) t=Shape<end=1>(i) w=Shape<start=1>(x) d=Concat<axis=0>(t,w) seven=Constant<value_float=7.0>() '
         'v=Expand(seven,d) z=ScatterND(x,i,v)',
         feeds=lambda n, m: [floats(n, m), RNG.random(n) > .5], fixed=True),
    Case('trilu', 'float[n,m] x', 'float[a,b] y',
         'y=Trilu<upper=0>(x)',
         feeds=lambda n, m: [floats(n, m)]),
    Case('triu', 'float[n,m] x', 'float[a,b] y',
         'k=Constant<value_int=1>() y=Trilu(x,k)',
         feeds=lambda n, m: [floats(n, m)]),
    Case('d2s', 'float[n,8,m,3] x', 'float[a,b,c,d] y',
         'y=DepthToSpace<blocksize=2>(x)',
         feeds=lambda n, m: [floats(n, 8, m, 3)]),
    Case('d2s-crd', 'float[n,8,m,3] x', 'float[a,b,c,d] y',
         'y=DepthToSpace<blocksize=2,mode="CRD">(x)',
         feeds=lambda n, m: [floats(n, 8, m, 3)]),
    Case('cumsum', 'float[n,m,4] x', 'float[a,b,c] y',
         'a=Constant<value_int=1>() y=CumSum<exclusive=1,reverse=1>(x,a)'),
    Case('topk', 'float[n,m] x', 'float[a,b] y, int64[a,b] i',
         'k=Constant<value_ints=[2]>() y,i=TopK<axis=1>(x,k)',
         feeds=lambda n, m: [RNG.integers(0, 3, (n, m)).astype(np.float32)], sizes=((3, 5), (1, 2), (6, 3)), least_m=2),
    Case('topk-all', 'float[n,m] x', 'float[a,b] y, int64[a,b] i',
         's=Shape<start=1>(x) y,i=TopK<axis=1,largest=0>(x,s)',
         feeds=lambda n, m: [RNG.integers(0, 3, (n, m)).astype(np.float32)]),
    Case('topk-ties', 'float[n,40] x', 'float[a,b] y, int64[a,b] i',
         'k=Constant<value_ints=[20]>() y,i=TopK<axis=1>(x,k)',
         feeds=lambda n, m: [RNG.integers(0, 5, (n, 40)).astype(np.float32)]),
    Case('topk-ties-least', 'int64[n,40] x', 'int64[a,b] y, int64[a,b] i',
         'k=Constant<value_ints=[40]>() y,i=TopK<axis=1,largest=0>(x,k)',
         feeds=lambda n, m: [RNG.integers(-3, 3, (n, 40))]),
    Case('topk-sorted', 'float[n,40] x', 'float[a,b] y',
         'k=Constant<value_ints=[40]>() y,i=TopK<axis=1>(x,k)',
         feeds=lambda n, m: [RNG.integers(0, 9, (n, 40)).astype(np.float32)]),
    Case('argmax', 'float[n,m,4] x', 'int64[a,b,c] y',
         'y=ArgMax<axis=1,select_last_index=1>(x)',
         feeds=lambda n, m: [RNG.integers(0, 3, (n, m, 4)).astype(np.float32)], fixed=True),
    Case('rmean', 'float[n,m,4] x', 'float[a,b] y',
         'a=Constant<value_ints=[1]>() y=ReduceMean<keepdims=0>(x,a)'),
    Case('rmax', 'float[n,m,4] x', 'float[a,b,c] y',
         'y=ReduceMax(x)'),
    Case('rlse', 'float[n,m,4] x', 'float[a,b,c] y',
         'a=Constant<value_ints=[0,1]>() y=ReduceLogSumExp(x,a)'),
    Case('rprod', 'float[n,m,4] x', 'float[a,b,c] y',
         'a=Constant<value_ints=[1]>() y=ReduceProd(x,a)'),
    Case('rmeani', 'int32[n,m] x', 'int32[a,b] y',
         'a=Constant<value_ints=[1]>() y=ReduceMean(x,a)',
         feeds=lambda n, m: [RNG.integers(0, 90, (n, m)).astype(np.int32)]),
    Case('hardmax', 'float[n,m,4] x', 'float[a,b,c] y',
         'y=Hardmax<axis=1>(x)'),
    Case('resize-n', 'float[1,3,n,m] x', 'float[1,3,c,d] y',
         's=Constant<value_floats=[1.0,1.0,2.0,2.0]>() '
         'y=Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x,,s)',
         feeds=lambda n, m: [floats(1, 3, n, m)], fixed=True),
    Case('resize-l', 'float[1,3,n,m] x', 'float[1,3,c,d] y',
         's=Constant<value_floats=[1.0,1.0,2.0,2.0]>() y=Resize<mode="linear">(x,,s)',
         feeds=lambda n, m: [floats(1, 3, n, m)]),
    Case('resize-l3', 'float[1,3,n,m] x', 'float[1,3,c,d] y',
         's=Constant<value_floats=[1.0,1.0,1.5,3.0]>() '
         'y=Resize<mode="linear",coordinate_transformation_mode="asymmetric">(x,,s)',
         feeds=lambda n, m: [floats(1, 3, n, m)]),
    Case('resize-c', 'float[1,3,n,m] x', 'float[1,3,c,d] y',
         's=Constant<value_floats=[1.0,1.0,2.0,2.0]>() y=Resize<mode="cubic">(x,,s)',
         feeds=lambda n, m: [floats(1, 3, n, m)]),
    Case('resize-size', 'float[1,3,4,4] x, float[1,3,n,m] w', 'float[1,3,c,d] y',
         's=Shape(w) y=Resize<mode="linear">(x,,,s)',
         feeds=lambda n, m: [floats(1, 3, 4, 4), floats(1, 3, n, m)]),
    Case('grid', 'float[n,3,4,4] x, float[n,m,5,2] g', 'float[a,b,c,d] y',
         'y=GridSample(x,g)',
         feeds=lambda n, m: [floats(n, 3, 4, 4), floats(n, m, 5, 2)], opset=16),
    Case('revseq', 'float[n,m] x, int64[n] l', 'float[a,b] y',
         'y=ReverseSequence<batch_axis=0,time_axis=1>(x,l)',
         feeds=lambda n, m: [floats(n, m), RNG.integers(1, m+1, (n, ))]),
    Case('einsum', 'float[n,m,4] x, float[n,3,4] z', 'float[a,b,c] y',
         'y=Einsum<equation="bij,bkj->bik">(x,z)',
         feeds=lambda n, m: [floats(n, m, 4), floats(n, 3, 4)], fixed=True),
    Case('einsum2', 'float[n,m,4] x, float[4,3] z', 'float[a,b,c] y',
         'y=Einsum<equation="...ij,jk">(x,z)',
         feeds=lambda n, m: [floats(n, m, 4), floats(4, 3)]),
    Case('seq', 'float[n,m,4] x', 'float[a,b,c] y',
         'a=Constant<value_int=1>() s=SplitToSequence<axis=2>(x,a) i=Constant<value_int=-1>() '
         't=SequenceAt(s,i) s2=SequenceInsert(s,t) y=ConcatFromSequence<axis=2>(s2)'),
    # --- sizes that follow from data, within a bound ---
    Case('nonzero-3d', 'float[n,m,2] x', 'int64[a,b] y, int64[2] s',
         'y=NonZero(x) s=Shape(y)',
         feeds=lambda n, m: [(RNG.random((n, m, 2)) > .6).astype(np.float32)]),
    Case('nonzero-gather', 'float[n,m] x, float[n] v', 'float[a] y',
         'i=NonZero(v) t=Transpose<perm=[1,0]>(i) g=GatherND(x,t) ax=Constant<value_ints=[1]>() '
         'y=ReduceSum<keepdims=0>(g,ax)',
         feeds=lambda n, m: [floats(n, m), (RNG.random(n) > .4).astype(np.float32)]),
    Case('compress-1', 'float[n,m] x, bool[m] c', 'float[a,b] y, float[d] z',
         'y=Compress<axis=1>(x,c) z=Compress(x,c)',
         feeds=lambda n, m: [floats(n, m), RNG.random(m) > .4]),
    Case('unique', 'int64[6] x, float[n,m] w', 'int64[a] y, int64[b] i, int64[6] j, int64[c] k, float[n,m] z',
         'y,i,j,k=Unique(x) z=Neg(w)',
         feeds=lambda n, m: [RNG.integers(0, 4, (6, )), floats(n, m)]),
    Case('nms', 'float[1,6,4] b, float[1,2,6] s, float[n,m] q', 'int64[k,3] y, float[n,m] z',
         'o=Constant<value_ints=[3]>() t=Constant<value_floats=[0.5]>() y=NonMaxSuppression(b,s,o,t) z=Neg(q)',
         feeds=lambda n, m: [np.sort(RNG.random((1, 6, 4)).astype(np.float32), 2), RNG.random((1, 2, 6)).astype(np.float32),
                             floats(n, m)]),
    Case('nms-boxes', 'float[2,n,4] b, float[2,m,n] s', 'int64[k,3] y',
         'o=Constant<value_ints=[3]>() t=Constant<value_floats=[0.3]>() c=Constant<value_floats=[0.2]>() '
         'a=Constant<value_ints=[1]>() z=Constant<value_ints=[0]>() d=Slice(s,z,a,a) '
         'y=NonMaxSuppression(b,d,o,t,c)',
         feeds=lambda n, m: [np.sort(RNG.random((2, n, 4)).astype(np.float32), 2), RNG.random((2, m, n)).astype(np.float32)]),
    # Convolution, boxes and classes of every cell, selection, and the boxes that were selected.
    Case('detector', 'float[1,3,n,m] x, float[6,3,2,2] w', 'int64[k,3] y, float[k,1,4] z',
         'r=Conv<strides=[2,2]>(x,w) f=Constant<value_ints=[1,6,-1]>() g=Reshape(r,f) p=Constant<value_ints=[4,2]>() '
         'b,s=Split<axis=1>(g,p) q=Transpose<perm=[0,2,1]>(b) o=Constant<value_ints=[2]>() t=Constant<value_floats=[0.5]>() '
         'c=Constant<value_floats=[0.0]>() u=Abs(q) y=NonMaxSuppression<center_point_box=1>(u,s,o,t,c) '
         'two=Constant<value_ints=[2]>() three=Constant<value_ints=[3]>() one=Constant<value_ints=[1]>() i=Slice(y,two,three,one) '
         'zero=Constant<value_ints=[0]>() v=Squeeze(u,zero) z=Gather<axis=0>(v,i)',
         feeds=lambda n, m: [floats(1, 3, n, m), floats(6, 3, 2, 2)], sizes=((4, 7), (2, 2), (8, 8)), least_m=2),
    Case('unique-flat', 'int64[n,m] x', 'int64[a] y, int64[b] i, int64[c] j, int64[d] k',
         'y,i,j,k=Unique(x)',
         feeds=lambda n, m: [RNG.integers(0, 4, (n, m))]),
    Case('unique-rows', 'int64[n,m] x', 'int64[a,m] y, int64[b] i, int64[c] j, int64[d] k',
         'y,i,j,k=Unique<axis=0>(x)',
         feeds=lambda n, m: [RNG.integers(0, 2, (n, m))]),
    Case('topk-half', 'float[n,m] x', 'float[a,b] y, int64[a,b] i',
         's=Shape<start=1>(x) two=Constant<value_ints=[2]>() k=Div(s,two) y,i=TopK<axis=1>(x,k)',
         feeds=lambda n, m: [floats(n, m)], sizes=((3, 5), (1, 2), (6, 8)), least_m=2),
    Case('range-step', 'float[n,m] x', 'int64[a] y, float[b] z',
         's=Shape(x) zero=Constant<value_int=0>() one=Constant<value_int=1>() two=Constant<value_int=2>() '
         'n0=Gather<axis=0>(s,zero) m0=Gather<axis=0>(s,one) e=Mul(n0,m0) y=Range(n0,e,two) f=Cast<to=1>(m0) '
         'fz=Cast<to=1>(zero) fo=Cast<to=1>(one) z=Range(fz,f,fo)',
         feeds=lambda n, m: [floats(n, m)]),
    Case('slice-run', 'float[n,m] x', 'float[a,b] y, float[c,d] z',
         's=Shape(x) z1=Constant<value_ints=[0,1]>() one=Constant<value_ints=[1]>() e=Sub(s,one) y=Slice(x,z1,s) '
         'zz=Constant<value_ints=[0,0]>() z=Slice(x,zz,e)',
         feeds=lambda n, m: [floats(n, m)], sizes=((3, 5), (2, 2), (6, 8)), least_m=2),
    Case('tile-run', 'float[2,3] x, float[n,m] w', 'float[a,b] y',
         's=Shape(w) y=Tile(x,s)',
         feeds=lambda n, m: [floats(2, 3), floats(n, m)]),
    Case('expand-run', 'float[1,4] x, float[n,m] w', 'float[a,b,c] y',
         's=Shape(w) o=Constant<value_ints=[4]>() n0=Constant<value_ints=[0]>() k=Gather<axis=0>(s,n0) '
         'mm=Constant<value_ints=[1]>() l=Gather<axis=0>(s,mm) t=Concat<axis=0>(l,k,o) y=Expand(x,t)',
         feeds=lambda n, m: [floats(1, 4), floats(n, m)]),
    Case('onehot-run', 'int64[n] i, float[m] w', 'float[a,b] y',
         's=Shape(w) z=Constant<value_int=0>() d=Gather<axis=0>(s,z) v=Constant<value_floats=[0.0,1.0]>() y=OneHot(i,d,v)',
         feeds=lambda n, m: [RNG.integers(-m, m, (n, )), floats(m)]),
    Case('where-shape', 'float[n,m] x', 'float[a,b] y',
         's=Shape(x) k=Constant<value_ints=[-1,1]>() neg=Constant<value_ints=[-1,-1]>() q=Equal(k,neg) '
         't=Where(q,s,k) w=Constant<value_floats=[3.0]>() y=Expand(w,t)',
         feeds=lambda n, m: [floats(n, m)]),
    Case('resize-run', 'float[1,2,n,m] x', 'float[1,2,c,d] y',
         's=Shape<start=2>(x) two=Constant<value_ints=[2]>() t=Mul(s,two) o=Constant<value_ints=[1,2]>() u=Concat<axis=0>(o,t) '
         'y=Resize<mode="linear",coordinate_transformation_mode="asymmetric">(x,,,u)',
         feeds=lambda n, m: [floats(1, 2, n, m)]),
    Case('adaptive-pool', 'float[1,2,n,m] x', 'float[1,2,1,1] y, float[1,2,1,1] z',
         'y=GlobalAveragePool(x) z=GlobalMaxPool(x)',
         feeds=lambda n, m: [floats(1, 2, n, m)]),
    # Pads that depend on the size: one program for even and odd ones.
    Case('pool-ceil', 'float[1,2,n,m] x', 'float[1,2,a,b] y, float[1,2,c,d] z, float[1,2,e,f] u, int64[1,2,e,f] i',
         'y=AveragePool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1],ceil_mode=1>(x) '
         'z=AveragePool<kernel_shape=[3,2],strides=[2,3],pads=[0,1,1,0],ceil_mode=1,count_include_pad=1>(x) '
         'u,i=MaxPool<kernel_shape=[3,3],strides=[2,2],pads=[0,0,1,1],ceil_mode=1>(x)',
         feeds=lambda n, m: [floats(1, 2, n, m)], sizes=((3, 5), (4, 2), (7, 8), (8, 6)), least_m=2),
    Case('pool-pads', 'float[1,2,n,m] x', 'float[1,2,a,b] y, float[1,2,c,d] z',
         'y=AveragePool<kernel_shape=[3,3],strides=[2,2],pads=[0,0,1,1]>(x) z=MaxPool<kernel_shape=[3,3],strides=[2,2],pads=[1,0,1,1]>(x)',
         feeds=lambda n, m: [floats(1, 2, n, m)], sizes=((3, 5), (4, 2), (7, 8), (8, 6)), least_m=2),
    Case('pool-same', 'float[1,2,n,m] x', 'float[1,2,a,b] y, float[1,2,c,d] z, float[1,2,e,f] u, int64[1,2,e,f] i',
         'y=AveragePool<kernel_shape=[3,3],strides=[2,2],auto_pad="SAME_UPPER">(x) '
         'z=AveragePool<kernel_shape=[4,2],strides=[3,2],auto_pad="SAME_LOWER",count_include_pad=1>(x) '
         'u,i=MaxPool<kernel_shape=[3,2],strides=[2,3],auto_pad="SAME_LOWER">(x)',
         feeds=lambda n, m: [floats(1, 2, n, m)], sizes=((3, 5), (1, 1), (4, 2), (7, 8), (8, 6))),
    Case('conv-same', 'float[1,2,n,m] x, float[3,2,3,4] w, float[3,2,1,1] v', 'float[1,3,a,b] y, float[1,3,c,d] z, float[1,3,e,f] u',
         'y=Conv<strides=[2,2],auto_pad="SAME_UPPER">(x,w) z=Conv<strides=[2,3],auto_pad="SAME_LOWER">(x,w) '
         'u=Conv<strides=[2,2],auto_pad="SAME_UPPER">(x,v)',
         feeds=lambda n, m: [floats(1, 2, n, m), floats(3, 2, 3, 4), floats(3, 2, 1, 1)], sizes=((3, 5), (1, 1), (4, 2), (7, 8), (8, 6))),
    # Sizes computed by scales in float32: 10 * 0.7 is 7 there. First as torch exports recompute_scale_factor=True.
    Case('resize-recomputed', 'float[1,2,n,m] x', 'float[1,2,a,b] y',
         's=Shape<start=2>(x) f=Cast<to=1>(s) k=Constant<value_floats=[0.7,1.3]>() p=Mul(f,k) q=Floor(p) t=Cast<to=7>(q) '
         'o=Constant<value_ints=[1,2]>() u=Concat<axis=0>(o,t) y=Resize<mode="linear">(x,,,u)',
         feeds=lambda n, m: [floats(1, 2, n, m)], sizes=((3, 5), (10, 10), (7, 8), (20, 30)), least_n=2, high=32),
    Case('resize-scales', 'float[1,2,n,m] x', 'float[1,2,a,b] y, float[1,2,c,d] z, float[1,2,e,f] u',
         'k=Constant<value_floats=[1.0,1.0,0.7,1.3]>() y=Resize<mode="linear">(x,,k) h=Constant<value_floats=[1.0,1.0,0.5,0.3]>() '
         'z=Resize<mode="linear",coordinate_transformation_mode="align_corners">(x,,h) '
         'u=Resize<mode="cubic",coordinate_transformation_mode="align_corners">(x,,h)',
         feeds=lambda n, m: [floats(1, 2, n, m)], sizes=((4, 5), (10, 10), (7, 8), (20, 30)), least_n=4, least_m=4, high=32),
    Case('resize-antialias', 'float[1,2,n,m] x', 'float[1,2,3,5] y, float[1,2,a,b] z',
         'u=Constant<value_ints=[1,2,3,5]>() y=Resize<mode="linear",antialias=1,exclude_outside=1>(x,,,u) '
         'k=Constant<value_floats=[1.0,1.0,0.5,0.6]>() z=Resize<mode="cubic",antialias=1>(x,,k)',
         feeds=lambda n, m: [floats(1, 2, n, m)], sizes=((3, 5), (2, 4), (7, 8), (8, 3)), least_n=2, least_m=2),
    # Whole factors are copies; where several sizes vary, XNNPACK repeats pixels by a transposed convolution
    Case('resize-whole', 'float[1,6,n,m] x, float[2,17,3,m] z', 'float[1,6,a,b] y, float[2,17,3,d] u',
         's=Constant<value_floats=[1.0,1.0,3.0,2.0]>() y=Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x,,s) '
         't=Constant<value_floats=[1.0,1.0,1.0,4.0]>() u=Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(z,,t)',
         feeds=lambda n, m: [floats(1, 6, n, m), floats(2, 17, 3, m)]),
    Case('convtranspose', 'float[1,2,n,m] x', 'float[1,3,c,d] y',
         'w=ConstantOfShape<value=float[1] {0.5}>(ws) y=ConvTranspose<strides=[2,2],pads=[1,1,1,1]>(x,w)'.replace(
             'w=Const', 'ws=Constant<value_ints=[2,3,4,4]>() w=Const'),
         feeds=lambda n, m: [floats(1, 2, n, m)]),
    # what ends vocoders and separators: one output, all phases of it channels on XNNPACK
    Case('convtranspose-line', 'float[2,5,n] x, float[2,3,m] z', 'float[2,1,c] y, float[2,2,d] u',
         'ws=Constant<value_ints=[5,1,16]>() k=Constant<value_int=80>() o=Constant<value_int=1>() l=Constant<value_int=0>() g=Range(l,k,o) f=Cast<to=1>(g) e=Sin(f) v=Reshape(e,ws) '
         'y=ConvTranspose<strides=[4]>(x,v) '
         'vs=Constant<value_ints=[3,2,6]>() q=Constant<value_int=36>() h=Range(l,q,o) i=Cast<to=1>(h) j=Cos(i) a=Reshape(j,vs) '
         'b=Constant<value_floats=[0.5,-1.5]>() u=ConvTranspose<strides=[3]>(z,a,b)',
         feeds=lambda n, m: [floats(2, 5, n), floats(2, 3, m)]),
    Case('conv3d-depth', 'float[1,2,n,m,5] x, float[3,2,3,2,2] w', 'float[1,3,a,b,c] y, float[1,3,d,e,f] z, float[1,3,g,h,i] p',
         'y=Conv<pads=[1,0,1,1,0,1]>(x,w) z=Conv<strides=[2,1,1],pads=[2,0,0,2,1,0]>(x,w) '
         'p=Conv<strides=[3,2,2],dilations=[2,1,1],pads=[2,0,0,2,1,0]>(x,w)',
         feeds=lambda n, m: [floats(1, 2, n, m, 5), floats(3, 2, 3, 2, 2)], sizes=((3, 5), (1, 2), (8, 8)), least_m=2),
    Case('conv3d-point', 'float[2,4,n,m,3] x, float[2,2,1,1,1] w', 'float[2,2,n,m,3] y, float[2,2,d,m,3] z',
         'y=Conv<group=2>(x,w) z=Conv<group=2,strides=[2,1,1]>(x,w)',
         feeds=lambda n, m: [floats(2, 4, n, m, 3), floats(2, 2, 1, 1, 1)]),
    *dynamic_data.CASES,
    Case('dropout', 'float[n,m,4] x', 'float[a,b,c] y, bool[a,b,c] k',
         'y,k=Dropout(x)'),
    # Recurrent: as many steps as there are, of sequences that end early or not.
    *(Case(f"{op.lower()}_{direction}{'_lengths' if ends else ''}",
           f"float[n,m,2] x, float[{2 if direction == 'bidirectional' else 1},{3 * gates},2] w, "
           f"float[{2 if direction == 'bidirectional' else 1},{3 * gates},3] r{', int32[m] l' if ends else ''}",
           "float[n,d,m,3] y, float[d,m,3] h", f'y, h = {op} <hidden_size = 3, direction = "{direction}"> (x, w, r{", , l" if ends else ""})',
           lambda n, m, d=2 if direction == "bidirectional" else 1, gates=gates, ends=ends: [
               floats(n, m, 2), floats(d, 3 * gates, 2), floats(d, 3 * gates, 3), *([RNG.integers(1, n + 1, m).astype(np.int32)] if ends else [])])
      for op, gates in (("LSTM", 4), ("GRU", 3)) for direction in ("reverse", "bidirectional") for ends in (False, True)),
    # Rows wide enough that the kernel of max pooling's gradient adds them; two sizes vary, of one, and of none of the indices.
    # Rows wide enough for the kernel of max pooling's gradient.
    Case('sums of messages', 'float[n,64] x, int64[m] k, float[m,64] u', 'float[a,64] z',
         'last=Constant<value_ints=[1]>() c=Unsqueeze(k,last) s=Shape(u) e=Expand(c,s) '
         'y=ScatterElements<axis=0,reduction="add">(x,e,u) v=Neg(u) z=ScatterND<reduction="add">(y,c,v)',
         feeds=lambda n, m: [floats(n, 64), RNG.integers(-n, n, m), floats(m, 64)], sizes=((1, 4), (3, 2))),
    # One range for all pixels, also where XNNPACK would quantize each for a product of rows.
    Case('lines quantized at run time', 'float[1,8,m] x', 'float[1,5,m] a, float[1,4,m] b, float[1,8,m] c, float[1,8,m] d',
         'q, step, zero = DynamicQuantizeLinear(x) t = Constant<value = float {0.001}>() scale = Mul(step, t) '
         + at_run('a', weights(5, 8, 3), 'pads = [1, 1]') + at_run('b', weights(4, 8, 1))
         + at_run('c', weights(8, 1, 31), 'pads = [15, 15], group = 8') + at_run('d', weights(8, 1, 1), 'group = 8'),
         lambda n, m: [codes(1, 8, m)]),
    Case('images quantized at run time', 'float[1,4,n,m] x', 'float[1,3,n,m] a, float[1,5,n,m] b, float[1,4,n,m] c',
         'q, step, zero = DynamicQuantizeLinear(x) t = Constant<value = float {0.001}>() scale = Mul(step, t) '
         + at_run('a', weights(3, 4, 1, 1)) + at_run('b', weights(5, 4, 3, 3), 'pads = [1, 1, 1, 1]')
         + at_run('c', weights(4, 1, 7, 7), 'pads = [3, 3, 3, 3], group = 4'), lambda n, m: [codes(1, 4, n, m)]),
    Case('rows of pixels quantized at run time', 'float[1,4,n,3] x', 'float[1,3,n,3] a, float[1,4,n,3] b',
         'q, step, zero = DynamicQuantizeLinear(x) t = Constant<value = float {0.001}>() scale = Mul(step, t) '
         + at_run('a', weights(3, 4, 1, 1)) + at_run('b', weights(4, 1, 1, 1), 'group = 4'), lambda n, m: [codes(1, 4, n, 3)]),
    Case('volumes quantized at run time', 'float[1,2,n,3,4] x', 'float[1,3,n,3,4] a',
         'q, step, zero = DynamicQuantizeLinear(x) t = Constant<value = float {0.001}>() scale = Mul(step, t) '
         + at_run('a', weights(3, 2, 3, 3, 3), 'pads = [1, 1, 1, 1, 1, 1]'), lambda n, m: [codes(1, 2, n, 3, 4)]),
    Case('filters of many taps, quantized at run time', 'float[1,4,20] x, float[n] k', 'float[1,4,20] a, float[n] y',
         'q, step, zero = DynamicQuantizeLinear(x) t = Constant<value = float {0.001}>() scale = Mul(step, t) '
         + at_run('a', weights(4, 1, 31), 'pads = [15, 15], group = 4') + 'y = Neg(k)', lambda n, m: [codes(1, 4, 20), floats(n)]),
    Case('volumes of fixed size, quantized at run time', 'float[1,2,4,3,4] x, float[n] k', 'float[1,3,4,3,4] a, float[n] y',
         'q, step, zero = DynamicQuantizeLinear(x) t = Constant<value = float {0.001}>() scale = Mul(step, t) '
         + at_run('a', weights(3, 2, 3, 3, 3), 'pads = [1, 1, 1, 1, 1, 1]') + 'y = Neg(k)', lambda n, m: [codes(1, 2, 4, 3, 4), floats(n)]),
    # ONNX Runtime broadcasts a size of 1 here, the program ends the call.
    Case('sizes taken as equal', 'float[n,4] x, float[m,4] y', 'float[n,4] z', 'z = Add(x, y)', lambda n, m: [floats(n, 4), floats(m, 4)],
         sizes=((3, 3), (1, 1), (6, 6)), beyond=lambda: [floats(1, 4), floats(6, 4)]),
    Case('a computed size taken as equal', 'float[1,2,n] x, float[1,2,m] y', 'float[1,2,m] z',
         'p = MaxPool<kernel_shape = [2], strides = [2]>(x) z = Mul(y, p)', lambda n, m: [floats(1, 2, n), floats(1, 2, m)],
         sizes=((6, 3), (3, 1), (8, 4)), least_n=2, beyond=lambda: [floats(1, 2, 8), floats(1, 2, 1)]),
    # The count of both slices is read from equal tensors.
    Case('slices that take the same rows', 'float[n,4] x, float[n] w, int64[1] a, int64[1] b', 'float[4] y',
         't = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() p = Slice(x, a, b, t) q = Slice(w, a, b, t) u = Unsqueeze(q, o) '
         'z = Mul(p, u) y = ReduceSum<keepdims = 0>(z, t)',
         lambda n, m: [floats(n, 4), floats(n), np.array([1]), np.array([m])], sizes=((5, 4), (4, 1), (8, 8))),
    Case('extremes and means of rows that may be none', 'float[n,4] x, int64[n] i, int64[1] a',
         'float[4] p, float[4] q, float[4] r, float[4] s, int64 u, int64 v, int64 w',
         't = Constant<value_ints = [0]>() e = Constant<value_ints = [100]>() y = Slice(x, a, e, t) j = Slice(i, a, e, t) '
         'p = ReduceMax<keepdims = 0>(y, t) q = ReduceMin<keepdims = 0>(y, t) r = ReduceMean<keepdims = 0>(y, t) '
         's = ReduceLogSumExp<keepdims = 0>(y, t) u = ReduceMax<keepdims = 0>(j) v = ReduceMin<keepdims = 0>(j) w = ReduceMean<keepdims = 0>(j)',
         lambda n, m: [floats(n, 4), RNG.integers(-99, 99, n), np.array([m])], sizes=((5, 2), (3, 3), (1, 8))),
    # torch.hstack by dynamo.
    Case('body for each tensor of a sequence', 'float[n,m] x, float[n,4] y', 'float[n,k] z, float[m,n] w',
         's = SequenceConstruct(x, y, x) f = Constant<value_float = 0.5>() t = SequenceConstruct(f, f, f) c = Constant<value_int = 2>() '
         'u, v = SequenceMap(s, x, t) <body = b (float[a,b] p, float[a,c] q, float f1) => (float[a,d] r, float[e,a] o) '
         '{ h = Mul(p, f1) r = Concat<axis = 1>(q, h) o = Transpose(p) }> '
         'z = ConcatFromSequence<axis = 1>(u) w = SequenceAt(v, c)',
         lambda n, m: [floats(n, m), floats(n, 4)]),
    # The runtime's layer norm wants short rows about their means: a difference of a constant and means of more dimensions, of which n is 1.
    Case('norm of a constant that is repeated', 'float[n,4] x, float[n,m] z', 'float[n,2,4] y, float[n,m] w',
         'c = Constant<value = float[2,4] {3.0, 1.0, -2.0, 5.0, 0.5, 4.0, -1.0, 2.0}>() s = Shape<start = 0, end = 1>(x) '
         'd = Constant<value_ints = [2, 4]>() t = Concat<axis = 0>(s, d) e = Expand(c, t) '
         'f = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() y = LayerNormalization(e, f) w = Neg(z)',
         lambda n, m: [floats(n, 4), floats(n, m)]),
    Case('selection from boxes that may be none', 'float[n,4] x, float[n] w, int64[1] a', 'int64[k,3] y',
         't = Constant<value_ints = [0]>() e = Constant<value_ints = [100]>() p = Slice(x, a, e, t) q = Slice(w, a, e, t) b = Unsqueeze(p, t) '
         'f = Constant<value_ints = [0, 1]>() s = Unsqueeze(q, f) o = Constant<value_ints = [4]>() i = Constant<value_floats = [0.3]>() '
         'y = NonMaxSuppression(b, s, o, i)',
         lambda n, m: [np.sort(floats(n, 4), 1), floats(n), np.array([m])], sizes=((5, 2), (3, 3), (1, 8), (8, 0))),
    Case('gather at clamped places for each head', 'float[n,m,6] x, int64[m,m] i', 'float[n,m,m] y, float[n,m,m] z',
         'a = Constant<value_int = 0>() b = Constant<value_int = 5>() d = Constant<value_int = -6>() c = Clip(i, a, b) f = Clip(i, d, b) '
         's = Shape<start = 0, end = 2>(x) e = Shape<start = 1, end = 2>(x) t = Concat<axis = 0>(s, e) p = Expand(c, t) q = Expand(f, t) '
         'y = GatherElements<axis = 2>(x, p) z = GatherElements<axis = 2>(x, q)',
         lambda n, m: [floats(n, m, 6), RNG.integers(-9, 9, (m, m))]),
    # XNNPACK wrote the result over v, which is as large in the first call, also in later ones, where it is smaller.
    Case('operands as large as the result in the first call only', 'float[n,m,32] x, float[1,m,32] e, float[4,1,1,32] f', 'float[n,m,32] y, float[4,n,m,32] z',
         'v = Exp(e) w = Mul(v, x) y = Exp(w) u = Exp(f) p = Sub(u, x) z = Exp(p)',
         lambda n, m: [floats(n, m, 32), floats(1, m, 32), floats(4, 1, 1, 32)], sizes=((1, 1), (8, 1), (2, 8), (8, 8))),
    # Every second of no rows: a delegate would have held a tensor without elements.
    Case('no rows of a slice with steps', 'float[2,3,2,2,m] x, float[n,2,m] w', 'float[2,3,0,2,m] y, float[n,2,m] z',
         'b=Constant<value_ints=[0]>() a=Constant<value_ints=[2]>() s=Slice(x,b,b,a,a) y=Asin(s) z=Sigmoid(w)',
         lambda n, m: [floats(2, 3, 2, 2, m), floats(n, 2, m)]),
    # XNNPACK wrote codes over operands that are as large in the first call, too.
    Case('codes as large as the result in the first call only', 'float[n,m,32] x, float[1,m,32] e, float[4,1,1,32] f', 'float[n,m,32] y, float[4,n,m,32] z',
         's = Constant<value_float = 0.05>() o = Constant<value = int8 {3}>() '
         + quantized('a', 'x') + quantized('b', 'e') + quantized('c', 'f') + 'v = Tanh(b) ' + quantized('vd', 'v') + 'w = Add(vd, a) ' + quantized('wd', 'w')
         + 'y = Tanh(wd) u = Tanh(c) ' + quantized('ud', 'u') + 'p = Sub(ud, a) ' + quantized('pd', 'p') + 'z = Sigmoid(pd)',
         lambda n, m: [floats(n, m, 32), floats(1, m, 32), floats(4, 1, 1, 32)], sizes=((1, 1), (8, 1), (2, 8), (8, 8))),
    # So many scores that boxes which none of them keeps are left out first; of three boxes, or of none.
    Case('selection from boxes that scores keep', 'float[2,n,4] x, float[2,64,n] w, int64[1] a', 'int64[k,3] y',
         't = Constant<value_ints = [1]>() e = Constant<value_ints = [100]>() l = Constant<value_ints = [2]>() p = Slice(x, a, e, t) q = Slice(w, a, e, l) '
         'o = Constant<value_ints = [4]>() i = Constant<value_floats = [0.3]>() c = Constant<value_floats = [0.98]>() '
         'y = NonMaxSuppression(p, q, o, i, c)',
         lambda n, m: [np.sort(floats(2, n, 4), 2), RNG.random((2, 64, n)).astype(np.float32), np.array([m])], sizes=((5, 2), (3, 3), (1, 8), (8, 0))),
    # The runtime checks the upper bound of a size only.
    Case('a size below its range', 'float[n,2,4] x', 'float[n,2,4] y', 'y = Sigmoid(x)', lambda n, m: [floats(n, 2, 4)],
         sizes=((5, 1), (3, 1), (8, 1)), least_n=3, beyond=lambda: [floats(2, 2, 4)]),
    # XNNPACK summed codes in memory for the rows of the first call.
    Case('means of codes, of few rows first', 'float[n,64,m,2] x, float[n,m,32] w', 'float[n,64,1,1] y, float[n,32] z',
         's = Constant<value_float = 0.03125>() o = Constant<value = int8 {0}>() i = Constant<value_ints = [1]>() '
         + quantized('b', 'x') + 'c = Tanh(b) ' + quantized('f', 'c') + 'g = GlobalAveragePool(f) ' + quantized('y', 'g')
         + quantized('u', 'w') + 'v = Tanh(u) ' + quantized('l', 'v') + 'p = ReduceMean<keepdims = 0>(l, i) ' + quantized('z', 'p'),
         lambda n, m: [floats(n, 64, m, 2), floats(n, m, 32)], sizes=((1, 3), (8, 3), (2, 8))),
    Case('a size between the multiples', 'float[n,4] x', 'float[k,8] y', 's = Constant<value_ints = [-1, 8]>() r = Reshape(x, s) y = Sigmoid(r)',
         lambda n, m: [floats(n, 4)], sizes=((4, 1), (2, 1), (8, 1)), least_n=2, beyond=lambda: [floats(5, 4)]),
    # The kernel of amax ends the process where there are no rows.
    Case('extremes of the elements of no rows', 'float[n,4] x, int64[1] a', 'float[k] y, float[k,1] z, float[k,4] p',
         'o = Constant<value_ints = [0]>() t = Constant<value_ints = [1]>() s = Slice(x, o, a, o) y = ReduceMax<keepdims = 0>(s, t) '
         'z = ReduceMin(s, t) p = Softmax(s)',
         lambda n, m: [floats(n, 4), np.array([m])], sizes=((5, 2), (3, 3), (1, 8), (8, 0))),
    # Rows of which two dims vary have one range as well, also where they are stored in another order, or broadcast before.
    Case('rows of two dims, quantized at run time', 'float[n,m,8] x', 'float[n,m,5] a, float[m,n,40] b, float[n,m,3] d',
         't = Constant<value = float {0.001}>() i = Constant<value_ints = [1]>() o = Constant<value = float {0}>() '
         + rows_at_run('a', 'x', weights(8, 5)) + 'y = Transpose<perm = [1, 0, 2]>(x) ' + rows_at_run('b', 'y', weights(8, 40))
         + 'r = ReduceMean(x, i) k = Mul(r, o) z = Add(x, k) ' + rows_at_run('c', 'z', weights(8, 3)) + 'd = Relu(c)',
         lambda n, m: [codes(n, m, 8)]),
    # Products of two operands that are quantized at run time need no range of either, whatever dims vary, also where a kernel stands
    # between them and one of the two: the first delegate has the other.
    Case('products of what is quantized at run time', 'float[n,2,m,4] x, float[n,2,4,m] y, float[n,2,m,m] u', 'float[n,2,m,m] a, float[n,2,m,4] b',
         product_at_run('c', 'x', 'y') + 'a = Relu(c) z = Relu(x) w = Relu(u) k = Cast<to = 6>(w) j = Cast<to = 1>(k) ' + product_at_run('b', 'j', 'z'),
         lambda n, m: [codes(n, 2, m, 4), codes(n, 2, 4, m), codes(n, 2, m, m)], sizes=((3, 5), (6, 2), (2, 7))),
    # Transposed convolutions over a dynamic depth: phases of which some have no tap at an end, or too many planes; a stride of 1.
    Case('transposed convolutions over a dynamic depth', 'float[1,2,n,m,3] x', ', '.join(f'float[1,2,n{c},m{c},w{c}] {c}' for c in 'abcdefgh'),
         ''.join(
             f"{c}_w = {fractions(2, 2, *t)} {c} = ConvTranspose<{a}>(x, {c}_w) " for c, t, a in (
                 ('a', (3,) * 3, 'strides = [2,2,2], pads = [1,1,1,1,1,1], output_padding = [1,1,1]'), ('b', (2,) * 3, 'strides = [2,2,2]'),
                 ('c', (4,) * 3, 'strides = [2,2,2], pads = [1,1,1,1,1,1]'), ('d', (3,) * 3, 'strides = [1,1,1], pads = [1,1,1,1,1,1]'),
                 ('e', (3,) * 3, 'strides = [1,1,1], dilations = [2,2,2]'), ('f', (5,) * 3, 'strides = [3,2,1], pads = [2,1,0,2,1,0]'),
                 ('g', (3,) * 3, 'strides = [2,2,2]'), ('h', (3, 1, 1), 'strides = [2,1,1], pads = [1,0,0,0,0,0]'))),
         lambda n, m: [floats(1, 2, n, m, 3)], sizes=((3, 4), (1, 2), (6, 5))),
    # Sizes that Clip limits, as torch exports min(size, 4) of a traced model: the count of TopK, by which a list is divided.
    Case('clipped sizes', 'float[n,m,4] x', 'float[n,k,2] y, float[b,4] z',
         's = Shape<start = 0, end = 1>(x) r = Shape<start = 1, end = 2>(x) f = Constant<value = int64 {4}>() e = Constant<value = int64 {2}>() '
         'o = Constant<value_ints = [2]>() h = Constant<value_ints = [-1]>() j = Constant<value_ints = [4]>() a = Constant<value = float {1}>() '
         't = ReduceMax<keepdims = 0>(x, o) k = Clip(r, , f) v, i = TopK(t, k) d = Unsqueeze(v, o) w = Concat<axis = 0>(s, k, o) '
         'c = Expand(d, w) g = Concat<axis = 0>(s, k, h) y = Reshape(c, g) q = Clip(r, e, f) p = Concat<axis = 0>(q, j) u = Expand(a, p) z = Neg(u)',
         lambda n, m: [floats(n, m, 4)], sizes=((3, 5), (1, 1), (2, 8))),
    # Convolutions over a dynamic number of rows, whose windows do not fit in memory at once: a loop over bands of rows, of which the
    # last begins where it ends with the image; pads, strides, dilations, groups, several samples, a bias in the product.
    in_bands('bands of a dynamic number of rows', '1,4,n,m', (8, 4, 3, 3), '<pads = [1,1,1,1]>', True, ((40, 40), (7, 31), (23, 9)), 7, 3),
    in_bands('rows one by one', '1,4,n,m', (16, 4, 5, 3), '<pads = [2,0,1,1], strides = [2,1]>', False, ((40, 40), (2, 5), (23, 9)), 2, 5),
    in_bands('bands of several samples', '2,8,n,m', (16, 4, 3, 3), '<group = 2, pads = [0,1,2,0], dilations = [2,1]>', True, ((40, 40), (6, 12), (19, 33)), 6, 12),
    in_bands('bands without padding', '1,6,n,m', (12, 6, 3, 3), '', False, ((36, 36), (9, 12), (19, 33)), 9, 12),
    in_bands('bands of lines', '2,16,n', (24, 16, 5), '<pads = [2,2]>', True, ((200, 1), (40, 1), (77, 1)), 40),
    # Pools as maxima and sums of strided copies, over planes of a dynamic size: floors and ceilings, pads, dilations, divisors.
    Case('pools of planes of a dynamic size', 'float[1,8,n,m] x', ', '.join(f'float[1,8,n{c},m{c}] {c}' for c in 'abcdefg') + ', float[1,64,n,m] h',
         'a = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x) b = MaxPool<kernel_shape = [3,2], strides = [2,3], ceil_mode = 1>(x) '
         'c = MaxPool<kernel_shape = [2,3], dilations = [2,1], pads = [1,1,0,1]>(x) d = AveragePool<kernel_shape = [3,3], strides = [2,1]>(x) '
         'e = AveragePool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1], count_include_pad = 1>(x) '
         'f = AveragePool<kernel_shape = [2,2], strides = [2,2], pads = [1,1,1,1]>(x) '
         'g = AveragePool<kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>(x) h = Concat<axis = 1>(x, x, x, x, x, x, x, x)',
         lambda n, m: [floats(1, 8, n, m)], sizes=((32, 32), (5, 6), (21, 8)), least_n=5, least_m=6, high=32),
    # Transposed convolutions over images of a dynamic size: a window gives results for each phase of the stride, at once and in bands of rows.
    Case('transposed convolutions of images of a dynamic size', 'float[1,4,n,m] x', ', '.join(f'float[1,6,n{c},m{c}] {c}' for c in 'abc') + ', float[1,64,n,m] h',
         ''.join(f'{c}_w = {fractions(4, 6, *k)} {c} = ConvTranspose<{a}>(x, {c}_w, v) ' for c, k, a in (
             ('a', (4, 4), 'strides = [2,2], pads = [1,1,1,1]'), ('b', (3, 3), 'strides = [2,2], pads = [1,1,1,1], output_padding = [1,1]'),
             ('c', (5, 2), 'strides = [1,2], pads = [2,0,2,0]'))).replace('a_w =', 'v = ' + fractions(6) + ' a_w =', 1)
         + 'h = Concat<axis = 1>(' + ', '.join('x' * 16) + ')', lambda n, m: [floats(1, 4, n, m)], sizes=((32, 32), (5, 6), (21, 8)), least_n=5, least_m=6, high=32),
    Case('transposed convolutions in bands of rows', 'float[2,8,n,m] x', 'float[2,24,p,q] y', 'w = ' + fractions(8, 12, 4, 4) + ' v = ' + fractions(12)
         + ' c = ConvTranspose<strides = [2,2], pads = [1,1,1,1]>(x, w, v) y = Concat<axis = 1>(c, c)', lambda n, m: [floats(2, 8, n, m)],
         sizes=((24, 24), (3, 5), (17, 8)), least_n=3, least_m=5, high=24),
    # Images with fewer rows than a band, and a number of rows or places that the data decide.
    in_bands('fewer rows than a band', '1,4,n,m', (8, 4, 3, 3), '<pads = [1,1,1,1]>', False, ((40, 40), (1, 2), (3, 9)), 1, 2),
    in_bands('fewer places than a band', '1,8,n', (16, 8, 3), '<pads = [1,1]>', True, ((300, 1), (1, 1), (17, 1)), 1),
    Case('rows that the data decide', 'float[1,4,n,m] x, bool[n] c', 'float[1,24,p,q] y',
         f'a = {fractions(8, 4, 3, 3)} b = {fractions(8)} k = Compress<axis = 2>(x, c) d = Conv<pads = [1,1,1,1]>(k, a, b) y = Concat<axis = 1>(d, d, d)',
         lambda n, m: [floats(1, 4, n, m), np.arange(n) % 3 < 2], sizes=((40, 40), (1, 2), (7, 9)), least_m=2, high=40),
    Case('places and samples that the data decide', 'float[n,6,m] x, bool[m] c, bool[n] d', 'float[1,6,p] y, float[r,6,m] z',
         f'a = {fractions(6, 1, 5)} b = {fractions(6, 6, 3)} e = Constant<value_ints = [0]>() f = Constant<value_ints = [1]>() '
         's = Slice(x, e, f, e) k = Compress<axis = 2>(s, c) y = Conv<group = 6, pads = [2,2]>(k, a) '
         't = Compress<axis = 0>(x, d) z = Conv<pads = [1,1]>(t, b)',
         lambda n, m: [floats(n, 6, m), np.arange(m) % 3 < 2, np.arange(n) % 2 < 1], sizes=((8, 40), (1, 1), (3, 9)), high=40),
    # SAME has as many windows with ceil_mode as without.
    Case('SAME with ceil_mode', 'float[2,3,n,m] x', 'float[2,3,a,b] y, float[2,3,c,d] z',
         'y = MaxPool<kernel_shape = [2,2], strides = [2,2], auto_pad = "SAME_UPPER", ceil_mode = 1>(x) '
         'z = AveragePool<kernel_shape = [3,3], strides = [2,2], auto_pad = "SAME_LOWER", ceil_mode = 1>(x)', lambda n, m: [floats(2, 3, n, m)]),
    *dynamic_numbers.CASES, *dynamic_rows.CASES, *dynamic_forms.CASES,
]
