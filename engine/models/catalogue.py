"""Lists the models that can be named here: the built-in one, those of installed libraries, and those in the transformers cache.

Neither torch nor a library is imported in this process: a child asks the library once, and its answer is kept per version.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import platformdirs

from engine.asking import Asking
from engine.models import fashion_cnn
from engine.models.preflight import EXTRAS
from engine.plan import BUILT_IN_MODEL

TIMEOUT_S = 90
"""The first import of torch and a library from a slow disk takes tens of seconds."""

LIBRARIES = ("torchvision", "timm")
_MARK = "batchpeak-names:"
_SCRIPT = (
    "import json, importlib; "
    "library = importlib.import_module({module!r}); "
    "print('\\n' + {mark!r} + json.dumps(sorted(library.list_models())))"
)
_MODULES = {"torchvision": "torchvision.models", "timm": "timm"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as it is named on the command line, and where it comes from: "built-in", "torchvision", "timm" or "hf"."""

    spec: str
    source: str
    description: str = ""

    def __str__(self) -> str:
        return f"{self.spec:<32}  {self.description}".rstrip()


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found, and sentences about what could not be looked at (a missing extra, a library that does not import)."""

    entries: tuple[Entry, ...]
    notes: tuple[str, ...]


Ask = Callable[[Sequence[str]], str]
"""Runs a command and returns its standard output. Raises OSError or subprocess.SubprocessError."""


def listing(query: str | None = None) -> list[Entry]:
    """The models whose name contains every word of `query`, best matches first; without one, what kinds there are."""
    return list(search(query).entries)


def search(query: str | None = None, *, ask: Ask | None = None, cache: Path | None = None) -> Listing:
    """As `listing`, with notes. `ask` runs the child that imports a library, `cache` is the folder that keeps its answer."""
    words = (query or "").lower().split()
    cached = [Entry(f"hf:{name}", "hf", "in the transformers cache") for name in _cached_repositories()]
    if not words:
        return Listing((_BUILT_IN, *_KINDS, *map(_library, EXTRAS), *cached), ())
    folder = platformdirs.user_cache_path("batchpeak") if cache is None else cache
    found, notes = [_BUILT_IN, *cached], []
    for library in LIBRARIES:
        if not _is_installed(library):
            notes.append(f"{library} is not installed: pip install 'batchpeak[{library}]' adds its models.")
            continue
        names = _names(library, ask or asker(Asking()), folder)
        if names is None:
            notes.append(f"{library} is installed, but cannot be imported beside this torch.")
        found += [Entry(f"{library}:{name}", library) for name in names or ()]
    return Listing(tuple(_matching(found, words)), tuple(notes))


_BUILT_IN = Entry(
    BUILT_IN_MODEL, "built-in", f"trained CNN, {fashion_cnn.PARAMETERS:,} parameters, 1x28x28 images"
)
_KINDS = (
    Entry("file.py:NAME", "file", "an nn.Module, a class of one, or a function that builds one"),
    Entry("package.module:NAME", "file", "the same, of an installed package or from this folder"),
    Entry("model.pt .pth .ts", "file", "TorchScript; a pickled module with --trust"),
    Entry("model.pt2", "file", "torch.export archive"),
)


def _library(extra: str) -> Entry:
    """What is to be said of an extra without importing it."""
    forms = {"onnx": "model.onnx", "hf": "hf:FOLDER-OR-ID"}
    package = EXTRAS[extra]
    if not _is_installed(extra):
        said = f"needs {package}: pip install 'batchpeak[{extra}]'"
    elif extra in LIBRARIES:
        said = f"{package} {importlib.metadata.version(package)}; `batchpeak models WORD` searches its names"
    else:
        said = f"by {package} {importlib.metadata.version(package)}"
    return Entry(forms.get(extra, f"{extra}:NAME"), extra, said)


def _is_installed(extra: str) -> bool:
    return importlib.util.find_spec(EXTRAS[extra]) is not None


def _matching(entries: list[Entry], words: list[str]) -> list[Entry]:
    kept = [entry for entry in entries if all(word in entry.spec.lower() for word in words)]

    def rank(entry: Entry) -> tuple[int, int]:
        name = entry.spec.lower().rpartition(":")[2]
        return (0 if name == words[0] else 1 if name.startswith(words[0]) else 2), len(name)

    return sorted(kept, key=rank)


def _names(library: str, ask: Ask, folder: Path) -> list[str] | None:
    """The library's names; None when it could not be asked."""
    kept = folder / f"{_file_name(library)}.json"
    try:
        return msgspec.json.decode(kept.read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        pass  # not asked yet, or a file that was cut short: ask
    script = _SCRIPT.format(module=_MODULES[library], mark=_MARK)
    try:
        output = ask([sys.executable, "-P", "-c", script])
    except (OSError, subprocess.SubprocessError):
        return None
    lines = [line for line in output.splitlines() if line.startswith(_MARK)]
    if not lines:
        return None
    names = msgspec.convert(json.loads(lines[-1].removeprefix(_MARK)), list[str])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(msgspec.json.encode(names))
    except OSError:
        return names  # a home that cannot be written costs the next listing some seconds, nothing else
    return names


def _file_name(library: str) -> str:
    versions = [f"{package}-{importlib.metadata.version(package)}" for package in (EXTRAS[library], "torch")]
    return "names-" + re.sub(r"[^\w.\-]", "_", "-".join(versions))


def asker(asking: Asking) -> Ask:
    """Asks libraries by `asking`, which can be stopped."""

    def ask(command: Sequence[str]) -> str:
        finished = asking.run(command, timeout_s=TIMEOUT_S)
        finished.check_returncode()
        return finished.stdout

    return ask


def _cached_repositories() -> list[str]:
    """Ids of the models in the Hugging Face cache of this machine that have a configuration."""
    if not _is_installed("hf"):
        return []
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    folders = sorted(hub.glob("models--*")) if hub.is_dir() else []
    return [
        folder.name.removeprefix("models--").replace("--", "/")
        for folder in folders
        if any(folder.glob("snapshots/*/config.json"))
    ]
