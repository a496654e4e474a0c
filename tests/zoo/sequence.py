"""Text, speech and time series: recurrent, convolutional and transformer networks."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import Spec, floats, ids
from vision import conv_bn


class RecurrentClassifier(nn.Module):
    """Embedding, LSTM, GRU or RNN, last step and mean, linear."""

    def __init__(self, cell, layers=1, both=False, **options):
        super().__init__()
        self.embedding = nn.Embedding(80, 24)
        self.cell = cell(24, 32, layers, bidirectional=both, batch_first=True, **options)
        self.head = nn.Linear(64 if both else 32, 5)

    def forward(self, tokens):
        y, _ = self.cell(self.embedding(tokens))
        return self.head(y[:, -1] + y.mean(1))


class LstmStep(nn.Module):
    """A streaming step: the state goes in and comes out."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(12, 20, 2), nn.Linear(20, 4)

    def forward(self, x, h, c):
        y, (h, c) = self.cell(x, (h, c))
        return self.head(y), h, c


class Crnn(nn.Module):
    """Shi et al. 2015: convolutions over a line of text, bidirectional LSTM, CTC log-probabilities."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv_bn(1, 16), nn.MaxPool2d(2), conv_bn(16, 32), nn.MaxPool2d((4, 1)),
                                  nn.Conv2d(32, 32, (4, 1)), nn.ReLU())
        self.cell, self.head = nn.LSTM(32, 24, bidirectional=True), nn.Linear(48, 30)

    def forward(self, x):
        y = self.body(x).squeeze(2).permute(2, 0, 1)
        return self.head(self.cell(y)[0]).log_softmax(-1)


class TextCnn(nn.Module):
    """Kim 2014."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 24)
        self.convs = nn.ModuleList(nn.Conv1d(24, 16, k) for k in (3, 4, 5))
        self.head = nn.Linear(48, 3)

    def forward(self, tokens):
        e = self.embedding(tokens).transpose(1, 2)
        return self.head(torch.cat([F.relu(conv(e)).max(-1)[0] for conv in self.convs], 1))


class FastText(nn.Module):
    """Mean of the embeddings of the tokens that are not padding."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(200, 32, padding_idx=0), nn.Linear(32, 6)

    def forward(self, tokens):
        keep = (tokens != 0).float().unsqueeze(-1)
        return self.head((self.embedding(tokens) * keep).sum(1) / keep.sum(1).clamp_min(1.0)).softmax(-1)


class CausalBlock(nn.Module):
    def __init__(self, inp, out, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.a, self.b = nn.Conv1d(inp, out, 3, dilation=dilation), nn.Conv1d(out, out, 3, dilation=dilation)
        self.skip = nn.Conv1d(inp, out, 1) if inp != out else nn.Identity()

    def forward(self, x):
        y = F.relu(self.a(F.pad(x, (self.pad, 0))))
        y = F.relu(self.b(F.pad(y, (self.pad, 0))))
        return F.relu(y + self.skip(x))


class Tcn(nn.Module):
    """Bai et al. 2018: dilated causal convolutions."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(CausalBlock(6, 24, 1), CausalBlock(24, 24, 2), CausalBlock(24, 24, 4)), \
            nn.Linear(24, 5)

    def forward(self, x):
        return self.head(self.body(x)[:, :, -1])


class WaveNet(nn.Module):
    """van den Oord et al. 2016: gated dilated convolutions, residual and skip paths."""

    def __init__(self, channels=16):
        super().__init__()
        self.stem = nn.Conv1d(1, channels, 1)
        self.gates = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 2, dilation=2 ** i) for i in range(5))
        self.outs = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 1) for _ in range(5))
        self.tail = nn.Sequential(nn.ReLU(), nn.Conv1d(channels, 32, 1), nn.ReLU(), nn.Conv1d(32, 64, 1))

    def forward(self, x):
        x, total = self.stem(x), 0.0
        for i, (gate, out) in enumerate(zip(self.gates, self.outs)):
            a, b = gate(F.pad(x, (2 ** i, 0))).chunk(2, 1)
            residual, skip = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = (x + residual) * math.sqrt(0.5), total + skip
        return self.tail(total)


