"""The files that the commands of the documents speak of, small. Each function writes those of a section into a folder."""

import os
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
rng = np.random.default_rng(0)


def weight(name, *shape):
    return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32), name)


def integers(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def value(name, shape, dtype=F32):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(folder, name, nodes, inputs, outputs, weights=(), opset=17, domains=()):
    graph = helper.make_graph(nodes, "main", inputs, outputs, list(weights))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), os.path.join(folder, name))


def arrays(folder, shape, samples=16):
    """x.npy with one sample; samples.npz and inputs.npz, as --calibrate and --bundle take them."""
    x = rng.standard_normal((samples, *shape[1:])).astype(np.float32)
    np.save(os.path.join(folder, "x.npy"), x[:1])
    np.savez(os.path.join(folder, "samples.npz"), x=x)
    np.savez(os.path.join(folder, "inputs.npz"), x=x[:1])


def image(folder, batch="batch", name="x"):
    """model.onnx: a convolution, a head with tanh, and a last layer."""
    nodes = [helper.make_node("Conv", [name, "w"], ["c"], name="/body/conv", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"], name="/body/relu"),
             helper.make_node("GlobalAveragePool", ["r"], ["p"], name="/body/pool"),
             helper.make_node("Flatten", ["p"], ["f"], name="/head/flatten"),
             helper.make_node("Tanh", ["f"], ["t"], name="/head/tanh"),
             helper.make_node("Gemm", ["t", "v", "b"], ["y"], name="/head/fc")]
    save(folder, "model.onnx", nodes, [value(name, [batch, 3, 32, 32])], [value("y", [batch, 8])],
         [weight("w", 16, 3, 3, 3), weight("v", 16, 8), weight("b", 8)])
    arrays(folder, [1, 3, 32, 32])


def fixed_image(folder):
    image(folder, batch=1)


def program(folder):
    """model.onnx, model.pte of it and others of the same bytes; a budget that it is within."""
    fixed_image(folder)
    for name in ("model", "old", "new", "a", "b"):
        subprocess.run(["etc", "lower", "model.onnx", "-q", "-o", name + ".pte"], cwd=folder, check=True)
    with open(os.path.join(folder, "budget.yaml"), "w") as f:
        f.write("file: 64K\narena: 128K\nkernels: {different: 8}\n")


def fates(folder):
    shutil.copy(os.path.join(ROOT, "tests", "cli", "data", "why.onnx"), os.path.join(folder, "model.onnx"))


def any_image(folder):
    """An input 'image' whose height has no name."""
    nodes = [helper.make_node("Relu", ["image"], ["y"])]
    save(folder, "model.onnx", nodes, [value("image", [1, 3, None, 224])], [value("y", [1, 3, None, 224])])


def sequences(folder):
    """Two sequences of one length, which the file gives two names."""
    save(folder, "model.onnx", [helper.make_node("Add", ["a", "b"], ["y"])], [value("a", ["n", 4]), value("b", ["m", 4])],
         [value("y", ["n", 4])])


def decoder(folder):
    """A decoder with a cache that grows: decoder.onnx, and two calls for it."""
    nodes = [helper.make_node("Gather", ["table", "ids"], ["k"]),
             helper.make_node("Concat", ["past_key_values.0.key", "k"], ["present.0.key"], axis=1),
             helper.make_node("ReduceMean", ["present.0.key"], ["m"], axes=[1], keepdims=0),
             helper.make_node("MatMul", ["m", "head"], ["logits"])]
    save(folder, "decoder.onnx", nodes, [value("ids", [1, 1], I64), value("past_key_values.0.key", [1, "past", 8])],
         [value("logits", [1, 32]), value("present.0.key", [1, "total", 8])], [weight("table", 32, 8), weight("head", 8, 32)])
    for name in "ab":
        np.save(os.path.join(folder, name + ".npy"), np.full((1, 1), ord(name) % 32, np.int64))


def prefill(folder):
    """A cache of fixed size that two methods write: prefill.onnx, decode.onnx."""
    for name, count in (("prefill", 4), ("decode", 1)):
        nodes = [helper.make_node("Gather", ["table", "ids"], ["k"]),
                 helper.make_node("ScatterND", ["past.key", "at", "k"], ["present.key"]),
                 helper.make_node("MatMul", ["present.key", "head"], ["logits"])]
        save(folder, name + ".onnx", nodes, [value("ids", [count], I64), value("at", [count, 1], I64), value("past.key", [16, 8])],
             [value("logits", [16, 32]), value("present.key", [16, 8])], [weight("table", 32, 8), weight("head", 8, 32)])


def masked(folder):
    """A cache, and a mask whose length is named as a sum: decoder.onnx."""
    nodes = [helper.make_node("Concat", ["cache", "x"], ["all"], axis=1), helper.make_node("Mul", ["all", "mask"], ["y"])]
    save(folder, "decoder.onnx", nodes, [value("x", [1, "new"]), value("cache", [1, "past"]), value("mask", [1, "past + new"])],
         [value("y", [1, "past + new"])])


def voice(folder):
    """A detector of voice that has a branch for each rate: vad.onnx."""
    def branch(name, columns):
        return helper.make_graph([helper.make_node("MatMul", ["x", name], [name + "_y"])], name, [], [value(name + "_y", [1, 2])],
                                 [weight(name, columns, 2)])
    nodes = [helper.make_node("Equal", ["sr", "rate"], ["wide"]),
             helper.make_node("If", ["wide"], ["y"], then_branch=branch("wide_w", 64), else_branch=branch("narrow_w", 64))]
    save(folder, "vad.onnx", nodes, [value("x", [1, 64]), value("sr", [], I64)], [value("y", [1, 2])],
         [numpy_helper.from_array(np.array(16000, np.int64), "rate")])


def speech(folder):
    """Speech whose number of frames is in the data: speech.onnx."""
    nodes = [helper.make_node("NonZero", ["mask"], ["frames"]),
             helper.make_node("Cast", ["frames"], ["f"], to=F32),
             helper.make_node("ReduceSum", ["f", "axis"], ["y"], keepdims=0)]
    save(folder, "speech.onnx", nodes, [value("mask", [400], F32)], [value("y", [None])], [integers("axis", 0)])


def acme(folder):
    """acme.onnx, with operators that nobody has."""
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="/body/relu"),
             helper.make_node("StringSplit", ["r"], ["n"], name="/post/split"),
             helper.make_node("FancyOp", ["n"], ["f"], name="/head/fancy", domain="com.acme"),
             helper.make_node("FancyOp", ["f"], ["y"], name="/head/fancier", domain="com.acme")]
    save(folder, "acme.onnx", nodes, [value("x", [1, 4])], [value("y", [1, 4])], domains=["com.acme"])


