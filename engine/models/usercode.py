"""Runs code of the user's and turns what it raises into an error that names the line in their file."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import BatchpeakError, ModelError

_OURS = Path(__file__).resolve().parents[1]
_NOT_THEIRS = (
    str(Path(sysconfig.get_path("stdlib")).resolve()),
    str(Path(sysconfig.get_path("purelib")).resolve()),
    str(_OURS),
)


def where(error: BaseException) -> str:
    """File and line of the innermost frame in the user's code, e.g. "model.py:12"; "" when none of it is theirs."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith("<") and not str(Path(frame.filename).resolve()).startswith(
            _NOT_THEIRS
        ):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def in_words(error: BaseException) -> str:
    """The error's own words on one line, with its type where the words alone say little (KeyError: 'x')."""
    text = " ".join(str(error).split()).removesuffix(".")
    if len(text) > 400:
        text = text[:399] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


FITTING_TORCHVISION = (
    "Install the torchvision that belongs to this torch, both from the same place: "
    "pip install --upgrade torch torchvision"
)


@contextmanager
def running(what: str, *, title: str = "the model cannot be loaded", remedy: str = "") -> Iterator[None]:
    """Runs user code in its body. Whatever it raises, sys.exit included, becomes a ModelError that says `what` was being done."""
    try:
        yield
    except (BatchpeakError, KeyboardInterrupt, GeneratorExit):
        raise
    except SyntaxError as error:
        raise syntax_error(error) from error
    except SystemExit as error:
        place = where(error)
        raise ModelError(
            f"{what} called sys.exit({'' if error.code is None else repr(error.code)}){f' at {place}' if place else ''}.",
            title=title,
            remedy='Keep code that runs a program under `if __name__ == "__main__":`.',
        ) from error
    except ModuleNotFoundError as error:
        if error.name is None:  # a library's own words about a part of it, whose reason is the first error
            words = in_words(_first(error))
            raise ModelError(
                f"{what} raised {words}{_at(error)}.",
                title=title,
                remedy=FITTING_TORCHVISION if "torchvision::" in words else "",
            ) from error
        raise ModelError(
            f"{what} needs the module {error.name}, which is not found{_at(error)}.",
            title=title,
            remedy=remedy
            or "Install it beside batchpeak, in the same environment, or set PYTHONPATH to where it lies.",
        ) from error
    except BaseException as error:
        raise ModelError(
            f"{what} raised {in_words(error)}{_at(error)}.", title=title, remedy=remedy
        ) from error


def _first(error: BaseException) -> BaseException:
    """The error at the bottom of the chain of causes."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def syntax_error(error: SyntaxError) -> ModelError:
    """The error that shows the line which is not Python."""
    file = Path(error.filename).name if error.filename else "the file"
    line = f": {error.text.strip()}" if error.text and error.text.strip() else ""
    return ModelError(f"{file}:{error.lineno or 1}: {error.msg}{line}", title="not valid Python")


def _at(error: BaseException) -> str:
    place = where(error)
    return f" at {place}" if place else ""
