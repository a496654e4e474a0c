# --report: a page or JSON, both at once; wrong names are found before anything is read or written.
t lower $data/mixed.onnx --dim batch=2 --backend xnnpack:min-ops=1,skip=tanh -o a.pte --report a.html --report a.json -q
python3 -c '
import json
facts = json.load(open("a.json"))
page = open("a.html").read()
print(facts["format"], facts["version"], facts["program"]["file"], len(facts["methods"]), "method")
begin = page.index("id=\"facts\">") + len("id=\"facts\">")
print("the same facts in the page:", json.loads(page[begin:page.index("</script>", begin)]) == facts)
for stage in facts["methods"][0]["stages"]:
  print(stage["name"], stage.get("same_as", ""), len(stage.get("nodes", [])))
print(json.dumps(facts["methods"][0]["memory"]["peak"]))
for c in facts["methods"][0]["constants"]:
  print(c)
'
# Names of the model are data: none ends the element that holds the facts.
printf 'graph @forward level(aten) {\n  %%0: f32[2] = input "</script><script>alert(1)</script>"\n  %%1: f32[2] = aten::relu(%%0) loc("<!--\\xff\\xe2\\x80\\xa8", "Relu", 0)\n  output %%1 "<b>"\n}\n' >hostile.etir
t lower hostile.etir -o hostile.pte --report hostile.html --report hostile.json -q
grep -c '<script>alert' hostile.html
grep -o '"place[^]]*"from\|"name":"[^"]*u003[^"]*"' hostile.html
# Nothing is written, the program neither.
mkdir folder
t lower $data/relu.onnx --dim batch=1 -o b.pte --report folder
t lower $data/relu.onnx --dim batch=1 -o b.pte --report folder.html --report folder.html
mkdir folder.html
t lower $data/relu.onnx --dim batch=1 -o b.pte --report folder.html
t lower $data/relu.onnx --dim batch=1 -o b.json --report b.json
t lower $data/relu.onnx --dim batch=1 -o b.pte --report none/b.html
t lower $data/relu.onnx --dim batch=1 -o b.pte --report b.txt
cp $data/relu.onnx model.json
t lower model.json --dim batch=1 -o b.pte --report model.json
cmp $data/relu.onnx model.json
rm -r folder folder.html
ls
