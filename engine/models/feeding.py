"""Makes inputs of any batch size: random values of a described shape, or real images of a folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine.errors import ModelError
from engine.models import images
from engine.models.inputs import INTEGERS, TensorSpec, in_words, parse_input
from engine.models.source import IMAGES, ITEMS, LoadedModel, calling, each_tensor, megabytes
from engine.models.weights import parameter_count
from engine.plan import Plan

_POOL_BYTES = 64e6
_POOL_ITEMS = 64
"""Distinct items; larger batches repeat them, so that making 4,096 images takes no longer than copying them."""


@dataclass(frozen=True, slots=True)
class Feed:
    """How a model is fed: the maker of inputs, and one item in words, its unit and its size."""

    make_inputs: Callable[[int], Any]
    input: str
    unit: str
    input_mb_per_item: float | None
    sample: Any
    """Inputs of one item in the form of all others, of any values; None when only other batch sizes can be made."""

    def calling(self, forward: Callable[..., Any]) -> Callable[[Any], Any]:
        """How to call `forward` with inputs of this feed."""
        if self.sample is None:
            return lambda batch: calling(forward, batch)(batch)
        return calling(forward, self.sample)


def loaded(
    name: str,
    module: nn.Module,
    fed: Feed,
    description: str,
    *,
    parameters: int | None = None,
    batch_hint: str = "",
    only_batch_size: int | None = None,
) -> LoadedModel:
    """The contract's value for a module of torch and its feed. `parameters` are counted when not given."""
    return LoadedModel(
        name=name,
        call=fed.calling(module),
        make_inputs=fed.make_inputs,
        parameters=parameter_count(module) if parameters is None else parameters,
        input=fed.input,
        unit=fed.unit,
        description=description,
        module=module,
        input_mb_per_item=fed.input_mb_per_item,
        batch_hint=batch_hint,
        only_batch_size=only_batch_size,
    )


def asked_for(plan: Plan) -> tuple[TensorSpec, ...] | None:
    """What --input describes; None when it was not given."""
    return parse_input(plan.input) if plan.input else None


def feed(
    specs: Sequence[TensorSpec],
    plan: Plan,
    look: images.ImageLook | None = None,
    *,
    keyword: bool | None = None,
) -> Feed:
    """Inputs of these shapes: of --image-dir when it was given, else random. `look` says how the model wants its images.

    `keyword` False passes named inputs by position, None goes by whether they have names.
    """
    specs = tuple(specs)
    by_keyword = all(spec.name for spec in specs) if keyword is None else keyword
    pools: list[Tensor] = []
    if plan.image_dir:
        pools.append(_image_pool(specs, plan.image_dir, look or images.ImageLook()))

    def arranged(batches: Sequence[Tensor]) -> Any:
        if by_keyword:
            return {spec.name: batch for spec, batch in zip(specs, batches, strict=True)}
        return batches[0] if len(batches) == 1 else tuple(batches)

    def make_inputs(batch_size: int) -> Any:
        if batch_size < 1:
            raise ValueError(f"a batch holds at least one item, not {batch_size}")
        if not pools:  # made at the first size, not at loading: ten million random values take 80 ms
            generator = torch.Generator("cpu").manual_seed(plan.seed)
            pools.extend(_random_pool(spec, generator) for spec in specs)
        return arranged([_repeated(pool, batch_size) for pool in pools])

    sample = arranged(
        [torch.empty((1, *spec.shape), dtype=getattr(torch, spec.dtype), device="cpu") for spec in specs]
    )
    return Feed(
        make_inputs,
        in_words(specs) + (" from a folder" if plan.image_dir else ""),
        IMAGES if len(specs) == 1 and specs[0].is_image else ITEMS,
        megabytes(sample),
        sample,
    )


def described(make_inputs: Callable[[int], Any], sample: Any, items: int = 1) -> Feed:
    """The feed of a function, described by the inputs `sample` of so many items that it made."""
    tensors: list[TensorSpec] = []

    def note(tensor: Any) -> Any:
        tensors.append(TensorSpec(tuple(tensor.shape[1:]), str(tensor.dtype).removeprefix("torch.")))
        return tensor

    each_tensor(note, sample)
    unit = IMAGES if tensors and tensors[0].is_image else ITEMS
    return Feed(make_inputs, in_words(tuple(tensors)), unit, megabytes(sample) / items, sample)


def _random_pool(spec: TensorSpec, generator: torch.Generator) -> Tensor:
    size = max(1, math.prod(spec.shape))
    items = max(1, min(_POOL_ITEMS, int(_POOL_BYTES / (8 * size))))
    shape = (items, *spec.shape)
    if spec.dtype == "bool":
        return torch.randint(0, 2, shape, generator=generator, device="cpu").bool()
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if spec.dtype in INTEGERS:
        below = spec.below or (256 if spec.dtype == "uint8" else 2)
        return torch.randint(
            0, min(below, torch.iinfo(dtype).max + 1), shape, generator=generator, device="cpu"
        ).to(dtype)
    return torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu").to(dtype)


def _image_pool(specs: tuple[TensorSpec, ...], folder: str, look: images.ImageLook) -> Tensor:
    if len(specs) != 1 or not specs[0].is_image:
        raise ModelError(
            f"the input is {in_words(specs)}, which is not one image.",
            title="the model does not take images",
            remedy="Leave --image-dir out, or describe the image with --input, for example 3x224x224.",
        )
    return images.read(folder, specs[0], look)


def _repeated(pool: Tensor, batch_size: int) -> Tensor:
    if batch_size <= len(pool):
        return pool[:batch_size].clone()
    return pool[torch.arange(batch_size, device=pool.device) % len(pool)]
