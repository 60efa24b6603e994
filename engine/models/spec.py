"""What a person names as the model, as a typed value. Pure: looks at the text only, never at the disk.

`fashion-cnn`, `file.py:name`, `package.module:name`, `*.pt *.pth *.ts *.pt2 *.onnx`, `torchvision:NAME`, `timm:NAME`, `hf:PATH-OR-ID`.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from engine.errors import ModelError
from engine.paths import expanded
from engine.plan import BUILT_IN_MODEL

Zoo = Literal["torchvision", "timm", "hf"]
FileFormat = Literal["torch", "export", "onnx"]

ZOOS: tuple[Zoo, ...] = ("torchvision", "timm", "hf")
FORMATS: Mapping[str, FileFormat] = {
    ".pt": "torch",
    ".pth": "torch",
    ".ts": "torch",
    ".pt2": "export",
    ".onnx": "onnx",
}
WEIGHTS_ONLY = frozenset({".safetensors", ".bin", ".ckpt", ".npz", ".h5"})
"""Suffixes of files that usually hold numbers without the code that uses them."""

FORMS = "fashion-cnn, file.py:name, package.module:name, a .pt, .pt2 or .onnx file, torchvision:NAME, timm:NAME, hf:PATH"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """The model that comes with batchpeak."""


@dataclass(frozen=True, slots=True)
class PythonObject:
    """`attribute` (may be dotted) of a file, or of a module that is found on the path."""

    attribute: str
    file: Path | None = None
    module: str = ""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that holds the model itself."""

    file: Path
    format: FileFormat


@dataclass(frozen=True, slots=True)
class ZooModel:
    """A model of a library of models, by its name there (for `hf` a folder or an id)."""

    zoo: Zoo
    name: str


Spec = BuiltIn | PythonObject | ModelFile | ZooModel

_DOTTED = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")


def parse(text: str) -> Spec:
    """The spec that `text` names. Raises ModelError that says what is wrong with it and what was expected."""
    named = text.strip()
    if not named:
        raise ModelError("no model was named.", title="which model?", remedy=f"Expected one of: {FORMS}.")
    if named == BUILT_IN_MODEL:
        return BuiltIn()
    prefix, colon, rest = named.partition(":")
    if colon and prefix in ZOOS:
        return _zoo_model(prefix, rest)
    suffix = PurePath(named).suffix.lower()
    if suffix in FORMATS:
        return ModelFile(_path(named), FORMATS[suffix])
    if suffix in WEIGHTS_ONLY:
        raise _weights_only(named)
    before, colon, attribute = named.rpartition(":")
    if colon:
        return _python_object(named, before, attribute)
    if suffix == ".py":
        raise ModelError(
            f"{named} is a file of Python code; say which model in it.",
            title="which model in the file?",
            remedy=f"Expected {named}:NAME, where NAME is an nn.Module, a class of one, or a function that returns one.",
        )
    raise _unknown(named)


def short_name(spec: Spec) -> str:
    """The model's name for tables and file names: without its folder."""
    match spec:
        case BuiltIn():
            return BUILT_IN_MODEL
        case PythonObject(attribute=attribute, file=file, module=module):
            return f"{file.name}:{attribute}" if file else f"{module}:{attribute}"
        case ModelFile(file=file):
            return file.name
        case ZooModel(zoo=zoo, name=name):
            return f"{zoo}:{PurePath(name).name if zoo == 'hf' else name}"


def argument_values(texts: Mapping[str, str]) -> dict[str, Any]:
    """The values of `--model-arg key=value`: numbers, True, None, lists as Python writes them; anything else is text."""
    return {name: _literal(text) for name, text in texts.items()}


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _path(text: str) -> Path:
    return expanded(text) if text.startswith("~") else Path(text)


def _zoo_model(zoo: str, name: str) -> ZooModel:
    example = {
        "torchvision": "torchvision:resnet50",
        "timm": "timm:vit_tiny_patch16_224",
        "hf": "hf:./my-vit",
    }
    if not name.strip():
        raise ModelError(
            f"{zoo}: needs the model's name after the colon.",
            title=f"which {zoo} model?",
            remedy=f"For example {example[zoo]}."
            + ("" if zoo == "hf" else f" `batchpeak models {zoo}:` lists them."),
        )
    return ZooModel(next(known for known in ZOOS if known == zoo), name.strip())


def _python_object(named: str, before: str, attribute: str) -> PythonObject:
    if not _DOTTED.match(attribute):
        raise ModelError(
            f"{named}: '{attribute}' after the colon is not the name of a Python object.",
            remedy="Expected for example model.py:Net or package.module:build.",
        )
    if PurePath(before).suffix == ".py":
        return PythonObject(attribute, file=_path(before))
    if _DOTTED.match(before):
        return PythonObject(attribute, module=before)
    near = difflib.get_close_matches(before, ZOOS, n=1)
    raise ModelError(
        f"{named}: '{before}' before the colon is neither a .py file nor the name of a Python module.",
        remedy=f"Did you mean {near[0]}:{attribute}?" if near else f"Expected one of: {FORMS}.",
    )


def _weights_only(named: str) -> ModelError:
    return ModelError(
        f"{named}: files of this kind hold weights without the model's code, so nothing can be called.",
        title="weights are not a model",
        remedy=f"Name the class or function that builds the model, and the file as its weights: model.py:Net --weights {named}.",
    )


def _unknown(named: str) -> ModelError:
    near = difflib.get_close_matches(named.lower(), [BUILT_IN_MODEL], n=1, cutoff=0.5)
    if near:
        remedy = f"Did you mean {near[0]}?"
    elif ("/" in named or "\\" in named) and PurePath(named).suffix:
        remedy = f"Files of a model end in {', '.join(FORMATS)}, or are Python code: file.py:name."
    elif "/" in named or "\\" in named:
        remedy = f"A folder of a transformers model is named hf:{named}; else expected one of: {FORMS}."
    elif re.fullmatch(r"[\w.\-]+", named):
        remedy = (
            f"A model of a library is named with it: torchvision:{named} or timm:{named}; "
            f"`batchpeak models {named}` searches the names."
        )
    else:
        remedy = f"Expected one of: {FORMS}."
    return ModelError(f"'{named}' is not the name of a model.", title="unknown model", remedy=remedy)


def did_you_mean(zoo: Zoo, name: str, known: Sequence[str]) -> str:
    """A remedy for an unknown name of a library: the nearest names, and how to search them."""
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.6)
    if not near:
        return f"With `batchpeak models {name}` the names can be searched."
    return f"Did you mean {' or '.join(f'{zoo}:{one}' for one in near)}? `batchpeak models {name}` searches the names."
