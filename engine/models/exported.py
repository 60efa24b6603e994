"""Models in `torch.export` archives (.pt2): their inputs are read from the program's signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from engine.errors import ModelError
from engine.models import usercode
from engine.models.feeding import asked_for, feed, loaded
from engine.models.inputs import TensorSpec, in_words
from engine.models.source import LoadedModel
from engine.plan import Plan


def load_exported(file: Path, plan: Plan, device: str) -> LoadedModel:
    """The program of the archive, on `device`. Raises ModelError for an archive of another torch, or without such inputs."""
    try:
        program = torch.export.load(file)
    except Exception as error:
        raise ModelError(
            f"{file} cannot be loaded by this torch ({torch.__version__}): {usercode.in_words(error)}.",
            remedy="Export the model again with the torch that is installed here.",
        ) from error
    if device != "cpu":
        from torch.export.passes import move_to_device_pass

        # An exported program has the device written into its graph: moving its weights alone would not do.
        program = move_to_device_pass(program, device)
    values = _values(program)
    names = _names(file, program, values)
    batch = _batch(values)
    asked = asked_for(plan)
    if asked is None:
        specs = tuple(_spec(file, name, value) for name, value in zip(names, values, strict=True))
    else:
        _check_asked(file, names, values, asked)
        specs = tuple(replace(spec, name=name) for spec, name in zip(asked, names, strict=True))
    keywords = _keywords(program)
    mixed = 0 < len(keywords) < len(specs)
    fed = feed(specs, plan, keyword=bool(keywords) and not mixed)
    module: nn.Module = program.module()
    if mixed:
        module = _Mixed(module, keywords)
    return loaded(
        file.name,
        module,
        fed,
        f"torch.export, {'any batch size' if batch is None else f'batch size {batch} only'}",
        batch_hint=_hint(program, batch),
        only_batch_size=batch,
    )


class _Mixed(nn.Module):
    """Takes all inputs by position and passes the last ones on by keyword: a program is called only as it was exported."""

    def __init__(self, program: nn.Module, keywords: tuple[str, ...]) -> None:
        super().__init__()
        self.program = program
        self.keywords = keywords

    def forward(self, *tensors: Any) -> Any:
        split = len(tensors) - len(self.keywords)
        return self.program(*tensors[:split], **dict(zip(self.keywords, tensors[split:], strict=True)))

    def train(self, mode: bool = True) -> _Mixed:  # noqa: ARG002 - an exported program is in the mode it was exported in
        return self


def _values(program: torch.export.ExportedProgram) -> list[Any]:
    """The inputs that the program was exported with, as fake tensors."""
    wanted = set(program.graph_signature.user_inputs)
    return [
        node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in wanted
    ]


def _batch(values: Sequence[Any]) -> int | None:
    """The one batch size of the program, or None when it takes any."""
    batches = {_fixed(value.shape[0]) for value in values if getattr(value, "ndim", 0)}
    fixed = batches - {None}
    return fixed.pop() if len(fixed) == 1 and None not in batches else None


def _check_asked(
    file: Path, names: Sequence[str], values: Sequence[Any], asked: Sequence[TensorSpec]
) -> None:
    """Raises ModelError where --input contradicts what is written into the program: it would refuse every call."""
    fits = len(asked) == len(values) and all(
        len(spec.shape) == len(value.shape) - 1
        and all(
            _fixed(side) in (None, given) for side, given in zip(value.shape[1:], spec.shape, strict=True)
        )
        for spec, value in zip(asked, values, strict=True)
    )
    if not fits:
        taken = ", ".join(
            f"{name} {_shown(value)}".strip() for name, value in zip(names, values, strict=True)
        )
        raise ModelError(
            f"{file.name} was exported for {taken} per item, and --input describes {in_words(tuple(asked))}.",
            title="the inputs do not fit the model",
            remedy="Leave --input out, or export the model again for other shapes.",
        )


def _shown(value: Any) -> str:
    sides = ("any" if _fixed(side) is None else str(side) for side in value.shape[1:])
    return "x".join(sides) or "()"


def _names(file: Path, program: torch.export.ExportedProgram, values: Sequence[Any]) -> tuple[str, ...]:
    call = program.module_call_graph[0].signature
    if call is None:
        return ("",) * len(values)
    positional, keyword = _pytree.tree_unflatten(list(values), call.in_spec)
    flat = isinstance(positional, tuple | list) and isinstance(keyword, Mapping)
    parts = [*positional, *keyword.values()] if flat else []
    if not flat or any(not isinstance(part, torch.Tensor) for part in parts):
        raise ModelError(
            f"{file.name} was exported with inputs other than tensors (lists, dicts or numbers).",
            title="inputs that cannot be made",
            remedy="Export a module whose forward takes tensors only, or name a Python file with batchpeak_inputs(batch_size).",
        )
    # Placeholders are named after the parameters of the forward that was exported: good to show, no keywords to call by.
    shown = program.graph_signature.user_inputs[: len(positional)] if keyword else ("",) * len(positional)
    return (*map(str, shown), *keyword)


def _keywords(program: torch.export.ExportedProgram) -> tuple[str, ...]:
    call = program.module_call_graph[0].signature
    return tuple(call.in_spec.child(1).context) if call is not None else ()


def _spec(file: Path, name: str, value: Any) -> TensorSpec:
    shape = [_fixed(side) for side in value.shape[1:]]
    if None in shape:
        raise ModelError(
            f"{file.name} takes inputs of {_shown(value)} per item, of which not every side is known.",
            title="which inputs?",
            remedy=f"Give them with --input, for example --input {'x'.join(str(side or 224) for side in shape)}.",
        )
    dtype = str(value.dtype).removeprefix("torch.")
    whole = dtype.startswith("int")
    return TensorSpec(tuple(side for side in shape if side is not None), dtype, name, 2 if whole else None)


def _fixed(side: Any) -> int | None:
    return side if isinstance(side, int) else None


def _hint(program: torch.export.ExportedProgram, batch: int | None) -> str:
    if batch is not None:
        return (
            f"The file was exported for batch size {batch} only; "
            "export it again with dynamic_shapes and a dynamic first dimension."
        )
    bounds = [(bound.lower, bound.upper) for bound in program.range_constraints.values()]
    if len(bounds) == 1:
        lower, upper = bounds[0]
        if lower.is_integer and upper.is_integer and upper < 2**31:
            return f"The file was exported for batch sizes {lower} to {upper}."
    return ""
