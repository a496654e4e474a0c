"""Tables, sets, graphs, recommendations, control and other networks that are neither images nor sequences."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import Spec, floats, ids, unit
from vision import Block


def mlp(*sizes, act=nn.ReLU, last=False):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if last or i < len(sizes) - 2:
            layers.append(act())
    return nn.Sequential(*layers)


class TabularMlp(nn.Module):
    """Embeddings of categories beside normalised numbers."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 6) for n in (10, 20, 5))
        self.norm, self.body = nn.BatchNorm1d(8), mlp(26, 64, 32, 2, act=nn.SELU)

    def forward(self, categories, numbers):
        parts = [table(categories[:, i]) for i, table in enumerate(self.tables)] + [self.norm(numbers)]
        return F.log_softmax(self.body(torch.cat(parts, 1)), 1)


class Dlrm(nn.Module):
    """Naumov et al. 2019: pairwise dot products of embeddings."""

    def __init__(self, dim=8):
        super().__init__()
        self.bottom = mlp(6, 16, dim, last=True)
        self.tables = nn.ModuleList(nn.Embedding(30, dim) for _ in range(4))
        self.register_buffer("pairs", torch.tril_indices(5, 5, -1))
        self.top = mlp(dim + 10, 32, 1)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        rows = torch.stack([x] + [t(sparse[:, i]) for i, t in enumerate(self.tables)], 1)
        products = (rows @ rows.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.top(torch.cat([x, products], 1)))


class DeepFm(nn.Module):
    """Guo et al. 2017: half of (square of sum minus sum of squares), plus an MLP."""

    def __init__(self, fields=6, dim=8):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(100, dim), nn.Embedding(100, 1)
        self.register_buffer("offsets", torch.arange(fields) * 16)
        self.deep = mlp(fields * dim, 32, 1)

    def forward(self, x):
        x = x + self.offsets
        e = self.embedding(x)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(0.2 * (self.linear(x).sum(1) + fm + self.deep(e.flatten(1))))


class FtTransformer(nn.Module):
    """Gorishniy et al. 2021: every column becomes a token."""

    def __init__(self, columns=7, dim=32):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(columns, dim)), nn.Parameter(torch.randn(columns, dim))
        self.token = nn.Parameter(torch.randn(1, 1, dim))
        self.blocks, self.head = nn.Sequential(Block(dim, 4, nn.ReLU), Block(dim, 4, nn.ReLU)), nn.Linear(dim, 3)

    def forward(self, x):
        tokens = x[..., None] * self.weight + self.bias
        tokens = torch.cat([self.token.expand(x.shape[0], 1, -1), tokens], 1)
        return self.head(self.blocks(tokens)[:, 0])


class TwoTower(nn.Module):
    """Retrieval: cosine similarity of a user to a list of items, and the best five."""

    def __init__(self):
        super().__init__()
        self.user, self.item = mlp(12, 32, 16), mlp(9, 32, 16)

    def forward(self, user, items):
        u, i = F.normalize(self.user(user), dim=-1), F.normalize(self.item(items), dim=-1)
        return torch.topk(u @ i.t() * 10.0, 5, dim=1)


class GcnScatter(nn.Module):
    """Kipf & Welling 2016 over an edge list: degrees and messages by scatter-add."""

    def __init__(self, dim=16):
        super().__init__()
        self.layers, self.head = nn.ModuleList([nn.Linear(6, dim), nn.Linear(dim, dim)]), nn.Linear(dim, 4)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        ones = torch.ones_like(source, dtype=x.dtype)
        degree = torch.zeros(x.shape[0]).scatter_add(0, target, ones) + 1.0
        norm = degree.rsqrt()
        weight = (norm[source] * norm[target])[:, None]
        for layer in self.layers:
            h = layer(x)
            index = target[:, None].expand(-1, h.shape[1])
            x = torch.relu(torch.zeros_like(h).scatter_add(0, index, h[source] * weight) + h / degree[:, None])
        return self.head(x).log_softmax(-1)


class GatDense(nn.Module):
    """Velickovic et al. 2017 with a dense adjacency matrix: masked softmax of leaky relu scores."""

    def __init__(self, dim=8, heads=3):
        super().__init__()
        self.heads, self.project = heads, nn.Linear(6, dim * heads, bias=False)
        self.left, self.right = nn.Parameter(torch.randn(heads, dim)), nn.Parameter(torch.randn(heads, dim))
        self.head = nn.Linear(dim * heads, 3)

    def forward(self, x, adjacency):
        h = self.project(x).view(x.shape[0], self.heads, -1)
        scores = F.leaky_relu((h * self.left).sum(-1)[:, None] + (h * self.right).sum(-1)[None], 0.2)
        scores = scores.masked_fill((adjacency == 0)[..., None], -1e9)
        return self.head(F.elu(torch.einsum("ijh,jhd->ihd", scores.softmax(1), h).flatten(1)))


