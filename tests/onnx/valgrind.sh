#!/bin/sh
# `etc lower` under valgrind: no error, no leak. valgrind.sh VALGRIND ETC BAD_MODELS CASES MODEL...
# The cases lower, or are refused, and end with 0, 1 or 2; valgrind's own exit is 99.
set -u
valgrind=$1 etc=$2 bad_models=$3 cases=$4
shift 4
if ! [ -x "$valgrind" ]; then
  echo "SKIPPED: valgrind is not installed (tools/setup does it)"
  exit 77
fi
work=$(mktemp -d /tmp/etc-valgrind-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
"$bad_models" --write "$work" "$cases" >/dev/null || exit 1
passed=0
failed=0
for model in "$work"/*.onnx "$@"; do
  OPENBLAS_NUM_THREADS=1 "$valgrind" -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
    --errors-for-leak-kinds=definite,indirect "$etc" lower "$model" -o "$work/out.pte" --dim n=1..4 >"$work/shown" 2>&1
  status=$?
  # Models without a dimension n refuse the flag.
  if grep -q E0319 "$work/shown"; then
    OPENBLAS_NUM_THREADS=1 "$valgrind" -q --error-exitcode=99 --leak-check=full "$etc" lower "$model" \
      -o "$work/out.pte" >"$work/shown" 2>&1
    status=$?
  fi
  case $status in
  0 | 1 | 2) passed=$((passed + 1)) ;;
  *)
    failed=$((failed + 1))
    echo "FAIL $model: exit $status"
    cat "$work/shown"
    ;;
  esac
done
echo "valgrind: $passed passed, $failed failed, 0 skipped"
[ $failed = 0 ] && [ $passed != 0 ]
