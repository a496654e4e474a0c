# Decoders for runners of language models: what --derive llm makes of them, and what is refused.
m=$data/decoder.onnx
t print $m --derive llm:context=8,prefill=4,bos=1,eos=2+3 --no-locations
t lower $m --derive llm:context=8,prefill=4,bos=1,eos=2+3 --constant get_max_seq_len=3 -o a.pte
t verify a.pte
t inspect a.pte
calls="-i 0=$data/llm/tokens3.npy -i 1=$data/llm/at0.npy -i 0=$data/llm/tokens1.npy -i 1=$data/llm/at3.npy"
t run a.pte $calls
# What inspect suggests has the sizes that lowering derives.
printf 'derive: {llm: {context: 8}}\n' >llm.yaml
t inspect $m --recipe llm.yaml | tail -2
t lower $m --derive llm:context=8 --backend xnnpack:min-ops=1 -o x.pte
t run x.pte $calls
t lower $m --derive llm:context=8 --dim past=0..3 --dim n=1..2 -q -o small.pte
"$ETC" inspect small.pte | grep '_len'
t run small.pte $calls
# Logits of the last token alone are what runners want.
t lower $data/decoder_last.onnx --derive llm:context=8 -q -o last.pte
t run last.pte $calls
t lower $data/decoder_half.onnx --derive llm:context=8 -q -o half.pte
t run half.pte $calls
# A number of tokens that generating never hands over.
t lower $m --derive llm:context=8 --dim n=4 -o no.pte
t lower $m --derive llm:context=8 --dim n=2..4 -o no.pte
# Tokens of 32 bits, a flag that is no position, caches with the heads in the first dim.
t lower $data/decoder_merged.onnx --derive llm:context=8 -o no.pte
t lower $data/decoder_merged.onnx --derive llm:context=8 --value use_cache_branch=1 -q -o merged.pte
t run merged.pte $calls
cat >r.yaml <<END
model: $m
derive: {llm: {context: 8, eos: [2, 3]}}
END
t lower --recipe r.yaml -o r.pte
t run r.pte --method get_eos_ids
for value in llm llm:context=0 llm:context=x llm:context=8,prefill=9 llm:context=8,eos=a llm:context=8,bos=1+2 llm:contxt=8 lm; do
  t lower $m --derive $value -o no.pte
done
t lower $m --derive llm:context=16 -q -o sixteen.pte
t lower $m --derive llm:context=17 -o no.pte
t lower $m --dim total=1..6 --derive llm:context=8,mask=none -o no.pte
t lower $m --dim total=1..6 --derive llm:context=8 -o no.pte
for more in past='none.*' present='none.*' past='past_key_values.*.key' tokens=ids logits=none; do
  t lower $m --derive "llm:context=8,$more" -o no.pte
done
t lower $m --derive llm:context=8,present='present.0.key' -o no.pte
t lower $m --derive llm:context=8 --state 'past_key_values.*:present.*' -o no.pte
t lower $m --derive llm:context=8,eos=2+99999 -o no.pte
t lower $data/grow.onnx --dim p=0..4 --derive llm:context=8 -o no.pte
# A cache that grows where the host may pass a buffer
g=$data/group_query.onnx
t lower $g --dim n=1 --dim past=4 -o g.pte
t lower $g --dim n=1 --dim past=4 --dim total=past -o g.pte
t lower $g --dim n=1 --dim past=0..4 --state past_key:present_key --state past_value:present_value -o g.pte
ls
