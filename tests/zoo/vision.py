"""Image classifiers: the layouts of well-known papers, written here in a few lines each, at small sizes."""
import torch
import torch.nn.functional as F
from torch import nn

from common import Spec, floats, unit


def conv_bn(inp, out, kernel=3, stride=1, groups=1, act=nn.ReLU, dilation=1):
    padding = (kernel - 1) // 2 * dilation
    layers = [nn.Conv2d(inp, out, kernel, stride, padding, dilation, groups, bias=False), nn.BatchNorm2d(out)]
    return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)


def classifier(features, channels, classes):
    return nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class LeNet(nn.Sequential):
    """LeCun et al. 1998."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
            nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(),
            nn.Linear(84, 10))


class Vgg(nn.Sequential):
    """Simonyan & Zisserman 2014, four stages."""

    def __init__(self, width=16):
        layers, inp = [], 3
        for out, repeat in ((width, 1), (2 * width, 1), (4 * width, 2), (8 * width, 2)):
            for _ in range(repeat):
                layers += [nn.Conv2d(inp, out, 3, padding=1), nn.ReLU()]
                inp = out
            layers.append(nn.MaxPool2d(2, 2))
        super().__init__(*layers, nn.Flatten(), nn.Linear(inp * 16, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 10))


class Basic(nn.Module):
    """He et al. 2015, the two-convolution block."""

    def __init__(self, inp, out, stride):
        super().__init__()
        self.body = nn.Sequential(conv_bn(inp, out, 3, stride), conv_bn(out, out, 3, act=None))
        self.skip = conv_bn(inp, out, 1, stride, act=None) if stride != 1 or inp != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Bottleneck(nn.Module):
    """He et al. 2015; with groups it is the block of ResNeXt (Xie et al. 2016)."""

    def __init__(self, inp, out, stride, groups=1):
        super().__init__()
        middle = out // 2
        self.body = nn.Sequential(
            conv_bn(inp, middle, 1), conv_bn(middle, middle, 3, stride, groups), conv_bn(middle, out, 1, act=None))
        self.skip = conv_bn(inp, out, 1, stride, act=None) if stride != 1 or inp != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet8():
    return classifier([conv_bn(3, 16), Basic(16, 16, 1), Basic(16, 32, 2), Basic(32, 64, 2)], 64, 10)


def resnet18(width=24):
    layers = [conv_bn(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)]
    inp = width
    for stage in range(4):
        out = width << stage
        layers += [Basic(inp, out, 1 if stage == 0 else 2), Basic(out, out, 1)]
        inp = out
    return classifier(layers, inp, 100)


def resnet_bottleneck(groups=1):
    layers, inp = [conv_bn(3, 32, 3, 2)], 32
    for out, stride in ((64, 1), (128, 2), (256, 2)):
        layers += [Bottleneck(inp, out, stride, groups), Bottleneck(out, out, 1, groups)]
        inp = out
    return classifier(layers, inp, 50)


def mobilenet_v1(width=16):
    layers, inp = [conv_bn(3, width, 3, 2)], width
    for factor, stride in ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2)):
        out = width * factor
        layers += [conv_bn(inp, inp, 3, stride, inp), conv_bn(inp, out, 1)]
        inp = out
    return classifier(layers, inp, 20)


class InvertedResidual(nn.Module):
    """Sandler et al. 2018."""

    def __init__(self, inp, out, stride, expand):
        super().__init__()
        hidden = inp * expand
        layers = [conv_bn(inp, hidden, 1, act=nn.ReLU6)] if expand != 1 else []
        layers += [conv_bn(hidden, hidden, 3, stride, hidden, nn.ReLU6), conv_bn(hidden, out, 1, act=None)]
        self.body, self.add = nn.Sequential(*layers), stride == 1 and inp == out

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


def mobilenet_v2(classes=1000, plan=None):
    """The published table (3.5 million weights) unless a smaller plan is given."""
    plan = plan or ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                    (6, 320, 1, 1))
    layers, inp = [conv_bn(3, 32, 3, 2, act=nn.ReLU6)], 32
    for expand, out, repeat, stride in plan:
        for i in range(repeat):
            layers.append(InvertedResidual(inp, out, stride if i == 0 else 1, expand))
            inp = out
    last = 4 * inp
    layers.append(conv_bn(inp, last, 1, act=nn.ReLU6))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(last, classes))


class SqueezeExcite(nn.Module):
    """Hu et al. 2017."""

    def __init__(self, channels, gate=nn.Hardsigmoid, act=nn.ReLU):
        super().__init__()
        self.body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels // 4, 1), act(),
                                  nn.Conv2d(channels // 4, channels, 1), gate())

    def forward(self, x):
        return x * self.body(x)


class MBConv(nn.Module):
    """The block of MobileNetV3 (Howard et al. 2019) and EfficientNet (Tan & Le 2019)."""

    def __init__(self, inp, out, kernel, stride, expand, squeeze, act, gate):
        super().__init__()
        hidden = inp * expand
        layers = [conv_bn(inp, hidden, 1, act=act), conv_bn(hidden, hidden, kernel, stride, hidden, act)]
        if squeeze:
            layers.append(SqueezeExcite(hidden, gate, act if gate is nn.Sigmoid else nn.ReLU))
        self.body = nn.Sequential(*layers, conv_bn(hidden, out, 1, act=None))
        self.add = stride == 1 and inp == out

    def forward(self, x):
        return x + self.body(x) if self.add else self.body(x)


def mobilenet_v3():
    def block(inp, out, kernel, stride, expand, squeeze, act):
        return MBConv(inp, out, kernel, stride, expand, squeeze, act, nn.Hardsigmoid)
    return nn.Sequential(
        conv_bn(3, 16, 3, 2, act=nn.Hardswish), block(16, 16, 3, 2, 1, True, nn.ReLU),
        block(16, 24, 3, 2, 4, False, nn.ReLU), block(24, 24, 3, 1, 4, False, nn.ReLU),
        block(24, 40, 5, 2, 4, True, nn.Hardswish), block(40, 40, 5, 1, 6, True, nn.Hardswish),
        conv_bn(40, 240, 1, act=nn.Hardswish), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(240, 128),
        nn.Hardswish(), nn.Linear(128, 100))


def efficientnet():
    def block(*args):
        return MBConv(*args, True, nn.SiLU, nn.Sigmoid)
    return classifier([
        conv_bn(3, 16, 3, 2, act=nn.SiLU), block(16, 16, 3, 1, 1), block(16, 24, 3, 2, 6), block(24, 24, 3, 1, 6),
        block(24, 40, 5, 2, 6), block(40, 64, 3, 2, 6), conv_bn(64, 128, 1, act=nn.SiLU)], 128, 100)


class Fire(nn.Module):
    """SqueezeNet (Iandola et al. 2016)."""

    def __init__(self, inp, squeeze, expand):
        super().__init__()
        self.squeeze, self.one = nn.Conv2d(inp, squeeze, 1), nn.Conv2d(squeeze, expand, 1)
        self.three = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


def squeezenet():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(32, 8, 32), Fire(64, 8, 32),
        nn.MaxPool2d(3, 2, ceil_mode=True), Fire(64, 16, 64), Fire(128, 16, 64), nn.Dropout(), nn.Conv2d(128, 40, 1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class DenseLayer(nn.Module):
    """DenseNet (Huang et al. 2016): norm and activation before each convolution."""

    def __init__(self, inp, growth):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inp), nn.ReLU(), nn.Conv2d(inp, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth), nn.ReLU(), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def densenet(growth=12):
    layers, channels = [nn.Conv2d(3, 24, 3, padding=1, bias=False)], 24
    for block in range(3):
        for _ in range(4):
            layers.append(DenseLayer(channels, growth))
            channels += growth
        if block < 2:
            layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False),
                       nn.AvgPool2d(2, 2)]
            channels //= 2
    return classifier([*layers, nn.BatchNorm2d(channels), nn.ReLU()], channels, 10)


class ShuffleUnit(nn.Module):
    """ShuffleNetV2 (Ma et al. 2018): split, work on one half, concatenate, shuffle the channels."""

    def __init__(self, inp, out, stride):
        super().__init__()
        self.stride, half = stride, out // 2
        branch = inp if stride > 1 else inp // 2
        self.right = nn.Sequential(conv_bn(branch, half, 1), conv_bn(half, half, 3, stride, half, None),
                                   conv_bn(half, half, 1))
        self.left = nn.Sequential(conv_bn(inp, inp, 3, stride, inp, None), conv_bn(inp, half, 1))

    def forward(self, x):
        if self.stride > 1:
            x = torch.cat([self.left(x), self.right(x)], 1)
        else:
            left, right = x.chunk(2, 1)
            x = torch.cat([left, self.right(right)], 1)
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet_v2():
    return classifier([conv_bn(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1), ShuffleUnit(24, 48, 2), ShuffleUnit(48, 48, 1),
                       ShuffleUnit(48, 96, 2), ShuffleUnit(96, 96, 1), conv_bn(96, 192, 1)], 192, 30)


class Ghost(nn.Module):
    """GhostNet (Han et al. 2019): half of the channels come from a cheap depthwise convolution."""

    def __init__(self, inp, out):
        super().__init__()
        self.out, half = out, (out + 1) // 2
        self.main, self.cheap = conv_bn(inp, half, 1), conv_bn(half, half, 3, groups=half)

    def forward(self, x):
        x = self.main(x)
        return torch.cat([x, self.cheap(x)], 1)[:, :self.out]


def ghostnet():
    return classifier([conv_bn(3, 16, 3, 2, act=nn.Hardswish), Ghost(16, 31), conv_bn(31, 31, 3, 2, 31),
                       SqueezeExcite(31), Ghost(31, 63), conv_bn(63, 63, 5, 2, 63, None), Ghost(63, 95)], 95, 20)


class Inception(nn.Module):
    """Szegedy et al. 2015: parallel branches, some of them with 1x7 and 7x1 kernels."""

    def __init__(self, inp):
        super().__init__()
        self.a = conv_bn(inp, 16, 1)
        self.b = nn.Sequential(conv_bn(inp, 12, 1), nn.Conv2d(12, 16, (1, 7), padding=(0, 3)), nn.ReLU(),
                               nn.Conv2d(16, 16, (7, 1), padding=(3, 0)), nn.ReLU())
        self.c = nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), conv_bn(inp, 16, 1))
        self.d = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn(inp, 16, 1))

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(x)], 1)


def inception():
    return classifier([conv_bn(3, 24, 3, 2), Inception(24), nn.MaxPool2d(3, 2), Inception(64)], 64, 20)


def alexnet():
    """Krizhevsky et al. 2012, with its response norms (the script exporter writes an If for each)."""
    return nn.Sequential(
        nn.Conv2d(3, 24, 7, 4), nn.ReLU(), nn.LocalResponseNorm(5, 1e-2, 0.75, 2.0), nn.MaxPool2d(3, 2),
        nn.Conv2d(24, 32, 5, padding=2, groups=2), nn.ReLU(), nn.LocalResponseNorm(4), nn.MaxPool2d(3, 2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Dropout(), nn.Linear(432, 64), nn.ReLU(),
        nn.Linear(64, 20))


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """Liu et al. 2022."""

    def __init__(self, dim):
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(dim, dim, 7, padding=3, groups=dim), nn.LayerNorm(dim, eps=1e-6)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.scale = nn.Parameter(1e-6 * torch.ones(dim))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


def convnext():
    return nn.Sequential(
        nn.Conv2d(3, 32, 4, 4), LayerNorm2d(32, eps=1e-6), ConvNextBlock(32), ConvNextBlock(32),
        LayerNorm2d(32, eps=1e-6), nn.Conv2d(32, 64, 2, 2), ConvNextBlock(64), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.LayerNorm(64, eps=1e-6), nn.Linear(64, 40))


class Attention(nn.Module):
    """Multi-head attention with one projection for q, k and v; bias is added to the scores."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, bias=None):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * self.scale) @ k.transpose(-2, -1)
        if bias is not None:
            scores = scores + bias
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim, heads, act=nn.GELU):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), act(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Dosovitskiy et al. 2020."""

    def __init__(self, image=48, patch=8, dim=64, depth=3, classes=30):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*(Block(dim, 4) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


class SdpaViT(ViT):
    """The same with torch's fused attention and encoder layer."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class SwinBlock(nn.Module):
    """Liu et al. 2021: attention in windows, every second block on a shifted image."""

    def __init__(self, dim, heads, size, window, shift):
        super().__init__()
        self.size, self.window, self.shift = size, window, shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.table = nn.Parameter(0.5 * torch.randn((2 * window - 1) ** 2, heads))
        grid = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = (grid[:, :, None] - grid[:, None]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", relative[..., 0] * (2 * window - 1) + relative[..., 1])
        zones = torch.zeros(1, size, size, 1)
        edges = (slice(0, -window), slice(-window, -shift or None), slice(-shift, None) if shift else slice(0, 0))
        for i, h in enumerate(edges):
            for j, w in enumerate(edges):
                zones[:, h, w] = 3 * i + j
        zones = self.split(zones).squeeze(-1)
        self.register_buffer("mask", (zones[:, None] != zones[:, :, None]).float() * -100.0)

    def split(self, x):
        b, h, w, c = x.shape
        k = self.window
        return x.view(b, h // k, k, w // k, k, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, k * k, c)

    def join(self, windows, batch):
        n, k = self.size // self.window, self.window
        x = windows.view(batch, n, n, k, k, -1).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(batch, self.size, self.size, -1)

    def forward(self, x):
        y = torch.roll(self.norm1(x), (-self.shift, -self.shift), (1, 2)) if self.shift else self.norm1(x)
        windows = self.split(y)
        bias = self.table[self.index.flatten()].view(self.window ** 2, self.window ** 2, -1).permute(2, 0, 1)[None]
        if self.shift:
            bias = bias + self.mask.repeat(x.shape[0], 1, 1).unsqueeze(1)
        y = self.join(self.attention(windows, bias), x.shape[0])
        x = x + (torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y)
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduce(self.norm(x))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 4, 4)
        self.body = nn.Sequential(SwinBlock(32, 2, 16, 4, 0), SwinBlock(32, 2, 16, 4, 2), PatchMerging(32),
                                  SwinBlock(64, 4, 8, 4, 0), SwinBlock(64, 4, 8, 4, 2), nn.LayerNorm(64))
        self.head = nn.Linear(64, 30)

    def forward(self, x):
        return self.head(self.body(self.patch(x).permute(0, 2, 3, 1)).mean((1, 2)))


class MixerBlock(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021)."""

    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.channels = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU("tanh"), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 48, 8, 8)
        self.body = nn.Sequential(MixerBlock(36, 48), MixerBlock(36, 48), nn.LayerNorm(48))
        self.head = nn.Linear(48, 20)

    def forward(self, x):
        return self.head(self.body(self.patch(x).flatten(2).transpose(1, 2)).mean(1))


class FaceEmbedding(nn.Module):
    """ArcFace-like: PReLU, global depthwise convolution, output of length 1."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(3, 32, 3, 2, act=None), nn.PReLU(32), conv_bn(32, 32, 3, 1, 32, None), nn.PReLU(32),
            conv_bn(32, 64, 3, 2, act=None), nn.PReLU(64), nn.Conv2d(64, 64, 12, groups=64, bias=False), nn.Flatten(),
            nn.Linear(64, 128), nn.BatchNorm1d(128))

    def forward(self, x):
        return F.normalize(self.body(x))


class Video3d(nn.Sequential):
    """C3D-like (Tran et al. 2014)."""

    def __init__(self):
        super().__init__(
            nn.Conv3d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool3d((1, 2, 2)), nn.Conv3d(8, 16, 3, padding=1),
            nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 12))