class DeepSet(nn.Module):
    """Zaheer et al. 2017 with a mask: sum, mean and maximum over a set."""

    def __init__(self):
        super().__init__()
        self.phi, self.rho = mlp(5, 32, 24, last=True), mlp(72, 32, 4)

    def forward(self, x, mask):
        m = mask[..., None].to(x.dtype)
        h = self.phi(x) * m
        mean = h.sum(1) / m.sum(1).clamp(min=1)
        top = h.masked_fill(m == 0, float("-inf")).amax(1)
        return self.rho(torch.cat([h.sum(1) * 0.1, mean, top], -1))


class PointNet(nn.Module):
    """Qi et al. 2016: shared MLPs as 1-D convolutions, a predicted rotation, maximum over the points."""

    def __init__(self):
        super().__init__()

        def layer(a, b):
            return nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
        self.transform = nn.Sequential(layer(3, 24), layer(24, 48), nn.AdaptiveMaxPool1d(1), nn.Flatten(),
                                       nn.Linear(48, 9))
        self.features, self.head = nn.Sequential(layer(3, 32), layer(32, 64)), mlp(64, 32, 8)

    def forward(self, points):
        rotation = self.transform(points).view(-1, 3, 3) + torch.eye(3)
        turned = torch.bmm(points.transpose(1, 2), rotation).transpose(1, 2)
        return self.head(self.features(turned).max(2).values)


class Nerf(nn.Module):
    """Mildenhall et al. 2020: positional encoding, a skip, density and colour."""

    def __init__(self, bands=6):
        super().__init__()
        self.register_buffer("bands", (2.0 ** torch.arange(bands)) * math.pi)
        width = 3 + 6 * bands
        self.first, self.second = mlp(width, 48, 48, last=True), mlp(48 + width, 48, 48, last=True)
        self.density, self.colour = nn.Linear(48, 1), mlp(48, 24, 3)

    def forward(self, x):
        angle = (x[..., None] * self.bands).flatten(-2)
        e = torch.cat([x, angle.sin(), angle.cos()], -1)
        h = self.second(torch.cat([self.first(e), e], -1))
        return torch.cat([self.colour(h).sigmoid(), F.softplus(self.density(h))], -1)


class Siren(nn.Module):
    """Sitzmann et al. 2020: sine activations."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 3)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sin(3.0 * layer(x))
        return self.layers[-1](x)


class DuelingDqn(nn.Module):
    """Wang et al. 2015, on stacked frames of bytes."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten())
        self.value, self.advantage = mlp(512, 32, 1), mlp(512, 32, 6)

    def forward(self, frames):
        h = self.body(frames.float() / 255.0)
        advantage = self.advantage(h)
        q = self.value(h) + advantage - advantage.mean(1, keepdim=True)
        return q, q.argmax(1)


class Actor(nn.Module):
    """Soft actor-critic's squashed Gaussian policy (Haarnoja et al. 2018); the noise is an input."""

    def __init__(self):
        super().__init__()
        self.body, self.mean, self.log_std = mlp(11, 64, 64, last=True), nn.Linear(64, 3), nn.Linear(64, 3)

    def forward(self, state, noise):
        h = self.body(state)
        mean, log_std = self.mean(h), self.log_std(h).clamp(-5, 2)
        raw = mean + log_std.exp() * noise
        log_prob = -0.5 * noise ** 2 - log_std - 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return torch.tanh(raw), log_prob.sum(-1)


class MixtureOfExperts(nn.Module):
    """Shazeer et al. 2017, dense form: the best two experts' weights scattered into a row of zeros."""

    def __init__(self, experts=5, dim=16):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.up, self.down = nn.Parameter(0.3 * torch.randn(experts, dim, 32)), nn.Parameter(0.2 * torch.randn(experts, 32, dim))

    def forward(self, x):
        value, index = torch.topk(self.gate(x), 2, dim=-1)
        weight = torch.zeros_like(self.gate(x)).scatter(-1, index, value.softmax(-1))
        h = F.silu(torch.einsum("nd,edh->neh", x, self.up))
        return torch.einsum("neh,ehd,ne->nd", h, self.down, weight)


