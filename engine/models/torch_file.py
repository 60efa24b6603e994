"""Models in files of torch: TorchScript, `torch.export` archives, and pickled whole modules for those who trust them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.errors import ModelError
from engine.models import archive, own_names, signature, usercode
from engine.models.exported import load_exported
from engine.models.feeding import asked_for, feed, loaded
from engine.models.python_source import feed_of
from engine.models.source import LoadedModel
from engine.plan import Plan


def load(file: Path, plan: Plan, device: str) -> LoadedModel:
    """The model of a .pt, .pth, .ts or .pt2 file. Raises ModelError that says what the file holds instead."""
    holds = archive.content_of(file)
    if holds == "script":
        return _script(file, plan)
    if holds == "export":
        return load_exported(file, plan, device)
    if holds == "weights":
        raise archive.state_dict(file)
    if not plan.trust:
        raise archive.untrusted(file)
    return _pickled_module(file, plan)


def _script(file: Path, plan: Plan) -> LoadedModel:
    try:
        module: nn.Module = torch.jit.load(str(file), map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise ModelError(
            f"{file} is TorchScript that this torch ({torch.__version__}) cannot load: {usercode.in_words(error)}.",
        ) from error
    module.eval()
    traced = archive.traced_with(file)
    specs = asked_for(plan) or (traced.specs if traced else None)
    if specs is None:
        names, text = _script_inputs(module)
        raise signature.unknown_inputs(file.name, text, names)
    fed = feed(specs, plan)
    hint = (
        f"The model was traced with batch size {traced.batch_size} and may take no other." if traced else ""
    )
    made = loaded(file.name, module, fed, "TorchScript", batch_hint=hint)
    # A frozen program keeps its weights as constants: how many it has, it does not tell.
    return replace(made, parameters=made.parameters or None)


def _script_inputs(module: nn.Module) -> tuple[list[str], str]:
    forward: Any = module.forward
    arguments = list(forward.schema.arguments)[1:]
    names = [argument.name for argument in arguments if not argument.has_default_value()]
    return names, f"forward({', '.join(argument.name for argument in arguments)})"


def _pickled_module(file: Path, plan: Plan) -> LoadedModel:
    # The classes of the pickled objects are imported by name: from beside the file, or from where the person stands.
    own_names.enter([*dict.fromkeys([file.resolve().parent, Path.cwd()])], [str(file)])
    try:
        with usercode.running(
            f"{file.name}, while it was loaded,",
            remedy=(
                "The classes that it was saved with must be importable under the same names: run from their folder, "
                "or set PYTHONPATH. A class of a script that was run itself (__main__) must be saved again from a module."
            ),
        ):
            found = torch.load(file, map_location="cpu", weights_only=False)
    except ModelError as error:
        if isinstance(error.__cause__, pickle.UnpicklingError | EOFError):
            raise archive.broken(file, usercode.in_words(error.__cause__)) from error
        raise
    module = _module_in(found)
    if module is None:
        if isinstance(found, Mapping):
            raise archive.state_dict(file)
        raise ModelError(f"{file} holds a {type(found).__name__}, not an nn.Module.", title="not a model")
    with usercode.running(f"{file.name}, while it was put in eval mode,"):
        module.eval()
    fed = feed_of(file.name, module, plan)
    return loaded(file.name, module, fed, f"pickled {type(module).__name__}")


def _module_in(found: Any) -> nn.Module | None:
    """The module itself, or the one that a checkpoint keeps beside its training state."""
    if isinstance(found, Mapping):
        found = next(
            (found[key] for key in ("model", "module") if isinstance(found.get(key), nn.Module)), None
        )
    return found if isinstance(found, nn.Module) else None
