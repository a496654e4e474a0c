# Memory: banks, inputs and outputs in memory of the host, alignment.
m=$data/accumulate.onnx
t lower $m --state h:hn --plan greedy:inputs=no,outputs=no,align=64 -o host.pte
t inspect host.pte
t verify host.pte
t run host.pte -i x=$data/ones23.npy -i x=$data/x23.npy
t lower $m --memory fast=48,slow=4K -o banks.pte
t inspect banks.pte
t lower $m --state h:hn --memory fast=48,slow=4K -o json.pte --diagnostics=json
t verify banks.pte
t run banks.pte -i x=$data/ones23.npy -i h=$data/x23.npy
t print banks.pte --no-locations
"$ETC" print banks.pte -o banks.etir
t lower banks.etir -o again.pte -q
t diff banks.pte again.pte
rm banks.etir again.pte
t lower --method one=$m --method two=$data/add.onnx --state h:hn --memory fast=32,slow=4K --artifacts stages -o two.pte
t inspect two.pte
t lower stages/07-to_executorch.etir -o again.pte
cmp two.pte again.pte && echo same
t lower $m --memory fast=32 -o no.pte
t lower $m --memory fast=32,slow=16 -o no.pte
t lower $m --memory fast -o no.pte
t lower $m --memory 'a b=3' -o no.pte
t lower $m --memory fast=1K,fast=2K -o no.pte
t lower $m --memory fast=0 -o no.pte
t lower $m --plan greedy:align=24 -o no.pte
t lower $m --plan greedy:align=32,inputs=no,align=64 -o no.pte
t lower $m --plan greedy:inputs=maybe -o no.pte
t lower $m --plan greedi:inputs=no -o no.pte
ls
