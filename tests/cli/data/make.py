#!/usr/bin/env python3
"""Writes the small models and arrays that the tests of the command line use (needs onnx and numpy). The results are committed."""

import os

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(name, nodes, inputs, outputs, initializers=(), check=True):
    graph = helper.make_graph(nodes, "main", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)][: 1 if check else 2], ir_version=8, producer_name="")
    if check:
        onnx.checker.check_model(model)
    onnx.save(model, os.path.join(HERE, name))
    return model


def window():
    """Samples of which a window needs 100, beside a state with the same batch, in dims without names. As in voice activity detectors a
    branch has another rank when there is one sample of a batch, so that the sizes must be known."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> main (float[a,b] x, float[2,c,4] s) => (float[2,c,5] y) {
        one = Constant<value_ints = [1]>() w = Constant<value = float[1,1,2] {1.0, 2.0}>() u = Unsqueeze(x, one)
        v = Conv<dilations = [99]>(u, w) m = ReduceMean<axes = [1, 2], keepdims = 0>(v) n = Shape<start = 0, end = 1>(x) c0 = Equal(n, one)
        i = If (c0) <then_branch = t () => (float p) { p = Squeeze(m) }, else_branch = e () => (float[k] q) { q = Neg(m) }>
        shape = Constant<value_ints = [1, -1, 1]>() r = Reshape(i, shape) twice = Constant<value_ints = [2, 1, 1]>() g = Tile(r, twice)
        y = Concat<axis = 2>(g, s) }""")
    for v in (*model.graph.input, *model.graph.output):
        for dim in v.type.tensor_type.shape.dim:
            dim.ClearField("dim_param")
    onnx.save(model, os.path.join(HERE, "window.onnx"))


def frames():
    """Frames of 64 samples, taken one by one. For few samples there are none, and nothing declares their shape."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> main (float[1,n] x) => (float[f,s] y) {
        zero = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>() hop = Constant<value = int64 {32}>() reach = Constant<value_ints = [64]>()
        axis = Constant<value_ints = [0]>() line = Squeeze(x, axis) shape = Shape(line) rest = Sub(shape, reach) last = Squeeze(rest)
        end = Add(last, one) starts = Range(zero, end, hop)
        y = Scan<num_scan_inputs = 1, body = b (int64 i) => (float[w] frame) { from = Unsqueeze(i, axis) to = Add(from, reach) frame = Slice(line, from, to) }>(starts) }""")
    onnx.save(model, os.path.join(HERE, "frames.onnx"))


def size():
    """An image that gets the size that the model is given, two numbers; as pages are straightened."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> main (float[1,3,h,w] x, int64[k] size) => (float[1,3,h,w] y) {
        zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>() shape = Shape(x) front = Slice(shape, zero, two)
        rows = Gather(size, zero) columns = Gather(size, one) sizes = Concat<axis = 0>(front, rows, columns) y = Resize<mode = "linear">(x, , , sizes) }""")
    onnx.save(model, os.path.join(HERE, "size.onnx"))


def regulator():
    """A length that data decide, 1 or more, and what is computed on so many frames; as in speech synthesis."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> main (float[2,3] x) => (float[2,t] y) {
        one = Constant<value = float {1.0}>() start = Constant<value = int64 {0}>() step = Constant<value = int64 {1}>() e = Exp(x)
        d = ReduceSum<keepdims = 0>(e) c = Clip(d, one) n = Cast<to = 7>(c) places = Range(start, n, step) f = Cast<to = 1>(places)
        s = Sigmoid(f) l = ReduceMax<axes = [1], keepdims = 1>(e) m = Mul(l, s) y = Tanh(m) }""")
    onnx.save(model, os.path.join(HERE, "regulator.onnx"))


