# Options of later versions say so: exit code 1 and no file.
t lower $data/add.onnx -o a.pte --plugin ./x.so
t lower $data/add.onnx -o a.pte --kernels portable,quantized
t lower $data/add.onnx -o a.pte --kernels portable,quantized --diagnostics=json
ls
