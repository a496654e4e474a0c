# The whole model to a backend, the table of what is delegated, and the bytes of delegates.
t lower $data/relu.onnx --dim batch=2 --backend xnnpack:whole -o relu.pte
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:whole -o no.pte
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:whole=no -o no.pte
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1 --explain=table -q -o mixed.pte
t lower $data/mixed.onnx --dim batch=2 --explain=table -q -o none.pte
t lower $data/relu.onnx --dim batch=2 --explain=tables -o no.pte
t inspect relu.pte -v --extract 1=relu.bin
head -c 14 relu.bin | tail -c 10 | head -c 4; echo
t inspect relu.pte --extract 2=no.bin
t inspect relu.pte --extract x=no.bin
t inspect relu.pte --extract 0=no.bin
t inspect relu.pte --extract 1
t inspect relu.pte relu.pte --extract 1=no.bin
t inspect relu.pte --extract 1=missing/no.bin
t lower $data/relu.onnx --dim batch=1..2 --backend xnnpack:whole --artifacts stages -o again.pte
cat stages/06-to_backend.delegate-1.etir
t opt stages/06-to_backend.delegate-1.etir --pass canonicalize --no-locations

# Equal code is in the file once, for two calls.
cat >twice.etir <<END
graph @forward level(edge) {
  %0: f32[2, 4] = input "x"
  %1: f32[2, 4] = aten::relu(%0)
  %2: f32[2, 4] = aten::erf(%1)
  %3: f32[2, 4] = aten::relu(%2)
  output %3 "y"
}
END
t lower twice.etir --backend xnnpack:min-ops=1 -o twice.pte
t inspect -v twice.pte
t run twice.pte --random
ls . stages
