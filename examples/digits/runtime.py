#!/usr/bin/env python3
"""Runs a lowered digits network on the released ExecuTorch runtime and prints its accuracy.

  runtime.py digits.pte [--etc-logits out/logits.npy]

With --etc-logits the runtime's logits are compared with those that `etc run` wrote (rtol 1e-3, atol 1e-4);
the exit code is 1 when they disagree. Needs executorch 1.4.1, torch 2.13.0 and numpy. The images are fed in
portions of the batch that the program was lowered for.
"""
import argparse
import pathlib
import sys
import time

import numpy as np
import torch
from executorch.runtime import Runtime, Verification

HERE = pathlib.Path(__file__).resolve().parent


def run_batched(method, images, batch):
    """Feeds `images` in portions of `batch`; the last one is filled up with blank images."""
    rows = []
    for start in range(0, len(images), batch):
        part = images[start:start + batch]
        filled = np.zeros((batch, *images.shape[1:]), np.float32)
        filled[:len(part)] = part
        outputs = method.execute([torch.from_numpy(filled)])
        rows.append(outputs[0].numpy()[:len(part)].copy())
    return np.concatenate(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--etc-logits", metavar="FILE.npy")
    args = parser.parse_args()

    images, labels = np.load(HERE / "images.npy"), np.load(HERE / "labels.npy")
    program = Runtime.get().load_program(args.program, verification=Verification.InternalConsistency)
    method = program.load_method("forward")
    batch = method.metadata.input_tensor_meta(0).sizes()[0]
    start = time.perf_counter()
    logits = run_batched(method, images, batch)
    seconds = time.perf_counter() - start
    hits = int((logits.argmax(axis=1) == labels).sum())
    print(f"ExecuTorch runtime: accuracy {100 * hits / len(labels):.2f} % ({hits} of {len(labels)} images), "
          f"{1e3 * seconds:.1f} ms")
    if args.etc_logits:
        expected = np.load(args.etc_logits)
        agree = logits.shape == expected.shape and np.allclose(logits, expected, rtol=1e-3, atol=1e-4)
        worst = np.abs(logits - expected).max() if logits.shape == expected.shape else float("nan")
        print(f"agreement with etc run: {'yes' if agree else 'NO'}, largest difference {worst:.2g}")
        return 0 if agree else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
