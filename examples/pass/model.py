"""model.onnx: y = relu(x) + 1; x.npy; and sigmoid(x) + 1 in expected.npy."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

one = numpy_helper.from_array(np.ones((1,), np.float32), "one")
graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["r"], name="relu"), helper.make_node("Add", ["r", "one"], ["y"], name="add")], "model",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
    [one])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "model.onnx")
x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
np.save("x.npy", x)
np.save("expected.npy", 1 / (1 + np.exp(-x)) + 1)
