"""On PYTHONPATH: every Python that begins leaves ExecuTorch's exporter out, which takes ten seconds to import, for scripts that only run programs."""

import importlib.util
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import runtime  # noqa: E402

if importlib.util.find_spec("executorch"):
    runtime.without_exporter()
