"""The network of the built-in model: a small convolutional classifier of 28x28 grey images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASS_COUNT = 10

# Of the 60,000 training images, pixels scaled to 0..1.
TRAINING_MEAN = 0.2860
TRAINING_STD = 0.3530


def _convolution(channels_in: int, channels_out: int, *, stride: int) -> nn.Sequential:
    """One stage: 3x3 convolution, batch norm and ReLU; a stride of 2 halves height and width."""
    return nn.Sequential(
        # Batch norm adds its own offset, so a bias here would only be a parameter without effect.
        nn.Conv2d(channels_in, channels_out, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


class FashionCNN(nn.Module):
    """Three convolution stages (32x28x28, 32x14x14, 64x7x7) and a two-layer classifier.

    Strided convolutions shrink the image, not pooling layers: on a CPU max pooling took a third of a call.

    Input: float32 (N, 1, 28, 28), pixels in 0..1, not yet normalised: the network does that itself, so
    that nothing but the raw image has to be known to use it. Output: float32 logits (N, 10).
    """

    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        # Buffers: stored beside the weights, so the weights file alone tells how the input is scaled.
        self.register_buffer("mean", torch.tensor(TRAINING_MEAN))
        self.register_buffer("std", torch.tensor(TRAINING_STD))
        self.stages = nn.Sequential(
            _convolution(1, 32, stride=1),
            _convolution(32, 32, stride=2),
            _convolution(32, 64, stride=2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, 64),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(64, CLASS_COUNT),
        )

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.stages((images - self.mean) / self.std))
        return logits


def parameter_count(model: nn.Module) -> int:
    """Number of trained values in `model` (buffers such as running statistics are not counted)."""
    return sum(parameter.numel() for parameter in model.parameters())


def to_input(images: Tensor) -> Tensor:
    """uint8 (n, 28, 28) -> what the network takes: float32 (n, 1, 28, 28) in 0..1."""
    return images.unsqueeze(1).float().div_(255)
