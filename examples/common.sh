# What the run.sh of each example begins with: . "$(dirname "$0")/../common.sh"
#
# ETC is the command (etc from PATH), PYTHON a Python with onnx and numpy (python3). The example runs in an empty folder,
# which is removed at the end, with its own files in $here.
set -eu
ETC=$(command -v "${ETC:-etc}") || { echo "there is no ${ETC:-etc}: set ETC" >&2; exit 1; }
case $ETC in /*) ;; *) ETC=$PWD/$ETC ;; esac
PYTHON=${PYTHON:-python3}
case $PYTHON in /*) ;; */*) PYTHON=$PWD/$PYTHON ;; esac
here=$(cd "$(dirname "$0")" && pwd)
if grep -qsE '^(import|from) onnx|mlp\.py|import numpy' "$here"/*.py "$here/run.sh" && ! "$PYTHON" -c 'import onnx, numpy' 2>/dev/null; then
  echo "$PYTHON has no onnx or no numpy: set PYTHON to one that has both (tools/setup --runtime makes .venv/bin/python)" >&2
  exit 1
fi
prefix=$(cd "$(dirname "$ETC")/.." && pwd)
PKG_CONFIG_PATH=$(find "$prefix" -name etc-plugin.pc -exec dirname {} \; 2>/dev/null | head -n 1):${PKG_CONFIG_PATH:-}
export PKG_CONFIG_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

etc() { "$ETC" "$@"; }

fail() {
  echo "$(basename "$here"): $*" >&2
  exit 1
}

# same A B: the files have the same bytes.
same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }

# says TEXT FILE: the file holds the text.
says() { grep -qF -- "$1" "$2" || { cat "$2" >&2; fail "'$1' is not in $2"; }; }

# refused CODE TEXT COMMAND...: the command exits with CODE, says TEXT on standard error, and leaves no bad.pte.
refused() {
  code=$1 text=$2
  shift 2
  got=0
  "$@" >refused.out 2>refused.err || got=$?
  [ "$got" = "$code" ] || { cat refused.err >&2; fail "exit $got instead of $code: $*"; }
  says "$text" refused.err
  [ ! -e bad.pte ] || fail "a program was written: $*"
}

# plugin NAME.c: NAME.so, compiled with the headers that were installed with etc.
plugin() {
  # shellcheck disable=SC2046
  "${CC:-cc}" -std=c11 -O2 -Wall -shared -fPIC $(pkg-config --cflags etc-plugin) "$1" -o "$(basename "$1" .c).so"
}
