# No output takes the place of what is read, or of another output; no program without what belongs beside it.
cp $data/add.onnx m.onnx
cp $data/x23.npy x.npy
cp $data/ones23.npy y.npy
ln m.onnx link.onnx
mkdir bundle
cp x.npy y.npy bundle
printf 'dim: {}\nmodel: m.onnx\n' >r.yaml
printf 'file: 1M\n' >b.yaml
"$ETC" lower m.onnx -q -o p.pte
cksum m.onnx x.npy r.yaml b.yaml p.pte >before
t lower m.onnx -o m.onnx
t lower m.onnx -o link.onnx
# A link stays one, also when what it leads to is made by this.
mkdir -p made && ln -s made/next.pte later.pte && ln -s new.pte made/next.pte
t lower m.onnx -o later.pte
[ -h later.pte ] && [ -h made/next.pte ] && [ ! -h made/new.pte ] && cmp later.pte made/new.pte && echo through both links
rm -r made later.pte
t lower m.onnx --map m.onnx -o bad.pte
t lower m.onnx -MF m.onnx -o bad.pte
t lower m.onnx --external-weights m.onnx -o bad.pte
t lower m.onnx --report m.onnx -o bad.pte
t lower m.onnx --value x=x.npy -o x.npy
t lower m.onnx --budget b.yaml -o b.yaml
t lower --recipe r.yaml -o r.yaml
t print m.onnx -o m.onnx
t calibrate m.onnx --data bundle -o m.onnx
t calibrate m.onnx --data bundle -o bundle/x.npy
t run p.pte -i x=x.npy -i y=y.npy --profile p.pte
cksum m.onnx x.npy r.yaml b.yaml p.pte | cmp - before
# Two outputs of one name.
t lower m.onnx --external-weights z --map z -o bad.pte
t lower m.onnx --map bad.pte -o bad.pte
t lower m.onnx -MF ./bad.pte -o bad.pte
t lower m.onnx --report r.json --report ./r.json -o bad.pte
t lower m.onnx --bundle bundle -MF bad.bpte -o bad.pte
# What cannot be written beside the program leaves no program.
t lower m.onnx --map /dev/full -o bad.pte
t lower m.onnx --map none/a.json --bundle bundle -o bad.pte
t lower m.onnx --map /dev/null --bundle bundle --report r.json -MF good.d -o good.pte
ls
