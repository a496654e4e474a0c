t lower $data/add.onnx -o add.pte
t inspect add.pte
t inspect $data/add.onnx
t verify $data/x23.npy
head -c 300 add.pte >short.pte
t verify short.pte
t inspect short.pte
t run short.pte
