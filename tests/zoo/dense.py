"""Networks whose output is an image, a map or a set of boxes, and generative ones."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from common import Spec, floats, ids, unit
from vision import Attention, Block, conv_bn, image


def double(inp, out):
    return nn.Sequential(conv_bn(inp, out), conv_bn(out, out))


class UNet(nn.Module):
    """Ronneberger et al. 2015; up is a transposed convolution or an interpolation."""

    def __init__(self, width=8, interpolate=None):
        super().__init__()
        self.interpolate = interpolate
        self.down1, self.down2, self.middle = double(3, width), double(width, 2 * width), double(2 * width, 4 * width)
        self.up2, self.up1 = (nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)) \
            if interpolate is None else (nn.Conv2d(4 * width, 2 * width, 1), nn.Conv2d(2 * width, width, 1))
        self.merge2, self.merge1 = double(4 * width, 2 * width), double(2 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    def raise_to(self, x, up):
        if self.interpolate is None:
            return up(x)
        corners = False if self.interpolate == "bilinear" else None
        return up(F.interpolate(x, scale_factor=2, mode=self.interpolate, align_corners=corners))

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.merge2(torch.cat([b, self.raise_to(c, self.up2)], 1))
        return self.head(self.merge1(torch.cat([a, self.raise_to(b, self.up1)], 1)))


class DeepLab(nn.Module):
    """Chen et al. 2017: dilated convolutions side by side, pooled context, bilinear resize to the input's size."""

    def __init__(self, corners=False):
        super().__init__()
        self.corners = corners
        self.stem = nn.Sequential(conv_bn(3, 16, 3, 2), conv_bn(16, 32, 3, 2))
        self.branches = nn.ModuleList([conv_bn(32, 16, 1), *(conv_bn(32, 16, 3, dilation=d) for d in (2, 4, 6))])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 16, 1), nn.ReLU())
        self.head = nn.Sequential(conv_bn(80, 32, 1), nn.Conv2d(32, 5, 1))

    def resize(self, x, size):
        return F.interpolate(x, size, mode="bilinear", align_corners=self.corners)

    def forward(self, x):
        y = self.stem(x)
        parts = [branch(y) for branch in self.branches] + [self.resize(self.pool(y), y.shape[2:])]
        return self.resize(self.head(torch.cat(parts, 1)), x.shape[2:])


class Yolo(nn.Module):
    """Anchor-free detector in the manner of YOLOv8: CSP blocks, feature pyramid, softmax over box bins, decode."""

    def __init__(self, classes=6, bins=8, width=12):
        super().__init__()
        self.classes, self.bins = classes, bins
        w = width
        self.s1, self.s2 = conv_bn(3, w, 3, 2, act=nn.SiLU), conv_bn(w, 2 * w, 3, 2, act=nn.SiLU)
        self.s3, self.s4 = self.csp(2 * w, 4 * w), self.csp(4 * w, 8 * w)
        self.lateral = conv_bn(8 * w, 4 * w, 1, act=nn.SiLU)
        self.fuse = conv_bn(8 * w, 4 * w, 3, act=nn.SiLU)
        self.heads = nn.ModuleList(nn.Conv2d(c, 4 * bins + classes, 1) for c in (4 * w, 8 * w))
        self.strides = (8, 16)

    @staticmethod
    def csp(inp, out):
        return nn.Sequential(conv_bn(inp, out, 3, 2, act=nn.SiLU), Csp(out))

    def anchors(self, maps):
        points = []
        for level, stride in zip(maps, self.strides):
            h, w = level.shape[2:]
            y, x = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            points.append(torch.stack([x.flatten(), y.flatten(), torch.full((h * w,), float(stride))]))
        return torch.cat(points, 1)

    def forward(self, image):
        c3 = self.s3(self.s2(self.s1(image)))
        c4 = self.s4(c3)
        p3 = self.fuse(torch.cat([F.interpolate(self.lateral(c4), scale_factor=2.0, mode="nearest"), c3], 1))
        maps = [head(f) for head, f in zip(self.heads, (p3, c4))]
        flat = torch.cat([m.flatten(2) for m in maps], 2)
        boxes, scores = flat.split([4 * self.bins, self.classes], 1)
        n = boxes.shape[2]
        weights = boxes.view(-1, 4, self.bins, n).softmax(2)
        sides = (weights * torch.arange(self.bins, dtype=torch.float32).view(1, 1, -1, 1)).sum(2)
        anchors = self.anchors(maps)
        near, far = sides.chunk(2, 1)
        low, high = anchors[:2] - near, anchors[:2] + far
        return torch.cat([(low + high) / 2 * anchors[2], (high - low) * anchors[2], scores.sigmoid()], 1)


