"""The Llama of models.py as builders of fused decoders write it: GroupQueryAttention and SkipSimplifiedLayerNormalization of
com.microsoft, weights of 4 bits as MatMulNBits if asked for, sizes of the heads that only the graph tells, and a first layer that looks
back a window of tokens, as those of Gemma do."""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper

MS = "com.microsoft"
BLOCK = 32
WINDOW = 24


def pack(weight):
    """[N, K] as bytes of two codes [N, blocks, BLOCK / 2] and scales [N * blocks]. The weight of a block that is farthest from 0 has the
    code 0, which stands for -8 times the scale: half of the scales are below 0."""
    n, k = weight.shape
    blocks = weight.reshape(n, k // BLOCK, BLOCK)
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
    scales = (farthest / -8).astype(np.float32)
    codes = np.clip(np.rint(blocks / np.where(scales == 0, 1, scales)) + 8, 0, 15).astype(np.uint8)
    return codes[..., 0::2] | codes[..., 1::2] << 4, scales.reshape(-1)


class Writer:
    def __init__(self, model, four_bits, window_cache):
        self.model, self.config, self.four_bits = model, model.config, four_bits
        self.window = {"local_window_size": WINDOW, "sliding_window_cache": int(window_cache)}
        self.nodes, self.weights = [], []

    def constant(self, name, values):
        self.weights.append(onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, name="/".join(["", op, outputs[0]]), domain=domain, **attributes))
        return outputs[0]

    def product(self, x, weight, out):
        weight = weight.detach().numpy()
        if not self.four_bits:
            return self.node("MatMul", [x, self.constant(f"{out}.weight", weight.T)], [out])
        codes, scales = pack(weight)
        inputs = [x, self.constant(f"{out}.codes", codes), self.constant(f"{out}.scales", scales)]
        return self.node("MatMulNBits", inputs, [out], MS, K=weight.shape[1], N=weight.shape[0], bits=4, block_size=BLOCK, accuracy_level=4)

    def norm(self, x, layer, out, skip=None):
        weight = self.constant(f"{out}.norm", layer.weight.detach().numpy())
        if skip is None:
            return self.node("SimplifiedLayerNormalization", [x, weight], [out], epsilon=layer.variance_epsilon, axis=-1), x
        self.node("SkipSimplifiedLayerNormalization", [skip, x, weight], [out, "", "", f"{out}.sum"], MS, epsilon=layer.variance_epsilon)
        return out, f"{out}.sum"

    def attention(self, x, i, layer):
        import torch
        c, parts = self.config, layer.self_attn
        joined = torch.cat([parts.q_proj.weight, parts.k_proj.weight, parts.v_proj.weight])
        past = [f"past_key_values.{i}.{kind}" for kind in ("key", "value")]
        present = [f"present.{i}.{kind}" for kind in ("key", "value")]
        inputs = [self.product(x, joined, f"qkv.{i}"), "", "", *past, "last", "total", "cosines", "sines"]
        mixed = self.node("GroupQueryAttention", inputs, [f"mixed.{i}", *present], MS, num_heads=c.num_attention_heads,
                          kv_num_heads=c.num_key_value_heads, do_rotary=1, scale=c.head_dim ** -0.5, **(self.window if i == 0 else {}))
        return self.product(mixed, parts.o_proj.weight, f"attention.{i}")

    def feed_forward(self, x, i, layer):
        gate, up = (self.product(x, getattr(layer.mlp, f"{kind}_proj").weight, f"{kind}.{i}") for kind in ("gate", "up"))
        silu = self.node("Mul", [gate, self.node("Sigmoid", [gate], [f"sigmoid.{i}"])], [f"silu.{i}"])
        return self.product(self.node("Mul", [silu, up], [f"gated.{i}"]), layer.mlp.down_proj.weight, f"down.{i}")

    def lengths(self):
        """What the attention reads: the position of the last token, and the number of tokens."""
        one = self.constant("one", np.array([1], np.int64))
        count = self.node("ReduceSum", ["attention_mask", one], ["count"], keepdims=0)
        self.node("Cast", [self.node("Sub", [count, one], ["before"])], ["last"], to=TensorProto.INT32)
        shape = self.node("Shape", ["attention_mask"], ["shape"])
        self.node("Cast", [self.node("Gather", [shape, self.constant("index", np.array(1, np.int64))], ["length"], axis=0)], ["total"],
                  to=TensorProto.INT32)

    def rotations(self):
        c = self.config
        theta = c.rope_parameters["rope_theta"]
        angles = np.outer(np.arange(c.max_position_embeddings), theta ** -(np.arange(0, c.head_dim, 2) / c.head_dim))
        self.constant("cosines", np.cos(angles).astype(np.float32))
        self.constant("sines", np.sin(angles).astype(np.float32))

    def body(self):
        self.lengths()
        self.rotations()
        table = self.constant("embedding", self.model.model.embed_tokens.weight.detach().numpy())
        x, total = self.node("Gather", [table, "input_ids"], ["embedded"], axis=0), None
        for i, layer in enumerate(self.model.model.layers):
            x, total = self.norm(x, layer.input_layernorm, f"normed.{i}", total)
            x, total = self.norm(self.attention(x, i, layer), layer.post_attention_layernorm, f"normed_attention.{i}", total)
            x = self.feed_forward(x, i, layer)
        x, _ = self.norm(x, self.model.model.norm, "normed", total)
        self.product(x, self.model.lm_head.weight, "logits")

    def graph(self):
        c = self.config
        value = helper.make_tensor_value_info
        inputs = [value("input_ids", TensorProto.INT64, ["batch", "new"]), value("attention_mask", TensorProto.INT64, ["batch", "all"])]
        outputs = [value("logits", TensorProto.FLOAT, ["batch", "new", c.vocab_size])]
        for i in range(c.num_hidden_layers):
            for kind in ("key", "value"):
                heads = c.num_key_value_heads
                inputs.append(value(f"past_key_values.{i}.{kind}", TensorProto.FLOAT, ["batch", heads, "past", "head_size"]))
                outputs.append(value(f"present.{i}.{kind}", TensorProto.FLOAT, ["batch", heads, "all", "head_size"]))
        self.body()
        return helper.make_graph(self.nodes, "decoder", inputs, outputs, self.weights)


def export(model, folder, four_bits):
    """model.onnx, whose caches hold all tokens, and the same for lowering, of which the first ones may hold a window: what is behind it
    matters to nobody."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
    for name, window_cache in (("model.onnx", False), ("lowered.onnx", True)):
        graph = Writer(model, four_bits, window_cache).graph()
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), os.path.join(folder, name))
