"""Says what a model's `forward` takes, and checks or explains its inputs against that."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from engine.errors import ModelError, UsageError
from engine.models.inputs import TensorSpec, in_words

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def of(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature, without `self`; None when Python cannot tell it (compiled code)."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def in_text(name: str, signature: inspect.Signature | None) -> str:
    """For people: `forward(x, mask=None)`; without long annotations."""
    if signature is None:
        return f"{name}(...)"
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    return name + str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def required(signature: inspect.Signature | None) -> list[str]:
    """Names of the inputs that have no default."""
    if signature is None:
        return []
    return [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind in (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
    ]


def unknown_inputs(model: str, text: str, names: Sequence[str], *, own_file: bool = False) -> ModelError:
    """The error for a model whose inputs nobody told: it shows `forward` and an example of the option."""
    function = ", or put a function batchpeak_inputs(batch_size) into the file" if own_file else ""
    return ModelError(
        f"{model} does not tell the shape of its inputs; it is called as {text}.",
        title="which inputs?",
        remedy=f"Describe one item with --input, for example --input {example(names)}{function}.",
    )


def example(names: Sequence[str]) -> str:
    """An --input for these names, to be corrected by the person, e.g. "input_ids:128:int64:30522,mask:128:int64"."""
    if len(names) <= 1 and not (names and _looks_like_tokens(names[0])):
        return "3x224x224"
    return ",".join(_example_of(name) for name in names)


def check_fits(model: str, signature: inspect.Signature | None, specs: Sequence[TensorSpec]) -> None:
    """Raises UsageError when `forward` cannot be called with these inputs."""
    if signature is None:
        return
    keywords = {spec.name: spec for spec in specs if spec.name}
    try:
        if keywords:
            signature.bind(**keywords)
        else:
            signature.bind(*specs)
    except TypeError as error:
        raise UsageError(
            f"{model} is called as {in_text('forward', signature)}, and the input is {in_words(tuple(specs))}: {error}.",
            argument="--input",
            title="the inputs do not fit the model",
            remedy=f"For example --input {_example_for(signature)}.",
        ) from error


def _example_for(signature: inspect.Signature) -> str:
    """As `example`; inputs that are taken by keyword only get their names."""
    names = required(signature)
    by_keyword = any(signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in names)
    return ",".join(map(_example_of, names)) if by_keyword else example(names)


def _looks_like_tokens(name: str) -> bool:
    return name in ("ids", "tokens", "input_ids", "token_ids", "idx", "src", "tgt") or name.endswith("_ids")


def _example_of(name: str) -> str:
    if _looks_like_tokens(name):
        return f"{name}:128:int64:30522"
    return f"{name}:128:int64" if "mask" in name else f"{name}:3x224x224"