class Csp(nn.Module):
    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.a, self.b = conv_bn(half, half, act=nn.SiLU), conv_bn(half, half, act=nn.SiLU)
        self.join = conv_bn(3 * half, channels, 1, act=nn.SiLU)

    def forward(self, x):
        left, right = x.chunk(2, 1)
        return self.join(torch.cat([left, right, right + self.b(self.a(right))], 1))


class Yolo3(nn.Module):
    """Redmon & Farhadi 2018: anchors, leaky relu, exp decode, two scales."""

    def __init__(self, classes=4):
        super().__init__()
        self.width = 5 + classes

        def unit_(inp, out, stride):
            return conv_bn(inp, out, 3, stride, act=lambda: nn.LeakyReLU(0.1))
        self.stem = nn.Sequential(unit_(3, 16, 2), unit_(16, 32, 2), unit_(32, 48, 2))
        self.deep = unit_(48, 64, 2)
        self.lateral, self.fuse = nn.Conv2d(64, 32, 1), unit_(80, 48, 1)
        self.heads = nn.ModuleList([nn.Conv2d(48, 3 * self.width, 1), nn.Conv2d(64, 3 * self.width, 1)])
        self.register_buffer("anchors", torch.tensor([[10., 13], [16, 30], [33, 23]]).view(1, 3, 1, 1, 2))

    def decode(self, x, stride):
        b, _, h, w = x.shape
        x = x.view(b, 3, self.width, h, w).permute(0, 1, 3, 4, 2)
        y, x0 = torch.meshgrid(torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32), indexing="ij")
        grid = torch.stack([x0, y], -1).view(1, 1, h, w, 2)
        center = (x[..., :2].sigmoid() + grid) * stride
        size = x[..., 2:4].clamp(max=4).exp() * self.anchors
        return torch.cat([center, size, x[..., 4:].sigmoid()], -1).reshape(b, -1, self.width)

    def forward(self, image):
        fine = self.stem(image)
        coarse = self.deep(fine)
        fine = self.fuse(torch.cat([fine, F.interpolate(self.lateral(coarse), scale_factor=2)], 1))
        return torch.cat([self.decode(self.heads[0](fine), 8), self.decode(self.heads[1](coarse), 16)], 1)


class Ssd(nn.Module):
    """Liu et al. 2015: heads on three scales, boxes relative to priors, softmax over classes."""

    def __init__(self, classes=5, per_cell=4):
        super().__init__()
        self.classes = classes
        self.stages = nn.ModuleList([nn.Sequential(conv_bn(3, 16, 3, 2), conv_bn(16, 32, 3, 2), conv_bn(32, 48, 3, 2)),
                                     conv_bn(48, 64, 3, 2), conv_bn(64, 64, 3, 2)])
        self.boxes = nn.ModuleList(nn.Conv2d(c, 4 * per_cell, 3, padding=1) for c in (48, 64, 64))
        self.scores = nn.ModuleList(nn.Conv2d(c, classes * per_cell, 3, padding=1) for c in (48, 64, 64))
        self.register_buffer("priors", torch.rand(per_cell * (64 + 16 + 4), 4))

    def forward(self, x):
        boxes, scores = [], []
        for stage, box, score in zip(self.stages, self.boxes, self.scores):
            x = stage(x)
            boxes.append(box(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4))
            scores.append(score(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, self.classes))
        offsets = torch.cat(boxes, 1)
        center = self.priors[:, :2] + offsets[..., :2] * 0.1 * self.priors[:, 2:]
        size = self.priors[:, 2:] * torch.exp(offsets[..., 2:] * 0.2)
        return torch.cat([center - size / 2, center + size / 2], -1), torch.cat(scores, 1).softmax(-1)


