#!/bin/sh
# Runs a Python script with the environment that has the ExecuTorch runtime: ETC_VENV, else .venv of the source folder.
# Exit 77 (skipped, for ctest) when there is none.
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=${ETC_VENV:-$root/.venv}
if ! "$venv/bin/python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("executorch") is None)' 2>/dev/null; then
  echo "SKIPPED: no ExecuTorch runtime in $venv (tools/setup --runtime installs it)"
  exit 77
fi
exec "$venv/bin/python" "$@"
