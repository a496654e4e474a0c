"""Runs main() of a host that is linked with the runtime's wheel: load.py HOST.so. The wheel has the runtime as a module of Python only."""
import ctypes
import sys

import executorch.extension.pybindings._portable_lib  # noqa: F401

sys.exit(ctypes.CDLL(sys.argv[1]).main())
