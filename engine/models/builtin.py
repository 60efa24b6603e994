"""The built-in model as a source: its trained weights, fed with test images of its data set or with a folder of yours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.models import fashion_cnn
from engine.models.feeding import described, feed, loaded
from engine.models.inputs import TensorSpec
from engine.models.source import LoadedModel

if TYPE_CHECKING:
    from engine.plan import Plan


def load(plan: Plan) -> LoadedModel:
    """The trained network on the CPU."""
    if plan.image_dir:
        fed, images = feed([TensorSpec(fashion_cnn.INPUT_SHAPE)], plan), "images of a folder"
    else:
        fed, images = described(fashion_cnn.sample_batch, fashion_cnn.sample_batch(1)), "its own test images"
    return loaded(fashion_cnn.NAME, fashion_cnn.load(), fed, f"built-in, trained, {images}")
