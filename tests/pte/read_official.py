"""Reads programs of the official exporter back: `etc verify` finds nothing wrong with them, and `etc run`, on their own memory plan, gives
what PyTorch gives; the same of bundles that ExecuTorch's own API writes. Each program twice: on portable kernels, and with what the official partitioner hands to XNNPACK.

usage: read_official.py PTE_PROGRAMS ETC    (with a Python that has executorch; see with_runtime.sh)
Exit: 0 all right, 1 a difference.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import OrderedDict

import numpy as np

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner  # noqa: E402
from executorch.devtools import BundledProgram  # noqa: E402
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite  # noqa: E402
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer  # noqa: E402
from executorch.exir import to_edge, to_edge_transform_and_lower  # noqa: E402
from torch import nn  # noqa: E402


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(16), nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x):
        y = self.norm(x)
        return x + self.mix(y, y, y, need_weights=False)[0]


class Pieces(nn.Module):
    """Several inputs and outputs, slices, a list result, integers, a comparison."""

    def forward(self, x, i):
        a, b = torch.split(x, 3, dim=1)
        return a + b, x[:, 1:5:2], torch.index_select(x, 1, i), (x > 0).to(torch.int64), torch.cat([a, b, a], 0)


class Images(nn.Module):
    """Nodes of XNNPACK that the others have not: other convolutions, resizing, padding, activations."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.deep, self.slopes = nn.Conv2d(6, 12, 3, groups=6, dilation=2), nn.PReLU(12)

    def forward(self, x, m):
        y = self.slopes(self.deep(self.up(x)))
        y = nn.functional.interpolate(y, size=(9, 11), mode="bilinear", align_corners=True)
        y = nn.functional.elu(nn.functional.pad(y, (1, 2, 0, 1), value=0.5)) * torch.exp(-torch.abs(y.mean((2, 3), keepdim=True)))
        y = torch.maximum(nn.functional.leaky_relu(y, 0.2), torch.minimum(y, m))
        return torch.cat([y.permute(0, 2, 3, 1)[:, 1:4], torch.tanh(y).permute(0, 2, 3, 1)[:, 2:]], 1), torch.clamp(y, -0.5, 0.25)


class Branches(nn.Module):
    """torch.cond: what a branch gives is moved to the value of the result."""

    def forward(self, x):
        def above(x):
            return (x - 3).relu(), x + 1

        def below(x):
            return (x * 2).sin(), x - 1

        y, z = torch.cond(x.sum() > 0, above, below, (x,))
        return y * z, y.exp()


def cases():
    """(name, module, inputs, dynamic shapes, sets of inputs to run with)."""
    torch.manual_seed(0)
    image = torch.randn(2, 3, 16, 16)
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(768, 32), nn.GELU(), nn.Linear(32, 5), nn.Softmax(-1))
    yield "mlp", mlp, (image,), ({0: torch.export.Dim("batch", max=8)},), [(image,), (torch.randn(5, 3, 16, 16),)]
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=4), nn.Hardswish(),
              nn.AvgPool2d(2), nn.Flatten(), nn.Linear(72, 4))
    # In a module of its own: the official flow loses weights whose name begins with a digit.
    yield "cnn", nn.Sequential(OrderedDict(body=nn.Sequential(*layers))), (image,), None, [(image,)]
    for name, module, *inputs in (("attention", Attention(), torch.randn(2, 7, 16)),
                                  ("images", Images(), torch.randn(1, 4, 6, 5), torch.randn(12, 1, 1)),
                                  ("pieces", Pieces(), torch.randn(2, 6), torch.tensor([5, 0, 3]))):
        yield name, module, tuple(inputs), None, [tuple(inputs)]
    yield "branches", Branches(), (torch.ones(2, 4),), None, [(torch.ones(2, 4),), (-torch.ones(2, 4),)]


def run(etc, folder, pte, inputs):
    """The outputs of `etc run`, in order."""
    command = [etc, "run", pte, "--output", folder]
    for i, tensor in enumerate(inputs):
        path = os.path.join(folder, f"in_{i}.npy")
        np.save(path, tensor.numpy())
        command += ["--input", f"input_{i}={path}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        return None, result.stderr
    shown = json.loads(subprocess.run([etc, "inspect", "--json", pte], check=True, capture_output=True, text=True).stdout)
    count = len(shown["methods"][0]["outputs"])
    return [np.load(os.path.join(folder, f"output_{i}.npy")) for i in range(count)], ""


def check_bundle(etc, folder, program, inputs, expected):
    """A bundle of the program whose last test set has no expectation, and one whose second set is wrong."""
    path = os.path.join(folder, "program.bpte")
    wrong = [e + 1 for e in expected]

    def bundled(*outputs):
        sets = [MethodTestCase(inputs=list(inputs), expected_outputs=o) for o in outputs]
        with open(path, "wb") as f:
            f.write(serialize_from_bundled_program_to_flatbuffer(BundledProgram(program, [MethodTestSuite("forward", sets)])))
        verified = subprocess.run([etc, "verify", path], capture_output=True, text=True)
        if verified.returncode:
            return None, verified.stderr
        ran = subprocess.run([etc, "run", path, "--rtol", "1e-4", "--atol", "1e-5"], capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    code, text = bundled(list(expected), None)
    if code != 0 or "test set 0: ok" not in text or "test set 1: ran" not in text:
        return "etc run of a bundle: " + text
    code, text = bundled(list(expected), wrong)
    if code != 1 or "test set 0: ok" not in text or "test set 1: DIFFERS" not in text:
        return "etc run of a bundle with wrong outputs: " + text
    return ""


def compare(etc, folder, pte, module, inputs):
    """What PyTorch gives, and what is wrong with what `etc run` gives."""
    with torch.no_grad():
        expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    got, message = run(etc, folder, pte, inputs)
    if got is None:
        return expected, "etc run: " + message
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        if g.dtype != e.numpy().dtype or g.shape != e.numpy().shape or not np.allclose(g, e.numpy(), rtol=1e-4, atol=1e-5):
            return expected, f"output {i} differs"
    return expected, ""


def check(etc, folder, delegated, name, module, example, dynamic, sets):
    module = module.eval()
    pte = os.path.join(folder, name + ".pte")
    exported = torch.export.export(module, example, dynamic_shapes=dynamic)
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]) if delegated else to_edge(exported)
    manager = edge.to_executorch()
    program = manager.buffer
    if delegated != (b"XnnpackBackend" in program):
        return "the official flow did not delegate"
    with open(pte, "wb") as f:
        f.write(program)
    verified = subprocess.run([etc, "verify", pte], capture_output=True, text=True)
    if verified.returncode:
        return "etc verify: " + verified.stderr
    for inputs in sets:
        expected, wrong = compare(etc, folder, pte, module, inputs)
        if wrong:
            return wrong
    return check_bundle(etc, folder, manager, inputs, expected)


def main():
    etc, failures = sys.argv[2], 0
    for name, *case in cases():
        for delegated in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                message = check(etc, folder, delegated, name, *case)
            print(f"{'FAIL' if message else 'ok  '} {name}{' on XNNPACK' if delegated else ''} {message}")
            failures += bool(message)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