class DsCnn(nn.Sequential):
    """Keyword spotting (Zhang et al. 2017), the shape of MLPerf Tiny."""

    def __init__(self, width=32):
        layers = [nn.Conv2d(1, width, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        for _ in range(3):
            layers += [conv_bn(width, width, 3, groups=width), conv_bn(width, width, 1)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 12))


class QuartzNet(nn.Module):
    """Kriman et al. 2019: separable 1-D convolutions with residuals, CTC output."""

    def __init__(self, dim=32):
        super().__init__()

        def separable(inp, out, kernel, stride=1):
            return nn.Sequential(nn.Conv1d(inp, inp, kernel, stride, kernel // 2, groups=inp, bias=False),
                                 nn.Conv1d(inp, out, 1, bias=False), nn.BatchNorm1d(out))
        self.stem = nn.Sequential(separable(20, dim, 11, 2), nn.ReLU())
        self.a, self.b = separable(dim, dim, 13), separable(dim, dim, 13)
        self.skip = nn.Sequential(nn.Conv1d(dim, dim, 1, bias=False), nn.BatchNorm1d(dim))
        self.head = nn.Conv1d(dim, 29, 1)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(self.b(F.relu(self.a(x))) + self.skip(x))
        return self.head(x).transpose(1, 2).log_softmax(-1)


class Demucs(nn.Module):
    """Defossez et al. 2019: strided 1-D encoder with GLU, LSTM in the middle, transposed decoder with skips."""

    def __init__(self, width=8):
        super().__init__()
        w = width
        self.down1 = nn.Sequential(nn.Conv1d(1, w, 8, 4, 2), nn.ReLU(), nn.Conv1d(w, 2 * w, 1), nn.GLU(1))
        self.down2 = nn.Sequential(nn.Conv1d(w, 2 * w, 8, 4, 2), nn.ReLU(), nn.Conv1d(2 * w, 4 * w, 1), nn.GLU(1))
        self.cell = nn.LSTM(2 * w, 2 * w)
        self.up2 = nn.Sequential(nn.Conv1d(2 * w, 4 * w, 1), nn.GLU(1), nn.ConvTranspose1d(2 * w, w, 8, 4, 2), nn.ReLU())
        self.up1 = nn.Sequential(nn.Conv1d(w, 2 * w, 1), nn.GLU(1), nn.ConvTranspose1d(w, 2, 8, 4, 2))

    def forward(self, x):
        scale = x.std(-1, keepdim=True) + 1e-3
        a = self.down1(x / scale)
        b = self.down2(a)
        y = self.cell(b.permute(2, 0, 1))[0].permute(1, 2, 0)
        return self.up1(self.up2(y + b) + a) * scale


class Conformer(nn.Module):
    """Gulati et al. 2020: half feed-forward, attention, gated depthwise convolution, half feed-forward."""

    def __init__(self, dim=32, heads=4):
        super().__init__()

        def feed():
            return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))
        self.feed1, self.feed2, self.norm = feed(), feed(), nn.LayerNorm(dim)
        self.norm_attention, self.attention = nn.LayerNorm(dim), nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm_conv, self.point1 = nn.LayerNorm(dim), nn.Conv1d(dim, 2 * dim, 1)
        self.depth, self.batch_norm = nn.Conv1d(dim, dim, 15, padding=7, groups=dim), nn.BatchNorm1d(dim)
        self.point2 = nn.Conv1d(dim, dim, 1)

    def forward(self, x):
        x = x + 0.5 * self.feed1(x)
        y = self.norm_attention(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y = F.glu(self.point1(self.norm_conv(x).transpose(1, 2)), 1)
        x = x + self.point2(F.silu(self.batch_norm(self.depth(y)))).transpose(1, 2)
        return self.norm(x + 0.5 * self.feed2(x))


class Seq2Seq(nn.Module):
    """Bahdanau et al. 2014: additive attention, four unrolled decoder steps with greedy feedback."""

    def __init__(self, dim=24, words=40):
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(words, dim), nn.GRU(dim, dim, batch_first=True)
        self.cell, self.head = nn.GRUCell(2 * dim, dim), nn.Linear(dim, words)
        self.query, self.key, self.energy = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)

    def forward(self, source):
        memory, last = self.encoder(self.embedding(source))
        state, word, logits = last[0], torch.zeros_like(source[:, 0]), []
        keys = self.key(memory)
        for _ in range(4):
            scores = self.energy(torch.tanh(keys + self.query(state)[:, None])).squeeze(-1)
            context = (scores.softmax(1)[..., None] * memory).sum(1)
            state = self.cell(torch.cat([self.embedding(word), context], 1), state)
            logits.append(self.head(state))
            word = logits[-1].argmax(1)
        return torch.stack(logits, 1)


