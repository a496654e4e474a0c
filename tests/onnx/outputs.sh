#!/bin/sh
# Files that cannot be read or written, and a command that is killed: exit 1 with a message, never a
# part of a file. outputs.sh ETC BAD_MODELS CASES
set -u
etc=$1
bad_models=$2
cases=$3
work=$(mktemp -d /tmp/etc-outputs-XXXXXX) || exit 1
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
"$bad_models" --write . "$cases" >/dev/null || exit 1
model=control_lowers.onnx
large=large_output.onnx
passed=0
failed=0
skipped=0

# check NAME CODE WORD COMMAND...: exit 1, the code and the word said, nothing written in out/
check() {
  name=$1 code=$2 word=$3
  shift 3
  rm -rf out && mkdir out
  "$@" >shown 2>&1
  status=$?
  if [ $status = 1 ] && grep -q "$code" shown && grep -q -- "$word" shown && [ -z "$(ls -A out)" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $name: exit $status, out: $(ls -A out)"
    cat shown
  fi
}

check missing_model E0102 nothing.onnx "$etc" lower nothing.onnx -o out/m.pte
check model_is_a_folder E0103 "'\?out'\?" "$etc" lower out -o out/m.pte
mkfifo pipe
check model_is_a_fifo E0104 pipe "$etc" lower pipe -o out/m.pte
check model_is_a_device E0104 /dev/zero "$etc" lower /dev/zero -o out/m.pte
check missing_folder E0106 out/none/m.pte "$etc" lower $model -o out/none/m.pte
check output_is_a_folder E010 shown.d sh -c "mkdir -p shown.d && '$etc' lower $model -o shown.d"
check folder_is_a_file E0106 $model/m.pte "$etc" lower $model -o $model/m.pte
check output_is_the_model E0106 $model "$etc" lower $model -o $model
# Writing stops at 512 * 8 bytes, as on a full disk; the signal for it is ignored as a daemon would.
check full_disk E0106 out/m.pte sh -c "ulimit -f 8; trap '' XFSZ; exec '$etc' lower $large -o out/m.pte"
check full_disk_signal E0106 out/m.pte sh -c "ulimit -f 8; exec '$etc' lower $large -o out/m.pte"
check full_device E010 /dev/full "$etc" lower $model -o /dev/full
# Root may do all: somebody else is needed then.
somebody=
[ "$(id -u)" = 0 ] && somebody="setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs"
chmod 755 .
if $somebody "$etc" version >/dev/null 2>&1; then
  cp $model unreadable.onnx && chmod 0 unreadable.onnx
  check unreadable_model E0102 unreadable.onnx $somebody "$etc" lower unreadable.onnx -o out/m.pte
  mkdir sealed && chmod 555 sealed
  check read_only_folder E0106 sealed/m.pte $somebody "$etc" lower $model -o sealed/m.pte
else
  skipped=$((skipped + 2))
  echo "skipped: unreadable model, read-only folder (no other user can run the command)"
fi

# Killed at many moments: the old file or the new one, whole.
"$etc" lower $large -o new.pte || failed=$((failed + 1))
echo old >old
for delay in 0 0.002 0.004 0.006 0.008 0.01 0.012 0.015 0.02 0.03 0.05 0.1 0.2 0.4; do
  rm -rf out && mkdir out && cp old out/m.pte
  "$etc" lower $large -o out/m.pte >shown 2>&1 &
  child=$!
  sleep $delay
  kill -KILL $child 2>/dev/null
  wait $child 2>/dev/null
  if cmp -s out/m.pte old || cmp -s out/m.pte new.pte; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL killed after $delay s: $(ls -l out)"
  fi
done

echo "outputs: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $skipped = 0 ] || exit 77 # which ctest reports
