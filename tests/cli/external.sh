# Constants in a file of their own, bundles, and states that methods share.
m=$data/external.onnx
t lower $m --allow-linked-data -o e.pte --external-weights e.ptd
t inspect e.pte
t inspect e.ptd
t inspect e.ptd -v
t inspect e.ptd --json
t verify e.pte
t verify e.pte --data e.ptd
t verify e.pte --data missing.ptd
t verify e.pte --data e.pte
t run e.pte --data e.ptd --random
t run e.pte --random
t print e.pte --data e.ptd --no-locations
t lower $data/mixed.onnx --dim batch=1 -o o.pte --external-weights o.ptd
t verify e.pte --data o.ptd
t lower $m -o e.pte --external-weights e.pte
# Files that belong together appear together.
t lower $m --allow-linked-data -o all.pte --external-weights all.ptd --map all.json -MF nowhere/all.d
ls all.*
head -c 100 e.ptd >short.ptd
t verify e.pte --data short.ptd
t lower $data/relu.onnx --dim batch=1 -o b.pte --bundle $data/x24.npy
t lower $data/relu.onnx --dim batch=1 -o - --bundle $data/x24.npy
t lower $data/relu.onnx --dim batch=1 -o no.pte --bundle missing.npz
s=$data/accumulate.onnx
t lower --method one=$s --method two=$s --method add=$data/add.onnx --state h:hn --share-state h -o s.pte
t inspect s.pte
# Methods of what is made of the text share them, too; not where they are in places of their own.
"$ETC" print s.pte >s.etir
head -1 s.etir
t lower s.etir -o text.pte -q
t diff s.pte text.pte
t lower --method one=$s --method two=$s --state h:hn -o apart.pte -q
"$ETC" print apart.pte >apart.etir
head -1 apart.etir
t lower apart.etir -o text.pte -q
t diff apart.pte text.pte
rm s.etir text.pte apart.etir apart.pte
t lower --method one=$s --method two=$s --state h:hn --share-state g -o no.pte
t lower --method one=$s --method two=$data/add.onnx --state h:hn --share-state h -o no.pte
cat >share.yaml <<Y
methods:
  one: {model: $s, state: "h:hn=$data/x23.npy"}
  two: {model: $s, state: "h:hn"}
share-state: [h*]
Y
t lower --recipe share.yaml -o no.pte
ls