def decoder():
    """A layer of attention over a cache, with optimum's names."""
    node = helper.make_node
    ints = {"heads": [1, -1, 2, 2], "rows": [1, -1, 4], "axes": [1, 2]}
    nodes = [node("Gather", ["words", "input_ids"], ["w"]), node("Gather", ["places", "position_ids"], ["p"]), node("Add", ["w", "p"], ["x"]),
             node("Reshape", ["x", "heads"], ["h"]), node("Transpose", ["h"], ["q"], perm=[0, 2, 1, 3]),
             node("Concat", ["past_key_values.0.key", "q"], ["present.0.key"], axis=2),
             node("Concat", ["past_key_values.0.value", "q"], ["present.0.value"], axis=2),
             node("Transpose", ["present.0.key"], ["kt"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "kt"], ["s"]),
             node("Cast", ["attention_mask"], ["m"], to=TensorProto.FLOAT), node("Unsqueeze", ["m", "axes"], ["m4"]), node("Mul", ["s", "m4"], ["sm"]),
             node("Softmax", ["sm"], ["a"], axis=-1), node("MatMul", ["a", "present.0.value"], ["o"]),
             node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]), node("Reshape", ["ot", "rows"], ["y"]), node("MatMul", ["y", "back"], ["logits"])]
    words = np.sin(np.arange(32, dtype=np.float32)).reshape(8, 4)
    initializers = [onnx.numpy_helper.from_array(np.array(v, np.int64), k) for k, v in ints.items()]
    initializers += [onnx.numpy_helper.from_array(a, k) for k, a in
                     (("words", words), ("back", words.T.copy()), ("places", np.cos(np.arange(64, dtype=np.float32)).reshape(16, 4)))]
    cache = [f"0.{kind}" for kind in ("key", "value")]
    inputs = [value(n, [1, d], TensorProto.INT64) for n, d in (("input_ids", "n"), ("attention_mask", "total"), ("position_ids", "n"))]
    inputs += [value(f"past_key_values.{c}", [1, 2, "past", 2]) for c in cache]
    outputs = [value("logits", [1, "n", 8]), *(value(f"present.{c}", [1, 2, "end", 2]) for c in cache)]
    save("decoder.onnx", nodes, inputs, outputs, initializers)
    initializers.append(onnx.numpy_helper.from_array(np.array(-1, np.int64), "last"))
    nodes[-1:] = [node("Gather", ["y", "last"], ["row"], axis=1), node("MatMul", ["row", "back"], ["logits"])]
    save("decoder_last.onnx", nodes, inputs, [value("logits", [1, 8]), *outputs[1:]], initializers)
    # A cache of float16 within, whose inputs and outputs stayed float32.
    half = [node("Cast", ["q"], ["q16"], to=TensorProto.FLOAT16)]
    for c in cache:
        half += [node("Cast", [f"past_key_values.{c}"], [f"{c}.past"], to=TensorProto.FLOAT16), node("Concat", [f"{c}.past", "q16"], [f"{c}.all"], axis=2),
                 node("Cast", [f"{c}.all"], [f"present.{c}"], to=TensorProto.FLOAT)]
    save("decoder_half.onnx", [*nodes[:5], *half, *nodes[7:]], inputs, [value("logits", [1, 8]), *outputs[1:]], initializers)
    os.makedirs(os.path.join(HERE, "llm"), exist_ok=True)
    for name, array in (("tokens3", [[3, 1, 4]]), ("tokens1", [[5]]), ("at0", [0]), ("at3", [3])):
        np.save(os.path.join(HERE, "llm", f"{name}.npy"), np.array(array, np.int64))


def merged_decoder():
    """A decoder as older exporters leave it: tokens of 32 bits, an If on use_cache_branch, caches whose first dim is batch and heads."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> main (int32[batch,n] input_ids, int32[batch,total] attention_mask,
        bool[1] use_cache_branch, float[bh,2,past] "past_key_values.0.key", float[bh,past,2] "past_key_values.0.value")
        => (float[batch,n,8] logits, float[bh,2,end] "present.0.key", float[bh,end,2] "present.0.value") {
        heads = Constant<value_ints = [-1, 2, 2]>() rows = Constant<value_ints = [1, -1, 4]>() w = Gather(words, input_ids) h = Reshape(w, heads)
        q = Transpose<perm = [1, 0, 2]>(h) k = Transpose<perm = [1, 2, 0]>(h)
        "present.0.key", "present.0.value" = If(use_cache_branch) <
            then_branch = t () => (float[a,b,c] tk, float[d,e,f] tv) { tk = Concat<axis = 2>("past_key_values.0.key", k) tv = Concat<axis = 1>("past_key_values.0.value", q) },
            else_branch = f () => (float[g,h,i] fk, float[j,k,l] fv) { fk = Identity(k) fv = Identity(q) }>
        s = MatMul(q, "present.0.key") m = Cast<to = 1>(attention_mask) one = Constant<value_ints = [1]>() m3 = Unsqueeze(m, one) sm = Mul(s, m3)
        a = Softmax<axis = -1>(sm) o = MatMul(a, "present.0.value") ot = Transpose<perm = [1, 0, 2]>(o) y = Reshape(ot, rows) logits = MatMul(y, back) }""")
    words = np.sin(np.arange(32, dtype=np.float32)).reshape(8, 4)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(a, k) for k, a in (("words", words), ("back", words.T.copy())))
    onnx.save(model, os.path.join(HERE, "decoder_merged.onnx"))


