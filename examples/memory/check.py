"""Runs programs on the ExecuTorch runtime and compares with the ONNX model: check.py MODEL.onnx PROGRAM.pte..."""
import sys

import numpy as np
import onnx
import torch
from executorch.runtime import Runtime
from onnx.reference import ReferenceEvaluator

x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
want = ReferenceEvaluator(onnx.load(sys.argv[1])).run(None, {"x": x})[0]
for path in sys.argv[2:]:
    method = Runtime.get().load_program(path).load_method("forward")
    for _ in range(2):
        got = method.execute([torch.from_numpy(x)])[0].numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    print(path, "runs on the runtime, as the model says")