def image(size, batch=1, channels=3):
    return floats(batch, channels, size, size)


BATCH = {"input": {0: "batch"}, "output": {0: "batch"}}
BATCH_IN = {"input": {0: "batch"}}
NO_FOLD = {"do_constant_folding": False, "keep_initializers_as_inputs": True}

SPECS = [
    Spec("lenet", LeNet, [[unit(1, 1, 28, 28)], [unit(5, 1, 28, 28)]], dynamic=BATCH, opset=9),
    Spec("vgg_small", Vgg, [[image(64)]], opset=9),
    Spec("resnet8", resnet8, [[image(32)], [image(32, 4)]], dynamic=BATCH, opset=13),
    Spec("resnet8_raw", resnet8, [[image(32)]], opset=9,
         options={**NO_FOLD, "training": torch.onnx.TrainingMode.PRESERVE}),
    Spec("resnet8_fp16", resnet8, [[image(32)]], opset=17, half=True),
    Spec("resnet18", resnet18, [[image(96)]], opset=11),
    Spec("resnet_bottleneck_dynamo", resnet_bottleneck, [[image(48, 2)], [image(48, 3)]], dynamic=BATCH_IN,
         dynamo=True, opset=18),
    Spec("resnext", lambda: resnet_bottleneck(8), [[image(48)]], opset=13),
    Spec("mobilenet_v1", mobilenet_v1, [[image(64)]], opset=11),
    Spec("mobilenet_v2", mobilenet_v2, [[image(224)], [image(224, 2)]], dynamic=BATCH, opset=13),
    Spec("mobilenet_v2_dynamo", lambda: mobilenet_v2(50, ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2))), [[image(64)]],
         dynamo=True, opset=20),
    Spec("mobilenet_v2_fp16", lambda: mobilenet_v2(50, ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2))), [[image(64)]],
         half=True, opset=13),
    Spec("mobilenet_v3", mobilenet_v3, [[image(96)]], opset=17),
    Spec("mobilenet_v3_op11", mobilenet_v3, [[image(96)]], opset=11),
    Spec("mobilenet_v3_dynamo", mobilenet_v3, [[image(96)]], dynamo=True, opset=18),
    Spec("efficientnet", efficientnet, [[image(96)], [image(96, 3)]], dynamic=BATCH, opset=17),
    Spec("efficientnet_dynamo", efficientnet, [[image(64)]], dynamo=True, opset=18),
    Spec("squeezenet", squeezenet, [[image(96)]], opset=9),
    Spec("densenet", densenet, [[image(32)]], opset=11),
    Spec("densenet_dynamo", densenet, [[image(32)]], opset=18, dynamo=True),
    Spec("shufflenet_v2", shufflenet_v2, [[image(96)]], opset=13),
    Spec("shufflenet_v2_dynamic", shufflenet_v2, [[image(64)], [image(64, 3)]], dynamic=BATCH, opset=11),
    Spec("ghostnet", ghostnet, [[image(64)]], opset=13),
    Spec("inception", inception, [[image(64)]], opset=11),
    Spec("alexnet", alexnet, [[image(67)]], opset=11),
    Spec("convnext", convnext, [[image(64)]], opset=17),
    Spec("convnext_dynamo", convnext, [[image(64, 2)], [image(64, 5)]], dynamic=BATCH_IN, dynamo=True, opset=20),
    Spec("vit", ViT, [[image(48)]], opset=13),
    Spec("vit_dynamo", ViT, [[image(48)]], opset=18, dynamo=True),
    Spec("vit_sdpa_unoptimised", SdpaViT, [[image(48)]], opset=18, dynamo=True, options={"optimize": False}),
    Spec("vit_sdpa_op23", SdpaViT, [[image(48)]], opset=23, dynamo=True),
    Spec("vit_sdpa", SdpaViT, [[image(48)]], opset=17),
    Spec("vit_fp16", ViT, [[image(48)]], opset=18, dynamo=True, half=True),
    Spec("swin", Swin, [[image(64)]], opset=17),
    Spec("swin_dynamo", Swin, [[image(64)]], opset=18, dynamo=True),
    Spec("mlp_mixer", Mixer, [[image(48)]], opset=17),
    Spec("mlp_mixer_dynamo", Mixer, [[image(48)]], opset=20, dynamo=True),
    Spec("face_embedding", FaceEmbedding, [[image(48, 2)]], opset=11),
    Spec("video_3d", Video3d, [[floats(1, 3, 8, 32, 32)]], opset=13),
]
