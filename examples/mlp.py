"""A small network: mlp.py OUT.onnx."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)


def weight(name, *shape):
    return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5, name)


nodes = [
    helper.make_node("MatMul", ["x", "w1"], ["a"]),
    helper.make_node("Relu", ["a"], ["b"]),
    helper.make_node("MatMul", ["b", "w2"], ["c"]),
    helper.make_node("Tanh", ["c"], ["d"]),
    helper.make_node("MatMul", ["d", "w3"], ["e"]),
    helper.make_node("Add", ["e", "x"], ["y"]),
]
graph = helper.make_graph(
    nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 64])],
    [weight("w1", 64, 256), weight("w2", 256, 128), weight("w3", 128, 64)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