def group_query():
    """GroupQueryAttention whose past and present have dims of different names, as onnxruntime-genai writes them."""
    node = helper.make_node("GroupQueryAttention", ["q", "k", "v", "past_key", "past_value", "seqlens_k", "total_sequence_length"],
                            ["y", "present_key", "present_value"], "attention", domain="com.microsoft", num_heads=2, kv_num_heads=1)
    inputs = [value("q", [1, "n", 8]), value("k", [1, "n", 4]), value("v", [1, "n", 4]), *(value(f"past_{x}", [1, 1, "past", 4]) for x in ("key", "value")),
              value("seqlens_k", [1], TensorProto.INT32), value("total_sequence_length", [], TensorProto.INT32)]
    outputs = [value("y", [1, "n", 8]), *(value(f"present_{x}", [1, 1, "total", 4]) for x in ("key", "value"))]
    graph = helper.make_graph([node], "main", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name=""), os.path.join(HERE, "group_query.onnx"))


def why():
    """An operator for each fate that `etc why` tells: fused, a kernel, folded, read at import, dead, in a branch, in a function."""
    node = helper.make_node
    array = onnx.numpy_helper.from_array
    rows = array(np.array([1, 64], np.int64), "rows")
    weight = np.arange(36, dtype=np.float32).reshape(4, 1, 3, 3) / 36
    channels = {k: array(np.array(v, np.float32), k) for k, v in (("scale", [1, 2, 3, 4]), ("shift", [0, 1, 0, 1]), ("mean", [0, 0, 1, 1]), ("var", [1, 4, 1, 4]))}
    branches = {f"{k}_branch": helper.make_graph([node(op, ["flat"], [k], name="inner")], k, [], [value(k, [1, 64])]) for k, op in (("then", "Neg"), ("else", "Abs"))}
    fixed = {f"{k}_branch": helper.make_graph([node(op, ["flat"], [name], name=name)], k, [], [value(name, [1, 64])])
             for k, op, name in (("then", "Sin", "taken"), ("else", "Cos", "never"))}
    nodes = [node("Conv", ["x", "weight"], ["c"], name="conv", pads=[1, 1, 1, 1]),
             node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], name="norm"), node("Relu", ["n"], ["r"], name="act"),
             node("Constant", [], ["two"], name="two", value=array(np.float32(2), "v")), node("Constant", [], ["three"], name="three", value=array(np.float32(3), "v")),
             node("Mul", ["two", "three"], ["six"], name="product"), node("Mul", ["r", "six"], ["m"], name="times"),
             node("Erf", ["m"], ["e"], name="erf"), node("Erf", ["m"], ["e2"], name="twin"), node("Exp", ["m"], ["nobody"], name="dead"),
             node("Add", ["e", "e2"], ["s"], name="sum"), node("Reshape", ["s", "rows"], ["flat"], name="flatten"),
             node("If", ["flag"], ["y"], name="choice", **branches), node("Tanh", ["flat"], ["t"]),
             node("If", ["always"], ["k"], name="fixed", **fixed), node("Identity", ["k"], ["w"], name="same"), node("Double", ["t"], ["z"], name="call", domain="local")]
    double = helper.make_function("local", "Double", ["a"], ["b"], [node("Add", ["a", "a"], ["b"], name="adds")], [helper.make_opsetid("", 17)])
    graph = helper.make_graph(nodes, "main", [value("x", [1, 1, 4, 4]), value("flag", [], TensorProto.BOOL)], [value("y", [1, 64]), value("z", [1, 64]), value("w", [1, 64])],
                              [rows, array(weight, "weight"), array(np.array(True), "always"), array(np.ones(3, np.float32), "unused"), *channels.values()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)], ir_version=8, producer_name="", functions=[double])
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(HERE, "why.onnx"))