class Espcn(nn.Sequential):
    """Shi et al. 2016."""

    def __init__(self, factor=3):
        super().__init__(nn.Conv2d(1, 32, 5, padding=2), nn.Tanh(), nn.Conv2d(32, 16, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(16, factor ** 2, 3, padding=1), nn.PixelShuffle(factor))


class Edsr(nn.Module):
    """Lim et al. 2017: residual blocks without norms, scaled, and a long skip."""

    def __init__(self):
        super().__init__()
        self.head, self.last = nn.Conv2d(3, 24, 3, padding=1), nn.Conv2d(24, 24, 3, padding=1)
        self.body = nn.ModuleList(nn.Sequential(nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
                                                nn.Conv2d(24, 24, 3, padding=1)) for _ in range(3))
        self.tail = nn.Sequential(nn.Conv2d(24, 96, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(24, 3, 3, padding=1))

    def forward(self, x):
        head = y = self.head(x)
        for block in self.body:
            y = y + 0.1 * block(y)
        return self.tail(head + self.last(y))


class Pose(nn.Module):
    """Simple baseline (Xiao et al. 2018) with soft-argmax: transposed convolutions, expected coordinates."""

    def __init__(self, joints=7):
        super().__init__()
        self.body = nn.Sequential(conv_bn(3, 16, 3, 2), conv_bn(16, 32, 3, 2), conv_bn(32, 48, 3, 2),
                                  nn.ConvTranspose2d(48, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                                  nn.ConvTranspose2d(32, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                                  nn.Conv2d(32, joints, 1))

    def forward(self, x):
        maps = self.body(x)
        h, w = maps.shape[2:]
        heat = maps.flatten(2).softmax(-1).view_as(maps)
        x = (heat.sum(2) * torch.linspace(0, 1, w)).sum(-1)
        y = (heat.sum(3) * torch.linspace(0, 1, h)).sum(-1)
        return torch.stack([x, y], -1), maps.amax((2, 3))


class Autoencoder(nn.Sequential):
    """The dense anomaly detector of MLPerf Tiny."""

    def __init__(self):
        layers, inp = [], 640
        for out in (128, 128, 8, 128, 128):
            layers += [nn.Linear(inp, out), nn.BatchNorm1d(out), nn.ReLU()]
            inp = out
        super().__init__(*layers, nn.Linear(inp, 640))


class Vae(nn.Module):
    """Kingma & Welling 2013; the noise is an input."""

    def __init__(self, latent=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                     nn.Flatten())
        self.mean, self.log_variance = nn.Linear(1568, latent), nn.Linear(1568, latent)
        self.expand = nn.Linear(latent, 1568)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(32, 16, 3, 2, 1, output_padding=1), nn.ReLU(),
                                     nn.ConvTranspose2d(16, 1, 3, 2, 1, output_padding=1), nn.Sigmoid())

    def forward(self, x, noise):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden) * 0.3
        z = mean + noise * torch.exp(0.5 * log_variance)
        return self.decoder(F.relu(self.expand(z)).view(-1, 32, 7, 7)), mean, log_variance


class Generator(nn.Sequential):
    """DCGAN (Radford et al. 2015)."""

    def __init__(self):
        def up(inp, out, stride, padding):
            return nn.ConvTranspose2d(inp, out, 4, stride, padding, bias=False), nn.BatchNorm2d(out), nn.ReLU()
        super().__init__(*up(32, 64, 1, 0), *up(64, 32, 2, 1), *up(32, 16, 2, 1),
                         nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())


class Discriminator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1, bias=False),
                         nn.InstanceNorm2d(32, affine=True), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 8), nn.Flatten(),
                         nn.Sigmoid())


