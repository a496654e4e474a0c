# --cache: what hits, what misses, and what is wrong with a cache. Keys change with every version of etc.
u() {
  t "$@" | sed 's/[0-9a-f]\{32\}/KEY/g; s/.*SUMMARY.*"cache":"\([a-z ]*\)".*/cache \1/'
}
# entries NUMBER: that many are kept, and nothing else.
entries() {
  [ "$(ls cache)" = "$(ls cache | grep -E '^[0-9a-f]{32}\.(pte|txt)$')" ] || ls cache
  [ "$(ls cache/*.txt | wc -l) $(ls cache/*.pte | wc -l)" = "$1 $1" ] || echo "entries: $(ls cache)"
}
relu="lower $data/relu.onnx --dim batch=2 --cache cache"
u $relu -o a.pte
u $relu -o b.pte
cmp a.pte b.pte
"$ETC" lower $data/relu.onnx --dim batch=2 -o plain.pte -q && cmp a.pte plain.pte
cp $data/relu.onnx copy.onnx
u lower copy.onnx --dim batch=2 --cache ./cache -j1 -q -o b.pte --diagnostics json -MF b.d
"$ETC" lower - --dim batch=2 --cache cache -o - <copy.onnx -q | cmp - a.pte
cat b.d
entries 1
# Another option, another model, another name of the method.
u lower copy.onnx --dim batch=3 --cache cache -o b.pte --diagnostics json
u lower copy.onnx --dim batch=2 --plan naive --cache cache -o b.pte --diagnostics json
u lower --method other=copy.onnx --dim batch=2 --cache cache -o b.pte --diagnostics json
cp $data/add.onnx copy.onnx
u lower copy.onnx --cache cache -o b.pte --diagnostics json
# Two models in three methods: it counts which method has which.
for last in add two_outputs; do
  u lower --method a=$data/add.onnx --method b=$data/two_outputs.onnx --method c=$data/$last.onnx --cache methods -o m.pte --diagnostics json
done
"$ETC" lower copy.onnx -q -o plain.pte && cmp b.pte plain.pte
entries 5
# External data, recipes, samples.
cp $data/external.onnx "$data/external weights.bin" .
u lower external.onnx --cache cache -q -o b.pte
u lower external.onnx --cache cache -o b.pte --diagnostics json
printf '\001' | dd of='external weights.bin' bs=1 seek=2 conv=notrunc 2>dd.err
u lower external.onnx --cache cache -o b.pte --diagnostics json
printf 'model: copy.onnx\ncache: cache\n' >recipe.yaml
u lower --recipe recipe.yaml -o b.pte --diagnostics json
u lower --recipe recipe.yaml -o b.pte --diagnostics json
cat >net.etir <<'END'
graph @forward level(aten) {
  %0: f32[1, 4] = input "x"
  %1: f32[2, 4] = const [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.0]
  %2: f32[1, 2] = aten::linear(%0, %1, none)
  %3: f32[1, 2] = aten::relu(%2)
  %4: f32[2, 2] = const [1.0, 2.0, 3.0, 4.0]
  %5: f32[1, 2] = aten::linear(%3, %4, none)
  output %5 "y"
}
END
mkdir samples
cp $data/calib/relu.npz samples/a.npz
net="lower net.etir --quantize int8 --backend xnnpack --cache cache --diagnostics json -o b.pte"
u $net --calibrate samples -q
u $net --calibrate samples -MF b.d
sort b.d | sed -n 's/:$//p'
cp $data/calib/relu.npz samples/b.npz
u $net --calibrate samples
mv samples/b.npz samples/0.npz
u $net --calibrate samples
u $net --calibrate samples/0.npz
entries 12
# A hit tells what the miss told.
for plan in greedy naive; do
  "$ETC" $net --calibrate samples/a.npz --plan $plan 2>miss
  "$ETC" $net --calibrate samples/a.npz --plan $plan 2>hit
  sed 's/"miss"/"hit"/' miss | cmp - hit
