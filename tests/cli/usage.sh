# Wrong usage: exit code 2, what is wrong, what to do.
t
t lowr x
t --verbos
t help lowr
t help lower run
t lower
t lower $data/add.onnx
t lower $data/add.onnx $data/relu.onnx -o a.pte
t lower $data/add.onnx -o a.pte -o b.pte
t lower $data/add.onnx -o
t lower $data/add.onnx -o ''
t lower $data/add.onnx --map -o a.pte
t lower $data/relu.onnx -o --dim=batch=1
t lower $data/add.onnx --explain table -o a.pte
t lower $data/add.onnx --ouput a.pte
t lower $data/add.onnx --out a.pte
t lower $data/add.onnx --print a.pte
t lower $data/add.onnx -z
t lower $data/add.onnx -qz -o a.pte
t lower $data/add.onnx -MDx -o a.pte
t lower $data/add.onnx --fsync=yes -o a.pte
t lower $data/add.onnx -o a.pte --plan gredy
t lower $data/add.onnx -o a.pte --plan optimal
t lower $data/add.onnx -o a.pte --threads many
t lower $data/add.onnx -o a.pte --threads -1
t lower $data/add.onnx -o a.pte --fold-limit 0
t lower $data/add.onnx -o a.pte --max-arena 0
t lower $data/add.onnx -o a.pte --max-arena 5X
t lower $data/add.onnx -o a.pte --max-arena 99999999999G
t lower $data/add.onnx -o a.pte --max-arena 16
t lower $data/add.onnx -o a.pte --pass eliminate_ded
t lower $data/add.onnx -o a.pte --pass eliminate_dead@corr
t lower $data/add.onnx -o a.pte --pass eliminate_dead@emit
t lower $data/add.onnx -o a.pte --skip-pass out_variants
t lower $data/add.onnx -o a.pte --print-after nothing_like_it
t lower $data/add.onnx -o a.pte --stop-after eliminate_dead
t lower $data/add.onnx -o a.pte --bisect-limit x
t lower $data/add.onnx -o a.pte --time-passes=xml
t lower $data/add.onnx -o a.pte --kernels fast
t lower $data/add.onnx -o a.pte --backend xnnpak
t lower $data/add.onnx -o a.pte --backend xnnpack:threads=2
t lower $data/add.onnx -o a.pte --backend xnnpack --backend xnnpack
t lower $data/add.onnx -o a.pte --backend toaster:fast=1
t lower $data/add.onnx -o a.pte --dim batch
t lower $data/add.onnx -o a.pte --dim =3
t lower $data/add.onnx -o a.pte --dim batch=
t lower $data/add.onnx -o a.pte --dim batch=4..2
t lower $data/add.onnx -o a.pte --dim batch=-1
t lower $data/add.onnx -o a.pte --dim batch=1 --dim batch=2
t lower $data/relu.onnx -o a.pte --dim batch=0
t lower --method forward -o a.pte
t lower --method =$data/add.onnx -o a.pte
t lower $data/add.onnx --method forward=$data/relu.onnx -o a.pte
t lower $data/add.onnx -o a.pte --diagnostics xml
t lower $data/add.onnx -o a.pte --color sometimes
t lower $data/add.onnx --diagnostics=json --colour
t print
t print $data/add.onnx --stage edg
t print $data/add.onnx --stage emit
t print $data/add.onnx --stage nope
t opt $data/add.onnx --pass eliminate_dead
t opt
t ops --json --md
t passes now
t inspect
t verify $data/add.onnx
t run $data/add.onnx extra
t run $data/add.onnx -i 0=$data/x23.npy
t lower $data/add.onnx -o a.pte --dim batch=2
t lower $data/add.onnx -o a.pte --state a:b
ls
t lower '' -o a.pte
t lower --method one= -o a.pte
t lower --method =$data/add.onnx -o a.pte
t lower $data/add.onnx -o a.bpte
t lower $data/add.onnx -j 5000 -o a.pte
t run $data/add.onnx --random=3
# A name that begins with '-', options where the command should be.
cp $data/add.onnx ./-x.onnx
t inspect -x.onnx
t inspect ./-x.onnx | tail -1
t --diagnostics=json lower $data/add.onnx -o a.pte
# The names that there are; several dimensions in one option; a limit that is enough.
t lower $data/relu.onnx --dim zoo=2 -o a.pte
t lower $data/relu.onnx --dim batch=2,m=3 -o a.pte
t lower $data/relu.onnx --dim batch=1..100 --max-arena 1000 -o a.pte
t lower $data/relu.onnx --dim batch=1..100 --max-arena 4K -o a.pte
rm -f -- -x.onnx a.pte
t lower $data/relu.onnx --dim batch=1..100 --max-arena 4k -o a.pte -q
# What is no program, or is none yet; a .ptd is a part of one.
t lower nofile.pte -o a.pte
t lower $data/scalars.pte -o a.pte
"$ETC" lower $data/external.onnx --external-weights w.ptd -o a.pte -q
for command in print size verify run inspect; do t $command w.ptd; done
# Options that fit no model name it.
t lower $data/add.onnx -o a.pte --bound no=4
t lower $data/add.onnx -o a.pte --state no:such
t lower $data/add.onnx -o a.pte --constant forward=1
# Options of other commands.
t calibrate $data/add.onnx --calibrate x.npz -o s
t verify a.pte --json
t size a.pte --nowhere
# A value behind '=' belongs to the long form.
t lower $data/add.onnx -o=z.pte
t lower $data/accumlate.onnx -o no.pte
