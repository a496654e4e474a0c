# An interrupt ends with 130 and leaves no temporary file.
mkfifo pipe
"$ETC" opt - --pass eliminate_dead <pipe &
process=$!
exec 3>pipe
echo "// a start" >&3
# A shell starts it with the signal ignored; the first ones may come before etc has its handler.
for i in 1 2 3 4 5; do sleep 0.2 && kill -INT $process 2>/dev/null; done
wait $process
echo "exit $?"
exec 3>&-
ls
t backends | cat
"$ETC" version >/dev/full
echo "exit $?"
