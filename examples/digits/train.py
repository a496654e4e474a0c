#!/usr/bin/env python3
"""Trains a small CNN on scikit-learn's 8x8 handwritten digits and exports it to ONNX.

Needs torch, onnx, onnxruntime, numpy and scikit-learn. Writes next to itself:
  digits.onnx   the network; input "image" float32 [batch,1,8,8], output "logits" float32 [batch,10]
  images.npy    the held-out images, float32 [N,1,8,8]
  labels.npy    their digits, int64 [N]

540 of the 1,797 images, the same share of every digit, are held out and never trained on. The data are
grey values 0..16; the network divides by 16 itself, so that a user can feed the raw values. Seeded, but
the last bits of the weights still depend on the machine's matrix library.
"""
import pathlib

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
SEED = 8
HELD_OUT = 540
EPOCHS = 60


class Digits(nn.Module):
    """Three convolutions with batch norm, two poolings, one hidden layer: about 38,000 weights."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(48 * 2 * 2, 96), nn.ReLU(), nn.Dropout(0.3), nn.Linear(96, 10))

    def forward(self, image):
        return self.classifier(self.features(image / 16.0))


def shifted(images):
    """Each image moved by up to one pixel: the only augmentation."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    dy, dx = np.random.randint(0, 3, 2)
    return padded[:, :, dy:dy + 8, dx:dx + 8]


def train(images, labels):
    model = Digits()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        model.train()
        for batch in torch.randperm(len(images)).split(32):
            loss = nn.functional.cross_entropy(model(shifted(images[batch])), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d}  loss of the last batch {loss.item():.4f}")
    return model.eval()


def accuracy(logits, labels):
    return float((np.argmax(logits, axis=1) == labels).mean())


def main():
    import onnxruntime

    torch.manual_seed(SEED)
    np.random.seed(SEED)
    data = load_digits()
    images = data.images.astype(np.float32)[:, None]
    labels = data.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=HELD_OUT, random_state=SEED, stratify=labels)
    model = train(torch.from_numpy(train_x), torch.from_numpy(train_y))

    path = HERE / "digits.onnx"
    torch.onnx.export(
        model, (torch.from_numpy(test_x[:2]),), str(path), dynamo=False, opset_version=17,
        input_names=["image"], output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})
    np.save(HERE / "images.npy", test_x)
    np.save(HERE / "labels.npy", test_y)

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    logits = session.run(None, {"image": test_x})[0]
    with torch.no_grad():
        expected = model(torch.from_numpy(test_x)).numpy()
    print(f"{len(test_y)} held-out images: accuracy {accuracy(expected, test_y):.2%} in PyTorch, "
          f"{accuracy(logits, test_y):.2%} in ONNX Runtime, "
          f"largest difference {np.abs(logits - expected).max():.2g}")


if __name__ == "__main__":
    main()
