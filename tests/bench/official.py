#!/usr/bin/env python3
"""The way of the released Python packages, for comparison: torch.export, to_edge, to_executorch of mobilenet_v2.

  official.py OUT.pte

Prints the seconds spent in the three calls; the caller measures the process as a whole (imports included).
"""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "zoo"))


def main():
    import torch
    from executorch.exir import to_edge
    from vision import mobilenet_v2
    torch.manual_seed(0)
    model = mobilenet_v2().eval()
    start = time.perf_counter()
    program = to_edge(torch.export.export(model, (torch.zeros(1, 3, 224, 224),))).to_executorch()
    pathlib.Path(sys.argv[1]).write_bytes(program.buffer)
    print(f"{time.perf_counter() - start:.3f}")


if __name__ == "__main__":
    main()
