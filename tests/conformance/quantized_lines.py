"""Quantized convolutions of lines whose number and length vary, and products of ONNX Runtime, as cases of quantized.py."""

import itertools

import numpy as np
from onnx import helper

from quantized_draw import F32
from quantized_text import I8, U8, model, pair


def lines():
    """Convolutions of lines whose number and length vary: on codes up to the last one, behind which the axis that makes images of them goes."""
    rng = np.random.default_rng(31)
    sizes, kept = {"b": "1..4", "t": "1..40"}, {"GlobalAvgPooling2d"}
    bodies = (("chain", "a = Conv(xr, war) pads=2,1 strides=2,\nr = Relu(a)\n{r}y = Conv(rr, wbr) pads=2,2 dilations=2,\n{y}", {"wa": (8, 8, 4), "wb": (8, 8, 3)}, {"yr": F32}, kept),
              ("sum", "r = Conv(xr, war) pads=1,1\n{r}y = Add(xr, rr)\n{y}", {"wa": (8, 8, 3)}, {"yr": F32}, kept),
              ("groups", "r = Conv(xr, war) pads=1,1 group=8\n{r}y = Conv(rr, wbr) group=2\n{y}", {"wa": (8, 1, 3), "wb": (6, 4, 1)}, {"yr": F32}, kept),
              ("codes", "r = Conv(xr, war) pads=1,1\n{r}y = Conv(rr, wbr)\n{y}", {"wa": (8, 8, 3), "wb": (8, 8, 1)}, {"yq": None, "rq": None}, None),
              ("rows", "r = Conv(xr, war) pads=1,1\n{r}p = Transpose(rr) perm=0,2,1\ny = MatMul(p, wbr)\n{y}", {"wa": (8, 8, 3), "wb": (8, 6)}, {"yr": F32}, kept),
              ("transposed", "r = ConvTranspose(xr, war) strides=2,\n{r}y = Conv(rr, wbr)\n{y}", {"wa": (8, 8, 2), "wb": (8, 8, 1)}, {"yr": F32}, kept),
              ("joined", "r = Conv(xr, war) pads=1,1\n{r}y = Concat(rr, xr) axis=1\n{y}", {"wa": (4, 8, 3)}, {"yr": F32}, None))
    for (name, body, shapes, outputs, floats), dtype in itertools.product(bodies, (I8, U8)):
        steps = {"y": 0.0713, "r": 0.0531}
        numbers = {f"{k}{i}": v for w, shape in shapes.items() for k, i, v in ((w, "q", rng.integers(-128, 128, shape).astype(I8)), (w, "s", F32(0.00991)), (w, "z", I8(0)))}
        numbers |= {"xs": F32(0.0311), "xz": dtype(3), **{f"{k}s": F32(v) for k, v in steps.items()}, "yz": dtype(9), "rz": dtype(5)}
        text = pair("x") + "".join(f"{w}r = DequantizeLinear({w}q, {w}s, {w}z)\n" for w in shapes) + body.format(r=pair("r"), y=pair("y"))
        for b, t in ((1, 1), (4, 40), (3, 17)):
            x = rng.standard_normal((b, 8, t)).astype(F32)
            made = model(text, {"x": x}, numbers, {k: v or dtype for k, v in outputs.items()}, dims={0: "b", 2: "t"})
            yield f"lines-{name}-{np.dtype(dtype).name}-{b}x{t}", made, {"x": x}, [steps[k[0]] if k[1] == "r" else 1 for k in outputs], floats, sizes


def first_row():
    """One row of a product whose operand is quantized at run time: by the range of all rows, of which that one has a smaller one."""
    rng = np.random.default_rng(35)
    x = (rng.standard_normal((2, 6, 8)) * np.linspace(0.2, 3, 6)[None, :, None]).astype(F32)
    numbers = {"wq": rng.integers(0, 256, (8, 4)).astype(U8), "ws": F32(0.01), "wz": U8(128), "first": np.array(0)}
    text = ("xq, xs, xz = DynamicQuantizeLinear(x)\nm = MatMulInteger(xq, wq, xz, wz)\nf = Cast(m) to=1\ns = Mul(xs, ws)\np = Mul(f, s)\n"
            "r = Relu(p)\ny = Gather(r, first) axis=1\n")
    yield "first-row-at-run-time", model(text, {"x": x}, numbers, {"y": F32}), {"x": x}, [None], None


def real_products():
    """QGemm whose output is no code, as ONNX Runtime's optimizer writes last layers: with one scale, and one for each column."""
    rng = np.random.default_rng(43)
    x = rng.standard_normal((3, 16)).astype(F32)
    for name, scales in (("", F32(0.0101)), ("-columns", (rng.uniform(0.5, 1.5, 8) * 0.01).astype(F32))):
        numbers = {"xs": F32(0.0311), "xz": U8(120), "wq": rng.integers(-127, 128, (8, 16)).astype(I8), "ws": scales, "wz": np.zeros_like(scales, I8),
                   "bq": rng.integers(-500, 501, 8).astype(np.int32)}
        product = helper.make_node("QGemm", ["xq", "xs", "xz", "wq", "ws", "wz", "bq"], ["y"], domain="com.microsoft", transB=1)
        made = model("xq = QuantizeLinear(x, xs, xz)", {"x": x}, numbers, {"y": F32}, more=[product])
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        yield f"real-product{name}", made, {"x": x}, [None], {"FullyConnected"}
