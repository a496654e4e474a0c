"""Models that fail, with names that a report must bear: hostile.py FOLDER."""
import os
import sys

import onnx
from onnx import TensorProto, helper

folder = os.fsencode(sys.argv[1])
evil = "a]]></failure>\"'&<\x01\x1b[31m|`*\nb"
value = helper.make_tensor_value_info
node = helper.make_node("Nothing" + evil, ["x"], ["y"], name=evil)
graph = helper.make_graph([node], "g", [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), os.path.join(folder, b"broken.onnx"))
for name in (b"\"quotes' & <tags> | bars.onnx", b"line\nbreak \x01 \x7f.onnx", b"no utf-8 \xff\xc3.onnx"):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(b"no model")
