"""Models of torchvision by name; the input is that of the model's own preprocessing. Nothing is downloaded."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from engine.errors import ModelError, UsageError
from engine.models import signature, usercode, weights
from engine.models.feeding import asked_for, feed, loaded
from engine.models.images import ImageLook
from engine.models.inputs import TensorSpec
from engine.models.preflight import CACHED
from engine.models.source import LoadedModel
from engine.models.spec import argument_values, did_you_mean
from engine.plan import Plan


def load(name: str, plan: Plan) -> LoadedModel:
    """The model with random weights, or those of --weights. Raises ModelError for unknown names and unusual inputs."""
    models = _models()
    if name not in models.list_models():
        raise ModelError(
            f"torchvision has no model {name}.",
            title="unknown model",
            remedy=did_you_mean("torchvision", name, models.list_models()),
        )
    title = f"torchvision:{name}"
    if ".detection." in models.get_model_builder(name).__module__:
        raise ModelError(
            f"{title} takes a list of images, not a batch of them.",
            title="not a batch",
            remedy="Wrap it in a module of yours that takes a batch and calls it with list(batch): model.py:Wrapped.",
        )
    known = models.get_model_weights(name)
    default = known.DEFAULT if len(known) else None
    use = default if plan.weights == CACHED else None
    if plan.weights == CACHED:
        _check_cached(title, default)
    torch.manual_seed(plan.seed)
    with usercode.running(
        f"{title}, while it was built,", remedy="See --model-arg." if plan.model_args else ""
    ):
        module = models.get_model(name, weights=use, **argument_values(plan.model_args))
    if plan.weights and use is None:
        weights.load_into(module, plan.weights)
    module.eval()
    specs, look = asked_for(plan), ImageLook()
    if specs is None:
        preset = default.transforms() if default is not None else None
        side = getattr(preset, "crop_size", None) or getattr(preset, "resize_size", None)
        if not side or ".video." in type(module).__module__:
            forward = signature.of(module.forward)
            raise signature.unknown_inputs(
                title, signature.in_text("forward", forward), signature.required(forward)
            )
        specs, look = (TensorSpec((3, *_height_and_width(side))),), _look(preset, side)
    what = (
        "pretrained weights"
        if use is not None
        else f"weights of {Path(plan.weights).name}"
        if plan.weights
        else "random weights"
    )
    return loaded(title, module, feed(specs, plan, look), f"torchvision, {what}")


def _models() -> Any:
    try:
        return importlib.import_module("torchvision.models")
    except (ImportError, RuntimeError, OSError) as error:
        raise ModelError(
            f"torchvision cannot be imported beside torch {torch.__version__}: {usercode.in_words(error)}.",
            title="torchvision does not fit torch",
            remedy="Install the two releases that belong together, from the same place: pip install --upgrade torch torchvision",
        ) from error


def _check_cached(title: str, default: Any) -> None:
    if default is None:
        raise UsageError(f"{title} has no pretrained weights.", argument="--weights")
    file = Path(torch.hub.get_dir()) / "checkpoints" / default.url.rpartition("/")[2]
    if not file.is_file():
        raise UsageError(
            f"the pretrained weights of {title} are not on this machine ({file}), and batchpeak downloads nothing.",
            argument="--weights",
            title="no weights there",
            remedy=f"Download {default.url} there, or leave --weights out: random weights are as fast.",
        )


def _height_and_width(side: Any) -> tuple[int, int]:
    sides = [int(value) for value in side] if isinstance(side, list | tuple) else [int(side)]
    return sides[0], sides[-1]


def _look(preset: Any, side: Any) -> ImageLook:
    resize = getattr(preset, "resize_size", None)
    crop = _height_and_width(side)[0] / _height_and_width(resize)[0] if resize else 1.0
    return ImageLook(tuple(getattr(preset, "mean", ())), tuple(getattr(preset, "std", ())), min(1.0, crop))
