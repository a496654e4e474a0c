"""Networks whose weights packages carry without an .onnx: built here, loaded with the weights, exported by torch's exporter.

    tests/wild/export.py NAME WEIGHTS MODEL.onnx        for the names in EXPORTS

Weights are read as data; no code of a package runs.
"""

import os
import sys

import numpy as np
import torch
from torch import nn


class Two(nn.Module):
    """A trunk, then heads on what it gives; those of classes end with a softmax. `dense`: the trunk's feature map is flattened
    column by column for a dense layer first, as the Caffe original had it."""

    def __init__(self, trunk, dense, heads):
        super().__init__()
        self.trunk, self.dense, self.heads = trunk, dense, heads

    def forward(self, x):
        x = self.trunk(x)
        if self.dense is not None:
            x = self.dense(x.permute(0, 3, 2, 1).flatten(1))
        return tuple(head(x) for head in self.heads)


def face_network(weights, channels, kernels, pools, dense, heads):
    """One of the three networks of MTCNN: convolutions with PReLU and pools, then dense layers or 1x1 convolutions."""
    state = torch.load(weights, weights_only=True)
    layers, before = [], 3
    for i, (size, kernel) in enumerate(zip(channels, kernels)):
        layers += [nn.Conv2d(before, size, kernel), nn.PReLU(size)]
        layers += [nn.MaxPool2d(pools[i], 2, ceil_mode=True)] if i < len(pools) else []
        before = size
    trunk, stem = nn.Sequential(*layers), None
    if dense:
        stem = nn.Sequential(nn.Linear(*dense), nn.PReLU(dense[1]))
        outs = [nn.Linear(dense[1], n) for n in heads]
    else:
        outs = [nn.Conv2d(before, n, 1) for n in heads]
    parts = [x for x in layers if not isinstance(x, nn.MaxPool2d)] + list(stem or []) + outs
    names = list(dict.fromkeys(k.rsplit(".", 1)[0] for k in state))
    order = sorted(names, key=lambda n: (float(n.lstrip("convpreludense").replace("_", ".")), not n.startswith(("conv", "dense"))))
    assert len(order) == len(parts), order
    for name, part in zip(order, parts):
        part.load_state_dict({k.rsplit(".", 1)[1]: v for k, v in state.items() if k.rsplit(".", 1)[0] == name})
    return Two(trunk, stem, nn.ModuleList([nn.Sequential(outs[0], nn.Softmax(1)), *outs[1:]]))


class Crepe(nn.Module):
    """Six convolutions over a window of 1,024 samples; 360 bins of pitch."""

    def __init__(self, weights):
        super().__init__()
        state = torch.load(weights, weights_only=True)
        self.layers = nn.ModuleList()
        for i in range(1, 7):
            kernel = state[f"conv{i}.weight"]
            pad, stride = ((254, 254), (4, 1)) if i == 1 else ((31, 32), (1, 1))
            conv = nn.Conv2d(kernel.shape[1], kernel.shape[0], kernel.shape[2:], stride)
            norm = nn.BatchNorm2d(kernel.shape[0], eps=1e-3)
            for part, name in ((conv, f"conv{i}."), (norm, f"conv{i}_BN.")):
                part.load_state_dict({k.removeprefix(name): v for k, v in state.items() if k.startswith(name)})
            self.layers.append(nn.Sequential(nn.ZeroPad2d((0, 0, *pad)), conv, nn.ReLU(), norm, nn.MaxPool2d((2, 1))))
        self.dense = nn.Linear(*reversed(state["classifier.weight"].shape))
        self.dense.load_state_dict({k: state["classifier." + k] for k in ("weight", "bias")})

    def forward(self, x):
        x = x[:, None, :, None]
        for layer in self.layers:
            x = layer(x)
        return torch.sigmoid(self.dense(x.permute(0, 2, 1, 3).flatten(1)))


