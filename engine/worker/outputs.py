"""What a model gave back: the first tensor in it, how many items it holds, whether it is worth anything, whether two agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from engine import wire

_VALUES_AT_ONCE = 2**22
"""Values looked at in one step, so that the check takes megabytes where the output may take gigabytes."""

_CLOSE = {torch.bfloat16: 5e-2, torch.float16: 1e-2}
_CLOSE_OTHERWISE = 1e-3
"""Largest difference, relative to the largest value: batch sizes take other kernels, which sum in another order."""


def first_tensor(output: object) -> torch.Tensor | None:
    """The first tensor (or numpy array, as a tensor) with a dimension, looked for in the order of the output's own fields."""
    if isinstance(output, torch.Tensor):
        return output if output.ndim else None
    if isinstance(output, Mapping):
        parts = list(output.values())
    elif isinstance(output, list | tuple):
        parts = list(output)
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        parts = [getattr(output, field.name) for field in dataclasses.fields(output)]
    elif type(output).__module__ == "numpy" and getattr(output, "ndim", None):
        return torch.as_tensor(output)
    else:
        return None
    for part in parts:
        found = first_tensor(part)
        if found is not None:
            return found
    return None


def item_count(output: object, asked: int) -> int | None:
    """Items that the model processed: the first dimension of the first tensor; None when there is none.

    Detection models answer with one dict per image, whose tensors have one row per object: there the list is counted.
    """
    if (
        isinstance(output, list)
        and len(output) == asked
        and all(isinstance(part, Mapping) for part in output)
    ):
        return asked
    tensor = first_tensor(output)
    return (int(tensor.shape[0]) or None) if tensor is not None else None


def looks(output: object) -> tuple[bool, bool]:
    """(finite, all zero) of the first tensor. Integers and truth values are always finite and may well be all zero."""
    tensor = first_tensor(output)
    if tensor is None or not tensor.is_floating_point() or tensor.numel() == 0:
        return True, False
    if tensor.layout != torch.strided or tensor.dtype.itemsize < 2:
        return True, False  # sparse tensors and 8-bit floats know too few operations to be looked at
    rows = max(_VALUES_AT_ONCE * len(tensor) // tensor.numel(), 1)
    finite, zero = True, True
    for part in torch.split(tensor, rows):
        finite = finite and bool(torch.isfinite(part).all())
        zero = zero and not bool(part.any())
    return finite, zero


def agreement(first: list[torch.Tensor | None], second: list[torch.Tensor | None]) -> wire.Agreement:
    """Whether the outputs of two lanes, in the order of their calls, say the same of the same items."""
    left, right = _joined(first), _joined(second)
    if left is None or right is None:
        return wire.Agreement(None, "the model returns no tensor that could be compared")
    if left.shape != right.shape:
        return wire.Agreement(
            False, f"the lanes returned other shapes: {tuple(left.shape)} and {tuple(right.shape)}"
        )
    if not left.is_floating_point():
        same = bool(torch.equal(left, right))
        return wire.Agreement(same, "the same values" if same else "other values")
    close = _CLOSE.get(left.dtype, _CLOSE_OTHERWISE)
    left, right = left.double(), right.double()
    if not (bool(torch.isfinite(left).all()) and bool(torch.isfinite(right).all())):
        return wire.Agreement(None, "the outputs hold values that are not finite")
    largest = float((left - right).abs().max()) if left.numel() else 0.0
    scale = float(left.abs().max()) if left.numel() else 0.0
    near = largest <= close * max(scale, 1e-6)
    difference = f"largest difference {largest:.2g}"
    if left.ndim != 2 or left.shape[1] < 2:
        return wire.Agreement(near, f"{'close' if near else 'other'} values, {difference}", largest)
    others = _other_classes(left, right, close * scale)
    if others:
        return wire.Agreement(
            False, f"other classes for {others} of {len(left)} items, {difference}", largest
        )
    return wire.Agreement(near, f"same classes, {'close' if near else 'other'} values, {difference}", largest)


def _other_classes(left: torch.Tensor, right: torch.Tensor, tie: float) -> int:
    """Items whose best class differs by more than a tie: two classes within rounding of each other are no disagreement."""
    first, second = left.argmax(1, keepdim=True), right.argmax(1, keepdim=True)
    margin = (left.gather(1, first) - left.gather(1, second)).abs()
    return int(((first != second) & (margin > tie)).sum())


def _joined(outputs: list[torch.Tensor | None]) -> torch.Tensor | None:
    tensors = [tensor for tensor in outputs if tensor is not None]
    if not tensors or len(tensors) != len(outputs):
        return None
    try:
        return torch.cat([tensor.detach().cpu() for tensor in tensors])
    except RuntimeError:  # outputs whose other dimensions depend on the batch cannot be laid end to end
        return None


def for_keeping(output: Any) -> torch.Tensor | None:
    """The part of an output that `agreement` compares, on the CPU."""
    tensor = first_tensor(output)
    return tensor.detach().cpu() if tensor is not None else None
