"""softclip.onnx: y = SoftClip(x @ w); model.onnx: y = Blend(x, SoftClip(x @ w)), with two operators of com.example.

x.npy, and the results in softclip.npy and model.npy."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

random = np.random.default_rng(0)
w = random.standard_normal((4, 4)).astype(np.float32)
nodes = [helper.make_node("MatMul", ["x", "w"], ["product"], name="product"),
         helper.make_node("SoftClip", ["product"], ["clipped"], name="clip", domain="com.example", limit=0.5),
         helper.make_node("Blend", ["x", "clipped"], ["y"], name="blend", domain="com.example", amount=0.25)]
for name, count, output in (("softclip", 2, "clipped"), ("model", 3, "y")):
    graph = helper.make_graph(nodes[:count], name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", 4])], [numpy_helper.from_array(w, "w")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), f"{name}.onnx")
x = random.standard_normal((2, 4)).astype(np.float32)
clipped = 0.5 * np.tanh(x @ w / 0.5)
np.save("x.npy", x)
np.save("softclip.npy", clipped)
np.save("model.npy", 0.75 * x + 0.25 * clipped)
