# etc diff: programs, models and textual graphs.
dims="--dim n=1 --dim past=0..4 --dim total=1..5"
t lower $data/decoder.onnx $dims -o a.pte -q
t lower $data/decoder.onnx $dims --backend xnnpack:min-ops=1 --memory sram=1K,dram=4K -o b.pte -q
t diff a.pte a.pte
t diff a.pte b.pte
t diff a.pte b.pte --md
t diff b.pte a.pte -v

# Methods and constant methods.
t lower --method one=$data/add.onnx --constant n=3 -o one.pte -q
t lower --method one=$data/add.onnx --method two=$data/accumulate.onnx --state h:hn --constant n=4 -o two.pte -q
t diff one.pte two.pte

# Models, and the graphs of a stage.
t diff $data/add.onnx $data/mixed.onnx
t diff $data/decoder.onnx $data/decoder.onnx
t lower $data/accumulate.onnx -o a.pte --artifacts a -q
t lower $data/grow.onnx --dim p=0..4 -o g.pte --artifacts g -q
t diff a/01-import.etir g/01-import.etir
t diff a/01-import.etir a/01-import.etir --md
t diff a/01-import.etir a/01-import.etir --json

# Contents alone: the same sizes with another weight.
sed 's/the_add/eht_add/' $data/add.onnx >other.onnx
t diff $data/add.onnx other.onnx
t diff $data/add.onnx $data/mixed.onnx --json

t diff a.pte
t diff a.pte b.pte g.pte
t diff a.pte $data/add.onnx
t diff a.pte b.pte --json --md
t diff a.pte no.pte
t diff no.onnx $data/add.onnx
printf 'no graph' >bad.etir
t diff bad.etir a/01-import.etir
