# Text in and out.
t print $data/relu.onnx --dim batch=1..8
t print $data/relu.onnx --dim batch=1..8 --stage edge -o edge.etir
t opt edge.etir --pass eliminate_dead
t opt edge.etir --pass eliminate_dead,fold_constants --no-locations
"$ETC" opt - --pass eliminate_dead <edge.etir >again.etir
cmp edge.etir again.etir && echo "same text"
t opt edge.etir --pass decompose
t opt edge.etir --pass eliminate_dead --stop-after eliminate_dead -o end.etir
cmp edge.etir end.etir && echo "same text"
t lower edge.etir -o relu.pte
t lower $data/relu.onnx --dim batch=1..8 -o direct.pte
t run relu.pte -i 0=$data/x24.npy
t print relu.pte --stage edge
t lower $data/relu.onnx --dim batch=2 -o relu.pte --artifacts steps
ls steps
cat >away.etir <<'END'
graph @f level(aten) {
  %0: f32[256] = const file("../w.pte", 0, 1024, xxh3:0123456789abcdef)
  output %0 "y"
}
END
t lower away.etir -o no.pte
echo "nonsense" >bad.etir
t opt bad.etir --pass eliminate_dead
t lower $data/relu.onnx --dim batch=2 -o relu.pte --print-after eliminate_views --print-before eliminate_views
t lower $data/relu.onnx --dim batch=2 -o relu.pte --pass eliminate_dead@edge
t print $data/dims.onnx --dim batch=1..4 --dim n=2..4 --dim m=8..40 -o no.etir -Werror
ls no.etir 2>/dev/null
t print $data/relu.onnx --dim batch=2 -Werror --no-locations
# Pictures, of names that are hard to quote, too.
t print $data/mixed.onnx --dim batch=1 --format dot
t print $data/mixed.onnx --dim batch=1 --stage to_executorch --format model-explorer
cat >names.etir <<'END'
graph @odd level(aten) {
  %0: f32[2] = input "a{b}|<c> \"d\" \\ \x01 </script>"
  %1: f32[2] = aten::relu(%0) loc("outer/in|ner/relu{1}", "Relu", 0)
  output %1 "y|y"
}
END
t print names.etir --format dot
t print names.etir --format model-explorer
t print $data/mixed.onnx --dim batch=1 --format png
# At the level executorch an output that is an input is the input's tensor, which has one name.
cat >same.etir <<'END'
graph @forward level(executorch) {
  arenas [0, 48]
  %0: f32[2]@1+0:8 = input "x"
  %1: f32[2]@1+16:8 = aten::relu(%0)
  output %1 "y", %0 "z", %1 "again"
}
END
t lower same.etir -o same.pte
sed -e 's/executorch/aten/' -e '/arenas/d' -e 's/@1[+0-9:]*//' same.etir >copied.etir
t lower copied.etir -o same.pte
t run same.pte -i 0=$data/x2.npy
