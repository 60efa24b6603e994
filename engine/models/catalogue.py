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


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found, and sentences about what could not be looked at (a missing extra, a library that does not import)."""

    entries: tuple[Entry, ...]
    notes: tuple[str, ...]


Ask = Callable[[Sequence[str]], str]
"""Runs a command and returns its standard output. Raises OSError or subprocess.SubprocessError."""


def listing(query: str | None = None) -> list[Entry]:
    """The models whose name contains every word of `query`, best matches first; all of them without one."""
    return list(search(query).entries)


def search(query: str | None = None, *, ask: Ask | None = None, cache: Path | None = None) -> Listing:
    """As `listing`, with notes. `ask` runs the child that imports a library, `cache` is the folder that keeps its answer."""
    folder = platformdirs.user_cache_path("batchpeak") if cache is None else cache
    found = [
        Entry(
            BUILT_IN_MODEL, "built-in", f"trained CNN, {fashion_cnn.PARAMETERS:,} parameters, 1x28x28 images"
        )
    ]
    notes: list[str] = []
    for library in LIBRARIES:
        if importlib.util.find_spec(EXTRAS[library]) is None:
            notes.append(f"{library} is not installed: pip install 'batchpeak[{library}]' adds its models.")
            continue
        names = _names(library, ask or _run, folder)
        if names is None:
            notes.append(f"{library} is installed, but cannot be imported beside this torch.")
        found += [Entry(f"{library}:{name}", library) for name in names or ()]
    found += [Entry(f"hf:{name}", "hf", "in the transformers cache") for name in _cached_repositories()]
    return Listing(tuple(_matching(found, query)), tuple(notes))


def _matching(entries: list[Entry], query: str | None) -> list[Entry]:
    words = (query or "").lower().split()
    if not words:
        return entries
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


def _run(command: Sequence[str]) -> str:
    finished = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    return finished.stdout


def _cached_repositories() -> list[str]:
    """Ids of the models in the Hugging Face cache of this machine that have a configuration."""
    if importlib.util.find_spec(EXTRAS["hf"]) is None:
        return []
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    folders = sorted(hub.glob("models--*")) if hub.is_dir() else []
    return [
        folder.name.removeprefix("models--").replace("--", "/")
        for folder in folders
        if any(folder.glob("snapshots/*/config.json"))
    ]