def main():
    node = helper.make_node
    why()
    merged_decoder()
    save("add.onnx", [node("Add", ["x", "y"], ["out/sum"], name="the_add")], [value("x", [2, 3]), value("y", [2, 3])],
         [value("out/sum", [2, 3])])
    save("relu.onnx", [node("Relu", ["x"], ["y"], name="the_relu")], [value("x", ["batch", 4])], [value("y", ["batch", 4])])
    save("u64.onnx", [node("Relu", ["x"], ["y"], name="the_relu")], [value("x", [2], TensorProto.UINT64)], [value("y", [2], TensorProto.UINT64)])
    save("two_outputs.onnx", [node("Relu", ["x"], ["a/b"]), node("Neg", ["x"], ["a:b"])], [value("x", [2])],
         [value("a/b", [2]), value("a:b", [2])])
    save("strings.onnx", [node("StringNormalizer", ["x"], ["y"], name="strings")],
         [value("x", [2], TensorProto.STRING)], [value("y", [2], TensorProto.STRING)])
    save("unknown.onnx", [node("Magic", ["x"], ["z"], name="the_magic", domain="com.example"), node("Rellu", ["z"], ["y"])],
         [value("x", [2])], [value("y", [2])], check=False)
    save("magic.onnx", [node("Magic", ["x"], ["z"], name="the_magic", domain="com.example", factor=0.5), node("Relu", ["z"], ["y"])],
         [value("x", ["batch", 4])], [value("y", ["batch", 4])], check=False)
    # batch == n, m == 2 * batch, and rows of two: n is even
    save("dims.onnx", [node("Add", ["x", "z"], ["sum"], name="the_add"),
                       node("Concat", ["x", "x"], ["twice"], name="the_concat", axis=0),
                       node("Mul", ["twice", "q"], ["product"], name="the_mul"),
                       node("Constant", [], ["shape"], value_ints=[-1, 8]),
                       node("Reshape", ["sum", "shape"], ["pairs"], name="the_reshape")],
         [value("x", ["batch", 4]), value("z", ["n", 4]), value("q", ["m", 4])],
         [value("pairs", ["p", 8]), value("product", ["m2", 4])])
    window()
    frames()
    size()
    regulator()
    # where nodes come from, as torch notes it
    trace = 'File "/a/b/main.py", line 3, in <module>\n    model(x)\n  File "/a/b/model.py", line 12, in forward\n    return self.act(x)'
    nodes = [node("Relu", ["x"], ["r"], name="act"), node("Reshape", ["r", "s"], ["y"], name="view"), node("Constant", [], ["s"], value_ints=[4])]
    for n, scopes, stack in ((nodes[0], "['', 'encoder', 'encoder.0', 'act']", trace), (nodes[1], "['', 'view']", trace + "\n")):
        for key, text in (("pkg.torch.onnx.fx_node", "left out"), ("pkg.torch.onnx.name_scopes", scopes), ("pkg.torch.onnx.stack_trace", stack)):
            n.metadata_props.add(key=key, value=text)
    save("origin.onnx", [nodes[0], nodes[2], nodes[1]], [value("x", [2, "n"])], [value("y", ["m"])])
    # one name on dims that need not be equal, and a name that is none
    save("names.onnx", [node("Concat", ["x", "z"], ["y"], name="the_concat", axis=0)],
         [value("x", ["n", "?"]), value("z", ["n", "?"])], [value("y", ["m", "?"])])
    save("accumulate.onnx", [node("Add", ["x", "h"], ["hn"]), node("Mul", ["hn", "hn"], ["y"])],
         [value("x", [2, 3]), value("h", [2, 3])], [value("y", [2, 3]), value("hn", [2, 3])])
    save("grow.onnx", [node("Concat", ["past.0", "x"], ["present.0"], axis=0), node("ReduceMax", ["present.0"], ["y"])],
         [value("x", [2, 3]), value("past.0", ["p", 3])], [value("y", [1, 1]), value("present.0", ["q", 3])])
    decoder()
    group_query()
    # For backends: nodes that XNNPACK takes, in a batch that varies, around some that it refuses.
    save("mixed.onnx", [node("Exp", ["x"], ["e"], name="enc/exp"), node("Mul", ["e", "x"], ["m"], name="enc/mul"),
                        node("Erf", ["m"], ["f"], name="enc/erf"), node("Tanh", ["f"], ["t"], name="dec/tanh"),
                        node("Softmax", ["t"], ["y"], name="dec/softmax"), node("Abs", ["i"], ["j"], name="whole"),
                        node("Elu", ["x"], ["z"], name="bent", alpha=-1.0)],
         [value("x", ["batch", 4]), value("i", [2], TensorProto.INT64)],
         [value("y", ["batch", 4]), value("j", [2], TensorProto.INT64), value("z", ["batch", 4])])
    weight = onnx.numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32), "w")
    model = save("external.onnx", [node("Mul", ["x", "w"], ["y"], name="the_mul")], [value("x", [4])], [value("y", [4])], [weight])
    onnx.save_model(model, os.path.join(HERE, "external.onnx"), save_as_external_data=True, location="external weights.bin",
                    size_threshold=0)
    for name, array in (("x23.npy", np.arange(6, dtype=np.float32).reshape(2, 3) - 3),
                        ("ones23.npy", np.ones((2, 3), np.float32)), ("f64.npy", np.ones((2, 3))),
                        ("x24.npy", np.arange(8, dtype=np.float32).reshape(2, 4) - 4),
                        ("x94.npy", np.zeros((9, 4), np.float32)), ("x44.npy", np.ones((4, 4), np.float32)),
                        ("x34.npy", np.ones((3, 4), np.float32)), ("x64.npy", np.ones((6, 4), np.float32)), ("x2.npy", np.array([-1, 2], np.float32)),
                        ("fortran.npy", np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3) - 3)),
                        ("big.npy", (np.arange(6).reshape(2, 3) - 3).astype(">f4"))):
        np.save(os.path.join(HERE, name), array)
    save_samples()


