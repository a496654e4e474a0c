# Operators that are computed by programs which were lowered already.
"$ETC" lower $data/relu.onnx --dim batch=2 -q -o relu.pte
"$ETC" lower $data/relu.onnx --dim batch=1..2 -q -o sizes.pte
"$ETC" lower $data/accumulate.onnx -q --state h:hn -o state.pte
t lower $data/relu.onnx --dim batch=2 --lowered ai.onnx.Relu=relu.pte -MD -o again.pte
cat again.pte.d
t print again.pte --no-locations
t lower $data/relu.onnx --dim batch=3 --lowered Relu=relu.pte -o bad.pte
t lower $data/relu.onnx --dim batch=1..2 --lowered Relu=relu.pte -o bad.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relu=sizes.pte -o bad.pte
t lower $data/add.onnx --lowered Add=relu.pte -o bad.pte
t lower $data/add.onnx --lowered Add=state.pte -o bad.pte
t lower $data/relu.onnx --dim batch=2 --lowered Sigmoid=relu.pte -o bad.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relo=relu.pte -o bad.pte
t lower $data/unknown.onnx --lowered Magic=relu.pte -o bad.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relu=relu.pte --lowered ai.onnx.Relu=relu.pte -o bad.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relu -o bad.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relu=$data/relu.onnx -o bad.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relu=none.pte -o bad.pte
head -c 400 relu.pte >cut.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relu=cut.pte -o bad.pte
"$ETC" lower --method one=$data/relu.onnx --method two=$data/relu.onnx --dim batch=2 -q -o two.pte
t lower $data/relu.onnx --dim batch=2 --lowered Relu=two.pte -o bad.pte
ls
