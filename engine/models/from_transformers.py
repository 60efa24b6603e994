"""Models of transformers, from a local folder or its cache; the image's size is read from their configuration. Nothing is downloaded."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import torch

from engine.errors import ModelError
from engine.models import offline, signature, usercode, weights
from engine.models.feeding import asked_for, feed, loaded
from engine.models.images import ImageLook
from engine.models.inputs import TensorSpec
from engine.models.preflight import CACHED
from engine.models.source import LoadedModel
from engine.models.spec import argument_values
from engine.plan import Plan

_IMAGE = "pixel_values"


def load(name: str, plan: Plan) -> LoadedModel:
    """The model with its own weights where they are, else random ones; the description says which.

    Raises ModelError when it is not on this machine, or does not tell its inputs.
    """
    offline.enter()
    with usercode.running("transformers, while it was imported,"):
        transformers: Any = importlib.import_module("transformers")
    name = str(Path(name).expanduser()) if name.startswith("~") else name
    title = f"hf:{Path(name).name}"
    config = _config(transformers, name, plan)
    torch.manual_seed(plan.seed)
    own_weights = _has_weights(transformers, name)
    with usercode.running(
        f"{title}, while it was built,", remedy="See --model-arg." if plan.model_args else ""
    ):
        builder = _builder(transformers, config)
        arguments = argument_values(plan.model_args)
        if own_weights and plan.weights in (None, CACHED):
            module = builder.from_pretrained(
                name, config=config, local_files_only=True, trust_remote_code=plan.trust, **arguments
            )
        else:
            module = _from_config(builder, config, plan, arguments)
        # Checkpoints in half precision are loaded as such: what is measured is what --dtype says.
        module = module.float().eval()
    if plan.weights == CACHED and not own_weights:
        raise ModelError(
            f"{title} has no weights on this machine, and batchpeak downloads nothing.",
            title="no weights there",
        )
    if plan.weights and plan.weights != CACHED:
        weights.load_into(module, plan.weights)
    what = (
        f"weights of {Path(plan.weights).name}"
        if plan.weights and plan.weights != CACHED
        else "its own weights"
        if own_weights
        else "random weights"
    )
    specs, look = asked_for(plan), ImageLook()
    forward = signature.of(module.forward)
    if specs is None:
        found = _image_input(transformers, name, config, module)
        if found is None:
            raise signature.unknown_inputs(
                title, f"forward({_inputs_of(module, forward)}, ...)", [_main_input(module)]
            )
        specs, look = found
    signature.check_fits(title, forward, specs)
    return loaded(title, module, feed(specs, plan, look), f"transformers {type(module).__name__}, {what}")


def _config(transformers: Any, name: str, plan: Plan) -> Any:
    try:
        return transformers.AutoConfig.from_pretrained(
            name, local_files_only=True, trust_remote_code=plan.trust
        )
    except (OSError, ValueError) as error:
        if Path(name).is_dir():
            raise ModelError(
                f"{name} is no folder of a transformers model: {usercode.in_words(error)}.",
                remedy="It must hold a config.json with a model_type that the installed transformers knows.",
            ) from error
        raise ModelError(
            f"{name} is neither a folder nor a model in the cache of this machine, and batchpeak downloads nothing.",
            title="model not found",
            remedy=f"Download it first: hf download {name}",
        ) from error


def _builder(transformers: Any, config: Any) -> Any:
    """The class that the configuration names, else the one for image classification, else the bare model."""
    for architecture in getattr(config, "architectures", None) or ():
        builder = getattr(transformers, architecture, None)
        if builder is not None:
            return builder
    if type(config) in transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING:
        return transformers.AutoModelForImageClassification
    return transformers.AutoModel


def _from_config(builder: Any, config: Any, plan: Plan, arguments: dict[str, Any]) -> Any:
    if hasattr(builder, "from_config"):
        return builder.from_config(config, trust_remote_code=plan.trust, **arguments)
    return builder(config, **arguments)


def _has_weights(transformers: Any, name: str) -> bool:
    folder = Path(name)
    if folder.is_dir():
        return any(folder.glob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))
    return any(
        _file(transformers, name, file) is not None
        for file in ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
    )


def _file(transformers: Any, name: str, file: str) -> Path | None:
    try:
        found = transformers.utils.cached_file(name, file, local_files_only=True)
    except OSError:
        return None
    return Path(found) if found else None


def _image_input(
    transformers: Any, name: str, config: Any, module: Any
) -> tuple[tuple[TensorSpec, ...], ImageLook] | None:
    """The image that the model takes, as its configuration or its preprocessing says; None when neither does."""
    if _main_input(module) != _IMAGE:
        return None
    file = _file(transformers, name, "preprocessor_config.json")
    preprocessing: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file else {}
    size = (
        _sides(getattr(config, "image_size", None))
        or _sides(preprocessing.get("crop_size"))
        or _sides(preprocessing.get("size"))
    )
    if size is None:
        return None
    channels = int(getattr(config, "num_channels", 3))
    look = ImageLook(
        tuple(preprocessing.get("image_mean") or ()), tuple(preprocessing.get("image_std") or ())
    )
    return (TensorSpec((channels, *size), name=_IMAGE),), look


def _sides(size: Any) -> tuple[int, int] | None:
    match size:
        case int():
            return size, size
        case [int() as height, int() as width]:
            return height, width
        case {"height": int() as height, "width": int() as width}:
            return height, width
        case {"shortest_edge": int() as side}:
            return side, side
        case _:
            return None


def _main_input(module: Any) -> str:
    return str(getattr(module, "main_input_name", "input_ids"))


def _inputs_of(module: Any, forward: Any) -> str:
    names = list(forward.parameters) if forward is not None else []
    return ", ".join(names[:3]) or _main_input(module)
