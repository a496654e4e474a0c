"""The cases of xnnpack_ops.py on images of so few channels that rows and columns become channels: depthwise convolutions and pools."""

import numpy as np

from xnnpack_nodes import graph, node, single


def line_cases():
    """Of constant and varying sizes, on what is stored plain, in NHWC (after a convolution) and permuted (after such a pool)."""
    own = np.random.default_rng(20261204)

    def draw(*shape):
        return own.standard_normal(shape).astype(np.float32)

    def both(name, x, op, weights=(), opset=17, **attributes):
        """Alone, and between two other nodes that want NHWC."""
        c = x["x"].shape[1]
        inputs = ["w", "b"] if weights else []
        yield single(f"lines-{name}", op, ["x", *inputs], x, dict(weights), opset=opset, **attributes)
        chain = [node("Conv", ["x", "m"], "i"), node(op, ["i", *inputs], "j", **attributes), node("Conv", ["j", "m"])]
        yield graph(f"lines-{name}-inside", chain, x, {"m": draw(c, c, 1, 1), **dict(weights)}, opset=opset)

    # Along rows and along columns, whose stride says which; more taps than the loop has; padding of one dim alone.
    for channels, image, kernel, more in ((3, (33, 38), (3, 3), {"pads": [1] * 4}), (1, (33, 38), (3, 3), {"pads": [1] * 4}), (4, (40, 31), (3, 1), {}),
                                          (4, (31, 40), (1, 5), {"pads": [0, 2, 0, 2]}), (2, (65, 30), (3, 3), {"strides": [2, 1]}),
                                          (2, (30, 65), (3, 3), {"strides": [1, 2], "pads": [1] * 4}), (2, (32, 40), (2, 3), {"dilations": [2, 3]}),
                                          (1, (90, 29), (27, 1), {}), (6, (40, 30), (2, 4), {"pads": [1, 0, 1, 0]})):
        name = "-".join(map(str, (channels, *image, *kernel)))
        yield from both(name, {"x": draw(2, channels, *image)}, "Conv", {"w": draw(channels, 1, *kernel), "b": draw(channels)}.items(), group=channels, **more)
    for name, shape, sizes, dims in (("batch", ["n", 3, 30, 40], ((2, 3, 30, 40), (1, 3, 30, 40)), {"n": "1..3"}),
                                     ("rows", [2, 3, "h", 40], ((2, 3, 28, 40), (2, 3, 9, 40)), {"h": "5..60"}),
                                     ("columns", [1, 3, 40, "w"], ((1, 3, 40, 28), (1, 3, 40, 9)), {"w": "5..60"})):
        yield single(f"lines-{name}", "Conv", ["x", "w", "b"], [{"x": draw(*s)} for s in sizes], {"w": draw(3, 1, 3, 3), "b": draw(3)}, group=3, pads=[1] * 4,
                     shapes={"x": shape}, dims=dims)
    # Pools: strides, windows that hang over the end, padding that counts and that does not; one after the other.
    for channels, op, more in ((1, "MaxPool", {"pads": [1] * 4}), (3, "MaxPool", {"strides": [2, 1]}), (2, "MaxPool", {"dilations": [2, 1], "ceil_mode": 1}),
                               (2, "AveragePool", {"pads": [1] * 4}), (1, "AveragePool", {"pads": [1, 0, 1, 0], "count_include_pad": 1}),
                               (3, "AveragePool", {"strides": [1, 2], "pads": [0, 1, 0, 1], "ceil_mode": 1})):
        name = "-".join([op, str(channels), *more])
        opset = 19 if "ceil_mode" in more else 17
        high = 29 * more.get("strides", [1])[0] + 4
        yield from both(name, {"x": draw(1, channels, high, 31)}, op, kernel_shape=[3, 2], opset=opset, **more)
    chain = [node("MaxPool", ["x"], "p", kernel_shape=[3, 3], pads=[1] * 4), node("Sub", ["x", "p"], "d"), node("MaxPool", ["d"], "q", kernel_shape=[5, 3], pads=[2, 1, 2, 1]),
             node("AveragePool", ["q"], kernel_shape=[2, 2], count_include_pad=1, pads=[1, 0, 1, 0])]
    sizes = [{"x": draw(n, 2, h, w)} for n, h, w in ((2, 30, 40), (1, 5, 33), (3, 40, 8))]
    yield graph("lines-pools-varying", chain, sizes, shapes={"x": ["n", 2, "h", "w"]}, dims={"n": "1..3", "h": "5..40", "w": "5..40"})
    codes = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
             node("MaxPool", ["d"], "p", kernel_shape=[3, 3], pads=[1] * 4), node("QuantizeLinear", ["p", "s", "z"], "r"), node("DequantizeLinear", ["r", "s", "z"])]
    yield graph("lines-pool-codes", codes, {"x": draw(1, 1, 30, 29)}, {"s": np.float32(0.03), "z": np.int8(3)})