class StyleTransfer(nn.Module):
    """Johnson et al. 2016: reflection padding, instance norm, nearest upsampling."""

    def __init__(self):
        super().__init__()

        def layer(inp, out, kernel, stride=1):
            return [nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inp, out, kernel, stride),
                    nn.InstanceNorm2d(out, affine=True)]
        self.down = nn.Sequential(*layer(3, 12, 9), nn.ReLU(), *layer(12, 24, 3, 2), nn.ReLU())
        self.residual = nn.Sequential(*layer(24, 24, 3), nn.ReLU(), *layer(24, 24, 3))
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), *layer(24, 12, 3), nn.ReLU(), nn.ReflectionPad2d(4),
                                nn.Conv2d(12, 3, 9))

    def forward(self, x):
        y = self.down(x)
        return torch.tanh(self.up(y + self.residual(y))) * 150 + 255.0 / 2


class VqVae(nn.Module):
    """van den Oord et al. 2017: nearest code by distance and argmin, then a look-up."""

    def __init__(self, codes=32, dim=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, dim, 4, 2, 1))
        self.codes = nn.Embedding(codes, dim)
        self.decoder = nn.Sequential(nn.ConvTranspose2d(dim, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))

    def forward(self, x):
        z = self.encoder(x).permute(0, 2, 3, 1)
        flat = z.reshape(-1, z.shape[-1])
        table = self.codes.weight
        distance = (flat ** 2).sum(1, keepdim=True) + (table ** 2).sum(1) - 2 * flat @ table.t()
        index = distance.argmin(1)
        return self.decoder(self.codes(index).view(z.shape).permute(0, 3, 1, 2)), index


