"""Networks whose weights packages carry without an .onnx: built here, loaded with the weights, exported by torch's exporter.

    tests/wild/export.py NAME WEIGHTS MODEL.onnx        for the names in EXPORTS

Weights are read as data; no code of a package runs.
"""

import os
import sys

import numpy as np
import torch
from torch import nn
from torch.export import Dim


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


class BeatTracker(nn.Module):
    """Frames of a filtered spectrogram: a convolution along the bins, two LSTMs over time; logits of beat, downbeat, neither."""

    def __init__(self, weights):
        super().__init__()
        self.conv1, self.linear0 = nn.Conv1d(1, 2, 10), nn.Linear(262, 150)
        self.lstm, self.linear = nn.LSTM(150, 150, 2, batch_first=True), nn.Linear(150, 3)
        self.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))

    def forward(self, frames):
        x = torch.max_pool1d(torch.relu(self.conv1(frames.reshape(-1, 1, 272))), 2)
        x = self.linear0(x.flatten(1)).reshape(frames.shape[0], frames.shape[1], 150)
        return self.linear(self.lstm(x)[0]).transpose(1, 2)


def loaded(network, state, prefix):
    """The network with the weights whose names begin with the prefix, in the order in which both list them."""
    values = [v for k, v in state.items() if k.startswith(prefix)]
    own = network.state_dict()
    network.load_state_dict(dict(zip(own, values, strict=True)))
    return network