class Translator(nn.Module):
    """Vaswani et al. 2017 with torch's own layers: sinusoidal positions, causal decoder, padding mask."""

    def __init__(self, words=60, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(words, dim)
        angle = torch.arange(64)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
        self.register_buffer("position", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        self.body = nn.Transformer(dim, 4, 2, 2, 64, 0.0, batch_first=True)
        self.head = nn.Linear(dim, words)

    def embed(self, tokens):
        return self.embedding(tokens) + self.position[:tokens.shape[1]]

    def forward(self, source, target):
        causal = torch.triu(torch.full((target.shape[1],) * 2, float("-inf")), 1)
        padding = torch.zeros_like(source, dtype=torch.float32).masked_fill(source == 0, float("-inf"))
        return self.head(self.body(self.embed(source), self.embed(target), tgt_mask=causal,
                                   src_key_padding_mask=padding, memory_key_padding_mask=padding))


class RmsNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class NanoGpt(nn.Module):
    """A decoder with learned positions, fused causal attention and a KV cache of fixed capacity.

    The new keys and values are written at `position` with index_put, as on-device runtimes like it.
    """

    def __init__(self, words=96, dim=32, heads=4, capacity=24):
        super().__init__()
        self.heads, self.capacity = heads, capacity
        self.words, self.positions = nn.Embedding(words, dim), nn.Embedding(capacity, dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), RmsNorm(dim)
        self.up, self.gate, self.down = nn.Linear(dim, 64), nn.Linear(dim, 64), nn.Linear(64, dim)
        self.head = nn.Linear(dim, words, bias=False)

    def forward(self, token, position, keys, values):
        x = self.words(token) + self.positions(position)
        q, k, v = (t.view(1, -1, self.heads, t.shape[-1] // self.heads).transpose(1, 2)
                   for t in self.qkv(self.norm1(x)).chunk(3, -1))
        keys, values = keys.clone(), values.clone()
        keys[:, :, position[0]], values[:, :, position[0]] = k, v
        seen = torch.arange(self.capacity)[None] <= position[0][:, None]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        return self.head(x + self.down(F.silu(self.gate(y)) * self.up(y))), keys, values


class StateSpace(nn.Module):
    """Mamba-like (Gu & Dao 2023): short causal convolution, input-dependent decay, an unrolled scan."""

    def __init__(self, dim=16, state=4):
        super().__init__()
        self.inp, self.conv = nn.Linear(dim, 2 * dim), nn.Conv1d(dim, dim, 4, padding=3, groups=dim)
        self.params, self.step = nn.Linear(dim, 2 * state), nn.Linear(dim, dim)
        self.decay, self.out = nn.Parameter(torch.rand(dim, state)), nn.Linear(dim, dim)

    def forward(self, x):
        length = x.shape[1]
        u, gate = self.inp(x).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
        b, c = self.params(u).chunk(2, -1)
        delta = F.softplus(self.step(u))[..., None]
        a, drive = torch.exp(-delta * self.decay.exp()), delta * b[:, :, None] * u[..., None]
        h, outputs = torch.zeros_like(drive[:, 0]), []
        for t in range(length):
            h = a[:, t] * h + drive[:, t]
            outputs.append((h * c[:, t, None]).sum(-1))
        return x + self.out(torch.stack(outputs, 1) * F.silu(gate))


class Transducer(nn.Module):
    """The joint network of RNN-T (Graves 2012): every audio frame with every label."""

    def __init__(self):
        super().__init__()
        self.audio, self.label, self.head = nn.Linear(20, 32), nn.GRU(12, 32, batch_first=True), nn.Linear(32, 17)
        self.embedding = nn.Embedding(17, 12)

    def forward(self, frames, labels):
        joint = self.audio(frames)[:, :, None] + self.label(self.embedding(labels))[0][:, None]
        return self.head(torch.tanh(joint)).log_softmax(-1)


class PatchTst(nn.Module):
    """Nie et al. 2022: instance-normalised series cut into overlapping patches, transformer, forecast."""

    def __init__(self, dim=32):
        super().__init__()
        self.embed, self.position = nn.Linear(8, dim), nn.Parameter(torch.randn(11, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, 0.0, "gelu", batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(11 * dim, 12)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        series = ((x - mean) / std).permute(0, 2, 1)
        patches = series.unfold(-1, 8, 4)
        b, c, n, _ = patches.shape
        y = self.body(self.embed(patches).reshape(b * c, n, -1) + self.position)
        return self.head(y.flatten(1)).view(b, c, 12).permute(0, 2, 1) * std + mean


class NBeats(nn.Module):
    """Oreshkin et al. 2019: each block explains a part of the series and hands on the rest."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(),
                                                  nn.Linear(48, 40)) for _ in range(3))

    def forward(self, x):
        forecast = 0.0
        for block in self.blocks:
            back, ahead = block(x).split([30, 10], 1)
            x, forecast = x - back, forecast + ahead
        return forecast


class Tagger(nn.Module):
    """Characters and words together: inner GRU over characters, outer BiLSTM, emission scores of a CRF."""

    def __init__(self):
        super().__init__()
        self.chars, self.words = nn.Embedding(30, 8), nn.Embedding(100, 16)
        self.inner, self.outer = nn.GRU(8, 10, batch_first=True), nn.LSTM(26, 20, batch_first=True, bidirectional=True)
        self.head = nn.Linear(40, 7)

    def forward(self, words, chars):
        b, n, c = chars.shape
        inner = self.inner(self.chars(chars.reshape(b * n, c)))[1][0].view(b, n, -1)
        return self.head(self.outer(torch.cat([self.words(words), inner], -1))[0])


TEXT = {"input": {1: "length"}}
BOTH = {"input": {0: "batch", 1: "length"}}
CACHE = [ids(96, 1, 2), lambda rng: rng.permutation(24)[None, :2].astype("int64"), floats(1, 4, 24, 8), floats(1, 4, 24, 8)]

SPECS = [
    Spec("lstm_text", lambda: RecurrentClassifier(nn.LSTM), [[ids(80, 1, 12)], [ids(80, 1, 30)]], dynamic=TEXT, opset=11),
    Spec("lstm_bi_text", lambda: RecurrentClassifier(nn.LSTM, 2, True), [[ids(80, 2, 10)]], opset=13),
    Spec("lstm_bi_text_op9", lambda: RecurrentClassifier(nn.LSTM, 2, True), [[ids(80, 2, 10)]], opset=9),
    Spec("lstm_dynamo", lambda: RecurrentClassifier(nn.LSTM, 1), [[ids(80, 2, 6)]], opset=18, dynamo=True),
    Spec("gru_text", lambda: RecurrentClassifier(nn.GRU, 2), [[ids(80, 1, 12)], [ids(80, 1, 5)]], dynamic=TEXT, opset=13),
    Spec("gru_bi_text_op9", lambda: RecurrentClassifier(nn.GRU, 1, True), [[ids(80, 2, 10)]], opset=9),
    Spec("rnn_text", lambda: RecurrentClassifier(nn.RNN, 1, nonlinearity="relu"), [[ids(80, 2, 9)]], opset=17),
    Spec("lstm_step", LstmStep, [[floats(1, 3, 12), floats(2, 3, 20), floats(2, 3, 20)]], inputs=["x", "h", "c"],
         outputs=["y", "next_h", "next_c"], opset=14),
    Spec("crnn_ocr", Crnn, [[floats(1, 1, 32, 64)]], opset=11),
    Spec("text_cnn", TextCnn, [[ids(100, 2, 20)], [ids(100, 3, 20)]], dynamic={"input": {0: "batch"}}, opset=11),
    Spec("fast_text", FastText, [[ids(4, 3, 15)], [ids(4, 5, 22)]], dynamic=BOTH, opset=13),
    Spec("fast_text_dynamo", FastText, [[ids(4, 3, 15)], [ids(4, 5, 22)]], dynamic=BOTH, opset=18, dynamo=True),
    Spec("tcn", Tcn, [[floats(2, 6, 40)]], opset=11),
    Spec("tcn_dynamo", Tcn, [[floats(2, 6, 40)]], opset=18, dynamo=True),
    Spec("wavenet", WaveNet, [[floats(1, 1, 80)]], opset=13),
    Spec("ds_cnn", DsCnn, [[floats(1, 1, 49, 10)]], opset=11),
    Spec("quartznet", QuartzNet, [[floats(1, 20, 60)]], opset=13),
    Spec("demucs", Demucs, [[floats(1, 1, 256)]], opset=13),
    Spec("conformer", Conformer, [[floats(2, 20, 32)]], opset=17),
    Spec("conformer_dynamo", Conformer, [[floats(2, 20, 32)]], opset=18, dynamo=True),
    Spec("seq2seq", Seq2Seq, [[ids(40, 2, 7)]], opset=13),
    Spec("translator", Translator, [[ids(60, 2, 9), ids(60, 2, 6)]], inputs=["source", "target"], opset=17, second=14),
    Spec("nano_gpt", NanoGpt, [CACHE], inputs=["token", "position", "keys", "values"],
         outputs=["logits", "next_keys", "next_values"], opset=17),
    Spec("nano_gpt_dynamo", NanoGpt, [CACHE], inputs=["token", "position", "keys", "values"],
         outputs=["logits", "next_keys", "next_values"], opset=18, dynamo=True),
    Spec("state_space", StateSpace, [[floats(2, 8, 16)]], opset=17),
    Spec("state_space_dynamo", StateSpace, [[floats(2, 8, 16)]], opset=18, dynamo=True),
    Spec("transducer", Transducer, [[floats(2, 11, 20), ids(17, 2, 5)]], inputs=["frames", "labels"], opset=13),
    # Not with the script exporter: its unfold gives a model that ONNX Runtime refuses to load.
    Spec("patch_tst_dynamo", PatchTst, [[floats(2, 48, 3)]], opset=18, dynamo=True),
    Spec("n_beats", NBeats, [[floats(3, 30)]], opset=9),
    Spec("tagger", Tagger, [[ids(100, 2, 6), ids(30, 2, 6, 5)]], inputs=["words", "chars"], opset=11),
]
