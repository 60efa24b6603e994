"""Puts weights of a file into a module, without running code from the file."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.errors import UsageError
from engine.models.preflight import CACHED

_ARGUMENT = "--weights"
_TITLE = "the weights cannot be used"
_WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Keys under which training scripts commonly put the state dict in a checkpoint."""


def load_into(module: nn.Module, path: str) -> None:
    """Load the file's state dict into the module, every key of it. Raises UsageError that says what does not fit."""
    state = read(Path(path).expanduser())
    try:
        missing, unexpected = module.load_state_dict(state, strict=False)
    except RuntimeError as error:
        detail = str(error).split("\n")
        raise UsageError(
            f"{path} does not fit the model: {' '.join(detail[-1].split())}", argument=_ARGUMENT, title=_TITLE
        ) from error
    if missing or unexpected:
        parts = []
        if missing:
            parts.append(f"{len(missing)} are missing (first: {missing[0]})")
        if unexpected:
            parts.append(f"{len(unexpected)} are unknown to it (first: {unexpected[0]})")
        raise UsageError(
            f"{path} has {len(state)} entries for the model's {len(module.state_dict())}: {' and '.join(parts)}.",
            argument=_ARGUMENT,
            title=_TITLE,
        )


def read(path: Path) -> dict[str, Tensor]:
    """The state dict of a .safetensors file or of one written by `torch.save`; only tensors and plain values are read."""
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist.",
            argument=_ARGUMENT,
            title=_TITLE,
            remedy=f"Expected a file, or '{CACHED}' for a library's pretrained weights that are on this machine already.",
        )
    try:
        content = _content(path)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{path} cannot be read as a state dict: {reason}", argument=_ARGUMENT, title=_TITLE
        ) from error
    if isinstance(content, Mapping):
        for key in _WRAPPERS:
            if isinstance(content.get(key), Mapping):
                content = content[key]
                break
        state = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
        if state:
            return state
    raise UsageError(f"{path} holds no state dict.", argument=_ARGUMENT, title=_TITLE)


def _content(path: Path) -> Any:
    if path.suffix.lower() == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except SafetensorError as error:
            raise ValueError(str(error)) from error
    return torch.load(path, map_location="cpu", weights_only=True)


def parameter_count(module: nn.Module) -> int | None:
    """Number of parameters, each counted once; None while some of them wait for the first input to get their shape."""
    parameters = list(module.parameters())
    if any(isinstance(parameter, nn.parameter.UninitializedParameter) for parameter in parameters):
        return None
    return sum(parameter.numel() for parameter in parameters)
