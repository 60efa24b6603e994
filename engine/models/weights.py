"""Puts weights of a file into a module, without running code from the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.errors import ModelError, UsageError
from engine.models import archive, usercode
from engine.models.preflight import CACHED
from engine.paths import expanded, is_file

_ARGUMENT = "--weights"
_TITLE = "the weights cannot be used"
_WORDS = {"script": "TorchScript", "export": "a torch.export archive"}
_PREFIXES = ("module.", "_orig_mod.")
_WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Keys under which training scripts commonly put the state dict in a checkpoint."""


def load_into(module: nn.Module, path: str) -> None:
    """Load the file's state dict into the module, every key of it. Raises UsageError that says what does not fit."""
    state = _unwrapped(read(expanded(str(path))), module)
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
    if not is_file(path):
        raise UsageError(
            f"{path} is a folder, not a file." if path.is_dir() else f"{path} does not exist.",
            argument=_ARGUMENT,
            title=_TITLE,
            remedy=f"Expected a file, or '{CACHED}' for a library's pretrained weights that are on this machine already.",
        )
    try:
        content = _content(path)
    except Exception as error:  # what the readers raise over arbitrary bytes has no bounds
        raise UsageError(_why_not(path, error), argument=_ARGUMENT, title=_TITLE) from error
    if isinstance(content, Mapping):
        for key in _WRAPPERS:
            if isinstance(content.get(key), Mapping):
                content = content[key]
                break
        state = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
        if state:
            return state
    raise UsageError(f"{path} holds no state dict.", argument=_ARGUMENT, title=_TITLE)


def _why_not(path: Path, error: Exception) -> str:
    """Why a file is no state dict: what it holds instead, else the reader's own words."""
    if path.suffix.lower() != ".safetensors":
        try:
            holds = archive.content_of(path)
        except ModelError as found:
            return found.message
        if holds == "pickle":
            return (
                f"{path} holds Python objects beside the tensors, and loading those could run any code; "
                "save the state dict alone: torch.save(model.state_dict(), FILE)."
            )
        if holds != "weights":
            return f"{path} is a model itself ({_WORDS[holds]}), not weights for one: name it as the model."
    return f"{path} cannot be read as a state dict: {usercode.in_words(error)}."


def _unwrapped(state: dict[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """The state dict without the prefix that a wrapper (DataParallel, torch.compile) put before every key."""
    for prefix in _PREFIXES:
        if all(key.startswith(prefix) for key in state) and not any(
            key.startswith(prefix) for key in module.state_dict()
        ):
            return {key.removeprefix(prefix): value for key, value in state.items()}
    return state


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
