#!/usr/bin/env python3
"""Writes the generated models of the benchmarks: graphs of any number of nodes, and one with gigabytes of weights.

  generate.py nodes N OUT.onnx       a graph of N nodes in blocks of twelve, [8,16] float32 in and out
  generate.py weights GB FOLDER      FOLDER/model.onnx and FOLDER/weights.bin (external data)

Both are valid ONNX (opset 17, checked when --check is given) and give finite values.
"""
import argparse
import os
import pathlib
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, COLUMNS, SHARED = 8, 16, 32
IR_VERSION, OPSET = 8, 17


def _model(nodes, inputs, outputs, initializers):
    graph = helper.make_graph(nodes, "bench", inputs, outputs, initializers)
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])


def _tensor(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _block(k, x):
    """Twelve nodes from x to the returned name; every block depends on the one before, so nothing is common."""
    n = [f"b{k}_{i}" for i in range(12)]
    node = helper.make_node
    nodes = [
        node("MatMul", [x, f"w{k % SHARED}"], [n[0]]),
        node("Add", [n[0], f"bias{k % SHARED}"], [n[1]]),
        node("Relu", [n[1]], [n[2]]),
        node("Reshape", [n[2], "flat"], [n[3]]),
        node("Tanh", [n[3]], [n[4]]),
        node("Reshape", [n[4], "back"], [n[5]]),
        node("Transpose", [n[5]], [n[6]], perm=[1, 0]),
        node("MatMul", [x, n[6]], [n[7]]),
        node("Sigmoid", [n[7]], [n[8]]),
        node("Neg", [n[8]], [n[9]]),
        node("Concat", [n[8], n[9]], [n[10]], axis=1),
        node("Sub", [n[10], n[5]], [n[11]]),
    ]
    for i, made in enumerate(nodes):
        made.name = f"{made.op_type}_{k}_{i}"
    return nodes, n[11]


def node_graph(count):
    rng = np.random.default_rng(count)
    constants = [numpy_helper.from_array(np.array([ROWS // 2, COLUMNS * 2], np.int64), "flat"),
                 numpy_helper.from_array(np.array([ROWS, COLUMNS], np.int64), "back")]
    for i in range(SHARED):
        weight = rng.standard_normal((COLUMNS, COLUMNS)).astype(np.float32) / 4
        constants += [numpy_helper.from_array(weight, f"w{i}"),
                      numpy_helper.from_array(rng.standard_normal(COLUMNS).astype(np.float32), f"bias{i}")]
    nodes, x = [], "input"
    for k in range(count // 12):
        block, x = _block(k, x)
        nodes += block
    while len(nodes) < count:
        nodes.append(helper.make_node("Tanh", [x], [f"tail{len(nodes)}"], name=f"tail{len(nodes)}"))
        x = nodes[-1].output[0]
    return _model(nodes, [_tensor("input", [ROWS, COLUMNS])], [_tensor(x, [ROWS, COLUMNS])], constants)


def _write_weights(path, layers, width, std):
    """layers float32 matrices of width x width, all different, none of it a hole that cp could skip.

    One block of random values is written again and again, its rows moved on each time and its first value set to the
    number of the matrix: enough to make them differ, as floats and as codes, for a compiler that shares equal
    constants, and as fast as the disk.
    """
    block = np.random.default_rng(0).standard_normal((width, width), dtype=np.float32) * np.float32(std)
    with open(path, "wb") as file:
        for i in range(layers):
            rows = np.roll(block, i, axis=0)
            rows[0, 0] = std * i / layers
            file.write(rows.data)


def weight_model(gigabytes, folder, width=4096):
    """A chain of MatMul, Add and Tanh whose matrices of 64 MiB each lie in an external file."""
    layer_bytes = width * width * 4
    layers = max(1, round(gigabytes * 1e9 / layer_bytes))
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < 3.5 * layers * layer_bytes:  # the weights, cp's copy, the program and some air
        raise OSError(f"{folder}: {free / 1e9:.1f} GB free, {3.5 * layers * layer_bytes / 1e9:.1f} GB needed")
    _write_weights(folder / "weights.bin", layers, width, 1 / np.sqrt(width))
    constants, nodes, x = [], [], "input"
    for i in range(layers):
        weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[width, width],
                             data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", i * layer_bytes), ("length", layer_bytes)):
            weight.external_data.add(key=key, value=str(value))
        constants += [weight, numpy_helper.from_array(np.full(width, 0.01 * i, np.float32), f"bias{i}")]
        for op, inputs in (("MatMul", [x, f"w{i}"]), ("Add", [f"m{i}", f"bias{i}"]), ("Tanh", [f"a{i}"])):
            nodes.append(helper.make_node(op, inputs, [f"{op[0].lower()}{i}"], name=f"{op}_{i}"))
        x = f"t{i}"
    model = _model(nodes, [_tensor("input", [1, width])], [_tensor(x, [1, width])], constants)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["nodes", "weights"])
    parser.add_argument("size", type=float)
    parser.add_argument("out")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    path = args.out
    if args.kind == "nodes":
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        onnx.save(node_graph(int(args.size)), path)
    else:
        path = weight_model(args.size, args.out)
    if args.check:
        onnx.checker.check_model(str(path))


if __name__ == "__main__":
    main()