class Kalman(nn.Module):
    """One step of a filter with fixed matrices: transposes, matrix products, a closed 2x2 inverse."""

    def __init__(self):
        super().__init__()
        self.register_buffer("f", torch.eye(4) + torch.diag(torch.full((2,), 0.1), 2))
        self.register_buffer("h", torch.eye(4)[:2].clone())

    def forward(self, state, covariance, measurement):
        state = state @ self.f.t()
        covariance = self.f @ covariance @ self.f.t() + 0.01 * torch.eye(4)
        s = self.h @ covariance @ self.h.t() + 0.1 * torch.eye(2)
        determinant = s[:, 0, 0] * s[:, 1, 1] - s[:, 0, 1] * s[:, 1, 0]
        inverse = torch.stack([s[:, 1, 1], -s[:, 0, 1], -s[:, 1, 0], s[:, 0, 0]], -1).view(-1, 2, 2)
        gain = covariance @ self.h.t() @ (inverse / determinant[:, None, None])
        state = state + (gain @ (measurement - state @ self.h.t())[..., None]).squeeze(-1)
        return state, (torch.eye(4) - gain @ self.h) @ covariance


BATCH = {"input": {0: "batch"}, "output": {0: "batch"}}

SPECS = [
    Spec("mlp", lambda: mlp(784, 128, 64, 10), [[unit(1, 784)], [unit(7, 784)]], dynamic=BATCH, opset=9),
    Spec("mlp_dynamo", lambda: mlp(64, 128, 10, act=nn.GELU), [[floats(2, 64)], [floats(7, 64)]],
         dynamic={"input": {0: "batch"}}, dynamo=True, opset=20),
    Spec("mlp_external_data", lambda: mlp(64, 128, 10), [[floats(2, 64)]], dynamo=True, opset=18,
         options={"external_data": True}),
    Spec("mlp_fp16", lambda: mlp(64, 128, 10, act=nn.Tanh), [[floats(2, 64)]], half=True, opset=13),
    Spec("tabular_mlp", TabularMlp, [[ids(5, 3, 3), floats(3, 8)], [ids(5, 9, 3), floats(9, 8)]],
         inputs=["categories", "numbers"], dynamic={"categories": {0: "batch"}, "numbers": {0: "batch"}}, opset=13),
    Spec("dlrm", Dlrm, [[floats(3, 6), ids(30, 3, 4)]], inputs=["dense", "sparse"], opset=13),
    Spec("dlrm_dynamo", Dlrm, [[floats(3, 6), ids(30, 3, 4)]], inputs=["dense", "sparse"], opset=18, dynamo=True),
    Spec("deepfm", DeepFm, [[ids(16, 5, 6)]], opset=13),
    Spec("ft_transformer", FtTransformer, [[floats(4, 7)]], opset=18, dynamo=True),
    Spec("two_tower", TwoTower, [[floats(2, 12), floats(20, 9)]], inputs=["user", "items"],
         outputs=["scores", "best"], opset=13),
    Spec("gcn_scatter", GcnScatter, [[floats(9, 6), ids(9, 2, 30)]], inputs=["nodes", "edges"], opset=17),
    Spec("gcn_scatter_dynamo", GcnScatter, [[floats(9, 6), ids(9, 2, 30)]], inputs=["nodes", "edges"], opset=18,
         dynamo=True),
    Spec("gat_dense", GatDense, [[floats(10, 6), ids(2, 10, 10)]], inputs=["nodes", "adjacency"], opset=13),
    Spec("deep_set", DeepSet, [[floats(3, 9, 5), lambda rng: (rng.random((3, 9)) < 0.7)]], inputs=["set", "mask"],
         opset=13),
    Spec("pointnet", PointNet, [[floats(2, 3, 64)]], opset=13),
    Spec("nerf", Nerf, [[floats(12, 3)], [floats(31, 3)]], dynamic=BATCH, opset=11),
    Spec("siren", Siren, [[floats(40, 2)]], opset=9),
    Spec("dueling_dqn", DuelingDqn, [[lambda rng: rng.integers(0, 256, (1, 4, 48, 48)).astype("uint8")]],
         outputs=["q", "action"], opset=11),
    Spec("actor", Actor, [[floats(4, 11), floats(4, 3)]], inputs=["state", "noise"], outputs=["action", "log_prob"],
         opset=13),
    Spec("mixture_of_experts", MixtureOfExperts, [[floats(6, 16)]], opset=17),
    Spec("mixture_of_experts_dynamo", MixtureOfExperts, [[floats(6, 16)]], opset=18, dynamo=True),
    Spec("kalman", Kalman, [[floats(3, 4), lambda rng: (lambda a: (a @ a.transpose(0, 2, 1)).astype("float32"))(
        rng.standard_normal((3, 4, 4))), floats(3, 2)]], inputs=["state", "covariance", "measurement"],
         outputs=["next_state", "next_covariance"], opset=13),
]