def language(folder):
    """A decoder with optimum's names and a table of 2,048 positions."""
    model = onnx.load(os.path.join(ROOT, "tests", "cli", "data", "decoder.onnx"))
    table = next(x for x in model.graph.initializer if x.name == "places")
    table.CopyFrom(numpy_helper.from_array(np.cos(np.arange(8192, dtype=np.float32)).reshape(2048, 4), "places"))
    onnx.save(model, os.path.join(folder, "decoder.onnx"))


def mobilenet(folder):
    shutil.copy(os.path.join(ROOT, "build", "zoo", "mobilenet_v2", "model.onnx"), os.path.join(folder, "mobilenet_v2.onnx"))


def digits(folder):
    """The trained network of examples/digits with its images."""
    source = os.path.join(ROOT, "examples", "digits")
    for name in ("digits.onnx", "images.npy", "labels.npy"):
        shutil.copy(os.path.join(source, name), folder)


def siamese(folder):
    """A model that calls an encoder twice, and the program of the encoder."""
    subprocess.run([sys.executable, os.path.join(ROOT, "examples", "lowered", "model.py")], cwd=folder, check=True)
    subprocess.run(["etc", "lower", "-q", "encoder.onnx", "-o", "encoder.pte"], cwd=folder, check=True)


def plugins(folder):
    """The plug-ins of examples/pass and examples/backend, compiled with the headers that are installed with etc, and a model."""
    image(folder, batch=1)
    prefix = os.path.join(folder, "prefix")
    build = os.path.dirname(shutil.which("etc"))
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    include = os.path.join(prefix, "include")
    for source in ("pass/swap.c", "backend/demo.c"):
        name = os.path.splitext(os.path.basename(source))[0]
        subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", "-I", include, "-I",
                        os.path.join(include, "etc", "internal"), os.path.join(ROOT, "examples", source),
                        "-o", os.path.join(folder, name + ".so")], check=True)
