"""Reads images and labels from the gzipped idx files in which Fashion-MNIST is published."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from engine.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package `dataset-fashion-mnist` puts the four files."""

_UNSIGNED_BYTE = 0x08
_REMEDY = (
    "On Debian and Ubuntu: apt-get install dataset-fashion-mnist. "
    "Elsewhere name the folder that holds the four .gz files with --data."
)


class LabelledImages(NamedTuple):
    """`images` uint8 (n, height, width) with 0 as background; `labels` uint8 (n,)."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def read_split(folder: Path, split: Literal["train", "t10k"]) -> LabelledImages:
    """The training or the test images of `folder`, with their labels.

    Raises UsageError when a file is missing, is not an idx file of bytes, or when images and labels
    differ in number.
    """
    images = _read_idx(folder / f"{split}-images-idx3-ubyte.gz", dimensions=3)
    labels = _read_idx(folder / f"{split}-labels-idx1-ubyte.gz", dimensions=1)
    if len(images) != len(labels):
        raise UsageError(
            f"{folder}: the {split} files hold {len(images)} images and {len(labels)} labels.",
            argument="--data",
            title="images and labels do not match",
            remedy=_REMEDY,
        )
    return LabelledImages(images, labels)


def _read_idx(path: Path, *, dimensions: int) -> NDArray[np.uint8]:
    """One idx file: two zero bytes, the element type, the number of dimensions, their sizes, the elements.

    Sizes are big-endian 32-bit integers. Only unsigned bytes are read, the type Fashion-MNIST uses.
    """
    try:
        with gzip.open(path) as stream:
            content = stream.read()
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(
            f"{path}: {error}.", argument="--data", title="the images cannot be read", remedy=_REMEDY
        ) from error
    header_length = 4 + 4 * dimensions
    if content[:4] != bytes((0, 0, _UNSIGNED_BYTE, dimensions)) or len(content) < header_length:
        raise _not_idx(path, f"is not an idx file of unsigned bytes with {dimensions} dimensions")
    sizes = np.frombuffer(content[4:header_length], dtype=">u4").tolist()
    values = np.frombuffer(content, dtype=np.uint8, offset=header_length)
    if len(values) != math.prod(sizes):
        raise _not_idx(path, f"holds {len(values)} values where its header says {math.prod(sizes)}")
    return values.reshape(sizes)


def _not_idx(path: Path, what: str) -> UsageError:
    return UsageError(f"{path} {what}.", argument="--data", title="not the expected file", remedy=_REMEDY)
