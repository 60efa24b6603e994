"""Real images of a folder as a batch, resized and normalised as the model's own configuration says. Pillow reads them."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import UsageError
from engine.paths import expanded, is_folder

if TYPE_CHECKING:
    from torch import Tensor

    from engine.models.inputs import TensorSpec

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"})
_POOL_BYTES = 256e6
_POOL_ITEMS = 1024
_ARGUMENT = "--image-dir"
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True, slots=True)
class ImageLook:
    """How a model wants its images. `crop` is the share of the shorter side that is kept; pixels are 0..1 before `mean` and `std`."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    crop: float = 1.0


def check_folder(folder: str) -> None:
    """Raises UsageError when the folder has no image files, or Pillow is not installed."""
    if not files(folder):
        raise UsageError(
            f"{folder} has no image files ({', '.join(sorted(SUFFIXES))}).",
            argument=_ARGUMENT,
            title="no images there",
        )
    if importlib.util.find_spec("PIL") is None:
        raise UsageError(
            "reading image files needs Pillow, which is not installed.",
            argument=_ARGUMENT,
            title="Pillow is missing",
            remedy="Install it with: pip install 'batchpeak[images]'",
        )


def files(folder: str) -> list[Path]:
    """The image files in the folder and below it, in the order of their names. Raises UsageError when it is no folder."""
    root = expanded(folder)
    if not is_folder(root):
        what = "is a file, not a folder" if root.exists() else "does not exist"
        raise UsageError(f"{folder} {what}.", argument=_ARGUMENT, title="no folder of images there")
    return sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def read(folder: str, spec: TensorSpec, look: ImageLook) -> Tensor:
    """Up to 1,024 images (and 256 MB) as (n, *spec.shape). Raises UsageError naming the first file that is no image."""
    import torch

    check_folder(folder)
    channels, height, width = spec.shape
    most = max(1, min(_POOL_ITEMS, int(_POOL_BYTES / (4 * channels * height * width))))
    pixels = torch.stack([_pixels(path, spec, look) for path in files(folder)[:most]])
    if spec.dtype == "uint8":
        return pixels
    batch = pixels.float().div_(255)
    if look.mean and look.std:
        shape = (1, -1, 1, 1)
        batch = (batch - torch.tensor(look.mean).view(shape)) / torch.tensor(look.std).view(shape)
    dtype: torch.dtype = getattr(torch, spec.dtype)
    return batch.to(dtype)


def _pixels(path: Path, spec: TensorSpec, look: ImageLook) -> Tensor:
    import numpy as np
    import torch

    pillow: Any = importlib.import_module("PIL.Image")
    channels, height, width = spec.shape
    try:
        with pillow.open(path) as opened:
            image = _cropped(opened.convert(_MODES[channels]), height, width, look.crop)
    except (OSError, ValueError, pillow.DecompressionBombError) as error:
        raise UsageError(
            f"{path} cannot be read as an image: {error}.", argument=_ARGUMENT, title="not an image"
        ) from error
    array = np.asarray(image, dtype=np.uint8).reshape(height, width, channels)
    return torch.from_numpy(array.copy()).permute(2, 0, 1).contiguous()


def _cropped(image: Any, height: int, width: int, crop: float) -> Any:
    # Cut the centre of the target's proportions first and resize once: the same pixels as resizing first, with less work.
    scale = min(image.width / width, image.height / height) * min(1.0, crop)
    box_width, box_height = width * scale, height * scale
    left, top = (image.width - box_width) / 2, (image.height - box_height) / 2
    return image.resize((width, height), box=(left, top, left + box_width, top + box_height), resample=2)
