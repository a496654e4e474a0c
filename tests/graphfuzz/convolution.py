"""Windows: convolutions, pools, and resampling of images."""

import numpy as np

from builder import FLOATING, op
from graph import Reject

F32 = np.dtype(np.float32)


def image(b, name, spatial=None, channels=None, least=1, low=-20, high=20):
    spatial = spatial or b.choice([1, 2, 2, 2, 3])
    return b.operand(b.types(name), 2 + spatial, 2 + spatial, low=low, high=high, least=1,
                     where=lambda v: (channels is None or v.shape[1] in channels) and min(v.shape[2:]) >= least and b.fixed(v.shape[1]))


def window(b, shape, name, dilation=True, ceil=False):
    """Attributes of a window that fits into an image of these spatial sizes."""
    sizes = [d if b.fixed(d) else 2 for d in shape]
    kernel = [b.whole(1, min(3, d)) for d in sizes]
    attributes = {"strides": b.choice([None, [b.whole(1, 3) for _ in sizes]])}
    if dilation and b.chance(0.3):
        attributes["dilations"] = [b.whole(1, 2) if (k - 1) * 2 + 1 <= d else 1 for k, d in zip(kernel, sizes)]
    kind = b.rng.random()
    if kind < 0.4:
        attributes["pads"] = [b.whole(0, min(1, k - 1)) if name != "Conv" else b.whole(0, 2) for k in kernel * 2]
    elif kind < 0.6 and (name == "Conv" or "dilations" not in attributes):  # pools of the reference forget the dilation then
        # With a stride beyond the kernel the pads would be negative, and the reference crops.
        reached = all(k >= s for k, s in zip(kernel, attributes["strides"] or kernel))
        attributes["auto_pad"] = b.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]) if reached else "VALID"
    if ceil and b.chance(0.3):
        attributes["ceil_mode"] = 1
    return kernel, attributes


@op("Conv", 7, weight=3)
def conv(b):
    x = image(b, "Conv", least=2)
    dtype, (_, channels, *spatial) = b.x(x).dtype, b.x(x).shape
    kernel, attributes = window(b, spatial, "Conv")
    group = b.choice([g for g in (1, 1, 2, 3, channels) if channels % g == 0])
    filters = group * b.whole(1, 3)
    w = b.fresh(dtype, (filters, channels // group, *kernel), -1, 1, constant=b.chance(0.7))
    bias = b.fresh(dtype, (filters,), -1, 1) if b.chance(0.6) else ""
    b.node("Conv", [x, w, bias], group=group if group != 1 or b.chance(0.3) else None,
           kernel_shape=kernel if b.chance(0.6) else None, **attributes)


@op("ConvTranspose", 7, weight=1.5)
def conv_transpose(b):
    x = image(b, "ConvTranspose")
    dtype, (_, channels, *spatial) = b.x(x).dtype, b.x(x).shape
    kernel = [b.whole(1, 3) for _ in spatial]
    group = b.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    filters = b.whole(1, 3)
    strides = [b.whole(1, 3) for _ in spatial]
    attributes = {"strides": strides, "dilations": [b.whole(1, 2) for _ in spatial] if b.chance(0.3) else None}
    kind = b.rng.random()
    if kind < 0.4:
        attributes["pads"] = [b.whole(0, min(1, k - 1)) for k in kernel * 2]
    elif kind < 0.5:
        # With a stride beyond the kernel the reference does not reach the size that the standard says.
        reached = all(k >= s for k, s in zip(kernel, strides))
        attributes["auto_pad"] = b.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]) if reached else "VALID"
    elif kind < 0.6 and all(b.fixed(d) for d in spatial):
        attributes["output_shape"] = [(d - 1) * s + k for d, s, k in zip(spatial, strides, kernel)]
        attributes["dilations"] = None
    if b.chance(0.3) and "output_shape" not in attributes:
        attributes["output_padding"] = [b.whole(0, s - 1) for s in strides]
    w = b.fresh(dtype, (channels, filters, *kernel), -1, 1, constant=b.chance(0.7))
    bias = b.fresh(dtype, (filters * group,), -1, 1) if b.chance(0.5) else ""
    b.node("ConvTranspose", [x, w, bias], group=group, kernel_shape=kernel if b.chance(0.6) else None, **attributes)