class SpeakerEncoder(nn.Module):
    """Three LSTMs over the frames of a mel spectrogram; the last state becomes an embedding of length 1."""

    def __init__(self, weights):
        super().__init__()
        state = torch.load(weights, map_location="cpu", weights_only=True)["model_state"]
        self.lstm, self.linear = nn.LSTM(40, 256, 3, batch_first=True), nn.Linear(256, 256)
        self.load_state_dict({k: v for k, v in state.items() if k.startswith(("lstm", "linear"))})

    def forward(self, mels):
        _, (hidden, _) = self.lstm(mels)
        embedding = torch.relu(self.linear(hidden[-1]))
        return embedding / embedding.norm(dim=1, keepdim=True)


class Letters(nn.Module):
    """The encoder of a speller: embedded letters through a GRU."""

    def __init__(self, weights):
        super().__init__()
        data = np.load(weights)
        self.embedding = nn.Embedding.from_pretrained(torch.from_numpy(data["enc_emb"]))
        self.gru = nn.GRU(256, 256, batch_first=True)
        names = {"weight_ih_l0": "w_ih", "weight_hh_l0": "w_hh", "bias_ih_l0": "b_ih", "bias_hh_l0": "b_hh"}
        self.gru.load_state_dict({k: torch.from_numpy(data["enc_" + v]) for k, v in names.items()})

    def forward(self, letters):
        return self.gru(self.embedding(letters))[0]


class Phonemes(nn.Module):
    """The decoder of the speller, one step: a phoneme and a state give logits and the next state."""

    def __init__(self, weights):
        super().__init__()
        data = np.load(weights)
        self.embedding = nn.Embedding.from_pretrained(torch.from_numpy(data["dec_emb"]))
        self.cell, self.out = nn.GRUCell(256, 256), nn.Linear(256, 74)
        names = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias_ih": "b_ih", "bias_hh": "b_hh"}
        self.cell.load_state_dict({k: torch.from_numpy(data["dec_" + v]) for k, v in names.items()})
        self.out.load_state_dict({"weight": torch.from_numpy(data["fc_w"]), "bias": torch.from_numpy(data["fc_b"])})

    def forward(self, phoneme, hidden):
        hidden = self.cell(self.embedding(phoneme), hidden)
        return self.out(hidden), hidden


class Sentences(nn.Module):
    """MiniLM with the mean of the tokens that the mask keeps."""

    def __init__(self, weights):
        super().__init__()
        from safetensors.torch import load_file
        from transformers import BertConfig, BertModel

        config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        self.bert = BertModel(config)
        missing, _ = self.bert.load_state_dict(load_file(weights), strict=False)
        assert not missing, missing

    def forward(self, ids, mask):
        tokens = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        kept = mask.unsqueeze(-1).to(tokens.dtype)
        return (tokens * kept).sum(1) / kept.sum(1)


def ids(*shape):
    return torch.ones(shape, dtype=torch.int64)


EXPORTS = {
    "mtcnn_pnet": (lambda w: face_network(w, (10, 16, 32), (3, 3, 3), (2,), None, (2, 4)), (torch.zeros(1, 3, 120, 160),)),
    "mtcnn_rnet": (lambda w: face_network(w, (28, 48, 64), (3, 3, 2), (3, 3), (576, 128), (2, 4)), (torch.zeros(4, 3, 24, 24),)),
    "mtcnn_onet": (lambda w: face_network(w, (32, 64, 64, 128), (3, 3, 3, 2), (3, 3, 2), (1152, 256), (2, 4, 10)),
                   (torch.zeros(4, 3, 48, 48),)),
    "crepe_tiny": (Crepe, (torch.zeros(8, 1024),)),
    "crepe_full": (Crepe, (torch.zeros(2, 1024),)),
    "resemblyzer": (SpeakerEncoder, (torch.zeros(1, 160, 40),)),
    "g2p_encoder": (Letters, (ids(1, 12),)),
    "g2p_decoder": (Phonemes, (ids(1), torch.zeros(1, 256))),
    "minilm": (Sentences, (ids(1, 32), ids(1, 32))),
}


def main(name, weights, path):
    build, example = EXPORTS[name]
    network = build(weights).eval()
    with torch.no_grad():
        torch.onnx.export(network, example, path + ".part", dynamo=True, external_data=False, verbose=False)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main(*sys.argv[1:])
