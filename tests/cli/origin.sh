# What torch notes of the source of a model: in messages, in texts and through them.
t lower $data/origin.onnx --dim n=3 -o o.pte
t lower $data/origin.onnx --dim n=3 --diagnostics json -o o.pte
t print $data/origin.onnx -q --dim n=2
"$ETC" print $data/origin.onnx -q --dim n=2 -o o.etir
"$ETC" print o.etir | cmp - o.etir
