# Constants in a file of their own, bundles, and states that methods share.
m=$data/external.onnx
t lower $m --allow-linked-data -o e.pte --external-weights e.ptd
t inspect e.pte
t inspect e.pte --json | grep -e '^\$' -e external
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
# States that grow: their length is shared with them, whatever the dims are called.
g=$data/grow.onnx
t lower --method one=$g --method two=$g --state 'past.*:present.*' --dim p=0..4 --share-state 'past.*' -o grow.pte -q
t inspect grow.pte
rm grow.pte
cat >two.etir <<'END'
graph @forward level(aten) {
  sym s0 "q" in [0, 4]
  %0: f32[2, 3] = input "x"
  %1: f32[s0, 3] = input "a"
  %2: f32[s0, 3] = input "past.0"
  %3: f32[s0 + 2, 3] = aten::cat([%1, %0], 0) "b"
  %4: f32[s0 + 2, 3] = aten::cat([%2, %0], 0) "present.0"
  output %3 "b", %4 "present.0"
}
END
t lower --method one=$g --method two=two.etir --state 'past.*:present.*' --state a:b --dim p=0..4 --share-state past.0 -o no.pte
t lower two.etir --state 'past.*:present.*' --state a:b --share-state past.0 -o no.pte
cat >dims.yaml <<Y
state: {past.*: present.*}
share-state: past.*
methods:
  one: {model: $g, dim: {p: 0..4}}
  two: {model: $g, dim: {p: 0..3}}
Y
t lower --recipe dims.yaml -o no.pte
ls