class TimeResidual(nn.Module):
    def __init__(self, inp, out, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inp), nn.Conv2d(inp, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.norm2, self.conv2 = nn.GroupNorm(4, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(inp, out, 1) if inp != out else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class SpatialAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm, self.attention = nn.GroupNorm(4, channels), Attention(channels, 4)

    def forward(self, x):
        y = self.attention(self.norm(x).flatten(2).transpose(1, 2))
        return x + y.transpose(1, 2).reshape(x.shape)


class Diffusion(nn.Module):
    """The noise predictor of Ho et al. 2020: group norm, SiLU, attention, sinusoidal time."""

    def __init__(self, width=16):
        super().__init__()
        w, t = width, 4 * width
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * torch.arange(w) / w))
        self.time = nn.Sequential(nn.Linear(2 * w, t), nn.SiLU(), nn.Linear(t, t))
        self.stem = nn.Conv2d(3, w, 3, padding=1)
        self.down, self.shrink = TimeResidual(w, w, t), nn.Conv2d(w, w, 3, 2, 1)
        self.middle1, self.attention, self.middle2 = TimeResidual(w, 2 * w, t), SpatialAttention(2 * w), TimeResidual(2 * w, w, t)
        self.grow, self.up = nn.Conv2d(w, w, 3, padding=1), TimeResidual(2 * w, w, t)
        self.norm, self.last = nn.GroupNorm(4, w), nn.Conv2d(w, 3, 3, padding=1)

    def forward(self, x, step):
        angle = step[:, None].float() * self.frequencies
        t = self.time(torch.cat([angle.sin(), angle.cos()], -1))
        x = self.stem(x)
        skip = self.down(x, t)
        y = self.middle2(self.attention(self.middle1(self.shrink(skip), t)), t)
        y = self.grow(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        return self.last(F.silu(self.norm(self.up(torch.cat([y, skip], 1), t))))


class Segmenter(nn.Module):
    """Strudel et al. 2021: transformer over patches, mask from class embeddings, bilinear upsampling."""

    def __init__(self, dim=48, classes=6):
        super().__init__()
        self.patch, self.blocks = nn.Conv2d(3, dim, 8, 8), nn.Sequential(Block(dim, 4), Block(dim, 4), nn.LayerNorm(dim))
        self.classes = nn.Parameter(torch.randn(1, classes, dim))

    def forward(self, x):
        y = self.patch(x)
        h, w = y.shape[2:]
        y = self.blocks(y.flatten(2).transpose(1, 2))
        masks = F.normalize(y, dim=-1) @ F.normalize(self.classes, dim=-1).transpose(1, 2)
        masks = masks.transpose(1, 2).view(x.shape[0], -1, h, w)
        return F.interpolate(masks, scale_factor=8, mode="bilinear", align_corners=False)


class Matting(nn.Module):
    """Two inputs, guided by a trimap; edge padding, clamp, blend."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.ReplicationPad2d(1), nn.Conv2d(7, 16, 3), nn.ELU(), nn.ConstantPad2d(1, 0.5),
                                 nn.Conv2d(16, 1, 3), nn.Hardtanh(0, 1))

    def forward(self, image, trimap):
        alpha = self.net(torch.cat([image, F.one_hot(trimap, 4).permute(0, 3, 1, 2).float()], 1))
        alpha = torch.where(trimap[:, None] == 2, torch.ones_like(alpha), alpha)
        return image * alpha, alpha


BATCH = {"input": {0: "batch"}, "output": {0: "batch"}}
BATCH_IN = {"input": {0: "batch"}}
SIZE = {"input": {2: "height", 3: "width"}, "output": {2: "height3", 3: "width3"}}

SPECS = [
    Spec("unet", UNet, [[image(48)]], opset=11),
    Spec("unet_nearest", lambda: UNet(8, "nearest"), [[image(48)]], opset=9),
    Spec("unet_bilinear_dynamo", lambda: UNet(8, "bilinear"), [[image(48)]], dynamo=True, opset=18),
    Spec("unet_fp16", UNet, [[image(32)]], opset=17, half=True),
    Spec("deeplab", DeepLab, [[image(64)]], opset=13),
    Spec("deeplab_corners_dynamo", lambda: DeepLab(True), [[image(48)]], opset=18, dynamo=True),
    Spec("yolo", Yolo, [[unit(1, 3, 96, 96)]], opset=17),
    Spec("yolo_dynamo", Yolo, [[unit(1, 3, 64, 64)], [unit(3, 3, 64, 64)]], dynamic=BATCH_IN, dynamo=True, opset=18),
    Spec("yolo3", Yolo3, [[unit(1, 3, 96, 96)]], opset=11),
    Spec("ssd", Ssd, [[image(64)]], outputs=["boxes", "scores"], opset=13),
    Spec("espcn", Espcn, [[unit(1, 1, 24, 24)], [unit(1, 1, 17, 30)]], dynamic=SIZE, opset=13),
    Spec("edsr_dynamo", Edsr, [[unit(1, 3, 20, 20)]], opset=18, dynamo=True),
    Spec("pose", Pose, [[image(64)]], outputs=["joints", "confidence"], opset=13),
    Spec("autoencoder", Autoencoder, [[floats(3, 640)], [floats(8, 640)]], dynamic=BATCH, opset=9),
    Spec("vae", Vae, [[unit(2, 1, 28, 28), floats(2, 16)]], inputs=["image", "noise"],
         outputs=["decoded", "mean", "log_variance"], opset=11),
    Spec("dcgan_generator", Generator, [[floats(1, 32, 1, 1)]], opset=11),
    Spec("dcgan_discriminator", Discriminator, [[image(32, 2)]], opset=11),
    Spec("style_transfer", StyleTransfer, [[unit(1, 3, 40, 40)]], opset=11),
    Spec("style_transfer_dynamo", StyleTransfer, [[unit(1, 3, 40, 40)]], opset=18, dynamo=True),
    Spec("vqvae", VqVae, [[image(32)]], outputs=["decoded", "codes"], opset=13),
    Spec("diffusion", Diffusion, [[image(16, 2), ids(1000, 2)]], inputs=["noisy", "step"], opset=17),
    Spec("diffusion_dynamo", Diffusion, [[image(16, 2), ids(1000, 2)]], inputs=["noisy", "step"], opset=18, dynamo=True),
    Spec("segmenter", Segmenter, [[image(64)]], opset=17),
    Spec("matting", Matting, [[image(24), ids(3, 1, 24, 24)]], inputs=["image", "trimap"], outputs=["cut", "alpha"],
         opset=13),
]
