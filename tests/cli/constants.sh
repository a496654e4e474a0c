# Constant methods: what lower, inspect, verify, run and print make of them, and what is refused.
m="$data/accumulate.onnx --state h:hn"
t lower $m --constant get_vocab_size=32000 --constant get_eos_ids=1,2 --constant rate=0.5 --constant use_kv_cache=true \
  --constant 'name=one, two' --constant 'digits="32"' --constant "words='a', 'b'" --constant table=$data/x23.npy --constant word=0xyz -o a.pte
t verify a.pte
t inspect a.pte
"$ETC" inspect a.pte --json | grep -A4 '"constants": \['
t print a.pte --no-locations
t run a.pte --method get_eos_ids
t run a.pte --method name
t run a.pte --method table --output out
t run a.pte --method words --output words
find out words | sort
t run a.pte --method get_eos_ids -i x=$data/x23.npy
t run a.pte --method get_eos
t print $m --constant a=1 --no-locations
# What is made of the text has them again, and what cannot be said there is named.
"$ETC" print a.pte -q >a.etir
t lower a.etir -o text.pte -q
t diff a.pte text.pte
t print $m --constant a=b=1 --constant list=1,2 --stage edge -o edge.etir
head -1 edge.etir
t lower edge.etir -o edge.pte -q
"$ETC" inspect edge.pte | grep constant
rm a.etir text.pte edge.etir edge.pte
echo no array >broken.npy
for value in =1 a= a=1,true a=1,,2 a=1,x 'a="x' "a='x' 'y'" a=nan a=-inf a=99999999999999999999 a=1e400 a=1,-1e400 a=NaN a=+5 a=+1.5 a=0x10 a=1,-0XfF a=True \
  a=missing.npy a=$data/make.py a=broken.npy; do
  t lower $m --constant "$value" -o no.pte
done
t lower $m --constant a=1 --constant a=2 -o no.pte
t lower $m --constant forward=1 -o no.pte
cat >r.yaml <<END
model: $data/accumulate.onnx
state: {h: hn}
constant-methods:
  get_vocab_size: 32000
  get_eos_ids: [1, 2]
  digits: "32"
  words: ["a, b", 'c']
  name: plain text
  table: $data/x23.npy
END
t lower --recipe r.yaml --constant get_vocab_size=5 -o b.pte
"$ETC" inspect b.pte | grep constant
echo 'constant-methods: {a: [1, x]}' >>r.yaml
t lower --recipe r.yaml -o no.pte
sed -i '$d' r.yaml
cp r.yaml start.yaml
for value in null '~' Yes True 0x10 1_000 12:30 '[1, off]' '[a, 1]' '[x.npy]' '[1, .nan]'; do
  (cat start.yaml && echo "  more: $value") >r.yaml
  t lower --recipe r.yaml -o no.pte
done
for value in '[-1, 2]' 2.5e3 '[tRue story, 3 mice, "no", "0x10"]'; do
  (cat start.yaml && echo "  more: $value") >r.yaml
  t lower --recipe r.yaml -q -o more.pte
  "$ETC" inspect more.pte | grep "'more'"
done
(cat start.yaml && echo '  list: [1, [2]]') >r.yaml
t lower --recipe r.yaml -o no.pte
ls