@op("MaxPool", 7, weight=2)
def max_pool(b):
    x = image(b, "MaxPool", least=2)
    kernel, attributes = window(b, b.x(x).shape[2:], "MaxPool", b.opset >= 10, b.opset >= 10)
    indices = b.opset >= 8 and b.chance(0.25)
    order = b.choice([None, 0, 1]) if b.opset >= 8 and indices else None
    b.node("MaxPool", [x], 2, exact=True, keep=[True, indices], kernel_shape=kernel, storage_order=order, **attributes)


@op("AveragePool", 7, weight=2)
def average_pool(b):
    x = image(b, "AveragePool", least=2)
    kernel, attributes = window(b, b.x(x).shape[2:], "AveragePool", b.opset >= 19, b.opset >= 10)
    b.node("AveragePool", [x], kernel_shape=kernel, count_include_pad=b.choice([None, 0, 1]), **attributes)


@op("LpPool", 7)
def lp_pool(b):
    x = image(b, "LpPool", least=2)
    kernel, attributes = window(b, b.x(x).shape[2:], "LpPool", b.opset >= 18, b.opset >= 18)
    b.node("LpPool", [x], kernel_shape=kernel, p=b.choice([None, 1, 2, 3]), **attributes)


def register_global(name, exact, **ranges):
    @op(name, 7)
    def pool(b):
        x = b.operand(b.types(name), 3, 5, low=-20, high=20, least=1)
        b.node(name, [x], exact=exact, **{k: b.choice([None, *v]) for k, v in ranges.items()})


register_global("GlobalAveragePool", False)
register_global("GlobalMaxPool", True)
register_global("GlobalLpPool", False, p=[1, 2, 3])


@op("MaxUnpool", 9, weight=0.5)
def max_unpool(b):
    x = b.operand(F32, 4, 4, least=1, where=lambda v: all(d % 2 == 0 and b.fixed(d) for d in v.shape[2:]))
    y, i = b.node("MaxPool", [x], 2, exact=True, kernel_shape=[2, 2], strides=[2, 2])
    b.node("MaxUnpool", [y, i], exact=True, kernel_shape=[2, 2], strides=[2, 2])


def scales(b, shape):
    """Only the spatial axes change."""
    return np.array([1.0, 1.0, *(b.choice([0.5, 1.0, 1.5, 2.0, 3.0, 0.75]) for _ in shape[2:])], np.float32)


