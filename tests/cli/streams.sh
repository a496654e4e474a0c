# Models from standard input, programs to standard output.
t lower $data/add.onnx -o file.pte
cat $data/add.onnx | "$ETC" lower - -o piped.pte && cmp file.pte piped.pte && echo "a pipe: same bytes"
"$ETC" lower - -o redirected.pte <$data/add.onnx && cmp file.pte redirected.pte && echo "a file: same bytes"
"$ETC" lower $data/add.onnx -o - | cmp - file.pte && echo "to a pipe: same bytes"
"$ETC" lower - -o - <$data/add.onnx >out.pte && cmp out.pte file.pte && echo "both: same bytes"
"$ETC" lower $data/add.onnx -o - -v --print-after plan_memory 2>messages | cmp - file.pte && grep -c plan_memory messages
t print - <$data/add.onnx
"$ETC" print $data/add.onnx >out.etir
"$ETC" print - <out.etir | cmp - out.etir && echo "text: the same"
t run - -i 0=$data/x23.npy -i 1=$data/x23.npy <$data/add.onnx
t run - -i 0=$data/x23.npy -i 1=$data/x23.npy <file.pte
t run - -i x=$data/x34.npy <$data/relu.onnx
t verify - <file.pte
# The other commands on programs: size, the kernels, a difference to a file; an array needs a name.
t size - <file.pte | head -3
t inspect --kernels=cmake - <file.pte | tail -4
t diff - file.pte <file.pte
t diff $data/mixed.onnx - <$data/add.onnx | head -3
t diff - - <file.pte
t diff file.pte - </dev/null
t embed - -o no.c <file.pte
# What cannot be.
t lower - -o no.pte <$data/external.onnx
t lower - -o no.pte </dev/null
t lower --method one=- --method two=- -o no.pte <$data/add.onnx
t lower $data/unknown.onnx -o -
t lower $data/add.onnx -o - -MD
t lower $data/add.onnx -o - -MF -
t lower - -o - -MF - -MT x.pte <$data/add.onnx
t lower - -o redirected.pte -MF - -MT "x y.pte" <$data/add.onnx
t lower - -o file.pte -MFdeps <$data/relu.onnx --dim batch=2
cat deps
[ -e /dev/full ] && "$ETC" lower $data/add.onnx -o - >/dev/full
echo "exit $?"
"$ETC" lower $data/add.onnx -o - >&-
echo "exit $?"
t verify - - <file.pte
python3 -c "import os, pty, sys; pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 1024).replace(b'\r', b''))" "$ETC" lower $data/add.onnx -o -
ls
