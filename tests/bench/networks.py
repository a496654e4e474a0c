"""Networks at the sizes that people run, with seeded random weights, for tests/bench/xnnpack.py.

The blocks are those of tests/zoo, whose models are small; here they have the published widths, depths and inputs, and the
models of the `transformers` package have the settings of their smallest published variants. They are spelled as the
package spells them when nothing is said, which is attention by torch's `scaled_dot_product_attention`. What is written in
this file is modules of torch.nn as such networks are usually written: vit_tiny and mobilevit_xxs become as many calls and
delegates in the official programs as the ones of the package `timm` do. Both ways, the official one and ours, start from
the same module. The exporter to ONNX is either of torch's two; the newer one has no way for t5_decoder and swin_tiny.
"""
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

import dense
import hf
from common import Spec, floats, ids, mask, unit
from dense import Yolo
from vision import Basic, MBConv, ShuffleUnit, classifier, conv_bn, image, mobilenet_v2


class Bottleneck(nn.Module):
    """He et al. 2015, a quarter of the channels in the middle."""

    def __init__(self, inp, out, stride):
        super().__init__()
        middle = out // 4
        self.body = nn.Sequential(conv_bn(inp, middle, 1), conv_bn(middle, middle, 3, stride),
                                  conv_bn(middle, out, 1, act=None))
        self.skip = conv_bn(inp, out, 1, stride, act=None) if stride != 1 or inp != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet(block, widths, depths):
    layers, inp = [conv_bn(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for stage, (out, depth) in enumerate(zip(widths, depths)):
        for i in range(depth):
            layers.append(block(inp, out, 2 if stage and i == 0 else 1))
            inp = out
    return classifier(layers, inp, 1000)


def shufflenet_v2():
    layers, inp = [conv_bn(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)], 24
    for out, depth in ((116, 4), (232, 8), (464, 4)):
        for i in range(depth):
            layers.append(ShuffleUnit(inp, out, 1 if i else 2))
            inp = out
    return classifier([*layers, conv_bn(464, 1024, 1)], 1024, 1000)


SMALL = ((16, 16, 3, 2, 1, True, nn.ReLU), (16, 24, 3, 2, 4, False, nn.ReLU), (24, 24, 3, 1, 4, False, nn.ReLU),
         (24, 40, 5, 2, 4, True, nn.Hardswish), (40, 40, 5, 1, 6, True, nn.Hardswish),
         (40, 40, 5, 1, 6, True, nn.Hardswish), (40, 48, 5, 1, 3, True, nn.Hardswish),
         (48, 48, 5, 1, 3, True, nn.Hardswish), (48, 96, 5, 2, 6, True, nn.Hardswish),
         (96, 96, 5, 1, 6, True, nn.Hardswish), (96, 96, 5, 1, 6, True, nn.Hardswish))


def mobilenet_v3_features():
    """MobileNetV3-Small with expansions rounded to whole numbers."""
    return nn.Sequential(conv_bn(3, 16, 3, 2, act=nn.Hardswish), *(MBConv(*row, nn.Hardsigmoid) for row in SMALL),
                         conv_bn(96, 576, 1, act=nn.Hardswish))


def mobilenet_v3_small():
    return nn.Sequential(mobilenet_v3_features(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024),
                         nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, 1000))


class DeepLabV3(nn.Module):
    """Chen et al. 2017 on MobileNetV3: dilations of 12, 24 and 36."""

    def __init__(self, classes=21):
        super().__init__()
        self.features = mobilenet_v3_features()
        self.branches = nn.ModuleList([conv_bn(576, 256, 1), *(conv_bn(576, 256, 3, dilation=d) for d in (12, 24, 36))])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(576, 256, 1), nn.ReLU())
        self.head = nn.Sequential(conv_bn(1280, 256, 1), conv_bn(256, 256, 3), nn.Conv2d(256, classes, 1))

    def forward(self, x):
        y = self.features(x)
        pooled = F.interpolate(self.pool(y), y.shape[2:], mode="bilinear", align_corners=False)
        y = self.head(torch.cat([*(branch(y) for branch in self.branches), pooled], 1))
        return F.interpolate(y, x.shape[2:], mode="bilinear", align_corners=False)


