"""Models of the other files with two or three dimensions dynamic at the same time.

Each is exported at a middle size; further cases hold the smallest and largest sizes that the architecture takes and an
odd one between them. tests/conformance/models.py --dynamic lowers such a model once, over the range that the cases
span, and runs that program on all of them.
"""
import dataclasses

import numpy as np

import dense
import hf
import sequence
import tabular
import vision
from common import Spec, constant, floats, ids, mask, unit

ORIGINALS = {s.name: s for module in (vision, dense, sequence, tabular, hf) for s in module.SPECS}
IMAGE = {"input": {0: "batch", 2: "height", 3: "width"}}
WIDE = {"input": {0: "batch", 1: "length"}}


def sized(base, case, at, dynamic, **changes):
    """The Spec called base with a case for each tuple of sizes in `at`."""
    spec = ORIGINALS[base]
    return dataclasses.replace(spec, name=f"{base}_sizes", cases=[case(*sizes) for sizes in at], dynamic=dynamic,
                               **changes)


def images(base, *at, **changes):
    """batch, height and width."""
    spec = ORIGINALS[base]
    name = spec.inputs[0]
    return sized(base, lambda b, h, w: [floats(b, 3, h, w)], at, {name: IMAGE["input"]}, **changes)


def sequences(base, words, *at, name="input", **changes):
    """Token ids over batch and length."""
    return sized(base, lambda b, n: [ids(words, b, n, low=3)], at, {name: WIDE["input"]}, **changes)


def masked(base, *at, **changes):
    """Token ids and attention mask over batch and length; in odd rows the end is masked."""
    def case(b, n):
        return [ids(hf.WORDS, b, n, low=3), mask(b, n, [max(1, n - 2 * (i % 2)) for i in range(b)])]
    return sized(base, case, at, {i: WIDE["input"] for i in ORIGINALS[base].inputs}, **changes)


def decoding(base, kv_heads, *at):
    """A decoder with a cache over batch, new and past length; past 0 is the first call."""
    spec = ORIGINALS[base]

    def case(b, past, new):
        inputs = [ids(hf.WORDS, b, new), constant(np.ones((b, past + new), np.int64)),
                  constant(np.tile(np.arange(past, past + new, dtype=np.int64), (b, 1)))]
        return inputs + [floats(b, kv_heads, past, 12)] * (2 * hf.LAYERS)
    dynamic = {i: {0: "batch", 2: "past"} for i in spec.inputs}
    dynamic.update(input_ids={0: "batch", 1: "new"}, attention_mask={0: "batch", 1: "total"},
                   position_ids={0: "batch", 1: "new"})
    return sized(base, case, at, dynamic)


def frames(base, channels, *at, **changes):
    """[batch, channels, length]."""
    return sized(base, lambda b, n: [floats(b, channels, n)], at, {"input": {0: "batch", 2: "length"}}, **changes)


def graph(base, *at):
    def case(n, e):
        return [floats(n, 6), lambda rng: rng.integers(0, n, (2, e), dtype=np.int64)]
    return sized(base, case, at, {"nodes": {0: "nodes"}, "edges": {1: "edges"}})


TEXT_SIZES = ((2, 9), (1, 1), (3, 17), (5, 32))
TOKENS = {"input_ids": {0: "batch", 1: "target"}, "encoder_hidden_states": {0: "batch", 1: "source"}}

