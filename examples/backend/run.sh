#!/bin/sh
. "$(dirname "$0")/../common.sh"

"$PYTHON" "$here/model.py"
plugin "$here/demo.c"

etc backends --plugin ./demo.so >backends.txt
says "demo:max_value=N" backends.txt

# Two delegates, [mm, add] and [mm, add], with sub between.
etc lower f.onnx --plugin ./demo.so --backend demo:max_value=4,note=tutorial -o f.pte --artifacts stages
etc print f.pte --no-locations >f.txt
grep -c 'executorch_call_delegate("BackendWithCompilerDemo"' f.txt | grep -qx 2 || fail "there are not two delegates"
says "aten::sub" f.txt
etc inspect f.pte --plugin ./demo.so -v --extract 1=one.txt --extract 2=two.txt >inspect.txt
says "compile spec 'max_value': 1 byte, 04" inspect.txt
says "compile spec 'note': 8 bytes, 'tutorial'" inspect.txt
printf 'etc-demo 3\nmm 0 1\nadd 3 2\nout 4\n' >expected.txt
same expected.txt one.txt
same expected.txt two.txt
says "aten::mm" stages/06-to_backend.delegate-2.etir

# Equal bytes are in the file once.
grep -c 'etc-demo' f.pte >/dev/null
[ "$(grep -ao 'etc-demo' f.pte | wc -l)" = 1 ] || fail "equal delegates are there twice"

# They run through the reader of the plug-in.
etc verify f.pte --plugin ./demo.so
etc run f.pte --plugin ./demo.so --input 0=a.npy --input 1=x.npy --input 2=b.npy --output out
"$PYTHON" -c 'import glob, numpy; numpy.testing.assert_allclose(numpy.load(glob.glob("out/*.npy")[0]), numpy.load("z.npy"), 1e-5)'
refused 1 "nothing here runs delegates of 'BackendWithCompilerDemo'" "$ETC" run f.pte --input 0=a.npy --input 1=x.npy --input 2=b.npy

# ExecuTorch's own reader finds the same, where it is installed.
"$PYTHON" - <<'END'
try:
    from executorch.exir._serialize._program import deserialize_pte_binary
except ImportError:
    print("executorch is not installed: its reader is not asked")
else:
    program = deserialize_pte_binary(open("f.pte", "rb").read())
    program = getattr(program, "program", program)
    delegates = program.execution_plan[0].delegates
    assert [d.id for d in delegates] == ["BackendWithCompilerDemo"] * 2, delegates
    for d in delegates:
        assert [(s.key, bytes(s.value)) for s in d.compile_specs] == [("max_value", b"\x04"), ("note", b"tutorial")], d
END

# sin as one instruction, and the whole model.
etc lower sin.onnx --plugin ./demo.so --backend demo:whole -o sin.pte
etc inspect sin.pte --extract 1=sin.txt >/dev/null
printf 'etc-demo 1\nsin 0\nout 1\n' >expected.txt
same expected.txt sin.txt
refused 1 "'sub' (aten::sub.Tensor): the op is not mm, add or sin" "$ETC" lower f.onnx --plugin ./demo.so --backend demo:whole -o bad.pte

# Bytes that are no code of the demo.
"$PYTHON" -c 'import sys; data = open("f.pte", "rb").read(); open("hostile.pte", "wb").write(data.replace(b"add 3 2", b"add 9 2"))'
refused 1 "a line is no instruction" "$ETC" verify hostile.pte --plugin ./demo.so

# Answers that are wrong are the plug-in's fault.
sed 's/g->nodes\[n\].tag = taken ? tag : 0;/g->nodes[n].tag = 1000000;/' "$here/demo.c" >tags.c
plugin tags.c
refused 1 "of plug-in 'demo' puts" "$ETC" lower f.onnx --plugin ./tags.so --backend demo -o bad.pte
sed 's/code->input_count = inputs;/code->input_count = inputs; m->values[0] = 4711;/' "$here/demo.c" >handles.c
plugin handles.c
refused 1 "of plug-in 'demo' names a value as input 0" "$ETC" lower f.onnx --plugin ./handles.so --backend demo -o bad.pte
sed 's/etc-demo %u\\n", inputs/etc-demo %u\\n", inputs + 1/' "$here/demo.c" >bytes.c
plugin bytes.c
refused 1 "of plug-in 'demo' made code that is wrong" "$ETC" lower f.onnx --plugin ./bytes.so --backend demo -o bad.pte
echo "backend: ok"
