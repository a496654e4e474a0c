"""The input that host.cpp makes, and whether what it printed is what etc computes: input.py X.npy, or input.py HOST.txt OUTPUT.npy."""
import sys

import numpy as np

if len(sys.argv) == 2:
    np.save(sys.argv[1], ((np.arange(4 * 64, dtype=np.float32) % 7) / 7 - 0.5).reshape(4, 64))
else:
    np.testing.assert_allclose(np.loadtxt(sys.argv[1], dtype=np.float32), np.load(sys.argv[2]).ravel(), rtol=1e-4, atol=1e-5)
