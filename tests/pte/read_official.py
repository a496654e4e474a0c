"""Reads programs of the official exporter back: `etc verify` finds nothing wrong with them, and `etc run`, on their own memory plan, gives
what PyTorch gives.

usage: read_official.py PTE_PROGRAMS ETC    (with a Python that has executorch; see with_runtime.sh)
Exit: 0 all right, 1 a difference.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from executorch.exir import to_edge  # noqa: E402
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


def cases():
    """(name, module, inputs, dynamic shapes, inputs to run with)."""
    torch.manual_seed(0)
    image = torch.randn(2, 3, 16, 16)
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(768, 32), nn.GELU(), nn.Linear(32, 5), nn.Softmax(-1))
    yield "mlp", mlp, (image,), None, None
    yield "mlp_batch", mlp, (image,), ({0: torch.export.Dim("batch", max=8)},), (torch.randn(5, 3, 16, 16),)
    yield ("cnn", nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=4),
                                nn.Hardswish(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(72, 4)), (image,), None, None)
    yield "attention", Attention(), (torch.randn(2, 7, 16),), None, None
    yield "pieces", Pieces(), (torch.randn(2, 6), torch.tensor([5, 0, 3])), None, None


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


def check(etc, folder, name, module, inputs, dynamic, run_with):
    module = module.eval()
    pte = os.path.join(folder, name + ".pte")
    with open(pte, "wb") as f:
        f.write(to_edge(torch.export.export(module, inputs, dynamic_shapes=dynamic)).to_executorch().buffer)
    verified = subprocess.run([etc, "verify", pte], capture_output=True, text=True)
    if verified.returncode:
        return "etc verify: " + verified.stderr
    inputs = run_with or inputs
    with torch.no_grad():
        expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    got, message = run(etc, folder, pte, inputs)
    if got is None:
        return "etc run: " + message
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        if g.dtype != e.numpy().dtype or g.shape != e.numpy().shape or not np.allclose(g, e.numpy(), rtol=1e-4, atol=1e-5):
            return f"output {i} differs"
    return ""


def main():
    etc, failures = sys.argv[2], 0
    for name, *case in cases():
        with tempfile.TemporaryDirectory() as folder:
            message = check(etc, folder, name, *case)
        print(f"{'FAIL' if message else 'ok  '} {name} {message}")
        failures += bool(message)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
