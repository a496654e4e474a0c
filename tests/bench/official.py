#!/usr/bin/env python3
"""The way of the released Python packages, for comparison: torch.export, to_edge, to_executorch.

  official.py OUT.pte

Makes the program of mobilenet_v2 and prints the seconds spent in the three calls; the caller measures the process as
a whole (imports included).
"""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "zoo"))


def program_of(model, inputs):
    """Bytes of the program that the packages make of a torch module: no backend, the portable kernels."""
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge
    # Their check refuses ops outside core ATen for which there are kernels all the same.
    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(torch.export.export(model, inputs), compile_config=config).to_executorch().buffer


def xnnpack_program_of(model, inputs):
    """The same with the XNNPACK partitioner. Where the root is a Sequential, names of weights begin with a digit, which
    its folding of batch norms does not take: the root is wrapped."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = model

        def forward(self, *tensors):
            return self.net(*tensors)
    exported = torch.export.export(Root().eval(), inputs)
    return to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch().buffer


def int8_program_of(model, samples):
    """The same of what the official quantizer makes of the module (per channel, ranges of `samples`, each a tuple of
    inputs), and how often it calls kernels and delegates."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (XNNPACKQuantizer,
                                                                         get_symmetric_quantization_config)
    from executorch.exir import to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    with torch.no_grad():
        graph = prepare_pt2e(torch.export.export(model, samples[0]).module(), quantizer)
        for sample in samples:
            graph(*sample)
        exported = torch.export.export(convert_pt2e(graph), samples[0])
        return to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch().buffer


def main():
    import torch
    from vision import mobilenet_v2
    torch.manual_seed(0)
    model = mobilenet_v2().eval()
    start = time.perf_counter()
    pathlib.Path(sys.argv[1]).write_bytes(program_of(model, (torch.zeros(1, 3, 224, 224),)))
    print(f"{time.perf_counter() - start:.3f}")


if __name__ == "__main__":
    main()
