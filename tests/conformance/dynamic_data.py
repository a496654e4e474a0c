"""Cases of dynamic.py whose sizes data decide, bounded by --bound or by the dims that they are taken of."""

import numpy as np

from dynamic_case import RNG, Case, floats

CASES = [
    Case('range-data', 'int64 k, float[n] x', 'int64[a] y, float[b] z',
         'o=Constant<value_int=1>() t=Constant<value_int=-2>() y=Range(o,k,o) e=Range(k,o,t) z=Cast<to=1>(e)',
         feeds=lambda n, m: [np.array(n), floats(n)], sizes=((6, 0), (1, 0), (8, 0)), flags=('--bound=y=7', '--bound=e=4'),
         beyond=lambda: [np.array(20), floats(3)]),
    Case('range-data-float', 'float k, float[n] x', 'float[a] y',
         'o=Constant<value_float=0.0>() t=Constant<value_float=0.3>() y=Range(o,k,t)',
         feeds=lambda n, m: [np.array(n * .3, np.float32), floats(n)], sizes=((6, 0), (1, 0), (8, 0)), flags=('--bound=y=9',)),
    Case('fill-data', 'int64[2] k, float[n] x', 'float[a,b] y, float[a,b] z',
         'y=ConstantOfShape<value=float[1] {2.5}>(k) o=Constant<value_float=3.0>() q=Expand(o,k) z=Add(y,q)',
         feeds=lambda n, m: [np.array([n, 2]), floats(n)], sizes=((6, 0), (1, 0), (8, 0)), flags=('--bound=y:0=8', '--bound=y:1=3', '--bound=q=8'),
         beyond=lambda: [np.array([9, 3]), floats(3)]),
    # A length regulator: row i of x is repeated d[i] times; how FastSpeech and its kin are exported.
    Case('length-regulator', 'float[n,4] x, int64[n] d', 'float[f,4] y, float[1,f,4] z',
         'ax=Constant<value_int=0>() axes=Constant<value_ints=[0]>() ends=CumSum(d,ax) total=ReduceSum<keepdims=0>(d,axes) one=Constant<value_int=1>() '
         'frames=Range(ax,total,one) last=Constant<value_ints=[1]>() col=Unsqueeze(frames,last) row=Unsqueeze(ends,axes) '
         'past=LessOrEqual(row,col) count=Cast<to=7>(past) index=ReduceSum<keepdims=0>(count,last) y=Gather<axis=0>(x,index) '
         't1=Unsqueeze(total,axes) four=Constant<value_ints=[4]>() shape=Concat<axis=0>(axes1,t1,four) axes1=Constant<value_ints=[1]>() z=Reshape(y,shape)'.replace(
             "shape=Concat<axis=0>(axes1,t1,four) axes1=Constant<value_ints=[1]>()", "axes1=Constant<value_ints=[1]>() shape=Concat<axis=0>(axes1,t1,four)"),
         feeds=lambda n, m: [floats(n, 4), RNG.integers(1, 4, n)], sizes=((3, 0), (1, 0), (8, 0)), flags=('--bound=frames=24',),
         beyond=lambda: [floats(8, 4), np.full(8, 5)]),
    Case('loop-data', 'int64 k, float[n] x', 'float[n] y, float[a,n] z',
         'c=Constant<value=bool {1}>() y,z=Loop<body=step (int64 i, bool on, float[n] s) => (bool go, float[n] t, float[n] row) '
         '{ go=Identity(on) t=Add(s,s) row=Neg(s) }>(k,c,x)',
         feeds=lambda n, m: [np.array(m), floats(n)], flags=('--bound=z=6',), beyond=lambda: [np.array(7), floats(8)]),
    Case('tile-data', 'float[2,n] x, int64 k', 'float[a,b] y',
         'z=Constant<value_ints=[0]>() o=Constant<value_ints=[1]>() u=Unsqueeze(k,z) r=Concat<axis=0>(u,o) y=Tile(x,r)',
         feeds=lambda n, m: [floats(2, n), np.array(n)], flags=('--bound=y=16',)),
    Case('one-hot-data', 'int64[n] x, int64 k', 'float[a,b] y, int64[a,b] z',
         'v=Constant<value_floats=[-1.0,2.5]>() w=Constant<value_ints=[3,4]>() o=Constant<value_int=1>() l=Add(k,o) y=OneHot(x,k,v) z=OneHot<axis=0>(x,l,w)',
         feeds=lambda n, m: [RNG.integers(-4, 4, n), np.array(m)], sizes=((3, 5), (1, 1), (8, 2), (6, 7)),
         flags=('--bound=y:1=8', '--bound=z:0=9'), beyond=lambda: [np.arange(8), np.array(30)]),
    # The axis bounds how many are taken; several equal elements, none, all.
    Case('topk-data', 'float[n,6] x, int64[1] k', 'float[a,b] y, int64[a,b] i, float[c,d] z, int64[c,d] j',
         'y,i=TopK(x,k) one=Constant<value_ints=[1]>() l=Min(k,one) z,j=TopK<axis=0,largest=0>(x,l)',
         feeds=lambda n, m: [RNG.integers(0, 4, (n, 6)).astype(np.float32), np.array([m])], sizes=((3, 5), (1, 1), (8, 0), (6, 6))),
    Case('topk-data-static', 'float[2,6] x, int64 m0, float[n] f', 'float[a,b] y, int64[a,b] i',
         'z=Constant<value_ints=[0]>() k=Unsqueeze(m0,z) y,i=TopK(x,k)', flags=('--bound=y:1=4',),
         feeds=lambda n, m: [RNG.integers(0, 4, (2, 6)).astype(np.float32), np.array(m), floats(n)], sizes=((3, 4), (1, 1), (8, 0), (6, 2))),
    # Starts and ends that data decide, also from the end and beyond it, forwards and backwards.
    *(Case(f'slice-data-{name}', f'float[n,7] x, int64[{len(axes)}] b, int64[{len(axes)}] e', 'float[c,d] y',
           f'a=Constant<value_ints={axes}>() s=Constant<value_ints={steps}>() y=Slice(x,b,e,a,s)',
           feeds=lambda n, m, at=at: [floats(n, 7), *(np.array(v) for v in at[m])], sizes=tuple((n, k) for k, n in zip(range(len(at)), (3, 1, 8, 5))))
      for name, axes, steps, at in (
          ('columns', [1], [1], (([0], [3]), ([2], [2]), ([-3], [100]), ([4], [1]))),
          ('steps', [1], [3], (([0], [7]), ([5], [-1]), ([-100], [6]), ([2], [3]))),
          ('backwards', [1], [-2], (([6], [0]), ([100], [-100]), ([-2], [1]), ([0], [6]))),
          ('both', [0, 1], [1, 2], (([0, 1], [2, 7]), ([0, 0], [9, -1]), ([-3, 2], [-1, 5]), ([1, 6], [4, 7]))))),
    Case('slice-data-start', 'float[n,4] x, int64 k', 'float[a,b] y, float[c,b] z',
         'o=Constant<value_ints=[0]>() e=Unsqueeze(k,o) y=Slice(x,o,e,o) f=Constant<value_ints=[100]>() r=Neg(e) z=Slice(x,r,f,o)',
         feeds=lambda n, m: [floats(n, 4), np.array(m)], sizes=((3, 2), (1, 1), (8, 9), (6, 5))),
    Case('resize-data', 'float[1,2,n,6] x, int64[2] s', 'float[1,2,a,b] y, float[1,2,c,d] z, float[1,2,e,f] w',
         't=Shape<start=0,end=2>(x) k=Concat<axis=0>(t,s) y=Resize<mode="linear">(x,,,k) z=Resize<mode="nearest",coordinate_transformation_mode="asymmetric",nearest_mode="floor">(x,,,k) '
         'w=Resize<mode="cubic",axes=[2,3]>(x,,,s)',
         feeds=lambda n, m: [floats(1, 2, n, 6), np.array([m, 9])], sizes=((6, 3), (1, 5), (8, 11), (5, 1)),
         flags=tuple(f'--bound={v}:{i}={most}' for v in 'yzw' for i, most in ((2, 12), (3, 10))),
         beyond=lambda: [floats(1, 2, 8, 6), np.array([13, 12])]),
    Case('split-data', 'float[n,6] x, int64[2] s', 'float[n,a] y, float[n,b] z',
         'y,z=Split<axis=1>(x,s)', feeds=lambda n, m: [floats(n, 6), np.array([m, 6 - m])], sizes=((3, 2), (1, 6), (8, 0), (6, 5))),
    Case('split-data-rows', 'float[n,4] x, int64[3] s', 'float[a,4] y, float[c,4] z',
         'y,q,z=Split(x,s)', feeds=lambda n, m: [floats(n, 4), np.array([m, 1, n - m - 1])], sizes=((3, 2), (1, 0), (8, 3), (6, 5))),
    # The head of a detector, on as many boxes as have a score: also on none. Its features depend on no box, the mean over the boxes is not empty
    # where they are.
    Case('head-of-boxes', 'float[n,3,6,6] x, float[n] s', 'float[a,5] y, float[a,4,3,3] z, float[n,4,3,3] f',
         'p=Constant<value=float[4,3,3,3] {' + ','.join(f'{(i * 5 % 17 - 8) / 8:.3f}' for i in range(108)) + '}>() '
         'q=Constant<value=float[4,4,3,3] {' + ','.join(f'{(i * 7 % 11 - 5) / 8:.3f}' for i in range(144)) + '}>() '
         'w=Constant<value=float[36,4] {' + ','.join(f'{(i * 7 % 13 - 6) / 8:.3f}' for i in range(144)) + '}>() '
         'zero=Constant<value_float=0.0>() front=Constant<value_ints=[0]>() m=Greater(s,zero) k=NonZero(m) i=Squeeze(k,front) '
         'e=Conv<strides=[2,2],pads=[1,1,1,1]>(x,p) f=Relu(e) g=Gather(f,i) h=Conv<pads=[1,1,1,1]>(g,q) z=Relu(h) r=Flatten(z) '
         'u=Gemm(r,w) v=Softmax(u) t=Gather(s,i) last=Constant<value_ints=[1]>() c=Unsqueeze(t,last) y=Concat<axis=1>(v,c)',
         feeds=lambda n, m: [floats(n, 3, 6, 6), np.array([1.0 if i < m else -1.0 for i in range(n)], np.float32)],
         sizes=((3, 2), (1, 0), (8, 0), (8, 8), (5, 1))),
    # Masks are resized to boxes that are clipped to the image, and put into it: bounded without a flag.
    Case('paste-box', 'float[1,1,4,4] x, float[n,4] b, int64 k', 'float[1,1,h,w] y, float[a,9] z',
         'low=Constant<value_float=0.0>() high=Constant<value_float=9.0>() o=Constant<value_int=1>() i=Constant<value_ints=[0]>() j=Constant<value_ints=[1]>() '
         'l=Constant<value_ints=[2]>() e=Constant<value_ints=[4]>() c=Max(b,low) d=Min(c,high) g=Gather<axis=0>(d,k) q=Cast<to=7>(g) '
         'p=Slice(q,i,l) r=Slice(q,l,e) s=Sub(r,p) t=Add(s,o) u=Max(t,o) v=Constant<value_ints=[1,1]>() sizes=Concat<axis=0>(v,u) '
         'y=Resize<mode="linear">(x,,,sizes) top=Slice(q,i,j) wide=Constant<value_ints=[9]>() rows=Concat<axis=0>(top,wide) z=ConstantOfShape(rows)',
         feeds=lambda n, m: [floats(1, 1, 4, 4), np.array([[i - 2, 1.5, 4 + 3 * i, 5 + m] for i in range(n)], np.float32), np.array(n - 1)],
         sizes=((3, 2), (1, 0), (8, 30), (4, -9))),
    # As many columns as an input says, in another shape of that size: the reader of programs takes it for a view.
    Case('columns that data choose as rows', 'float[n,8] x, int64[1] k', 'float[p,n] y',
         'z = Constant<value_ints = [0]>() o = Constant<value_ints = [1]>() v = Slice(x, z, k, o) n = Shape<end = 1>(x) s = Concat<axis = 0>(k, n) y = Reshape(v, s)',
         feeds=lambda n, m: [floats(n, 8), np.array([m])], sizes=((3, 2), (1, 1), (8, 8), (5, 3)), flags=('--bound=y:0=8',)),
    # Numbers computed of what a condition says, or of a number that is clipped, bound ranges without a flag.
    Case('ranges of numbers with bounds', 'float[n] x, int64 k, int64 j', ', '.join(f'int64[l{c}] y{c}' for c in 'abcdefg'),
         'o = Constant<value = int64 {0}>() i = Constant<value = int64 {1}>() low = Constant<value = int64 {-5}>() high = Constant<value = int64 {9}>() three = Constant<value = int64 {3}>() '
         'd = Clip(k, low, high) p = Greater(k, j) q = Less(j, three) an = Abs(d) bn0 = Div(d, three) bn = Abs(bn0) r = Or(p, q) cn = Cast<to = 7>(r) dn0 = Sign(j) dn = Add(dn0, i) '
         'en0 = Mod<fmod = 1>(k, three) en = Abs(en0) fn = Where(p, an, three) gn0 = Xor(p, q) gn1 = Cast<to = 7>(gn0) gn2 = Mod(d, three) gn = Add(gn2, gn1) '
         + ' '.join(f'y{c} = Range(o, {c}n, i)' for c in 'abcdefg'),
         lambda n, m: [floats(n), np.array(n - 7), np.array(m - 4)], sizes=((3, 2), (1, 8), (8, 1), (14, 4), (20, 6), (8, 3)), high=20),
    # So do counts of conditions and of equal numbers, and places along dims.
    Case('ranges of counts and places', 'float[n,m] x, int64[n] k', ', '.join(f'int64[l{c}] y{c}' for c in 'abcdefgh'),
         'o = Constant<value = int64 {0}>() i = Constant<value = int64 {1}>() four = Constant<value_ints = [4]>() zero = Constant<value_float = 0.0>() nine = Constant<value_float = 9.0>() '
         'front = Constant<value_ints = [0]>() last = Constant<value_ints = [1]>() all = Constant<value_ints = [-1]>() ends = Constant<value_ints = [0, 1]>() p = Greater(x, zero) c = Cast<to = 7>(p) '
         's = ReduceSum<keepdims = 0>(c, last) an = ReduceMax<keepdims = 0>(s) b0 = ArgMax<axis = 1, keepdims = 0>(x) bn = ReduceMax<keepdims = 0>(b0) t, c0 = TopK(k, last) cn = Squeeze(c0, front) '
         'u, u1, u2, d0 = Unique(k) dn = ReduceMax<keepdims = 0>(d0) e0 = CumSum(c, i) en = ReduceMax<keepdims = 0>(e0) f0 = ScatterElements(s, front, four) fn = ReduceMax<keepdims = 0>(f0) '
         'g0 = Sigmoid(x) g1 = Mul(g0, nine) g2 = Cast<to = 7>(g1) gn = ReduceMax<keepdims = 0>(g2) h0 = NonZero(p) h1 = Reshape(h0, all) h2 = Pad(h1, ends, o) hn = ReduceMax<keepdims = 0>(h2) '
         + ' '.join(f'y{c} = Range(o, {c}n, i)' for c in 'abcdefgh'),
         lambda n, m: [floats(n, m), np.array([i * i % 5 - m for i in range(n)])], sizes=((3, 2), (1, 1), (8, 8), (5, 3), (1, 7))),
]
