"""Lets a user's own `engine.py` or `tui.py` be imported although batchpeak's packages have the same names.

Many vision repositories have an `engine.py`. While a user's code is loaded and run, `import engine` must mean theirs if they have
one. `enter` puts their folders first on the path and gives the names up; `leave` undoes all of it before the next model. In between,
modules of ours that were imported keep working through the references they hold; a name that the user does not have still leads to
ours, so a late import of our own breaks only beside a project that has the same name.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

OWN = ("engine", "tui", "themes")
"""The import packages of batchpeak."""

_ROOT = Path(__file__).resolve().parents[2]


class _Existing(importlib.abc.Loader):
    """Hands out a module that exists already, unchanged."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - the loader's interface
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just put its own there


class _OwnNames(importlib.abc.MetaPathFinder):
    """Finds `engine` and the like: the user's first, else the module of ours that was set aside."""

    def __init__(self, aside: dict[str, ModuleType]) -> None:
        self._aside = aside

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the import system's interface
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top not in OWN:
            return None
        if not rest:
            theirs = PathFinder.find_spec(
                fullname, [entry for entry in sys.path if not _is_ours(entry)], target
            )
            if theirs is not None and _has_code(theirs):
                return theirs
        elif sys.modules.get(top) is not self._aside.get(top):
            return None  # a part of the user's package: found along the package's own path
        ours = self._aside.get(fullname)
        return importlib.util.spec_from_loader(fullname, _Existing(ours)) if ours else None


class _Visit:
    """What `enter` changed, so that `leave` can put it back."""

    def __init__(self, folders: Sequence[Path], argv: Sequence[str]) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.path = list(sys.path)
        self.argv = list(sys.argv)
        self.cwd = Path.cwd()
        self.before = set(sys.modules)
        self.aside = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in OWN}
        self.finder = _OwnNames(self.aside)
        for name in self.aside:
            del sys.modules[name]
        sys.meta_path.insert(0, self.finder)
        sys.path[:0] = [str(folder) for folder in self.folders]
        sys.argv[:] = argv
        # Files may have been written since the interpreter last listed these folders.
        importlib.invalidate_caches()

    def undo(self) -> None:
        places = {Path(entry).resolve() for entry in sys.path if entry not in self.path}
        theirs = [name for name, module in sys.modules.items() if self._is_theirs(name, module, places)]
        for name in theirs:
            del sys.modules[name]
        sys.modules.update(self.aside)
        sys.meta_path.remove(self.finder)
        sys.path[:] = self.path
        sys.argv[:] = self.argv
        os.chdir(self.cwd)

    def _is_theirs(self, name: str, module: ModuleType, places: set[Path]) -> bool:
        # Their files may be edited before the next load, and the next model's may have the same names.
        top = name.partition(".")[0]
        if top in OWN:
            return True
        if name in self.before or _container(sys.modules.get(top, module)) not in places:
            return False
        # A compiled module can be loaded once in a process, and is not edited.
        return not str(getattr(module, "__file__", None) or "").endswith(tuple(EXTENSION_SUFFIXES))


def _container(module: ModuleType) -> Path | None:
    """The folder on the path that a top-level module or package was found in; None for those without a file."""
    for place in getattr(module, "__path__", None) or ():
        return Path(place).resolve().parent
    file = getattr(module, "__file__", None)
    return Path(file).resolve().parent if isinstance(file, str) else None


_visits: list[_Visit] = []
"""The visit in progress, if any: at most one."""


def enter(folders: Sequence[Path], argv: Sequence[str]) -> None:
    """Put `folders` first on the path, set `sys.argv`, and give batchpeak's own names up until `leave`."""
    leave()
    _visits.append(_Visit(folders, argv))


def leave() -> None:
    """Take the names back and forget the modules that came from the user's folders. Nothing when not entered."""
    while _visits:
        _visits.pop().undo()


def _has_code(spec: ModuleSpec) -> bool:
    """False for a folder that only has the name, e.g. one of compiled TensorRT engines."""
    if spec.origin is not None:
        return True
    folders = [Path(place) for place in spec.submodule_search_locations or ()]
    return any(next(folder.glob(pattern), None) for folder in folders for pattern in ("*.py", "*/*.py"))


def _is_ours(entry: str) -> bool:
    return Path(entry or ".").resolve() == _ROOT
