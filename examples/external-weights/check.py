"""Compares runtime and etc with the model: check.py MODEL.onnx PROGRAM.pte DATA.ptd, with x.npy and out/y.npy at hand."""
import sys

import numpy as np
import onnx
import torch
from executorch.extension.pybindings.portable_lib import _load_for_executorch
from onnx.reference import ReferenceEvaluator

x = np.load("x.npy")
want = ReferenceEvaluator(onnx.load(sys.argv[1])).run(None, {"x": x})[0]
np.testing.assert_allclose(np.load("out/y.npy"), want, rtol=1e-4, atol=1e-5)
module = _load_for_executorch(sys.argv[2], sys.argv[3])
got = module.run_method("forward", [torch.from_numpy(x)])[0].numpy()
np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
try:
    _load_for_executorch(sys.argv[2]).run_method("forward", [torch.from_numpy(x)])
except RuntimeError:
    print("runs on the runtime with its data, and not without")
else:
    sys.exit("the program ran without its weights")
