"""The built-in model as a source: its trained weights and its own test images."""

from __future__ import annotations

from engine.models import fashion_cnn
from engine.models.source import IMAGES, LoadedModel, megabytes


def load() -> LoadedModel:
    """The trained network, fed with test images of its data set."""
    module = fashion_cnn.load()
    return LoadedModel(
        name=fashion_cnn.NAME,
        call=module,
        make_inputs=fashion_cnn.sample_batch,
        parameters=fashion_cnn.PARAMETERS,
        input="1x28x28 float32",
        unit=IMAGES,
        description="built-in CNN, trained, fed with images of its test set",
        module=module,
        input_mb_per_item=megabytes(fashion_cnn.sample_batch(1)),
    )
