"""mlp.onnx: y = relu(x W + b) V, for any batch."""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

rng = np.random.default_rng(1)
weights = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
           for name, shape in (("W", (8, 16)), ("b", (16,)), ("V", (16, 4)))]
nodes = [helper.make_node("MatMul", ["x", "W"], ["xw"], name="first"), helper.make_node("Add", ["xw", "b"], ["h"], name="bias"),
         helper.make_node("Relu", ["h"], ["r"], name="relu"), helper.make_node("MatMul", ["r", "V"], ["y"], name="second")]
graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])], weights)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
