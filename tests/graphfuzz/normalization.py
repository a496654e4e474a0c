"""Normalizations and losses."""

import numpy as np

from builder import I32, I64, op
from graph import Reject

F32 = np.dtype(np.float32)


def spread(b, x, axes):
    """Refuses rows that are nearly constant: kernels compute the variance as a difference, of which rounding leaves nothing then."""
    values = b.x(x).astype(np.float64)
    if values.size == 0 or np.any(values.var(axis=axes) < 0.02 * (values**2).mean(axis=axes) + 1e-3):
        raise Reject("hardly any variance")


@op("BatchNormalization", 7, weight=1.5)
def batch_normalization(b):
    x = b.operand(b.types("BatchNormalization"), 2, 5, low=-50, high=50, where=lambda v: b.fixed(v.shape[1]) and v.size > 0)
    dtype, channels = b.x(x).dtype, b.x(x).shape[1]
    scale, bias, mean = (b.fresh(dtype, (channels,), -2, 2, constant=b.chance(0.8)) for _ in range(3))
    var = b.fresh(dtype, (channels,), 0.2, 3, constant=b.chance(0.8))
    b.node("BatchNormalization", [x, scale, bias, mean, var], epsilon=b.choice([None, 1e-3]), momentum=b.choice([None, 0.5]))


@op("InstanceNormalization", 7)
def instance_normalization(b):
    x = b.operand(b.types("InstanceNormalization"), 3, 5, low=-50, high=50, where=lambda v: b.fixed(v.shape[1]) and np.prod(v.shape[2:]) > 2)
    dtype, channels = b.x(x).dtype, b.x(x).shape[1]
    spread(b, x, tuple(range(2, b.x(x).ndim)))
    b.node("InstanceNormalization", [x, b.fresh(dtype, (channels,), -2, 2), b.fresh(dtype, (channels,), -2, 2)], epsilon=b.choice([None, 1e-2]))


@op("GroupNormalization", 21)
def group_normalization(b):
    x = b.operand(b.types("GroupNormalization"), 3, 4, low=-50, high=50, where=lambda v: b.fixed(v.shape[1]) and v.size > 0)
    dtype, channels = b.x(x).dtype, b.x(x).shape[1]
    groups = b.choice([g for g in range(1, channels + 1) if channels % g == 0])
    spread(b, x, tuple(range(2, b.x(x).ndim)))
    b.node("GroupNormalization", [x, b.fresh(dtype, (channels,), -2, 2), b.fresh(dtype, (channels,), -2, 2)], num_groups=groups,
           epsilon=b.choice([None, 1e-2]))


@op("LayerNormalization", 17, weight=1.5)
def layer_normalization(b):
    x = b.operand(b.types("LayerNormalization"), 1, 4, low=-50, high=50, least=1, where=lambda v: v.shape[-1] > 1)
    dtype, shape = b.x(x).dtype, b.x(x).shape
    axis = b.axis(len(shape)) if all(b.fixed(d) for d in shape) else -1
    spread(b, x, tuple(range(axis % len(shape), len(shape))))
    rest = shape[axis:]
    bias = b.fresh(dtype, rest, -1, 1) if b.chance(0.6) else ""
    b.node("LayerNormalization", [x, b.fresh(dtype, rest, -2, 2), bias], 3, axis=axis if axis != -1 or b.chance(0.5) else None,
           epsilon=b.choice([None, 1e-3]), keep=[True, b.chance(0.2), b.chance(0.2)])


@op("RMSNormalization", 23)
def rms_normalization(b):
    x = b.operand(b.types("RMSNormalization"), 1, 4, low=-50, high=50, least=1)
    axis = b.axis(b.x(x).ndim) if all(b.fixed(d) for d in b.x(x).shape) else -1
    b.node("RMSNormalization", [x, b.fresh(b.x(x).dtype, b.x(x).shape[axis:], -2, 2)], axis=axis, epsilon=b.choice([None, 1e-3]))


@op("LRN", 7)
def lrn(b):
    x = b.operand(b.types("LRN"), 4, 4, low=-10, high=10, least=1)
    b.node("LRN", [x], size=b.choice([1, 3, 5]), alpha=b.choice([None, 0.1]), beta=b.choice([None, 0.5]), bias=b.choice([None, 2.0]))


@op("LpNormalization", 7)
def lp_normalization(b):
    x = b.operand(b.types("LpNormalization"), 1, 4, low=-50, high=50, least=1)
    b.node("LpNormalization", [x], axis=b.choice([None, b.axis(b.x(x).ndim)]), p=b.choice([None, 1, 2]))


@op("MeanVarianceNormalization", 9)
def mean_variance_normalization(b):
    x = b.operand(b.types("MeanVarianceNormalization"), 4, 4, low=-10, high=10, least=1, where=lambda v: v.size > 4)
    axes = b.choice([None, [0, 2, 3], [2, 3], [1]])
    spread(b, x, tuple(axes or [0, 2, 3]))
    b.node("MeanVarianceNormalization", [x], axes=axes)


def loss_operands(b, name):
    x = b.operand(b.types(name), 2, 4, low=-20, high=20, where=lambda v: v.size > 0 and b.fixed(v.shape[1]))
    shape = b.x(x).shape
    labels = b.fresh(b.choice([I64, I32]), (shape[0], *shape[2:]), 0, shape[1] - 1)
    weights = b.fresh(b.x(x).dtype, (shape[1],), 0.2, 2) if b.chance(0.5) else ""
    attributes = {"reduction": b.choice([None, "none", "mean", "sum"]), "ignore_index": b.choice([None, None, 0, -1])}
    return [x, labels, weights], attributes


@op("NegativeLogLikelihoodLoss", 12)
def nll_loss(b):
    inputs, attributes = loss_operands(b, "NegativeLogLikelihoodLoss")
    if attributes["ignore_index"] == 0:
        attributes["reduction"] = "sum"
    b.node("NegativeLogLikelihoodLoss", inputs, **attributes)


@op("SoftmaxCrossEntropyLoss", 12)
def softmax_cross_entropy(b):
    inputs, attributes = loss_operands(b, "SoftmaxCrossEntropyLoss")
    if attributes["ignore_index"] == 0:
        attributes["reduction"] = "sum"
    b.node("SoftmaxCrossEntropyLoss", inputs, 2, keep=[True, b.chance(0.4)], **attributes)
