"""What a model of the zoo is (Spec), how its inputs are drawn and how its weights are made informative.

Freshly initialised networks are poor test subjects: batch norms that do nothing, attention that is uniform,
layer scales of 1e-6, logits that hardly move with the input. randomize() gives every weight a variance that
keeps activations near 1, and calibrates batch norms on random inputs, so that a wrong kernel, a wrong order of
operands or a lost branch shows up in the outputs.
"""
import dataclasses
import math
import typing

import numpy as np
import torch
from torch import nn


@dataclasses.dataclass
class Spec:
    """One model: how to build it, what to feed it, how to export it.

    cases is a list of input lists; an input is a function of a numpy Generator (see floats, ids, ints).
    The model is exported with case 0; the others hold further shapes of the dynamic dims.
    dynamic maps an input's name to {axis: name of the dimension}.
    second is the other opset at which the model is exported too; 0 lets make.py choose.
    options go to torch.onnx.export. min_std is the least standard deviation an output may have.
    """
    name: str
    build: typing.Callable
    cases: list
    inputs: list = dataclasses.field(default_factory=lambda: ["input"])
    outputs: list = dataclasses.field(default_factory=lambda: ["output"])
    dynamic: dict = dataclasses.field(default_factory=dict)
    dynamo: bool = False
    opset: int = 17
    second: int = 0
    source: str = "own definition"
    half: bool = False
    options: dict = dataclasses.field(default_factory=dict)
    needs: str = ""
    keep_weights: bool = False
    tolerance: float = 2e-3


def floats(*shape, scale=1.0):
    return lambda rng: (scale * rng.standard_normal(shape)).astype(np.float32)


def unit(*shape):
    """Uniform in [0, 1): images, probabilities, times."""
    return lambda rng: rng.random(shape, dtype=np.float32)


def ids(high, *shape, low=0):
    return lambda rng: rng.integers(low, high, shape, dtype=np.int64)


def constant(values, dtype=None):
    return lambda rng: np.asarray(values, dtype=dtype)


def mask(batch, length, lengths):
    """int64 [batch, length]: ones, then zeros from lengths[i] on."""
    values = np.zeros((batch, length), np.int64)
    for row, n in enumerate(lengths):
        values[row, :n] = 1
    return lambda rng: values


def draw(case, seed):
    rng = np.random.default_rng(seed)
    return [make(rng) for make in case]


def tensors(arrays, half=False):
    result = [torch.from_numpy(np.array(a)) for a in arrays]
    return [t.half() if half and t.dtype == torch.float32 else t for t in result]


def _fan_in(module):
    weight = module.weight
    if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        return weight.shape[0] // module.groups * math.prod(
            max(1, k // s) for k, s in zip(module.kernel_size, module.stride))
    if type(module).__name__ == "Conv1D":  # transformers: a linear layer stored transposed
        return weight.shape[0]
    return weight[0].numel()


_WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d,
             nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def randomize(model, cases, seed, gain=1.2):
    """Seeded weights in place, then batch norm statistics from 8 draws of the first case's inputs."""
    generator = torch.Generator().manual_seed(seed)

    def normal(p, mean, std):
        p.copy_(mean + std * torch.randn(p.shape, generator=generator))

    done = set()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, _WEIGHTED) or type(module).__name__ == "Conv1D":
                normal(module.weight, 0.0, gain / math.sqrt(_fan_in(module)))
                done.add(id(module.weight))
            elif isinstance(module, nn.Embedding):
                normal(module.weight, 0.0, 0.7)
                done.add(id(module.weight))
        for p in model.parameters():
            # What is still a constant or nearly so (norm weights, biases, class tokens, layer scales).
            if id(p) not in done and p.numel() > 1 and p.std() < 0.05:
                mean = float(p.mean()) if abs(float(p.mean())) > 0.05 else 0.0
                normal(p, mean, 0.2)
    calibrate_batch_norms(model, cases[0], seed)


def calibrate_batch_norms(model, case, seed):
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    with torch.no_grad():
        for i in range(8):
            model(*tensors(draw(case, seed + 1000 + i)))
    for norm in norms:
        norm.eval()