class StyleTransfer(nn.Module):
    """Johnson et al. 2016 at half the width."""

    def __init__(self, width=16, blocks=5):
        super().__init__()

        def layer(inp, out, kernel, stride=1):
            return [nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inp, out, kernel, stride),
                    nn.InstanceNorm2d(out, affine=True)]
        w = width
        self.down = nn.Sequential(*layer(3, w, 9), nn.ReLU(), *layer(w, 2 * w, 3, 2), nn.ReLU(),
                                  *layer(2 * w, 4 * w, 3, 2), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Sequential(*layer(4 * w, 4 * w, 3), nn.ReLU(), *layer(4 * w, 4 * w, 3))
                                    for _ in range(blocks))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), *layer(4 * w, 2 * w, 3), nn.ReLU(),
                                nn.Upsample(scale_factor=2), *layer(2 * w, w, 3), nn.ReLU(), nn.ReflectionPad2d(4),
                                nn.Conv2d(w, 3, 9))

    def forward(self, x):
        y = self.down(x)
        for block in self.blocks:
            y = y + block(y)
        return self.up(y)


class UNet4(nn.Module):
    """Ronneberger et al. 2015, four steps down."""

    def __init__(self, width=16):
        super().__init__()
        sizes = [width << i for i in range(5)]
        self.first = dense.double(3, width)
        self.down = nn.ModuleList(dense.double(a, b) for a, b in zip(sizes, sizes[1:]))
        self.raised = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:]))
        self.merge = nn.ModuleList(dense.double(b, a) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        x = self.first(x)
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(F.max_pool2d(x, 2, 2))
        for up, merge, skip in zip(reversed(self.raised), reversed(self.merge), reversed(skips)):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


class TextLstm(nn.Module):
    """Two bidirectional layers, last step and mean."""

    def __init__(self, words=2000, width=128):
        super().__init__()
        self.embedding = nn.Embedding(words, 64)
        self.cell = nn.LSTM(64, width, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, 5)

    def forward(self, tokens):
        y, _ = self.cell(self.embedding(tokens))
        return self.head(y[:, -1] + y.mean(1))


class YoloF32(Yolo):
    """With anchors in f32: sums of whole numbers and 0.5 are f64 in the ONNX file otherwise."""

    def anchors(self, maps):
        points = []
        for level, stride in zip(maps, self.strides):
            h, w = level.shape[2:]
            y, x = torch.meshgrid(torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32), indexing="ij")
            points.append(torch.stack([x.flatten() + 0.5, y.flatten() + 0.5, torch.full((h * w,), float(stride))]))
        return torch.cat(points, 1)


