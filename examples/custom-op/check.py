"""Runs programs on the ExecuTorch runtime, with kernels of one's own: check.py KERNELS.so EXPECTED.npy PROGRAM.pte..."""
import ctypes
import sys

import numpy as np
import torch
from executorch.extension.pybindings import _portable_lib

# Its symbols become visible to the library, which registers its kernels when it is loaded.
ctypes.CDLL(_portable_lib.__file__, mode=ctypes.RTLD_GLOBAL)
ctypes.CDLL(sys.argv[1])
for path in sys.argv[3:]:
    method = _portable_lib._load_for_executorch(path)
    got = method.run_method("forward", (torch.from_numpy(np.load("x.npy")),))[0].numpy()
    np.testing.assert_allclose(got, np.load(sys.argv[2]), rtol=1e-5, atol=1e-6)
    print(path, "runs on the runtime, as the operators are defined")
