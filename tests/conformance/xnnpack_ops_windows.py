"""The cases of xnnpack_ops.py that slide a window over their operand: convolutions, pooling, resizing."""

import numpy as np

from single_node import ints, normal
from xnnpack_nodes import HALF, graph, node, single

# --- taps of convolutions ---

def tap_cases():
    def conv(name, x, w, **attributes):
        return single(f"taps-{name}", "Conv", ["x", "w", "b"], {"x": normal(*x)}, {"w": normal(*w), "b": normal(w[0])}, **attributes)

    # Depthwise kernels of more taps than XNNPACK has a loop for are a sum of several, as are some of fewer.
    for rows, columns, stride, dilation in ((7, 7, 1, 1), (7, 7, 2, 1), (5, 6, 1, 2), (1, 31, 1, 1), (31, 1, 2, 1), (11, 9, 3, 1), (1, 11, 1, 1),
                                            (31, 31, 1, 1), (13, 13, 2, 1)):
        pads = [(rows - 1) // 2 * dilation, (columns - 1) // 2 * dilation] * 2
        yield conv(f"depthwise-{rows}x{columns}-{stride}-{dilation}", (2, 6, 33, 38), (6, 1, rows, columns), group=6, pads=pads,
                   strides=[stride] * 2, dilations=[dilation] * 2)
    yield conv("depthwise-multiplier", (1, 4, 14, 15), (8, 1, 7, 7), group=4, pads=[3, 3, 3, 3])
    yield conv("depthwise-multiplier-3", (2, 5, 14, 15), (15, 1, 3, 3), group=5, strides=[2, 1])
    for name, shape, dims in (("batch", ["n", 4, 14, 15], {"n": "1..3"}), ("image", [2, 4, "h", "w"], {"h": "9..14", "w": "9..15"})):
        for what, w in (("multiplier", (8, 1, 3, 3)), ("pieces", (4, 1, 7, 7))):
            yield conv(f"depthwise-{what}-{name}", (2, 4, 14, 15), w, group=4, shapes={"x": shape}, dims=dims)
    yield conv("depthwise-multiplier-line", (2, 5, 40), (10, 1, 5), group=5, dilations=[2])
    yield conv("depthwise-without-padding", (1, 4, 14, 15), (4, 1, 7, 7), group=4)
    for stride, dilation in ((2, 1), (1, 2), (3, 2)):
        yield conv(f"depthwise-without-padding-{stride}-{dilation}", (2, 4, 24, 25), (4, 1, 9, 7), group=4, strides=[stride] * 2, dilations=[dilation] * 2)
    yield conv("depthwise-little-padding", (1, 4, 24, 25), (4, 1, 9, 11), group=4, pads=[2, 1, 2, 1])
    yield conv("depthwise-much-padding", (1, 4, 3, 4), (4, 1, 9, 9), group=4, pads=[8, 8, 8, 8])
    yield conv("depthwise-line-without-padding", (2, 4, 80), (4, 1, 65), group=4)
    yield conv("depthwise-line", (1, 4, 45), (4, 1, 31), group=4, pads=[15, 15])
    # Taps that meet padding only.
    for dilation, stride in ((12, 1), (14, 1), (36, 1), (36, 3), (20, 2)):
        yield conv(f"dilated-{dilation}-{stride}", (1, 5, 14, 20), (7, 5, 3, 3), pads=[dilation] * 4, dilations=[dilation] * 2,
                   strides=[stride] * 2)
    # So many on images of few channels that these are computed in strips.
    yield conv("strips", (2, 2, 48, 44), (16, 2, 9, 9), pads=[4, 4, 4, 4])
    yield conv("strips-stride-dilation", (1, 1, 131, 97), (16, 1, 9, 9), pads=[8, 8, 8, 8], strides=[2, 1], dilations=[2, 1])
    yield conv("strips-one-row", (1, 1, 64, 100), (16, 1, 1, 31), pads=[0, 15, 0, 15])
    yield conv("strips-without-padding", (1, 4, 71, 71), (4, 2, 12, 12), group=2)
    yield conv("strips-line", (1, 1, 800), (16, 1, 251))
    yield conv("strips-line-stride", (1, 1, 9000), (16, 1, 64), pads=[32, 32], strides=[2])
    # Few output channels, which are computed for blocks of columns.
    yield conv("blocks", (2, 3, 30, 32), (4, 3, 3, 3), pads=[1, 1, 1, 1])
    yield conv("blocks-stride", (1, 4, 31, 36), (3, 4, 5, 7), pads=[2, 3, 2, 3], strides=[2, 3])
    yield conv("blocks-without-padding", (1, 4, 30, 35), (2, 4, 4, 4))
    yield conv("blocks-of-part-of-the-image", (1, 4, 30, 39), (2, 4, 3, 3), strides=[1, 2])
    yield conv("blocks-unequal-padding", (2, 5, 20, 33), (4, 5, 3, 4), pads=[0, 3, 0, 0])
    yield conv("blocks-much-padding", (1, 3, 20, 22), (5, 3, 3, 3), pads=[2, 6, 2, 6])
    yield conv("blocks-one-channel", (1, 1, 30, 30), (4, 1, 3, 3), pads=[1, 1, 1, 1])
    yield conv("blocks-odd-width", (1, 5, 20, 33), (4, 5, 3, 3), pads=[1, 1, 1, 1])
    yield conv("blocks-dilated-rows", (1, 4, 20, 32), (4, 4, 3, 3), pads=[2, 1, 2, 1], dilations=[2, 1])
    yield conv("blocks-line", (2, 4, 400), (3, 4, 9), pads=[4, 4], strides=[2])
    yield conv("blocks-batch", (2, 3, 30, 32), (4, 3, 3, 3), pads=[1, 1, 1, 1], shapes={"x": ["n", 3, 30, 32]}, dims={"n": "1..3"})
    # So few input channels for the taps that no planes are summed: windows of several columns are one.
    yield conv("steps", (1, 6, 64, 48), (1, 6, 3, 3), pads=[1, 1, 1, 1])
    yield conv("steps-stride", (1, 3, 128, 49), (1, 3, 1, 6), pads=[0, 3, 0, 3], strides=[1, 2])
    yield conv("steps-part-of-the-image", (1, 3, 128, 55), (1, 3, 1, 6), strides=[1, 2])
    yield conv("steps-line", (1, 4, 3072), (1, 4, 4), pads=[2, 2])
    yield conv("steps-batch", (2, 6, 64, 48), (1, 6, 3, 3), pads=[1, 1, 1, 1], shapes={"x": ["n", 6, 64, 48]}, dims={"n": "1..3"})
    yield conv("dilated-groups", (1, 6, 14, 9), (4, 3, 5, 3), group=2, pads=[28, 36, 28, 36], dilations=[14, 36])
    yield conv("dilated-depthwise", (1, 6, 14, 9), (6, 1, 5, 3), group=6, pads=[28, 36, 28, 36], dilations=[14, 36])
    yield conv("dilated-line", (1, 6, 14), (4, 6, 3), pads=[20, 20], dilations=[20])
    own = np.random.default_rng(11)
    for name, length, taps, pads in (("", 136, 32, [0, 0]), ("-pads", 143, 40, [9, 0])):
        yield single(f"taps-blocks-line-part{name}", "Conv", ["x", "w"], {"x": own.standard_normal((4, 1, length), np.float32)},
                     {"w": own.standard_normal((4, 1, taps), np.float32)}, strides=[16], pads=pads)
    half = np.float16
    yield single("taps-half-dilated", "Conv", ["x", "w", "b"], {"x": normal(1, 4, 14, 9).astype(half)},
                 {"w": normal(6, 4, 3, 3).astype(half), "b": normal(6).astype(half)}, pads=[20] * 4, dilations=[20, 20], **HALF, out_type=half)
    yield single("taps-half-blocks", "Conv", ["x", "w", "b"], {"x": normal(1, 4, 20, 32).astype(half)},
                 {"w": normal(4, 4, 3, 3).astype(half), "b": normal(4).astype(half)}, pads=[1] * 4, **HALF, out_type=half)
    yield single("taps-blocks-no-bias", "Conv", ["x", "w"], {"x": normal(1, 4, 20, 32)}, {"w": normal(4, 4, 3, 3)}, pads=[1] * 4)
    # Taps that meet the image for a part of the result only.
    for dilation, pad in ((6, 6), (10, 10), (9, 4), (12, 14)):
        yield conv(f"live-{dilation}-{pad}", (2, 128, 14, 15), (64, 128, 3, 3), pads=[pad] * 4, dilations=[dilation] * 2)
    yield conv("live-groups", (1, 64, 14, 20), (96, 32, 3, 3), group=2, pads=[10] * 4, dilations=[10] * 2)
    yield conv("live-unequal", (1, 128, 14, 20), (64, 128, 3, 4), pads=[0, 15, 0, 15], dilations=[1, 10])
    yield conv("live-strided", (1, 128, 28, 28), (64, 128, 3, 3), pads=[20] * 4, dilations=[20] * 2, strides=[1, 2])
    yield conv("live-line", (1, 128, 40), (64, 128, 5), pads=[30, 30], dilations=[15])
    yield single("taps-live-no-bias", "Conv", ["x", "w"], {"x": normal(1, 128, 14, 15)}, {"w": normal(64, 128, 3, 3)}, pads=[10] * 4, dilations=[10] * 2)
    yield single("taps-live-half", "Conv", ["x", "w", "b"], {"x": normal(1, 128, 14, 15).astype(half)},
                 {"w": (normal(64, 128, 3, 3) / 16).astype(half), "b": normal(64).astype(half)}, pads=[10] * 4, dilations=[10] * 2, **HALF, out_type=half)


# --- weights that arrive at run time ---

def runtime_weight_cases():
    def conv(name, x, w, bias=True, kind=np.float32, **attributes):
        feeds = {"x": normal(*x), "w": normal(*w), **({"b": normal(w[0])} if bias else {})}
        return single(f"runtime-weights-{name}", "Conv", list(feeds), {k: v.astype(kind) for k, v in feeds.items()}, **attributes,
                      **({**HALF, "out_type": kind} if kind != np.float32 else {}))

    yield conv("image", (1, 5, 9, 8), (7, 5, 3, 3), pads=[1, 1, 1, 1])
    yield conv("unequal", (2, 3, 9, 8), (6, 3, 2, 3), pads=[1, 0, 1, 0], dilations=[2, 1], bias=False)
    # Windows that stop before the end of the image, and at a part of a stride.
    for stride in ([2, 1], [3, 2], [2, 4]):
        yield conv(f"stride-{stride[0]}-{stride[1]}", (2, 3, 14, 11), (4, 3, 3, 3), pads=[1, 1, 1, 1], strides=stride, dilations=[1, 2])
    yield conv("one-tap", (2, 5, 6, 4), (7, 5, 1, 1))
    yield conv("one-tap-stride", (1, 5, 6, 5), (7, 5, 1, 1), strides=[2, 2], bias=False)
    yield conv("template", (1, 6, 15, 15), (1, 6, 7, 7), bias=False)
    yield conv("line", (2, 5, 20), (7, 5, 5), pads=[4, 4], dilations=[2])
    yield conv("depthwise", (2, 6, 12, 11), (6, 1, 4, 3), group=6, pads=[1, 1, 1, 1], strides=[1, 2])
    yield conv("depthwise-one-tap", (1, 6, 4, 5), (6, 1, 1, 1), group=6, bias=False)
    yield conv("depthwise-line", (1, 6, 20), (6, 1, 5), group=6, bias=False)
    yield conv("batch", (2, 3, 6, 8), (4, 3, 3, 3), shapes={"x": ["n", 3, 6, 8]}, dims={"n": "1..3"})
    yield conv("half", (1, 4, 7, 6), (5, 4, 3, 3), kind=np.float16)
    # Modulated layers: weights that are computed, of which plan and order of the operands are those of the partition.
    weights = {"w": normal(6, 4, 3, 3), "v": normal(6, 6, 3, 3)}
    nodes = [node("Mul", ["w", "s"], "ws"), node("Conv", ["x", "ws"], "t", pads=[1, 1, 1, 1]), node("Relu", ["t"], "r"),
             node("Softmax", ["v"], "vs", axis=1), node("Conv", ["r", "vs"], "y0")]
    yield graph("runtime-weights-chain", nodes, {"x": normal(1, 4, 7, 8), "s": normal(1, 4, 1, 1)}, weights)
    # Of several groups, and transposed ones.
    yield conv("groups", (1, 6, 8, 8), (4, 3, 3, 3), group=2, kernels=1)
    yield single("runtime-weights-transposed", "ConvTranspose", ["x", "w"], {"x": normal(1, 3, 5, 5), "w": normal(3, 4, 3, 3)}, kernels=1)


# --- transposed convolutions ---

def phase_cases():
    def conv(name, x, w, groups=1, half=False, **attributes):
        kind = np.float16 if half else np.float32
        return single(f"phases-{name}", "ConvTranspose", ["x", "w", "b"], {"x": normal(*x).astype(kind)},
                      {"w": normal(*w).astype(kind), "b": normal(w[1] * groups).astype(kind)}, group=groups, **attributes,
                      **({**HALF, "out_type": half} if half else {}))

    # Few channels (all phases together), and many (like phases, or each for itself).
    for channels in (3, 40):
        for kernel, stride, pad, extra in ((2, 2, 0, 0), (4, 2, 1, 0), (3, 2, 1, 1), (3, 2, 1, 0), (3, 2, 0, 0), (5, 2, 2, 1), (6, 3, 1, 0),
                                           (9, 4, 4, 3), (3, 1, 1, 0), (4, 2, 3, 1), (2, 2, 1, 0), (3, 4, 0, 0), (8, 8, 0, 0)):
            name = f"{channels}-{kernel}-{stride}-{pad}-{extra}"
            yield conv(name, (2, 5, 4, 7), (5, channels, kernel, kernel), strides=[stride] * 2, pads=[pad] * 4, output_padding=[extra] * 2)
            yield conv(f"{name}-line", (1, 5, 9), (5, channels, kernel), strides=[stride], pads=[pad] * 2, output_padding=[extra])
    # Few outputs, with zeros for the taps that a phase does not have.
    for channels, kernel, stride, pad, extra in ((1, 3, 2, 1, 1), (1, 3, 2, 0, 0), (2, 5, 3, 1, 0), (3, 5, 2, 2, 1), (1, 3, 4, 0, 1)):
        yield conv(f"zeros-{channels}-{kernel}-{stride}-{pad}-{extra}", (2, 16, 14, 13), (16, channels, kernel, kernel), strides=[stride] * 2,
                   pads=[pad] * 4, output_padding=[extra] * 2)
    yield conv("zeros-line", (1, 16, 400), (16, 1, 7), strides=[3], pads=[2, 2], output_padding=[1])
    yield conv("zeros-half", (1, 16, 14, 13), (16, 1, 3, 3), half=np.float16, strides=[2, 2], pads=[1] * 4)
    yield conv("unequal", (1, 6, 5, 3), (6, 4, 2, 5), strides=[2, 3], pads=[0, 2, 0, 2], output_padding=[0, 1])
    yield conv("crop", (1, 6, 5, 3), (6, 4, 4, 4), strides=[2, 2], pads=[0, 1, 2, 3])
    yield conv("dilated", (1, 6, 5, 5), (6, 4, 3, 3), strides=[1, 1], dilations=[2, 3], pads=[1, 2, 1, 2])
    yield conv("dilated-strides", (1, 6, 5, 5), (6, 4, 3, 3), strides=[2, 2], dilations=[2, 2])
    # Windows of a single element do not meet.
    for pad in (0, 1):
        yield conv(f"single-{pad}", (2, 7, 1, 1), (7, 5, 4, 4), strides=[2, 2], pads=[pad] * 4)
    yield conv("single-row", (1, 7, 1, 6), (7, 5, 4, 4), strides=[2, 2], pads=[1] * 4)
    yield conv("single-extra", (1, 7, 1, 1), (7, 5, 4, 4), strides=[2, 2], output_padding=[1, 1])
    for groups, depth in ((2, 3), (6, 1), (6, 2)):
        for kernel in (2, 3, 4):
            yield conv(f"groups-{groups}-{depth}-{kernel}", (2, 6, 5, 4), (6, depth, kernel, kernel), groups, strides=[2, 2], pads=[kernel // 2 - 1] * 4)
    yield conv("groups-taps", (1, 6, 5, 4), (6, 1, 12, 12), 6, strides=[2, 2], pads=[5] * 4)  # phases of more than 25 taps
    for kernel, groups in ((2, 1), (4, 1), (4, 2), (4, 6)):
        yield conv(f"half-{kernel}-{groups}", (1, 6, 5, 4), (6, 4, kernel, kernel), groups, half=np.float16, strides=[2, 2], pads=[kernel // 2 - 1] * 4)
    yield single("phases-no-bias", "ConvTranspose", ["x", "w"], {"x": normal(1, 6, 5, 4)}, {"w": normal(6, 4, 4, 4)}, strides=[2, 2], pads=[1] * 4)
    for dims, shape in (({"n": "1..4"}, ["n", 4, 5, 6]), ({"n": "1..6"}, [1, 4, "n", 6])):
        yield single(f"phases-varying-{shape.index('n')}", "ConvTranspose", ["x", "w"], [{"x": normal(*(n if d == "n" else d for d in shape))} for n in (3, 1, 4)],
                     {"w": normal(4, 3, 4, 4)}, strides=[2, 2], pads=[1] * 4, shapes={"x": shape}, dims=dims)
    # Limits stay behind the interleaving, with and without zero between them.
    w = {"w": normal(6, 4, 4, 4), "l": np.float32(0.5), "h": np.float32(2)}
    up = node("ConvTranspose", ["x", "w"], "t", strides=[2, 2], pads=[1] * 4)
    yield graph("phases-relu", [up, node("Relu", ["t"])], {"x": normal(1, 6, 5, 4)}, w)
    yield graph("phases-limits", [up, node("Clip", ["t", "l", "h"])], {"x": normal(1, 6, 5, 4)}, w)
    for kernel, stride, pad, extra in ((2, 2, 0, 0), (4, 2, 1, 0), (3, 2, 1, 1), (3, 2, 1, 0), (5, 3, 2, 1), (3, 4, 0, 0)):
        yield conv(f"volume-{kernel}-{stride}-{pad}-{extra}", (2, 3, 4, 3, 5), (3, 4, *[kernel] * 3), strides=[stride] * 3, pads=[pad] * 6,
                   output_padding=[extra] * 3)
    yield conv("volume-groups", (1, 6, 4, 3, 5), (6, 2, 4, 3, 3), 2, strides=[2, 1, 2], pads=[1] * 6)


def plane_cases():
    """Few output channels: sums of planes."""
    def conv(name, op, x, w, half=False, **attributes):
        kind, transposed = np.float16 if half else np.float32, op == "ConvTranspose"
        return single(f"planes-{name}", op, ["x", "w", "b"], {"x": normal(*x).astype(kind)},
                      {"w": (normal(*w) / 8).astype(kind), "b": normal(w[1 if transposed else 0]).astype(kind)}, **attributes,
                      **({**HALF, "out_type": half} if half else {}))

    for kernel, pads in ((3, [1] * 4), (3, [0] * 4), (4, [1, 2, 1, 2]), (5, [2, 0, 2, 0]), (2, [1] * 4)):
        yield conv(f"{kernel}-{pads[0]}-{pads[1]}", "Conv", (2, 96, 12, 14), (3, 96, kernel, kernel), pads=pads)
    yield conv("unequal", "Conv", (1, 96, 12, 14), (2, 96, 1, 7), pads=[0, 3, 0, 1])
    yield conv("line", "Conv", (1, 96, 150), (1, 96, 7), pads=[3, 3])
    yield conv("half", "Conv", (1, 96, 12, 14), (1, 96, 3, 3), half=np.float16, pads=[1] * 4)
    yield single("planes-no-bias", "Conv", ["x", "w"], {"x": normal(1, 64, 12, 14)}, {"w": normal(1, 64, 3, 3)}, pads=[1] * 4)
    yield single("planes-varying", "Conv", ["x", "w"], [{"x": normal(n, 64, 12, 14)} for n in (3, 1, 4)], {"w": normal(1, 64, 3, 3)}, pads=[1] * 4,
                 shapes={"x": ["n", 64, 12, 14]}, dims={"n": "1..4"})
    for kernel, stride, pad, extra in ((3, 1, 1, 0), (3, 1, 0, 0), (9, 2, 4, 1), (9, 3, 4, 2), (9, 4, 4, 3), (5, 2, 2, 0), (5, 3, 0, 0), (4, 2, 1, 0),
                                       (4, 2, 3, 1), (5, 2, 0, 1), (6, 4, 1, 0)):
        name = f"transposed-{kernel}-{stride}-{pad}-{extra}"
        yield conv(name, "ConvTranspose", (2, 96, 14, 17), (96, 1, kernel, kernel), strides=[stride] * 2, pads=[pad] * 4, output_padding=[extra] * 2)
        yield conv(f"{name}-line", "ConvTranspose", (1, 96, 150), (96, 2, kernel), strides=[stride], pads=[pad] * 2, output_padding=[extra])
    yield conv("transposed-half", "ConvTranspose", (1, 96, 12, 14), (96, 1, 5, 5), half=np.float16, strides=[2, 2], pads=[2] * 4)
    yield conv("transposed-unequal", "ConvTranspose", (1, 96, 12, 14), (96, 2, 3, 5), strides=[1, 3], pads=[1, 0, 1, 2])
    # At what is the most, and beyond: taps, phases, a stride beside the kernel, dilation.
    for kernel, stride, dilation in ((32, 1, 1), (33, 1, 1), (3, 1, 2)):
        yield conv(f"limit-{kernel}-{stride}-{dilation}", "Conv", (1, 96, 3, 120), (1, 96, 1, kernel), dilations=[1, dilation])
    for kernel, stride, dilation in ((16, 16, 1), (17, 16, 1), (17, 17, 1), (18, 17, 1), (4, 4, 1), (4, 5, 1), (5, 4, 2)):
        yield conv(f"transposed-limit-{kernel}-{stride}-{dilation}", "ConvTranspose", (1, 128, 3, 40), (128, 1, 1, kernel), strides=[1, stride],
                   dilations=[1, dilation])
    # What follows is in the layout of images.
    yield graph("planes-between", [node("Conv", ["x", "w"], "t", pads=[1] * 4), node("Relu", ["t"], "u"), node("Conv", ["u", "v"], pads=[1] * 4)],
                {"x": normal(1, 64, 12, 14)}, {"w": normal(2, 64, 3, 3), "v": normal(20, 2, 3, 3)})


def column_cases():
    """Windows over depth alone."""
    def conv(name, w, **attributes):
        return single(f"column-{name}", "Conv", ["x", "w", "b"], {"x": normal(2, 4, 7, 3, 5)}, {"w": normal(*w), "b": normal(w[0])}, **attributes)

    yield conv("plain", (6, 4, 3, 1, 1), pads=[1, 0, 0, 1, 0, 0])
    yield conv("strided", (6, 4, 5, 1, 1), strides=[4, 1, 1], pads=[2, 0, 0, 2, 0, 0])
    yield conv("causal", (6, 4, 3, 1, 1), dilations=[2, 1, 1], pads=[4, 0, 0, 0, 0, 0])
    yield conv("groups", (6, 2, 2, 1, 1), group=2)
    yield conv("padded", (6, 4, 3, 1, 1), pads=[1] * 6)
    yield conv("one", (6, 4, 1, 1, 1))
    yield single("column-transposed", "ConvTranspose", ["x", "w"], {"x": normal(1, 4, 3, 2, 5)}, {"w": normal(4, 3, 4, 1, 1)}, strides=[2, 1, 1],
                 pads=[1, 0, 0, 1, 0, 0])
    yield single("column-varying", "Conv", ["x", "w"], [{"x": normal(1, 4, n, 3, 5)} for n in (3, 1, 6)], {"w": normal(6, 4, 3, 1, 1)},
                 pads=[1, 0, 0, 1, 0, 0], shapes={"x": [1, 4, "n", 3, 5]}, dims={"n": "1..6"})


# --- windows ---

def channel_cases():
    """Sums over neighbouring channels."""
    for name, shape, size in (("", (2, 24, 5, 6), 5), ("-wide", (1, 4, 5, 6), 9), ("-odd", (1, 7, 5, 6), 3)):
        yield single(f"LRN{name}", "LRN", ["x"], {"x": normal(*shape)}, size=size, alpha=0.3, bias=1.5)
    for name, shape, dims in (("batch", ["n", 16, 5, 6], {"n": "1..3"}), ("width", [2, 16, 5, "w"], {"w": "3..8"})):
        yield single(f"LRN-{name}", "LRN", ["x"], {"x": normal(2, 16, 5, 6)}, size=5, alpha=0.3, shapes={"x": shape}, dims=dims)
    for size in (4, 5):  # as torch exports it
        nodes = [node("Conv", ["x", "w"], "t"), node("Reshape", ["t", "up"], "u"), node("Pad", ["u", "pads"], "p"),
                 node("AveragePool", ["p"], "m", kernel_shape=[size, 1, 1]), node("Reshape", ["m", "down"], "d"), node("Conv", ["d", "v"])]
        yield graph(f"channels-pool-{size}", nodes, {"x": normal(1, 3, 5, 6)}, {
            "w": normal(16, 3, 1, 1), "v": normal(4, 16, 1, 1), "pads": np.array([0, 0, size // 2, 0, 0, 0, 0, (size - 1) // 2, 0, 0]),
            "up": np.array([1, 1, 16, 5, 6]), "down": np.array([1, 16, 5, 6])})


def volume_cases():
    """Kernels of single channels over three dims: sums over the depth."""
    def conv(name, x, w, **attributes):
        return single(f"volumes-{name}", "Conv", ["x", "w", "b"], {"x": normal(*x)}, {"w": normal(*w), "b": normal(w[0])}, group=x[1], **attributes)

    for batch in (1, 2):
        for stride, pad, dilation in ((1, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 2), (1, 4, 1)):
            yield conv(f"{batch}-{stride}-{pad}-{dilation}", (batch, 6, 5, 7, 6), (6, 1, 3, 3, 3), strides=[stride] * 3, pads=[pad] * 6,
                       dilations=[dilation] * 3)
        yield conv(f"{batch}-unequal", (batch, 6, 5, 7, 6), (6, 1, 2, 3, 1), pads=[1, 1, 0, 0, 1, 0])
        yield conv(f"{batch}-multiplier", (batch, 4, 5, 7, 6), (8, 1, 3, 3, 3), pads=[1] * 6)
    yield conv("strided-depth", (1, 6, 7, 5, 6), (6, 1, 5, 1, 1), strides=[2, 1, 2], pads=[2, 0, 0] * 2)
    yield conv("batch", (2, 6, 5, 7, 6), (6, 1, 3, 3, 3), pads=[1] * 6, shapes={"x": ["n", 6, 5, 7, 6]}, dims={"n": "1..3"}, kernels=None)


def tile_cases():
    """A few more output channels than fill tiles of 32."""
    def conv(name, x, w, **attributes):
        return single(f"tiles-{name}", "Conv", ["x", "w", "b"], {"x": normal(*x)}, {"w": normal(*w), "b": normal(w[0])}, **attributes)

    yield conv("48", (1, 32, 16, 15), (48, 32, 3, 3), pads=[1] * 4)
    yield conv("68-stride", (2, 24, 29, 31), (68, 24, 3, 5), pads=[1, 2, 1, 2], strides=[2, 1])
    yield conv("33-dilated", (1, 16, 16, 17), (33, 16, 3, 3), dilations=[2, 2])
    yield conv("line", (1, 64, 300), (100, 64, 5))
    yield conv("batch", (2, 32, 16, 15), (48, 32, 3, 3), shapes={"x": ["n", 32, 16, 15]}, dims={"n": "1..3"})
    yield conv("image", (1, 32, 16, 15), (48, 32, 3, 3), pads=[1] * 4, shapes={"x": [1, 32, "h", "w"]}, dims={"h": "9..18", "w": "10..18"})
    half = np.float16
    yield single("tiles-half", "Conv", ["x", "w", "b"], {"x": normal(1, 32, 16, 15).astype(half)},
                 {"w": (normal(48, 32, 3, 3) / 8).astype(half), "b": normal(48).astype(half)}, **HALF, out_type=half)
    yield graph("tiles-relu", [node("Conv", ["x", "w"], "t", pads=[1] * 4), node("Relu", ["t"])], {"x": normal(1, 32, 16, 15)}, {"w": normal(48, 32, 3, 3)})


def window_cases():
    x = {"x": normal(2, 3, 9, 8)}
    for op, more in (("MaxPool", [{}]), ("AveragePool", [{"count_include_pad": 0}, {"count_include_pad": 1}])):
        for extra in more:
            label = f"{op}{''.join(str(v) for v in extra.values())}"
            for kernel, stride, pads in (((2, 2), (2, 2), (0, 0, 0, 0)), ((3, 3), (2, 2), (1, 1, 1, 1)), ((3, 2), (1, 2), (1, 0, 1, 0)), ((1, 1), (2, 2), (0, 0, 0, 0)),
                                         ((2, 2), (3, 3), (0, 0, 0, 0)), ((3, 3), (1, 1), (0, 1, 2, 0)), ((1, 3), (1, 1), (0, 1, 0, 1))):
                for ceil in (0, 1):
                    name = f"{label}-{kernel[0]}x{kernel[1]}-{stride[0]}{stride[1]}-{''.join(map(str, pads))}-{ceil}"
                    yield single(name, op, ["x"], x, kernel_shape=kernel, strides=stride, pads=pads, ceil_mode=ceil, opset=19, **extra)
            for pads in ([0, 0, 0, 0], [1, 2, 1, 2], [0, 1, 1, 2]):  # windows that are larger than the image, as a pool of images up to a size has them
                yield single(f"{label}-beyond-{sum(pads)}", op, ["x"], x, kernel_shape=[700, 7], strides=[700, 3], pads=pads, ceil_mode=1, opset=19, **extra)
            yield single(f"{label}-line", op, ["x"], {"x": normal(2, 3, 11)}, kernel_shape=[3], strides=[2], pads=[1, 1], **extra)
    yield single("MaxPool-dilated", "MaxPool", ["x"], x, kernel_shape=[2, 3], dilations=[2, 2])
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for shape in ((2, 3, 7), (2, 3, 5, 6), (1, 3, 4, 5, 2)):
            yield single(f"{op}-{len(shape)}", op, ["x"], {"x": normal(*shape)})
    for group, multiplier in ((1, 0), (2, 0), (4, 1), (4, 2), (4, 3)):
        out = 6 if not multiplier else 4 * multiplier
        for stride, pads, dilation in ((1, [0, 0, 0, 0], 1), (2, [1, 1, 1, 1], 1), (1, [0, 1, 2, 0], 2), (3, [2, 2, 2, 2], 2)):
            yield single(f"Conv-{group}-{out}-{stride}-{sum(pads)}-{dilation}", "Conv", ["x", "w", "b"], {"x": normal(2, 4, 11, 10)},
                         {"w": normal(out, 4 // group, 3, 3), "b": normal(out)}, group=group, strides=[stride] * 2, pads=pads, dilations=[dilation] * 2)
    for group in (1, 2, 4):
        for stride, pads, more, dilation in ((1, 0, 0, 1), (2, 1, 1, 1), (2, 0, 0, 2), (3, 1, 2, 1)):
            yield single(f"ConvTranspose-{group}-{stride}-{pads}-{more}-{dilation}", "ConvTranspose", ["x", "w", "b"], {"x": normal(2, 4, 5, 6)},
                         {"w": normal(4, 2, 3, 3), "b": normal(2 * group)}, group=group, strides=[stride] * 2, pads=[pads] * 4, output_padding=[more] * 2,
                         dilations=[dilation] * 2)
    for stride, dilation, group in ((1, 1, 1), (2, 1, 2), (1, 3, 1), (2, 2, 4)):
        yield single(f"Conv-line-{stride}-{dilation}-{group}", "Conv", ["x", "w", "b"], {"x": normal(2, 4, 13)}, {"w": normal(8, 4 // group, 3), "b": normal(8)},
                     group=group, strides=[stride], dilations=[dilation], pads=[1, 1])
    yield single("ConvTranspose-line", "ConvTranspose", ["x", "w"], {"x": normal(2, 4, 7)}, {"w": normal(4, 3, 4)}, strides=[2], pads=[1, 1])
    sizes = {"s": np.array([1, 1, 2, 3], np.float32)}
    for mode, places in (("nearest", ("asymmetric", "half_pixel")), ("linear", ("half_pixel", "align_corners", "pytorch_half_pixel"))):
        for place in places:
            more = {"nearest_mode": "floor"} if (mode, place) == ("nearest", "asymmetric") else {}
            yield single(f"Resize-{mode}-{place}", "Resize", ["x", "", "s"], {"x": normal(2, 3, 4, 5)}, sizes, mode=mode,
                         coordinate_transformation_mode=place, opset=13, **more)
    bounds, feeds = {"n": "1..2", "h": "1..6", "w": "1..7"}, [(2, 16, 6, 7), (1, 16, 1, 1), (1, 16, 3, 1), (2, 16, 1, 4)]
    for h, w in ((2, 2), (3, 3), (4, 4), (8, 8), (1, 2), (3, 1), (2, 3), (5, 4), (16, 2)):
        yield single(f"Resize-linear-varying-{h}-{w}", "Resize", ["x", "", "s"], [{"x": normal(*size)} for size in feeds],
                     {"s": np.array([1, 1, h, w], np.float32)}, opset=13, mode="linear", dims=bounds, shapes={"x": ["n", 16, "h", "w"]})


def eighth_cases():
    """1x1 convolutions of up to 8 output channels more than fill tiles of 16."""
    for outputs, bias in ((40, True), (23, False), (41, True)):
        weights = {"w": normal(outputs, 160, 1, 1), **({"b": normal(outputs)} if bias else {})}
        yield graph(f"eighths-{outputs}", [node("Conv", ["x", *weights], "t"), node("Relu", ["t"])], {"x": normal(1, 160, 9, 8)}, weights)


def gathered_cases():
    """Convolutions of many output channels on small images, which are products with windows."""
    def conv(name, x, w, **attributes):
        return single(f"gathered-windows-{name}", "Conv", ["x", "w", "b"], {"x": normal(*x)}, {"w": normal(*w), "b": normal(w[0])}, **attributes)

    yield conv("3x3", (1, 16, 6, 7), (256, 16, 3, 3), pads=[1] * 4)
    yield conv("stride", (2, 32, 9, 8), (256, 32, 3, 2), pads=[1, 0, 1, 0], strides=[2, 3])
    yield conv("stride-1x1", (1, 48, 9, 8), (240, 48, 1, 1), strides=[2, 2])
    yield conv("dilated", (1, 32, 12, 11), (256, 32, 3, 3), dilations=[2, 3], pads=[2, 3, 2, 3])
    yield conv("without-padding", (1, 32, 9, 8), (256, 32, 2, 4))
    yield conv("1x7", (1, 48, 9, 8), (256, 48, 1, 7), pads=[0, 3, 0, 3])
    yield conv("7x1", (1, 48, 9, 8), (256, 48, 7, 1), pads=[3, 0, 3, 0])
    yield conv("line", (2, 48, 60), (256, 48, 5), pads=[2, 2])
    yield conv("batch", (2, 32, 9, 8), (256, 32, 3, 3), pads=[1] * 4, shapes={"x": ["n", 32, 9, 8]}, dims={"n": "1..3"})
    own = np.random.default_rng(11)  # so that the cases behind keep their values

    def rows(name, x, w, **attributes):
        """The rows of a kernel are a product each."""
        arrays = {k: own.standard_normal(v).astype(np.float32) for k, v in (("x", x), ("w", w), ("b", w[:1]))}
        return single(f"gathered-rows-{name}", "Conv", ["x", "w", "b"], {"x": arrays.pop("x")}, arrays, **attributes)

    yield rows("3x3", (1, 64, 40, 12), (128, 64, 3, 3), pads=[1] * 4)
    yield rows("columns-stride", (1, 64, 40, 25), (128, 64, 3, 3), pads=[1] * 4, strides=[1, 2])
    yield rows("5x5", (1, 32, 40, 4), (256, 32, 5, 5), pads=[2] * 4)
    yield rows("dilated", (1, 64, 96, 5), (128, 64, 3, 3), dilations=[2, 1], pads=[2, 1, 2, 1])
    yield rows("column", (1, 256, 90, 4), (144, 256, 3, 1), pads=[1, 0, 1, 0])
    yield rows("batch", (3, 64, 40, 5), (128, 64, 3, 3), pads=[1] * 4, shapes={"x": ["n", 64, 40, 5]}, dims={"n": "1..3"})
    def patches(name, x, w, **attributes):
        arrays = {k: own.standard_normal(v).astype(np.float32) for k, v in (("x", x), ("w", w), ("b", w[:1]))}
        return single(f"gathered-patches-{name}", "Conv", ["x", "w", "b"], {"x": arrays.pop("x")}, arrays, strides=list(w[2:]), **attributes)

    for name, shape in (("2x2", (256, 16, 2, 2)), ("4x5", (240, 16, 4, 5))):  # of an image in NHWC
        yield graph(f"gathered-patches-behind-{name}", [node("Conv", ["x", "v"], "t"), node("Conv", ["t", "w", "b"], strides=list(shape[2:]))],
                    {"x": own.standard_normal((2, 8, 12, 20), dtype=np.float32)},
                    {k: own.standard_normal(v, dtype=np.float32) for k, v in (("v", (16, 8, 1, 1)), ("w", shape), ("b", shape[:1]))})
    yield patches("2x2", (1, 16, 12, 10), (256, 16, 2, 2))
    yield patches("4x3", (2, 3, 24, 18), (240, 3, 4, 3))
    yield patches("8x8", (1, 1, 32, 24), (256, 1, 8, 8))
    yield patches("1x4", (1, 8, 9, 40), (128, 8, 1, 4))
    yield patches("line", (2, 16, 60), (128, 16, 5))
    yield patches("cut", (1, 16, 13, 11), (256, 16, 2, 2))  # a row and a column are left over
    yield patches("batch", (3, 8, 16, 16), (128, 8, 4, 4), shapes={"x": ["n", 8, 16, 16]}, dims={"n": "1..3"})
    half = np.float16
    yield single("gathered-patches-half", "Conv", ["x", "w", "b"], {"x": own.standard_normal((1, 16, 12, 12)).astype(half)},
                 {"w": (own.standard_normal((256, 16, 3, 3)) / 8).astype(half), "b": own.standard_normal(256).astype(half)}, strides=[3, 3], **HALF, out_type=half)
    yield single("gathered-windows-half", "Conv", ["x", "w", "b"], {"x": normal(1, 32, 9, 8).astype(half)},
                 {"w": (normal(256, 32, 3, 3) / 8).astype(half), "b": normal(256).astype(half)}, **HALF, out_type=half)
    yield graph("gathered-windows-relu", [node("Conv", ["x", "w"], "t", pads=[1] * 4), node("Relu", ["t"])], {"x": normal(1, 32, 9, 8)}, {"w": normal(256, 32, 3, 3)})


def resampling_cases():
    """Resizing by sums of weighted neighbours, which are products with a banded matrix: up and down, by factors whole and not."""
    draw = np.random.default_rng(12)

    def resize(name, shape, sizes, **attributes):
        x = draw.standard_normal(shape).astype(np.float32)
        return single(f"Resize-sums-{name}", "Resize", ["x", "", "", "s"], {"x": x}, {"s": np.array(sizes)}, opset=18, **attributes)

    for mode in ("linear", "cubic"):
        for sizes in ((2, 3, 18, 20), (2, 3, 31, 25), (2, 3, 54, 60), (2, 3, 67, 90), (2, 3, 36, 50), (2, 3, 20, 40), (1, 2, 30, 31)):
            shape = (2, 3, 36, 40) if sizes[0] == 2 else (1, 2, 300, 200)
            yield resize(f"{mode}-{sizes[2]}-{sizes[3]}", shape, sizes, mode=mode, antialias=1)
        yield resize(f"{mode}-outside", (2, 3, 36, 40), (2, 3, 21, 77), mode=mode, antialias=1, exclude_outside=1)
        yield resize(f"{mode}-corners", (2, 3, 36, 40), (2, 3, 20, 77), mode=mode, coordinate_transformation_mode="align_corners", antialias=1)
    yield resize("channels-first", (3, 36, 40), (5, 36, 40), mode="linear", antialias=1)
    yield resize("line", (4, 8, 100), (4, 8, 33), mode="linear", antialias=1)
    yield resize("cubic", (2, 3, 36, 40), (2, 3, 50, 30), mode="cubic", cubic_coeff_a=-0.5)
    yield resize("cubic-outside", (2, 3, 36, 40), (2, 3, 50, 30), mode="cubic", coordinate_transformation_mode="asymmetric", exclude_outside=1)
    batches = [{"x": draw.standard_normal((n, 3, 36, 40)).astype(np.float32)} for n in (2, 1, 4)]
    yield single("Resize-sums-batch", "Resize", ["x", "", "s"], batches, {"s": np.array([1, 1, 0.75, 1.5], np.float32)}, opset=18, mode="cubic", antialias=1,
                 shapes={"x": ["n", 3, 36, 40]}, dims={"n": "1..4"})
    yield resize("linear-asymmetric", (2, 3, 36, 40), (2, 3, 50, 30), mode="linear", coordinate_transformation_mode="asymmetric")


def strip_cases():
    """Convolutions that are products, too, in whose place several stand: strips of large images, images of a batch, phases, blocks."""
    own = np.random.default_rng(12)

    def conv(name, x, w, outputs, op="Conv", **attributes):
        arrays = {k: own.standard_normal(v).astype(np.float32) for k, v in (("x", x), ("w", w), ("b", [outputs]))}
        arrays["w"] /= np.float32(np.sqrt(np.prod(w[1:])))
        return single(f"products-{name}", op, ["x", "w", "b"], {"x": arrays.pop("x")}, arrays, **attributes)

    yield conv("rows", (1, 96, 67, 70), (96, 96, 3, 3), 96, pads=[1] * 4)
    yield conv("windows", (1, 64, 90, 91), (64, 64, 3, 3), 64, pads=[1, 0, 1, 2])
    yield conv("stride", (1, 64, 131, 121), (64, 64, 3, 3), 64, strides=[2, 2], pads=[1] * 4)
    yield conv("dilated", (1, 64, 70, 90), (128, 64, 3, 3), 128, dilations=[3, 2], pads=[3, 2, 3, 2])
    yield conv("line", (1, 64, 9000), (64, 64, 5), 64, pads=[2, 2])
    yield conv("images", (7, 64, 24, 23), (128, 64, 3, 3), 128, pads=[1] * 4)
    yield conv("volume", (1, 64, 6, 16, 16), (128, 64, 3, 3, 3), 128, pads=[1] * 6)
    yield conv("batch", (3, 64, 60, 50), (96, 64, 3, 3), 96, pads=[1] * 4, shapes={"x": ["n", 64, 60, 50]}, dims={"n": "1..3"})
    yield conv("phases", (1, 128, 9, 10), (128, 64, 4, 4), 64, "ConvTranspose", strides=[2, 2], pads=[1] * 4)
    yield conv("unlike-phases", (2, 128, 9, 10), (128, 64, 3, 3), 64, "ConvTranspose", strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    yield conv("phases-line", (1, 128, 60), (128, 64, 16), 64, "ConvTranspose", strides=[8], pads=[4, 4])
    yield conv("phases-batch", (3, 128, 9, 10), (128, 64, 4, 4), 64, "ConvTranspose", strides=[2, 2], pads=[1] * 4,
               shapes={"x": ["n", 128, 9, 10]}, dims={"n": "1..3"})
    yield conv("taps", (1, 64, 16, 18), (64, 64, 3, 3), 64, pads=[12] * 4, dilations=[12] * 2)
    yield conv("blocks", (1, 32, 20, 24), (24, 32, 3, 3), 24, pads=[1] * 4)
    # Lines of samples, as for spectra: blocks of a part of the stride, outputs up to a multiple of 16.
    yield conv("spectrum", (1, 1, 8000), (402, 1, 400), 402, strides=[160])
    yield conv("spectrum-rest", (1, 1, 8071), (514, 1, 512), 514, strides=[160])
    yield conv("spectrum-padding", (2, 1, 6000), (258, 1, 256), 258, strides=[128], pads=[70, 128])
    yield conv("spectrum-odd", (1, 1, 22050), (160, 1, 475), 160, strides=[441], pads=[17, 458])
    yield conv("spectrum-batch", (3, 1, 6000), (322, 1, 320), 322, strides=[160], shapes={"x": ["n", 1, 6000]}, dims={"n": "1..3"})


def ceil_pool_cases():
    """Pools whose last window may hang over, of images of varying size, and what follows them in the same delegate."""
    draw = np.random.default_rng(14)
    sizes = ((2, 3, 9, 8), (1, 3, 4, 5), (1, 3, 7, 10), (2, 3, 5, 4))
    for kernel, stride, pad, dilation in ((3, 2, 0, 1), (3, 2, 1, 1), (2, 2, 0, 1), (3, 3, 0, 1), (4, 3, 1, 1), (2, 2, 0, 2)):
        nodes = [node("MaxPool", ["x"], "p", kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, dilations=[dilation] * 2, ceil_mode=1),
                 node("Conv", ["p", "w"], "c"), node("MaxPool", ["c"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)]
        yield graph(f"MaxPool-ceil-varying-{kernel}-{stride}-{pad}-{dilation}", nodes,
                    [{"x": draw.standard_normal(s).astype(np.float32)} for s in sizes],
                    {"w": draw.standard_normal((4, 3, 1, 1)).astype(np.float32)}, dims={"n": "1..2", "h": "4..9", "w": "4..10"},
                    shapes={"x": ["n", 3, "h", "w"]})


def box_cases():
    """Averages over boxes: pools of faces, then of the depth."""
    draw = np.random.default_rng(16)
    for kernel, stride, pads, count in (((2, 2, 2), 2, 0, 0), ((3, 3, 3), 1, 1, 1), ((3, 3, 3), 1, 1, 0), ((2, 1, 3), 1, 0, 0), ((4, 2, 2), 2, 1, 1)):
        yield single(f"boxes-{'x'.join(map(str, kernel))}-{stride}-{pads}-{count}", "AveragePool", ["x"],
                     {"x": draw.standard_normal((2, 3, 6, 5, 7)).astype(np.float32)}, kernel_shape=list(kernel), strides=[stride] * 3, pads=[pads] * 6,
                     count_include_pad=count)


def pick_cases():
    """Convolutions of many channels on images of varying size: products with windows that depthwise convolutions pick."""
    draw = np.random.default_rng(15)

    def conv(name, sizes, w, shape, dims, **attributes):
        arrays = {k: draw.standard_normal(v).astype(np.float32) for k, v in (("w", w), ("b", w[:1]))}
        return single(f"gathered-picks-{name}", "Conv", ["x", "w", "b"], [{"x": draw.standard_normal(s).astype(np.float32)} for s in sizes], arrays,
                      shapes={"x": shape}, dims=dims, **attributes)

    images = ((1, 128, 12, 13), (1, 128, 5, 4), (1, 128, 7, 13))
    yield conv("image", images, (256, 128, 3, 3), [1, 128, "h", "w"], {"h": "5..12", "w": "4..13"}, pads=[1] * 4)
    yield conv("stride", images, (512, 128, 3, 3), [1, 128, "h", "w"], {"h": "5..12", "w": "4..13"}, pads=[0, 1, 0, 1], strides=[1, 2])
    yield conv("columns", ((2, 128, 9, 13), (1, 128, 9, 4)), (272, 128, 2, 3), ["n", 128, 9, "w"], {"n": "1..2", "w": "4..13"}, dilations=[1, 2], pads=[0, 2, 0, 2])
    lines = ((2, 256, 90), (1, 256, 11), (2, 256, 40))
    yield conv("line", lines, (256, 256, 3), ["n", 256, "t"], {"n": "1..2", "t": "11..90"}, pads=[1, 1])
    yield conv("line-dilated", lines, (256, 256, 5), ["n", 256, "t"], {"n": "1..2", "t": "11..90"}, dilations=[2])
    yield conv("line-one", ((1, 256, 90), (1, 256, 12)), (400, 256, 7), [1, 256, "t"], {"t": "11..90"}, pads=[3, 3], strides=[2])


def dynamic_phase_cases():
    """Transposed convolutions over dynamic sizes: phases as channels that are interleaved, groups that are joined, and one dynamic size."""
    own = np.random.default_rng(20261129)

    def conv(name, x, w, sizes, groups=1, half=False, **attributes):
        kind = np.float16 if half else np.float32

        def draw(*shape):
            return own.standard_normal(shape).astype(kind)

        dims = {d: f"1..{max(known[d] for known in sizes)}" for d in x if isinstance(d, str)}
        feeds = [{"x": draw(*(known.get(d, d) for d in x))} for known in sizes]
        return single(f"dynamic-phases-{name}", "ConvTranspose", ["x", "w", "b"], feeds, {"w": draw(*w), "b": draw(w[1] * groups)}, group=groups,
                      shapes={"x": x}, dims=dims, **attributes, **({**HALF, "out_type": half} if half else {}))

    images = [{"h": 30, "w": 32, "n": 2}, {"h": 1, "w": 5, "n": 1}, {"h": 7, "w": 2, "n": 3}]
    # Kernels that are and are no multiples of the stride, padding below and above it, elements that no input reaches.
    for outputs, kernel, stride, pad, extra in ((1, 4, 2, 1, 0), (3, 3, 2, 1, 1), (2, 9, 3, 4, 2), (1, 9, 4, 4, 3), (1, 2, 2, 0, 1), (1, 5, 4, 0, 3),
                                                (2, 6, 2, 0, 0), (1, 8, 4, 1, 0)):
        yield conv(f"{outputs}-{kernel}-{stride}-{pad}-{extra}", [1, 32, "h", "w"], (32, outputs, kernel, kernel), images, strides=[stride] * 2,
                   pads=[pad] * 4, output_padding=[extra] * 2)
    yield conv("unequal", ["n", 40, "h", "w"], (40, 2, 4, 6), images, strides=[2, 3], pads=[1, 2, 1, 2], output_padding=[0, 1])
    yield conv("one-stride", ["n", 40, "h", 9], (40, 2, 3, 4), images, strides=[1, 2], pads=[1, 1, 1, 1])
    yield conv("half", [1, 32, "h", "w"], (32, 1, 4, 4), images, half=np.float16, strides=[2, 2], pads=[1] * 4)
    for groups, depth, kernel, extra in ((32, 1, 4, {}), (32, 1, 3, {"output_padding": [1, 1]}), (16, 2, 4, {}), (20, 1, 4, {}), (16, 1, 3, {"dilations": [2, 2]}),
                                         (32, 1, 4, {"half": np.float16})):
        yield conv(f"groups-{groups}-{depth}-{kernel}-{len(extra)}{''.join(extra)}", [1, groups * depth, "h", "w"], (groups * depth, depth, kernel, kernel), images, groups,
                   strides=[2, 2], pads=[1] * 4, **extra)
    lines = [{"n": 2, "t": 120}, {"n": 1, "t": 1}, {"n": 3, "t": 7}]
    for outputs, kernel, stride, pad in ((1, 20, 10, 5), (1, 20, 10, 0), (2, 7, 3, 2)):
        for batch in ("n", 2):
            yield conv(f"line-{outputs}-{kernel}-{pad}-{batch}", [batch, 32, "t"], (32, outputs, kernel), lines, strides=[stride], pads=[pad] * 2)
    for batch in ("n", 2):
        yield conv(f"line-groups-{batch}", [batch, 32, "t"], (32, 1, 12), lines, 32, strides=[2], pads=[5, 5])
    # One dynamic size: as fixed ones are, unless the result would have to be cut.
    for kernel, pad, groups, depth in ((4, 1, 1, 3), (4, 0, 1, 24), (3, 1, 1, 3), (4, 1, 16, 1)):
        for dims in ([1, 16, "h", 6], [2, 16, 6, "w"]):
            yield conv(f"one-{kernel}-{pad}-{groups}-{dims[0]}", dims, (16, depth, kernel, kernel), images, groups, strides=[2, 2], pads=[pad] * 4)


def large_pool_cases():
    """Maxima over large windows, which are those of columns and then of rows: unequal, dilated, of images of varying size, between codes."""
    draw = np.random.default_rng(20261130)

    def image(*shape):
        return {"x": draw.standard_normal(shape).astype(np.float32)}

    yield single("large-pool", "MaxPool", ["x"], image(2, 3, 9, 8), kernel_shape=[5, 5], pads=[2] * 4)
    yield single("large-pool-unequal", "MaxPool", ["x"], image(1, 2, 14, 17), kernel_shape=[7, 5], strides=[1, 2], pads=[3, 0, 3, 0], dilations=[1, 2])
    yield single("large-pool-hangs-over", "MaxPool", ["x"], image(1, 2, 16, 15), kernel_shape=[8, 8], strides=[3, 3], ceil_mode=1)
    yield single("large-pool-varying", "MaxPool", ["x"], [image(2, 3, 9, 8), image(1, 3, 5, 12), image(1, 3, 12, 5)], kernel_shape=[9, 9], pads=[4] * 4,
                 shapes={"x": ["n", 3, "h", "w"]}, dims={"n": "1..2", "h": "5..12", "w": "5..12"})
    chain = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
             node("MaxPool", ["d"], "p", kernel_shape=[5, 5], pads=[2] * 4), node("QuantizeLinear", ["p", "s", "z"], "r"),
             node("DequantizeLinear", ["r", "s", "z"])]
    yield graph("large-pool-codes", chain, image(1, 4, 8, 8), {"s": np.float32(0.03), "z": np.int8(3)})


def varying_extreme_cases():
    """Extremes over known sizes of a value of three sizes that vary, which no reshape makes an image of: also stored in another order, and
    where a view has joined the dims."""
    own = np.random.default_rng(20261202)
    image = {"shapes": {"x": ["n", 5, "h", "w"]}, "dims": {"n": "1..3", "h": "2..6", "w": "2..6"}, "opset": 18}
    feeds = [{"x": own.standard_normal((n, 5, h, w)).astype(np.float32)} for n, h, w in ((2, 3, 4), (1, 2, 5), (3, 6, 2))]
    feeds[0]["x"][0, 4, 1, 2] = np.inf
    kernel = (own.standard_normal((6, 5, 3, 3)) / 5).astype(np.float32)
    for op in ("ReduceMax", "ReduceMin"):
        for keep in (0, 1):
            yield single(f"{op}-channels-{keep}", op, ["x", "a"], feeds, {"a": ints(1)}, keepdims=keep, kernels=0, **image)
            yield graph(f"{op}-channels-conv-{keep}", [node("Conv", ["x", "w"], "c", pads=[1, 1, 1, 1]), node(op, ["c", "a"], "m", keepdims=keep),
                                                       node("Neg", ["m"])], feeds, {"w": kernel, "a": ints(1)}, **image)
        yield graph(f"{op}-permuted", [node("Transpose", ["x"], "t", perm=[0, 2, 3, 1]), node(op, ["t", "a"], "m", keepdims=1), node("Sub", ["t", "m"])],
                    feeds, {"a": ints(3)}, **image)
        five = [{"x": own.standard_normal((n, 3, h, w, 4)).astype(np.float32)} for n, h, w in ((2, 3, 4), (1, 2, 5), (3, 6, 2))]
        yield single(f"{op}-two-dims", op, ["x", "a"], five, {"a": ints(1, 4)}, keepdims=0, opset=18, kernels=0, shapes={"x": ["n", 3, "h", "w", 4]},
                     dims=image["dims"])
        joined = [{"x": f["x"][..., :2].transpose(0, 1, 4, 2, 3).copy()} for f in five]
        yield graph(f"{op}-joined", [node("Neg", ["x"], "m"), node("Transpose", ["m"], "t", perm=[0, 3, 4, 1, 2]), node("Reshape", ["t", "s"], "v"),
                                     node(op, ["v", "a"], keepdims=1)], joined, {"s": ints(0, 0, 0, 6), "a": ints(3)},
                    shapes={"x": ["n", 3, 2, "h", "w"]}, dims=image["dims"], opset=18)


def varying_mean_cases():
    """Means over three axes and more of a value that keeps several dynamic dims: of volumes and of groups, with all axes but the batch, and
    of channels that a view has joined of three dims. Sums of as many as are known."""
    own = np.random.default_rng(20261203)
    sizes = ((2, 3, 4), (1, 2, 5), (3, 6, 2))
    volumes = [{"x": own.standard_normal((n, 4, 3, h, w)).astype(np.float32)} for n, h, w in sizes]
    volume = {"shapes": {"x": ["n", 4, 3, "h", "w"]}, "dims": {"n": "1..3", "h": "2..6", "w": "2..6"}, "opset": 18, "kernels": 0}
    for axes in ((2, 3, 4), (1, 3, 4), (1, 2, 3), (1, 2, 3, 4)):
        for keep in (0, 1):
            yield single(f"ReduceMean-axes-{''.join(map(str, axes))}-{keep}", "ReduceMean", ["x", "a"], volumes, {"a": ints(*axes)}, keepdims=keep, **volume)
    parts = [{"x": own.standard_normal((n, h, w, 2, 3, 2)).astype(np.float32)} for n, h, w in sizes]
    for op in ("ReduceMean", "ReduceSum"):
        yield graph(f"{op}-parts", [node("Reshape", ["x", "s"], "v"), node(op, ["v", "a"], "m", keepdims=1), node("Sub", ["v", "m"])], parts,
                    {"s": ints(0, 0, 0, 12), "a": ints(3)}, **{**volume, "shapes": {"x": ["n", "h", "w", 2, 3, 2]}})
        yield single(f"{op}-known-axes", op, ["x", "a"], parts, {"a": ints(3, 4, 5)}, keepdims=1,
                     **{**volume, "shapes": {"x": ["n", "h", "w", 2, 3, 2]}})
