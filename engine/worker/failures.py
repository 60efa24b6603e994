"""What an exception means for a batch size: out of memory or an error, in a few words, with the place in the user's code."""

from __future__ import annotations

import errno
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import engine
from engine.results import Failure

LONGEST_OOM = 300
LONGEST_ERROR = 600

# Lower case. How devices and libraries word it when memory ran out; most raise a plain RuntimeError.
_OUT_OF_MEMORY = (
    "out of memory",  # cuda, hip, mps, xpu
    "can't allocate memory",  # torch's own allocator on a CPU
    "cannot allocate memory",
    "defaultcpuallocator: not enough memory",
    "_status_alloc_failed",  # cublas, cudnn, cusolver, cusparse
    "unable to find a valid cudnn algorithm",  # its workspace did not fit
    "unable to find an engine to execute this computation",  # the same, of later cudnn
    "invalid buffer size",  # mps
    "std::bad_alloc",
    "bad allocation",
    "failed to allocate memory",  # onnxruntime
    "storage size calculation overflowed",  # more bytes than can be addressed
)

_TORCHSCRIPT = "The following operation failed in the TorchScript interpreter."
_ITS_LAST_WORDS = re.compile(r"^[\w.]*(?:Error|Exception): ", re.MULTILINE)

# What shows that `forward` asks for a certain number of items: a reshape to it, or a tensor that was made for it.
_RESHAPED = re.compile(r"shape '\[(\d+)(?:, -?\d+)*\]' is invalid for input of size \d+")
_UNEQUAL = re.compile(
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 0"
)

_OURS = str(Path(engine.__file__).resolve().parent)
_STANDARD_LIBRARY = str(Path(sysconfig.get_paths()["stdlib"]).resolve())
_INSTALLED = tuple(
    {str(Path(sysconfig.get_paths()[name]).resolve()) for name in ("purelib", "platlib")}
    | {str(Path(_STANDARD_LIBRARY) / "site-packages"), str(Path(_STANDARD_LIBRARY) / "dist-packages")}
)


def classify(exception: BaseException, *, hint: str = "", batch_size: int | None = None) -> Failure:
    """The failure that an exception of the user's code stands for; `hint` is a sentence added to an error's message.

    Where the words show that the model asks for another number of items than `batch_size`, the failure is of this size alone.
    """
    if _is_out_of_memory(exception):
        return Failure(
            kind="oom", title="out of memory", message=_short(_first_sentences(exception), LONGEST_OOM)
        )
    text = _short(_words_of(exception), LONGEST_ERROR)
    wanted = _wanted_size(text, batch_size) if batch_size is not None else None
    if wanted is not None and not hint:
        hint = f"The model may take batches of {wanted} only."
    return Failure(
        kind="error",
        title=type(exception).__name__,
        message=f"{text}{'' if text.endswith(('.', '!', '?')) else '.'} {hint}" if hint else text,
        where=where(exception),
        of_size=wanted is not None,
    )


def plain(text: str) -> str:
    """The text as JSON can carry it: no subclass of str, and no lone surrogates (of file names that are not UTF-8)."""
    return str(text).encode("utf-8", "replace").decode()


def where(exception: BaseException, *, in_packages: bool = True) -> str:
    """ "file:line" of the deepest frame that is not the runtime's, ours or the standard library's; "" if there is none.

    The user's own files win over installed packages, which `in_packages` lets in: a wrong call into a package is put right
    in the caller.
    """
    if isinstance(exception, SyntaxError) and exception.filename:
        return plain(f"{exception.filename}:{exception.lineno or 0}")
    own, installed = "", ""
    for frame, line in traceback.walk_tb(exception.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith("<") or _below(file, _OURS) or _is_of_runtime(file):
            continue
        place = f"{file}:{line}"
        if any(_below(file, folder) for folder in _INSTALLED):
            installed = place
        elif not _below(file, _STANDARD_LIBRARY):
            own = place
    return plain(own or (installed if in_packages else ""))


def forget(exception: BaseException) -> None:
    """Let go of what the frames of an exception hold: the tensors of a batch that failed are locals of them."""
    for link in _chain(exception, context=True):
        if link.__traceback__ is not None:
            traceback.clear_frames(link.__traceback__)
            link.__traceback__ = None


def _is_out_of_memory(exception: BaseException) -> bool:
    torch = sys.modules.get("torch")
    kinds = (MemoryError, torch.OutOfMemoryError) if torch is not None else (MemoryError,)
    for link in _chain(exception, context=False):
        if isinstance(link, kinds) or (isinstance(link, OSError) and link.errno == errno.ENOMEM):
            return True
        text = _text_of(link).lower()
        if isinstance(link, Exception) and any(words in text for words in _OUT_OF_MEMORY):
            return True
    return False


def _chain(exception: BaseException, *, context: bool) -> Iterator[BaseException]:
    """The exception and what it was raised from; with `context` also what was being handled meanwhile."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exception]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting.append(link.__cause__)
        if context:
            waiting.append(link.__context__)


def _words_of(exception: BaseException) -> str:
    text = _text_of(exception).strip()
    if isinstance(exception, SystemExit):
        return f"The model's code called sys.exit({text})."
    if isinstance(exception, KeyboardInterrupt):
        return "The model's code raised KeyboardInterrupt."
    if isinstance(exception, KeyError) and text:
        return f"There is no key {text}."
    return text or "It was raised without a message."


def _first_sentences(exception: BaseException) -> str:
    # Torch's text goes on with advice about settings, which helps nobody here.
    text = " ".join(_text_of(exception).split())
    for tail in (" See documentation for", " If reserved but unallocated", " Exception raised from"):
        text = text.partition(tail)[0]
    return text or "Not enough memory."


def _text_of(exception: BaseException) -> str:
    try:
        text = str(exception)
    except Exception as error:  # noqa: BLE001 - the user's __str__ may raise anything; that is then said
        text = f"(its text cannot be shown: {type(error).__name__})"
    return plain(_its_last_words(text))


def _its_last_words(text: str) -> str:
    """TorchScript puts the code of every layer on the way before what went wrong; only the latter is the error."""
    if not text.startswith(_TORCHSCRIPT):
        return text
    found = list(_ITS_LAST_WORDS.finditer(text))
    return text[found[-1].end() :] if found else text


def _wanted_size(text: str, batch_size: int) -> int | None:
    """The number of items that the error's words show the model to ask for, when it is not the one it was given."""
    if found := _RESHAPED.search(text):
        return int(found[1]) if int(found[1]) not in (0, batch_size) else None
    if found := _UNEQUAL.search(text):
        sizes = {int(found[1]), int(found[2])}
        return (sizes - {batch_size}).pop() if batch_size in sizes else None
    return None


def _short(text: str, longest: int) -> str:
    """The text cut in its middle: the end often says more than the middle, e.g. in TorchScript's errors."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    return f"{text[:head].rstrip()} … {text[head - longest + 3 :].lstrip()}"


def _is_of_runtime(file: str) -> bool:
    """Whether the file is of what runs models: a line of torch's own says nothing about the user's."""
    homes = (getattr(sys.modules.get(name), "__file__", None) for name in ("torch", "onnxruntime"))
    return any(home is not None and _below(file, str(Path(home).parent)) for home in homes)


def _below(file: str, folder: str) -> bool:
    return file.startswith(folder.rstrip("/") + "/")