done
for turn in miss hit; do
  "$ETC" lower $data/accumulate.onnx --state h:hn --memory fast=48,slow=4K --cache cache -o b.pte 2>$turn
done
cat miss hit
rm -rf cache/*
# A budget: a program that was kept was within it, and one that is over it is never kept.
echo 'file: 1K' >budget.yaml
budget="lower $data/relu.onnx --dim batch=5 --cache cache --budget budget.yaml --diagnostics json -o b.pte"
u $budget
u $budget
echo 'file: 10' >budget.yaml
rm -f b.pte
u $budget | grep -o 'cache .*\|"id":"BUDGET"\|^exit.*'
u $budget | grep -o 'cache .*\|"id":"BUDGET"\|^exit.*'
ls b.pte 2>/dev/null
entries 1
# Warnings of the import are said by a hit as well; what warns later is not kept.
u lower net.etir --backend xnnpack:skip=@nothing --cache cache -o b.pte
u lower net.etir --backend xnnpack:skip=@nothing --cache cache -o b.pte --diagnostics json | tail -1
entries 1
for werror in '' '' -Werror; do
  u lower $data/dims.onnx --dim batch=1..8 --dim n=1..12 --dim m=2..10 --cache cache -o b.pte $werror
done
# Damaged: an error, and nothing is written.
rm -r cache
"$ETC" $relu -q -o a.pte
rm -f b.pte
printf 'x' | dd of="$(ls cache/*.pte)" bs=1 seek=100 conv=notrunc 2>dd.err
u $relu -o b.pte
u $relu -o b.pte -MD
: >"$(ls cache/*.pte)"
u $relu -o b.pte --diagnostics json
cp a.pte cache/*.pte
sed -i 's/arena 16/arena 17/' cache/*.txt
u $relu -o b.pte
head -c 50 "$(ls cache/*.txt)" >short && cp short cache/*.txt
u $relu -o b.pte
: >"$(ls cache/*.txt)"
u $relu -o b.pte
mv cache/*.txt text && mkdir "$(ls cache/*.pte | sed s/pte/txt/)"
u $relu -o b.pte
ls b.pte* 2>/dev/null
rmdir cache/*.txt
u $relu -o b.pte --diagnostics json
rm cache/*.pte
u $relu -o b.pte --diagnostics json
entries 1
# What cannot be written there, here an entry on a full disk, is written without the cache.
for file in pte txt json ptd -Werror; do
  werror=
  [ $file != -Werror ] || werror=-Werror file=txt
  full="lower net.etir --backend xnnpack --cache cache --map full.json --external-weights full.ptd -o full.pte $werror"
  rm -r cache
  "$ETC" $full -q && mv full.json once.json && mv full.ptd once.ptd && mv full.pte once.pte
  entry=$(ls cache/*.$file)
  rm cache/*
  ln -s /dev/full "$entry"
  u $full
  [ "$werror" ] || for kind in json ptd pte; do cmp full.$kind once.$kind; done
  ls full.pte 2>/dev/null && rm -f full.*
done
rm -r cache
"$ETC" $relu -q -o b.pte
# What is no folder, and what the cache does not go with.
u lower $data/relu.onnx --dim batch=2 --cache a.pte -o c.pte
u lower $data/relu.onnx --dim batch=2 --cache missing/cache -o d.pte
u lower $data/relu.onnx --dim batch=2 --cache cache/x/../y -o d.pte
u lower $data/relu.onnx --dim batch=2 --cache '' -o c.pte
for option in --artifacts=x --bundle=x --explain --time-passes --print-changed; do
  u $relu -o c.pte $option 2>&1 | head -2 | tail -1
done
ls c.pte x missing 2>/dev/null
# Many at once make one entry, whole.
rm -r cache
for i in 1 2 3 4 5 6 7 8; do
  "$ETC" $relu -q -o "many$i.pte" &
done
wait
for i in 1 2 3 4 5 6 7 8; do cmp a.pte "many$i.pte"; done
entries 1
u $relu -o b.pte --diagnostics json
# The map of the program is kept with it, as another entry.
u $relu -o b.pte --map first.json --diagnostics json
u $relu -o b.pte --map second.json --diagnostics json
"$ETC" lower $data/relu.onnx --dim batch=2 -q -o plain.pte --map plain.json
cmp first.json plain.json && cmp second.json plain.json && cmp b.pte plain.pte && echo "the same map"
ls cache | sed 's/.*[.]//' | sort | uniq -c | sed 's/^ *//'
u $relu -o b.pte --diagnostics json
printf 'x' >>"$(ls cache/*.json)"
u $relu -o b.pte --map third.json
ls third.json 2>/dev/null
rm cache/*.json
u $relu -o b.pte --map third.json --diagnostics json
cmp third.json plain.json && rm cache/*.json "$(grep -l '^map' cache/*.txt)"
rm -r cache
u $relu -q -o b.pte
# So are weights in a file of their own, under any name.
weights="lower net.etir --backend xnnpack --cache cache -o b.pte --diagnostics json"
"$ETC" lower net.etir --backend xnnpack -q -o plain.pte --external-weights plain.ptd
u $weights --external-weights first.ptd
u $weights --external-weights second.ptd --fsync
u $weights --external-weights both.ptd --map both.json
u $weights --external-weights again.ptd --map again.json
u $weights
for file in first second both again; do cmp $file.ptd plain.ptd; done
cmp both.json again.json && cmp b.pte plain.pte || echo "with and without are two entries"
u $weights --external-weights first.ptd -q
cmp b.pte plain.pte && echo "the same program"
ls cache | sed 's/.*[.]//' | sort | uniq -c | sed 's/^ *//'
printf 'x' >>"$(ls cache/*.ptd | head -n 1)"
printf 'x' >>"$(ls cache/*.ptd | tail -n 1)"
rm first.ptd
u $weights --external-weights first.ptd
ls first.ptd 2>/dev/null
rm -r cache
echo 'constants: 8' >budget.yaml
u $weights --external-weights no.ptd --map no.json --budget budget.yaml | grep -o '"id":"BUDGET"\|^exit.*'
ls no.* cache/*.txt 2>/dev/null
"$ETC" $relu -q -o b.pte
# A folder that nothing is kept in is not left behind.
u lower $data/relu.onnx --dim batch=2 --cache made --max-arena 1 -o no.pte
ls made 2>/dev/null
# A folder that cannot be written to: what is there is used, the rest is lowered each time. Root could write all the same.
cp "$ETC" own-etc
own=
[ "$(id -u)" != 0 ] || own="setpriv --reuid 65534 --clear-groups --inh-caps=-all"
printf '#!/bin/sh\nexec %s ./own-etc "$@"\n' "$own" >as-user
chmod +x as-user
chmod a+rx .. .
cp $data/relu.onnx relu.onnx
mkdir -m 777 out
chmod 555 cache
ETC=./as-user
u lower relu.onnx --dim batch=2 --cache cache -o out/a.pte
u lower relu.onnx --dim batch=4 --cache cache -o out/b.pte
u lower relu.onnx --dim batch=4 --cache cache -o out/b.pte -Werror
u lower relu.onnx --dim batch=4 --cache cache/none -o out/b.pte
chmod 755 cache
entries 1
# Another version of etc, here one whose hash of its sources is another, finds nothing.
LC_ALL=C sed 's/[0-9a-f]\{64\}/0000000000000000000000000000000000000000000000000000000000000000/g' own-etc >other && chmod +x other
ETC=./other
u $relu -o b.pte --diagnostics json
u $relu -o b.pte --diagnostics json