def save_samples():
    """Data sets for relu.onnx and add.onnx, right and wrong: calib/."""
    folder = os.path.join(HERE, "calib")
    os.makedirs(os.path.join(folder, "folder"), exist_ok=True)
    x = np.linspace(-3, 5, 40, dtype=np.float32).reshape(10, 4)
    bad = x.copy()
    bad[6, 1] = np.nan
    for name, write, arrays in (("relu", np.savez, {"x": x}), ("relu_deflated", np.savez_compressed, {"x": x, "labels": np.arange(10)}),
                                ("nan", np.savez, {"x": bad}), ("infinite", np.savez, {"x": np.where(np.isnan(bad), -np.inf, bad)}),
                                ("name", np.savez, {"X": x, "y": x}), ("shape", np.savez, {"x": x.reshape(8, 5)}),
                                ("type", np.savez, {"x": x.astype(np.float64)}), ("bytes", np.savez, {"x": x.astype(np.uint8)}),
                                ("object", np.savez, {"x": np.array([[None] * 4])}), ("empty", np.savez, {"x": x[:0]}),
                                ("none", np.savez, {}), ("index", np.savez, {"row": np.array([0, 1, 9, 2])}), ("fortran", np.savez, {"x": np.asfortranarray(x)}),
                                ("add", np.savez, {"x": x.reshape(40)[:36].reshape(12, 3), "y": x.reshape(40)[:24].reshape(8, 3)}),
                                ("rows", np.savez, {"x": x.reshape(40)[:15].reshape(5, 3), "y": x.reshape(40)[:15].reshape(5, 3)}),
                                ("folder/b", np.savez_compressed, {"x": x[4:]}), ("folder/a", np.savez, {"x": x[:4]})):
        write(os.path.join(folder, name + ".npz"), **arrays)
    with open(os.path.join(folder, "relu_deflated.npz"), "rb") as f:
        whole = f.read()
    for name, data in (("cut", whole[:-40]), ("damaged", whole[:200] + b"?" + whole[201:])):
        with open(os.path.join(folder, name + ".npz"), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