@op("Resize", 10, weight=2)
def resize(b):
    x = b.operand(b.types("Resize") & FLOATING, 3, 5, low=-20, high=20, least=1)
    shape = b.x(x).shape
    mode = b.choice(["nearest", "linear", "cubic" if b.opset >= 11 and len(shape) == 4 else "linear"])
    if b.opset == 10:
        return b.node("Resize", [x, b.constant(scales(b, shape))], mode=mode)
    # Of a crop of volumes ONNX Runtime takes the wrong corners (onnx's own evaluator does not).
    coordinate = b.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize" if mode != "nearest" and len(shape) == 4
                           else "half_pixel", "half_pixel_symmetric" if b.opset >= 19 else "half_pixel"])
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinate if b.chance(0.8) else None}
    region = ""
    if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
        region = b.constant(np.array([0] * 2 + [0.1] * (len(shape) - 2) + [1] * 2 + [0.8] * (len(shape) - 2), np.float32))
        attributes["extrapolation_value"] = 0.5
    if mode == "nearest":
        attributes["nearest_mode"] = b.choice([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes.update(cubic_coeff_a=b.choice([None, -0.5]), exclude_outside=b.choice([None, 1]))
    if b.opset >= 18 and b.chance(0.2):
        attributes["antialias"] = 1 if mode != "nearest" else 0
    if b.chance(0.6) or not all(b.fixed(d) for d in shape):
        factor = scales(b, shape)
        if coordinate == "align_corners" and np.any(factor * shape != np.floor(factor * shape)):
            raise Reject("ONNX Runtime rounds the size before it computes coordinates")
        return b.node("Resize", [x, region, b.constant(factor)], **attributes)
    sizes = [*shape[:2], *(b.whole(1, 2 * d) for d in shape[2:])]
    if b.opset >= 18 and b.chance(0.5):
        attributes.update(axes=list(range(2, len(shape))), keep_aspect_ratio_policy=b.choice([None, "not_larger", "not_smaller"]))
        sizes = sizes[2:]
        region = "" if not region else b.constant(np.array([0.1] * len(sizes) + [0.8] * len(sizes), np.float32))
    return b.node("Resize", [x, region, "", b.ints(sizes)], **attributes)


@op("Upsample", 7, 9)
def upsample(b):
    x = b.operand({F32}, 4, 4, low=-20, high=20, least=1)
    factor = np.array([1, 1, b.choice([1, 2, 3]), b.choice([1, 2, 1.5])], np.float32)
    mode = b.choice([None, "nearest", "linear"])
    if b.opset >= 9:
        b.node("Upsample", [x, b.constant(factor)], mode=mode)
    else:
        b.node("Upsample", [x], mode=mode, scales=factor.tolist())


@op("GridSample", 16)
def grid_sample(b):
    x = b.operand(b.types("GridSample") & {F32}, 4, 4, low=-20, high=20, least=1)
    grid = b.fresh(F32, (b.x(x).shape[0], b.whole(1, 4), b.whole(1, 4), 2), -1.2, 1.2)
    modes = ["linear", "nearest", "cubic"] if b.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    b.node("GridSample", [x, grid], mode=b.choice([None, *modes]), padding_mode=b.choice([None, "zeros", "border", "reflection"]),
           align_corners=b.choice([None, 0, 1]))


@op("AffineGrid", 20, weight=0.7)
def affine_grid(b):
    n, spatial = b.whole(1, 3), b.choice([2, 3])
    theta = b.fresh(F32, (n, spatial, spatial + 1), -1, 1, constant=False)
    size = [n, 2, *(b.whole(2, 4) for _ in range(spatial))]
    b.node("AffineGrid", [theta, b.ints(size)], align_corners=b.choice([None, 0, 1]))


@op("RoiAlign", 10, weight=0.7)
def roi_align(b):
    x = b.operand(F32, 4, 4, low=-20, high=20, least=1, where=lambda v: min(v.shape[2:]) > 2 and b.fixed(v.shape[0]))
    n, count = b.x(x).shape[0], b.whole(1, 3)
    corner = b.np_rng.uniform(0, 3, (count, 2))
    boxes = np.concatenate([corner, corner + b.np_rng.uniform(1, 5, (count, 2))], axis=1).astype(np.float32)
    attributes = {"coordinate_transformation_mode": b.choice([None, "half_pixel", "output_half_pixel"])} if b.opset >= 16 else {}
    b.node("RoiAlign", [x, b.add_input(boxes) if b.chance(0.5) else b.constant(boxes), b.fresh(np.dtype(np.int64), (count,), 0, n - 1)],
           output_height=b.whole(1, 3), output_width=b.whole(1, 3), sampling_ratio=b.whole(1, 2), spatial_scale=b.choice([None, 0.5]),
           mode=b.choice([None, "avg", "max"]), **attributes)


@op("DeformConv", 19, weight=0.7)
def deform_conv(b):
    x = b.operand(F32, 4, 4, low=-20, high=20, least=1, where=lambda v: min(v.shape[2:]) >= 3 and all(b.fixed(d) for d in v.shape))
    n, c, h, w = b.x(x).shape
    kernel = [b.whole(1, 2), b.whole(1, 3)]
    filters = b.whole(1, 2)
    out = [h - kernel[0] + 1, w - kernel[1] + 1]
    offset = b.fresh(F32, (n, 2 * kernel[0] * kernel[1], *out), -1.4, 1.4)
    mask = b.fresh(F32, (n, kernel[0] * kernel[1], *out), 0, 1) if b.chance(0.5) else ""
    bias = b.fresh(F32, (filters,), -1, 1) if b.chance(0.5) else ""
    b.node("DeformConv", [x, b.fresh(F32, (filters, c, *kernel), -1, 1), offset, bias, mask], kernel_shape=kernel, pads=[0] * 4)