class Attention(nn.Module):
    """Vaswani et al. 2017, with one matrix for queries, keys and values."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class Encoder(nn.Module):
    """One layer, the norms first."""

    def __init__(self, width, heads, ratio, act, eps):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.attention = Attention(width, heads)
        self.inner = nn.Sequential(nn.Linear(width, ratio * width), act(), nn.Linear(ratio * width, width))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.inner(self.second(x))


class Vit(nn.Module):
    """Dosovitskiy et al. 2020, the tiny one of Touvron et al. 2020: 16 x 16 patches of 224 x 224."""

    def __init__(self, width=192, depth=12, heads=3, patch=16, patches=196, classes=1000):
        super().__init__()
        self.embed = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, 1 + patches, width))
        self.body = nn.Sequential(*(Encoder(width, heads, 4, nn.GELU, 1e-6) for _ in range(depth)),
                                  nn.LayerNorm(width, 1e-6))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.body(x)[:, 0])


class Inverted(nn.Module):
    """Sandler et al. 2018, twice the channels in the middle."""

    def __init__(self, inp, out, stride):
        super().__init__()
        self.body = nn.Sequential(conv_bn(inp, 2 * inp, 1, act=nn.SiLU), conv_bn(2 * inp, 2 * inp, 3, stride, 2 * inp, nn.SiLU),
                                  conv_bn(2 * inp, out, 1, act=None))
        self.adds = stride == 1 and inp == out

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class MobileVitBlock(nn.Module):
    """Mehta & Rastegari 2021: attention between the pixels at the same place of all 2 x 2 patches."""

    def __init__(self, channels, width, depth, patch=2, heads=4):
        super().__init__()
        self.patch = patch
        self.local = nn.Sequential(conv_bn(channels, channels, 3, act=nn.SiLU), nn.Conv2d(channels, width, 1, bias=False))
        self.body = nn.Sequential(*(Encoder(width, heads, 2, nn.SiLU, 1e-5) for _ in range(depth)), nn.LayerNorm(width))
        self.proj = conv_bn(width, channels, 1, act=nn.SiLU)
        self.fusion = conv_bn(2 * channels, channels, 3, act=nn.SiLU)

    def forward(self, x):
        y, p = self.local(x), self.patch
        batch, width, rows, columns = y.shape
        across, patches, area = columns // p, rows * columns // p ** 2, p ** 2
        y = y.reshape(batch * width * (rows // p), p, across, p).transpose(1, 2)
        y = y.reshape(batch, width, patches, area).transpose(1, 3).reshape(batch * area, patches, width)
        y = self.body(y).reshape(batch, area, patches, width).transpose(1, 3)
        y = y.reshape(batch * width * (rows // p), across, p, p).transpose(1, 2).reshape(batch, width, rows, columns)
        return self.fusion(torch.cat([x, self.proj(y)], 1))


def mobilevit_xxs():
    return classifier([conv_bn(3, 16, 3, 2, act=nn.SiLU), Inverted(16, 16, 1), Inverted(16, 24, 2), Inverted(24, 24, 1),
                       Inverted(24, 24, 1), Inverted(24, 48, 2), MobileVitBlock(48, 64, 2), Inverted(48, 64, 2),
                       MobileVitBlock(64, 80, 4), Inverted(64, 80, 2), MobileVitBlock(80, 96, 3),
                       conv_bn(80, 320, 1, act=nn.SiLU)], 320, 1000)


def espcn():
    return nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))


def by_default(build):
    """The model that build makes, with the attention that the library chooses by itself."""
    def default():
        model = build()
        net = model.model
        net.set_attn_implementation(net.get_correct_attn_implementation(None))
        return model
    return default


def vision(name, model, config, size, settings, outputs=("logits",), **spec):
    return Spec(name, by_default(hf.named(model, config, ["pixel_values"], outputs, **settings)),
                [[floats(1, 3, size, size)]], inputs=["pixel_values"], outputs=list(outputs), needs="transformers", **spec)


def text(name, model, config, length, settings, outputs=("logits",), **spec):
    inputs = ["input_ids", "attention_mask"]
    words = settings["vocab_size"]
    return Spec(name, by_default(hf.named(model, config, inputs, outputs, **settings)),
                [[ids(words, 1, length, low=3), mask(1, length, [length])]], inputs=inputs, outputs=list(outputs),
                needs="transformers", **spec)


def part(name, config, settings, model, which, inputs, case, **spec):
    return Spec(name, by_default(hf.part(config, settings, model, which, inputs, ["last_hidden_state"])), [case],
                inputs=inputs, outputs=["last_hidden_state"], needs="transformers", **spec)


def cached(name, model, config, settings, kv_heads, head_dim):
    spec = hf.cached(name, model, config, settings, kv_heads, head_dim, dynamic=False)
    return dataclasses.replace(spec, build=by_default(spec.build))


WHISPER = dict(vocab_size=2000, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
               decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, num_mel_bins=80,
               max_source_positions=1500, max_target_positions=448, pad_token_id=0, bos_token_id=1, eos_token_id=2,
               decoder_start_token_id=1)
T5 = dict(vocab_size=2000, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, decoder_start_token_id=0)
BERT = dict(vocab_size=30522, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
GPT2 = dict(vocab_size=5000, n_embd=256, n_layer=2, n_head=4, n_positions=128)
SMALL_DECODER = dict(vocab_size=hf.WORDS, hidden_size=256, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, head_dim=64, intermediate_size=704, max_position_embeddings=256,
                     pad_token_id=0)
CROSS = ["input_ids", "encoder_hidden_states"]

SPECS = [
    Spec("mobilevit_xxs", mobilevit_xxs, [[image(256)]], opset=17),
    Spec("deeplabv3", DeepLabV3, [[image(224)]], opset=13),
    Spec("style_transfer", StyleTransfer, [[unit(1, 3, 160, 160)]], opset=11),
    Spec("vit_tiny", Vit, [[image(224)]], opset=17),
    text("qwen2_tiny", "Qwen2ForCausalLM", "Qwen2Config", 16, dict(
        SMALL_DECODER, hidden_size=128, head_dim=32, intermediate_size=256, vocab_size=1000), dynamo=True,
        opset=18),
    text("bert_mini", "BertForSequenceClassification", "BertConfig", 64, BERT, opset=17),
    Spec("resnet50", lambda: resnet(Bottleneck, (256, 512, 1024, 2048), (3, 4, 6, 3)), [[image(224)]], opset=13),
    Spec("espcn", espcn, [[unit(1, 1, 96, 96)]], opset=13),
    part("whisper_encoder", "WhisperConfig", WHISPER, "WhisperForConditionalGeneration", "encoder", ["input_features"],
         [floats(1, 80, 3000)], opset=17),
    text("gpt2_tiny", "GPT2LMHeadModel", "GPT2Config", 64, GPT2, dynamo=True, opset=18),
    part("t5_decoder", "T5Config", T5, "T5ForConditionalGeneration", "decoder", CROSS,
         [ids(2000, 1, 8), floats(1, 16, 512)], opset=17),
    part("whisper_decoder", "WhisperConfig", WHISPER, "WhisperForConditionalGeneration", "decoder", CROSS,
         [ids(2000, 1, 8), floats(1, 32, 384)], dynamo=True, opset=18),
    Spec("yolo", lambda: YoloF32(80, 16, 24), [[unit(1, 3, 320, 320)]], opset=17),
    Spec("unet", UNet4, [[image(192)]], opset=13),
    Spec("resnet18", lambda: resnet(Basic, (64, 128, 256, 512), (2, 2, 2, 2)), [[image(224)]], opset=13),
    Spec("mobilenet_v2", mobilenet_v2, [[image(224)]], opset=13),
    vision("swin_tiny", "SwinForImageClassification", "SwinConfig", 224, dict(num_labels=1000), opset=17),
    vision("segformer_b0", "SegformerForSemanticSegmentation", "SegformerConfig", 256, dict(num_labels=150), opset=17),
    vision("convnext_atto", "ConvNextForImageClassification", "ConvNextConfig", 224, dict(
        hidden_sizes=[40, 80, 160, 320], depths=[2, 2, 6, 2], num_labels=1000), opset=17),
    Spec("diffusion", lambda: dense.Diffusion(48), [[image(32), ids(1000, 1)]], inputs=["noisy", "step"], opset=17),
    Spec("lstm_bi_text", TextLstm, [[ids(2000, 1, 24)]], opset=13),
    Spec("shufflenet_v2", shufflenet_v2, [[image(224)]], opset=13),
    Spec("mobilenet_v3", mobilenet_v3_small, [[image(224)]], opset=17),
    cached("gpt2_kv", "GPT2LMHeadModel", "GPT2Config", dict(GPT2, vocab_size=hf.WORDS), 4, 64),
    cached("llama_kv", "LlamaForCausalLM", "LlamaConfig", SMALL_DECODER, 2, 64),
]