SPECS = [
    images("resnet18", (2, 64, 48), (1, 33, 33), (3, 71, 96)),
    images("resnext", (2, 48, 40), (1, 32, 32), (3, 51, 63)),
    images("mobilenet_v1", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    images("mobilenet_v2_dynamo", (2, 64, 48), (3, 33, 49), (4, 71, 96)),
    images("mobilenet_v3", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    images("efficientnet", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    images("squeezenet", (2, 64, 48), (3, 33, 35), (4, 71, 96), dynamo=True, opset=18),
    images("densenet", (2, 32, 40), (1, 16, 16), (3, 51, 63)),
    images("shufflenet_v2", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    images("ghostnet", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    images("inception", (2, 64, 48), (1, 33, 33), (3, 71, 96)),
    images("convnext", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    images("hf_resnet", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    images("hf_mobilenet_v2", (2, 64, 96), (1, 32, 32), (3, 96, 64)),
    images("unet", (2, 48, 32), (1, 16, 16), (3, 52, 64)),
    images("unet_nearest", (2, 48, 32), (1, 16, 16), (3, 52, 64), opset=11),
    images("unet_bilinear_dynamo", (2, 48, 32), (3, 16, 24), (4, 52, 64)),
    images("deeplab", (2, 48, 64), (1, 24, 24), (3, 53, 75)),
    images("segmenter", (2, 48, 64), (1, 16, 16), (3, 56, 72)),
    images("segformer", (2, 64, 96), (1, 32, 32), (3, 70, 128)),
    images("yolo", (2, 96, 64), (1, 32, 32), (3, 96, 128)),
    images("yolo3", (2, 96, 64), (1, 32, 32), (3, 96, 128)),
    images("edsr_dynamo", (2, 20, 16), (3, 5, 7), (4, 25, 31)),
    images("style_transfer", (2, 40, 32), (1, 16, 16), (3, 52, 56)),
    images("vqvae", (2, 32, 24), (1, 8, 8), (3, 32, 44)),
    images("poolformer", (2, 64, 48), (1, 32, 32), (3, 71, 96)),
    sized("dcgan_generator", lambda b, h, w: [floats(b, 32, h, w)], ((2, 2, 3), (1, 1, 1), (3, 4, 5)), IMAGE),
    sized("diffusion", lambda b, h, w: [floats(b, 3, h, w), ids(1000, b)], ((2, 16, 12), (1, 8, 8), (3, 20, 24)),
          {"noisy": IMAGE["input"], "step": {0: "batch"}}),
    sized("matting", lambda b, h, w: [unit(b, 3, h, w), ids(3, b, h, w)], ((2, 24, 16), (1, 3, 3), (3, 25, 31)),
          {"image": IMAGE["input"], "trimap": {0: "batch", 1: "height", 2: "width"}}),
    sized("video_3d", lambda b, h, w: [floats(b, 3, 8, h, w)], ((2, 32, 24), (1, 16, 16), (3, 37, 41)),
          {"input": {0: "batch", 3: "height", 4: "width"}}),
    sized("crnn_ocr", lambda b, w: [floats(b, 1, 32, w)], ((2, 64), (1, 4), (3, 75)), {"input": {0: "batch", 3: "width"}}),
    sequences("lstm_bi_text", 80, (2, 10), (1, 1), (3, 17)),
    sequences("gru_text", 80, (2, 10), (1, 1), (3, 17)),
    sequences("rnn_text", 80, (2, 10), (1, 1), (3, 17)),
    sequences("seq2seq", 40, (2, 7), (1, 1), (3, 13)),
    sized("text_cnn", lambda b, n: [ids(100, b, n)], ((2, 20), (1, 5), (3, 27)), WIDE),
    sized("tagger", lambda b, n, c: [ids(100, b, n), ids(30, b, n, c)], ((2, 6, 5), (1, 1, 1), (3, 9, 7)),
          {"words": WIDE["input"], "chars": {0: "batch", 1: "length", 2: "letters"}}),
    sized("transducer", lambda b, n, m: [floats(b, n, 20), ids(17, b, m)], ((2, 11, 5), (1, 1, 1), (3, 17, 9)),
          {"frames": {0: "batch", 1: "frames"}, "labels": {0: "batch", 1: "labels"}}),
    sized("conformer_dynamo", lambda b, n: [floats(b, n, 32)], ((2, 20), (3, 5), (4, 37)), WIDE),
    frames("tcn", 6, (2, 40), (1, 1), (3, 57)),
    frames("wavenet", 1, (2, 80), (1, 1), (3, 57)),
    frames("quartznet", 20, (2, 60), (1, 3), (3, 77)),
    frames("demucs", 1, (2, 256), (1, 32), (3, 272)),
    masked("bert", *TEXT_SIZES),
    masked("distilbert", *TEXT_SIZES),
    masked("roberta", *TEXT_SIZES),
    masked("albert", *TEXT_SIZES),
    masked("mobilebert", *TEXT_SIZES),
    masked("deberta_v2_dynamo", (2, 9), (3, 17), (5, 32)),
    masked("gpt2_script", *TEXT_SIZES),
    masked("opt", (2, 9), (3, 17), (5, 32)),
    masked("bloom", (2, 9), (3, 17), (5, 32)),
    masked("llama_script", *TEXT_SIZES),
    masked("qwen2", (2, 9), (3, 17), (5, 32)),
    masked("gemma2", (2, 9), (3, 17), (5, 32)),
    masked("phi", (2, 9), (3, 17), (5, 32)),
    masked("t5_encoder", *TEXT_SIZES),
    decoding("gpt2_kv", hf.HEADS, (2, 11, 3), (1, 0, 5), (1, 1, 1), (3, 30, 1)),
    decoding("llama_kv", 2, (2, 11, 3), (1, 0, 5), (1, 1, 1), (3, 30, 1)),
    decoding("qwen3_kv", 2, (2, 11, 3), (1, 0, 5), (1, 1, 1), (3, 30, 1)),
    sized("t5_decoder", lambda b, n, m: [ids(hf.WORDS, b, n), floats(b, m, hf.DIM)], ((2, 6, 9), (3, 1, 4), (5, 17, 25)),
          TOKENS),
    Spec("whisper_decoder_sizes", hf.part("WhisperConfig", hf.WHISPER, "WhisperForConditionalGeneration", "decoder",
                                          ["input_ids", "encoder_hidden_states"], ["last_hidden_state"]),
         [[ids(hf.WORDS, b, n), floats(b, m, hf.DIM)] for b, n, m in ((2, 6, 9), (3, 1, 4), (5, 17, 25))],
         inputs=["input_ids", "encoder_hidden_states"], outputs=["last_hidden_state"], dynamic=TOKENS, dynamo=True,
         opset=18, source="transformers Whisper decoder", needs="transformers"),
    sized("bart", lambda b, n, m: [ids(hf.WORDS, b, n), ids(hf.WORDS, b, m)], ((2, 9, 5), (3, 4, 2), (5, 25, 17)),
          {"input_ids": {0: "batch", 1: "source"}, "decoder_input_ids": {0: "batch", 1: "target"}}),
    sized("wav2vec2", lambda b, n: [floats(b, n)], ((2, 2000), (1, 400), (3, 2501)),
          {"input_values": {0: "batch", 1: "samples"}}),
    graph("gcn_scatter", (9, 30), (1, 1), (17, 41)),
    sized("gat_dense", lambda n: [floats(n, 6), ids(2, n, n)], ((10, ), (1, ), (17, )),
          {"nodes": {0: "nodes"}, "adjacency": {0: "nodes", 1: "nodes"}}),
    sized("deep_set", lambda b, n: [floats(b, n, 5), lambda rng: rng.random((b, n)) < 0.7], ((3, 9), (1, 4), (5, 13)),
          {"set": {0: "batch", 1: "members"}, "mask": {0: "batch", 1: "members"}}),
    frames("pointnet", 3, (2, 64), (1, 1), (3, 77)),
    sized("two_tower", lambda u, i: [floats(u, 12), floats(i, 9)], ((2, 20), (1, 10), (5, 33)),
          {"user": {0: "users"}, "items": {0: "items"}}),
    sized("mixture_of_experts", lambda n: [floats(n, 16)], ((6, ), (1, ), (11, )), {"input": {0: "tokens"}}),
]