def norm_block(inp, out, size=3, **options):
    """A convolution and its norm."""
    return [nn.Conv2d(inp, out, size, padding=size // 2, **options), nn.BatchNorm2d(out)]


class CharacterRegions(nn.Module):
    """CRAFT (Baek et al. 2019): VGG-16 with norms, four levels joined by bilinear resizing, scores of characters and of links."""

    def __init__(self, weights):
        super().__init__()
        state = {k.removeprefix("module."): v for k, v in torch.load(weights, map_location="cpu", weights_only=True).items()}

        def relu():
            return nn.ReLU(inplace=False)

        def pair(inp, out):
            return [*norm_block(inp, out), relu()]

        slices = [
            [*pair(3, 64), *pair(64, 64), nn.MaxPool2d(2), *pair(64, 128), *norm_block(128, 128)],
            [relu(), nn.MaxPool2d(2), *pair(128, 256), *norm_block(256, 256)],
            [relu(), *pair(256, 256), nn.MaxPool2d(2), *pair(256, 512), *norm_block(512, 512)],
            [relu(), *pair(512, 512), nn.MaxPool2d(2), *pair(512, 512), *norm_block(512, 512)],
            [nn.MaxPool2d(3, 1, 1), nn.Conv2d(512, 1024, 3, padding=6, dilation=6), nn.Conv2d(1024, 1024, 1)],
        ]
        self.slices = nn.ModuleList(loaded(nn.Sequential(*s), state, f"basenet.slice{i + 1}.") for i, s in enumerate(slices))
        joins = [(1024 + 512, 512, 256), (512 + 256, 256, 128), (256 + 128, 128, 64), (128 + 64, 64, 32)]
        self.joins = nn.ModuleList(
            loaded(nn.Sequential(*norm_block(a, b, 1), relu(), *norm_block(b, c), relu()), state, f"upconv{i + 1}.")
            for i, (a, b, c) in enumerate(joins))
        layers = [(32, 32, 3), (32, 32, 3), (32, 16, 3), (16, 16, 1), (16, 2, 1)]
        parts = [x for a, b, k in layers for x in (nn.Conv2d(a, b, k, padding=k // 2), relu())][:-1]
        self.scores = loaded(nn.Sequential(*parts), state, "conv_cls.")

    def forward(self, image):
        levels = [image]
        for part in self.slices:
            levels.append(part(levels[-1]))
        x = torch.cat([levels[5], levels[4]], 1)
        for join, level in zip(self.joins, (3, 2, 1, None)):
            x = join(x)
            if level:
                size = levels[level].shape[2:]
                x = torch.cat([nn.functional.interpolate(x, size=size, mode="bilinear", align_corners=False), levels[level]], 1)
        return self.scores(x).permute(0, 2, 3, 1)


class LineReader(nn.Module):
    """A line of text: convolutions, two bidirectional LSTMs, each with a dense layer behind it, logits of characters."""

    def __init__(self, weights):
        super().__init__()
        state = {k.removeprefix("module."): v for k, v in torch.load(weights, map_location="cpu", weights_only=True).items()}

        def plain(inp, out):
            return [nn.Conv2d(inp, out, 3, padding=1), nn.ReLU()]

        def normed(inp, out):
            return [nn.Conv2d(inp, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]

        layers = [*plain(1, 32), nn.MaxPool2d(2), *plain(32, 64), nn.MaxPool2d(2), *plain(64, 128), *plain(128, 128),
                  nn.MaxPool2d((2, 1)), *normed(128, 256), *normed(256, 256), nn.MaxPool2d((2, 1)), nn.Conv2d(256, 256, 2), nn.ReLU()]
        self.convolutions = loaded(nn.Sequential(*layers), state, "FeatureExtraction.")
        self.rnns = nn.ModuleList(loaded(nn.LSTM(256, 256, bidirectional=True, batch_first=True), state, f"SequenceModeling.{i}.rnn.")
                                  for i in range(2))
        self.linears = nn.ModuleList(loaded(nn.Linear(512, 256), state, f"SequenceModeling.{i}.linear.") for i in range(2))
        self.characters = loaded(nn.Linear(256, 97), state, "Prediction.")

    def forward(self, image):
        x = self.convolutions(image).permute(0, 3, 1, 2).mean(3)
        for rnn, linear in zip(self.rnns, self.linears):
            x = linear(rnn(x)[0])
        return self.characters(x)


class KhmerReader(nn.Module):
    """A line of Khmer text: convolutions with norms, two bidirectional LSTMs in one layer of torch, logits of characters."""

    def __init__(self, weights):
        super().__init__()
        state = torch.load(weights, map_location="cpu", weights_only=True)["model_state_dict"]

        def block(inp, out):
            return [*norm_block(inp, out), nn.ReLU()]

        layers = [*block(1, 64), nn.MaxPool2d(2), *block(64, 128), nn.MaxPool2d(2), *block(128, 256), *block(256, 256),
                  nn.MaxPool2d((2, 1)), *block(256, 512), *block(512, 512), nn.MaxPool2d((2, 1)),
                  nn.Conv2d(512, 512, 2), nn.BatchNorm2d(512), nn.ReLU()]
        self.cnn = loaded(nn.Sequential(*layers), state, "cnn.")
        self.rnn = loaded(nn.LSTM(512, 256, 2, bidirectional=True), state, "rnn.")
        self.fc = loaded(nn.Linear(512, state["fc.bias"].numel()), state, "fc.")

    def forward(self, image):
        return self.fc(self.rnn(self.cnn(image).mean(2).permute(2, 0, 1))[0])


class Reactions(nn.Module):
    """ALBERT over the tokens of a chemical reaction; its attention tells which atom becomes which."""

    def __init__(self, weights):
        super().__init__()
        from transformers import AlbertConfig, AlbertModel

        config = AlbertConfig(vocab_size=591, embedding_size=128, hidden_size=256, num_hidden_layers=12, num_attention_heads=8,
                              intermediate_size=512, hidden_act="gelu", attn_implementation="eager")
        self.albert = AlbertModel(config)
        state = torch.load(weights, map_location="cpu", weights_only=True)
        state = {k.removeprefix("albert."): v for k, v in state.items() if k.startswith("albert.")}
        missing, _ = self.albert.load_state_dict(state, strict=False)
        assert not [k for k in missing if "position_ids" not in k], missing

    def forward(self, ids, mask):
        result = self.albert(input_ids=ids, attention_mask=mask, output_attentions=True)
        return result.last_hidden_state, result.attentions[10]


class ResidueLayer(nn.Module):
    """Messages along the edges of a residue, a dense layer, then new edges."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(128) for _ in range(3))
        self.W1, self.W11 = nn.Linear(384, 128), nn.Linear(384, 128)
        self.W2, self.W3, self.W12, self.W13 = (nn.Linear(128, 128) for _ in range(4))
        self.dense = nn.ModuleDict({"W_in": nn.Linear(128, 512), "W_out": nn.Linear(512, 128)})

    def forward(self, nodes, edges, nearest):
        gelu = nn.functional.gelu

        def around(h):
            return torch.cat([h[:, None].expand(-1, edges.shape[1], -1), edges, h[nearest]], -1)

        message = self.W3(gelu(self.W2(gelu(self.W1(around(nodes))))))
        nodes = self.norm1(nodes + message.sum(1) / 30)
        nodes = self.norm2(nodes + self.dense["W_out"](gelu(self.dense["W_in"](nodes))))
        message = self.W13(gelu(self.W12(gelu(self.W11(around(nodes))))))
        return nodes, self.norm3(edges + message)


class ProteinEncoder(nn.Module):
    """The encoder of ProteinMPNN (Dauparas et al. 2022): the 16 nearest residues, distances of their atoms, three layers of messages."""

    ATOMS = "N A C O B".split()
    PAIRS = "NN CC OO BB AN AC AO AB NC NO NB BC BO OC NA CA OA BA CN ON BN CB OB CO".split()

    def __init__(self, weights):
        super().__init__()
        state = torch.load(weights, map_location="cpu", weights_only=True)["model_state_dict"]
        self.positions, self.edge_embedding = nn.Linear(66, 16), nn.Linear(416, 128, bias=False)
        self.norm_edges, self.first_edges = nn.LayerNorm(128), nn.Linear(128, 128)
        for part, name in ((self.positions, "features.embeddings.linear."), (self.edge_embedding, "features.edge_embedding."),
                           (self.norm_edges, "features.norm_edges."), (self.first_edges, "W_e.")):
            part.load_state_dict({k.removeprefix(name): v for k, v in state.items() if k.startswith(name)})
        self.layers = nn.ModuleList(ResidueLayer() for _ in range(3))
        for i, layer in enumerate(self.layers):
            name = f"encoder_layers.{i}."
            layer.load_state_dict({k.removeprefix(name): v for k, v in state.items() if k.startswith(name)})
        self.register_buffer("centres", torch.linspace(2.0, 22.0, 16))

    def forward(self, atoms, index):
        b, c = atoms[:, 1] - atoms[:, 0], atoms[:, 2] - atoms[:, 1]
        beta = -0.58273431 * torch.linalg.cross(b, c) + 0.56802827 * b - 0.54067466 * c + atoms[:, 1]
        place = dict(zip(self.ATOMS, [*atoms.unbind(1), beta]))

        def distances(p, q):
            return torch.sqrt(((place[p][:, None] - place[q][None]) ** 2).sum(-1) + 1e-6)

        near, nearest = torch.topk(distances("A", "A"), 16, dim=-1, largest=False)
        lengths = [near] + [torch.gather(distances(*pair), 1, nearest) for pair in self.PAIRS]
        radial = [torch.exp(-(((d[:, :, None] - self.centres) / 1.25) ** 2)) for d in lengths]
        offset = torch.clip(index[:, None] - index[nearest] + 32, 0, 64)
        position = self.positions(nn.functional.one_hot(offset, 66).float())
        edges = self.first_edges(self.norm_edges(self.edge_embedding(torch.cat([position, *radial], -1))))
        nodes = torch.zeros_like(edges[:, 0])
        for layer in self.layers:
            nodes, edges = layer(nodes, edges, nearest)
        return nodes, nearest


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
    "beatnet": (BeatTracker, (torch.zeros(1, 50, 272),)),
    "craft": (CharacterRegions, (torch.zeros(1, 3, 256, 320),),
              {"image": {2: 16 * Dim("h", min=10, max=40), 3: 16 * Dim("w", min=10, max=40)}}),
    "easyocr_en": (LineReader, (torch.zeros(1, 1, 64, 200),)),
    "khmer_ocr": (KhmerReader, (torch.zeros(1, 1, 48, 256),)),
    "rxnmapper": (Reactions, (ids(1, 40), ids(1, 40)), {"ids": {1: "length"}, "mask": {1: "length"}}),
    "proteinmpnn": (ProteinEncoder, (torch.randn(40, 4, 3), torch.arange(40)),
                    {"atoms": {0: "residues"}, "index": {0: "residues"}}),
}


def main(name, weights, path):
    build, example, *sizes = EXPORTS[name]
    network = build(weights).eval()
    with torch.no_grad():
        torch.onnx.export(network, example, path + ".part", dynamo=True, external_data=False, verbose=False,
                          dynamic_shapes=sizes[0] if sizes else None)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main(*sys.argv[1:])
