"""Models of timm by name; the input is that of timm's own data configuration. Nothing is downloaded."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from engine.errors import ModelError, UsageError
from engine.models import offline, usercode, weights
from engine.models.feeding import loaded
from engine.models.preflight import CACHED
from engine.models.python_source import feed_of
from engine.models.source import LoadedModel
from engine.models.spec import argument_values, did_you_mean
from engine.plan import Plan


def load(name: str, plan: Plan) -> LoadedModel:
    """The model with random weights, or those of --weights. Raises ModelError for unknown names."""
    offline.enter()
    try:
        timm: Any = importlib.import_module("timm")
    except (ImportError, RuntimeError, OSError) as error:
        raise ModelError(
            f"timm cannot be imported beside torch {torch.__version__}: {usercode.in_words(error)}.",
            title="timm does not fit torch",
            remedy="timm needs the torchvision of the same release as torch: pip install --upgrade torch torchvision timm",
        ) from error
    if not timm.is_model(name):
        raise ModelError(
            f"timm has no model {name}.",
            title="unknown model",
            remedy=did_you_mean("timm", name, timm.list_models()),
        )
    title = f"timm:{name}"
    cached = plan.weights == CACHED
    torch.manual_seed(plan.seed)
    try:
        with usercode.running(
            f"{title}, while it was built,", remedy="See --model-arg." if plan.model_args else ""
        ):
            module = timm.create_model(name, pretrained=cached, **argument_values(plan.model_args))
    except ModelError as error:
        if cached and not isinstance(error.__cause__, TypeError):
            raise UsageError(
                f"the pretrained weights of {title} are not on this machine, and batchpeak downloads nothing "
                f"({usercode.in_words(error.__cause__ or error)}).",
                argument="--weights",
                title="no weights there",
                remedy="Download them with timm first, or leave --weights out: random weights are as fast.",
            ) from error
        raise
    if plan.weights and not cached:
        weights.load_into(module, plan.weights)
    module.eval()
    what = (
        "pretrained weights"
        if cached
        else f"weights of {Path(plan.weights).name}"
        if plan.weights
        else "random weights"
    )
    return loaded(title, module, feed_of(title, module, plan), f"timm, {what}")
