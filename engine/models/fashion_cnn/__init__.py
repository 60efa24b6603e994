"""The built-in model: a small trained CNN with real test images, ready without any download.

Importing this package is cheap: torch and numpy are imported by the functions that need them.
MODEL_CARD.md tells what it was trained on, how well it does and how to train it again.
"""

from __future__ import annotations

import io
from importlib import resources
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from engine.models.fashion_cnn.network import FashionCNN

NAME: Final = "fashion-cnn"
PARAMETERS: Final = 229_610
TEST_ACCURACY: Final = 0.9301
"""Share of the 10,000 test images that get the right class, measured when the weights were trained."""

CLASSES: Final = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
"""What the ten logits stand for, in their order."""

INPUT_SHAPE: Final = (1, 28, 28)
"""Shape of one image: channels, height, width."""


def load() -> FashionCNN:
    """The trained network on the CPU, in eval mode. It takes pixels in 0..1 and normalises them itself."""
    from safetensors.torch import load as parse_weights

    from engine.models.fashion_cnn.network import FashionCNN

    model = FashionCNN()
    model.load_state_dict(parse_weights(_read("weights.safetensors")))
    return model.eval()


def sample_images() -> NDArray[np.uint8]:
    """The first 1,024 test images of Fashion-MNIST, uint8 (1024, 28, 28), 0 as background."""
    return _sample_array("images")


def sample_labels() -> NDArray[np.uint8]:
    """The class of each sample image, uint8 (1024,), an index into CLASSES."""
    return _sample_array("labels")


def sample_batch(batch_size: int) -> torch.Tensor:
    """The first `batch_size` sample images as the network takes them: float32 (batch_size, 1, 28, 28) in 0..1.

    Beyond the last image it begins again with the first, so that every size is filled with real images.
    Raises ValueError when `batch_size` is under 1.
    """
    import numpy as np
    import torch

    from engine.models.fashion_cnn.network import to_input

    if batch_size < 1:
        raise ValueError(f"a batch holds at least one image, not {batch_size}")
    images = sample_images()
    return to_input(torch.from_numpy(images[np.arange(batch_size) % len(images)]))


def _sample_array(name: str) -> NDArray[np.uint8]:
    import numpy as np

    with np.load(io.BytesIO(_read("sample.npz")), allow_pickle=False) as arrays:
        array: NDArray[np.uint8] = arrays[name]
    return array


def _read(file_name: str) -> bytes:
    # Through importlib.resources, so that it also works from a zipped installation.
    return resources.files(__name__).joinpath(file_name).read_bytes()
