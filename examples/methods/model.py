"""encode.onnx and decode.onnx: two models with the same large matrix."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

matrix = numpy_helper.from_array(np.random.default_rng(2).standard_normal((256, 256)).astype(np.float32), "W")


def model(path, ops):
    nodes, last = [helper.make_node("MatMul", ["x", "W"], ["m"], name="product")], "m"
    for i, op in enumerate(ops):
        nodes.append(helper.make_node(op, [last], [f"v{i}"], name=op.lower()))
        last = f"v{i}"
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    graph = helper.make_graph(nodes, path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 256])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 256])], [matrix])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


model("encode.onnx", ["Relu"])
model("decode.onnx", ["Sigmoid", "Erf"])
np.save("x1.npy", np.ones((1, 256), np.float32))
np.save("x3.npy", np.ones((3, 256), np.float32))
