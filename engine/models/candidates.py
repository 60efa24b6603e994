"""What a Python file offers as a model, and the files that may hold one. Reads the text; runs nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import ModelError
from engine.models.spec import FORMATS
from engine.models.usercode import syntax_error

MOST_BYTES = 5_000_000
"""A Python file larger than this is data, not a model's definition."""

CandidateKind = Literal["module", "class", "function", "name"]
_LIKELIEST: tuple[CandidateKind, ...] = ("module", "name", "function", "class")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name that the file defines at its top level, with the arguments that it asks for."""

    name: str
    kind: CandidateKind
    """"module": a class that derives from something named Module; "name": assigned from a call."""
    arguments: tuple[str, ...] = ()
    """Without those that have defaults: they must be given by --model-arg."""


def candidates(file: Path) -> list[Candidate]:
    """The file's names that may be a model or build one, the likeliest first, else in the file's order.

    Raises ModelError when it cannot be read or is not Python.
    """
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ModelError(f"{file.name} is too large to be looked through.", title="not a model's file")
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except SyntaxError as error:
        raise syntax_error(error) from error
    except (ValueError, OSError, RecursionError) as error:
        raise ModelError(
            f"{file.name} cannot be read as Python: {error}.", title="not valid Python"
        ) from error
    found = {one.name: one for one in _defined(tree.body) if not one.name.startswith("_")}
    return sorted(found.values(), key=lambda one: _LIKELIEST.index(one.kind))


def _defined(body: list[ast.stmt]) -> Iterator[Candidate]:
    for statement in body:
        match statement:
            case ast.ClassDef(name=name, bases=bases, body=inner):
                module = any(ast.unparse(base).rpartition(".")[2].endswith("Module") for base in bases)
                made = next(
                    (one for one in inner if isinstance(one, ast.FunctionDef) and one.name == "__init__"),
                    None,
                )
                needed = _needed(made.args)[1:] if made is not None else ()
                yield Candidate(name, "module" if module else "class", needed)
            case ast.FunctionDef(name=name, args=arguments):
                if name != "batchpeak_inputs":
                    yield Candidate(name, "function", _needed(arguments))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()):
                yield Candidate(name, "name")
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call()):
                yield Candidate(name, "name")


def _needed(arguments: ast.arguments) -> tuple[str, ...]:
    plain = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    plain = plain[: len(plain) - len(arguments.defaults)]
    named = [
        one.arg
        for one, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if given is None
    ]
    return (*plain, *named)


def is_model_file(file: Path) -> bool:
    """Whether the file's ending is that of something that can be named as a model."""
    return file.suffix == ".py" or file.suffix.lower() in FORMATS
