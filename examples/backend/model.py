"""The models of ExecuTorch's tutorial on backends: f.onnx, f(a, x, b), and sin.onnx; inputs, and what the first gives."""
import numpy as np
from onnx import TensorProto, helper, save


def model(path, nodes, inputs, outputs, size):
    def infos(names):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, size) for n in names]
    graph = helper.make_graph(nodes, path, infos(inputs), infos(outputs))
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


node = helper.make_node
model("f.onnx", [node("MatMul", ["a", "x"], ["y1"], name="mm1"), node("Add", ["y1", "b"], ["z1"], name="add1"),
                 node("Sub", ["z1", "a"], ["a2"], name="sub"),
                 node("MatMul", ["a2", "x"], ["y2"], name="mm2"), node("Add", ["y2", "b"], ["z"], name="add2")],
      ["a", "x", "b"], ["z"], [2, 2])
model("sin.onnx", [node("Sin", ["x"], ["y"], name="sin")], ["x"], ["y"], [1])
rng = np.random.default_rng(3)
a, x, b = (rng.standard_normal((2, 2)).astype(np.float32) for _ in range(3))
for name, value in (("a", a), ("x", x), ("b", b), ("sin_x", np.ones(1, np.float32))):
    np.save(name + ".npy", value)
np.save("z.npy", (a @ x + b - a) @ x + b)
