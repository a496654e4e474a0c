"""An encoder, encoder.onnx; a model that calls it twice as the operator com.acme.Encoder, siamese.onnx; the same with the encoder written
out, whole.onnx; inputs, and what the model gives for them."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)


def tensor(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def save(name, nodes, inputs, outputs, constants=(), functions=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8), name)


w1 = numpy_helper.from_array(rng.standard_normal((64, 256)).astype(np.float32) / 8, "w1")
w2 = numpy_helper.from_array(rng.standard_normal((256, 16)).astype(np.float32) / 16, "w2")
encoder = [helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("MatMul", ["b", "w2"], ["y"])]
save("encoder.onnx", encoder, [tensor("x", 4, 64)], [tensor("y", 4, 16)], [w1, w2])

siamese = [helper.make_node("Encoder", ["left"], ["l"], domain="com.acme", name="/left"),
           helper.make_node("Encoder", ["right"], ["r"], domain="com.acme", name="/right"),
           helper.make_node("Sub", ["l", "r"], ["d"]), helper.make_node("Abs", ["d"], ["distance"])]
inputs = [tensor("left", 4, 64), tensor("right", 4, 64)]
save("siamese.onnx", siamese, inputs, [tensor("distance", 4, 16)])

constants = [helper.make_node("Constant", [], [w.name], value=w) for w in (w1, w2)]
body = helper.make_function("com.acme", "Encoder", ["x"], ["y"], constants + encoder, [helper.make_opsetid("", 17)])
save("whole.onnx", siamese, inputs, [tensor("distance", 4, 16)], functions=[body])

left, right = (rng.standard_normal((4, 64)).astype(np.float32) for _ in range(2))
np.save("left.npy", left)
np.save("right.npy", right)
a, b = (numpy_helper.to_array(w) for w in (w1, w2))
np.save("distance.npy", np.abs(np.maximum(left @ a, 0) @ b - np.maximum(right @ a, 0) @ b))
