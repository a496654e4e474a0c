# States: what lower, inspect, run and verify make of them, and what is refused.
m=$data/accumulate.onnx
t lower $m --state h:hn -o a.pte
t inspect a.pte
t verify a.pte
t run a.pte -i x=$data/ones23.npy -i x=$data/x23.npy
t run $m --state h:hn -i x=$data/ones23.npy -i x=$data/x23.npy --output out
find out | sort
t run $m --state h:hn=$data/x23.npy -i x=$data/ones23.npy
t lower $m --state h
t lower $m --state :hn
t lower $m --state g:hn -o no.pte
t lower $m --state h:hm -o no.pte
t lower $m --state h:hn --state h:y -o no.pte
t lower $m --state h:hn --state x:hn -o no.pte
t lower $m --state h:hn=missing.npy -o no.pte
t lower $m --state h:hn=$data/x24.npy -o no.pte
t lower $m --state h:hn=$data/f64.npy -o no.pte
t run a.pte --state h:hn -i x=$data/ones23.npy
t run $data/add.onnx -i x=$data/x23.npy -i x=$data/x23.npy -i y=$data/x23.npy -i y=$data/x23.npy -i y=$data/x23.npy
g=$data/grow.onnx
t lower $g --state 'past.*:present.*' -o no.pte
t lower $g --state 'past.*:present.*' --dim p=4 -o no.pte
t lower $g --state 'past.*:present.*' --dim p=0..4 -o g.pte
t inspect g.pte
t run g.pte -i x=$data/ones23.npy -i x=$data/ones23.npy -i x=$data/ones23.npy -i x=$data/ones23.npy
t lower $g --state 'past.*:present.*=$data/*' --dim p=0..4 -o no.pte
t lower $g --state "past.0:present.0=$data/x23.npy" --dim p=0..1 -o no.pte
t run $g --state "past.0:present.0=$data/x23.npy" --dim p=0..2 -i x=$data/ones23.npy
t lower --method one=$m --method two=$m --method add=$data/add.onnx --state h:hn -o m.pte
t print m.pte --no-locations
t lower --method one=$m --method two=$m --state h:hm -o no.pte
ls
