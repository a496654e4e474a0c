"""The runtime compares its outputs with the expected ones: check.py MODEL.onnx BUNDLE.bpte INPUTS.npz."""
import sys

import numpy as np
import onnx
from executorch.extension.pybindings.portable_lib import _load_bundled_program_from_buffer
from onnx.reference import ReferenceEvaluator

data = open(sys.argv[2], "rb").read()
samples = np.load(sys.argv[3])["x"]
model = ReferenceEvaluator(onnx.load(sys.argv[1]))
bundle = _load_bundled_program_from_buffer(data)
for i, x in enumerate(samples):
    got = bundle.verify_result_with_bundled_expected_output("forward", i, 1e-4, 1e-5)[0].numpy()
    np.testing.assert_allclose(got, model.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)

# The same with another input in the first case: the outputs cannot be the expected ones any more.
first = samples[0].tobytes()
assert data.count(first) == 1
wrong = _load_bundled_program_from_buffer(data.replace(first, (samples[0] + 1).tobytes()))
try:
    wrong.verify_result_with_bundled_expected_output("forward", 0, 1e-4, 1e-5)
except RuntimeError:
    print(f"{len(samples)} cases hold on the runtime, and a wrong one does not")
else:
    sys.exit("the verifier accepted wrong outputs")
