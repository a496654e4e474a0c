# exits.sh N COMMAND...: runs COMMAND; succeeds if its exit status is N.
expected=$1
shift
"$@"
status=$?
[ "$status" -eq "$expected" ] && exit 0
echo "exit status $status, expected $expected: $*" >&2
exit 1
