"""What the interface remembers and what a person may set: a TOML file in the user's configuration folder.

theme = "riso"
recent_lists = ["1,8,32,128,512"]
recent_models = ["resnet50"]

[keys]
run = "r,f5"
"race.replay" = "enter"
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import platformdirs
import tomli_w
from textual.keys import Keys, key_to_character

from engine.errors import EXIT_USAGE, BatchpeakError, UsageError
from engine.plan import format_batch_sizes, parse_batch_sizes
from tui.terminal import safe_text

REFUSED_KEYS = frozenset(f"ctrl+{key}" for key in ("a", "b", "space", "at", "enter", "s", "q"))
"""Taken by tmux, screen, flow control and editors' terminals before they reach a program."""

_MOST_REMEMBERED = 10
_LONGEST = 400
_LARGEST_FILE = 256 * 1024
_FIELDS = ("theme", "recent_lists", "recent_models", "keys")
_NAMED_KEYS = frozenset(key.value for key in Keys)
_Remembered = TypeVar("_Remembered")
_NO_KEYS: Mapping[str, str] = MappingProxyType({})


class SettingsError(BatchpeakError):
    """The settings cannot be written; nothing of the file was changed."""

    exit_code = EXIT_USAGE


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting; the defaults where the file says nothing."""

    theme: str | None = None
    recent_lists: tuple[tuple[int, ...], ...] = ()
    """Batch lists, the last used first."""
    recent_models: tuple[str, ...] = ()
    """Model specs as typed, the last used first."""
    keymap: Mapping[str, str] = field(default_factory=lambda: _NO_KEYS)
    """Keys, separated by commas, by the id of the binding that they replace."""

    def with_theme(self, name: str) -> Settings:
        """The same with another theme."""
        return replace(self, theme=name)

    def with_list(self, sizes: tuple[int, ...]) -> Settings:
        """The same with a batch list put first; a list too long to be typed again is not remembered."""
        if not sizes or len(format_batch_sizes(sizes)) > _LONGEST:
            return self
        return replace(self, recent_lists=_first(sizes, self.recent_lists))

    def with_model(self, spec: str) -> Settings:
        """The same with a model put first."""
        if not spec or len(spec) > _LONGEST or not spec.isprintable():
            return self
        return replace(self, recent_models=_first(spec, self.recent_models))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings of a file, and everything in it that cannot be used."""

    settings: Settings
    problems: tuple[str, ...] = ()


def settings_path() -> Path:
    """Where the settings are: `batchpeak/settings.toml` in the user's configuration folder."""
    return Path(platformdirs.user_config_path("batchpeak")) / "settings.toml"


def themes_folder() -> Path:
    """Where a person's own themes are."""
    return Path(platformdirs.user_config_path("batchpeak")) / "themes"


def load(path: Path, binding_ids: Callable[[], Collection[str]] | None = None) -> Loaded:
    """The settings in a file. One that is not there gives the defaults; so does one that does not parse, which is told.

    `binding_ids` gives those that a key may be given to (None: any); it is asked only when the file has keys. A field that cannot be used is told and left at its
    default; the others are used.
    """
    try:
        table = _read(path)
    except SettingsError as error:
        return Loaded(Settings(), (f"{error.message} The defaults are used; the file stays as it is.",))
    problems = [f"{key}: unknown field" for key in table if key not in _FIELDS]
    settings = Settings(
        theme=_text(table, "theme", problems),
        recent_lists=_lists(table, problems),
        recent_models=_texts(table, "recent_models", problems),
        keymap=MappingProxyType(_keymap(table.get("keys", {}), binding_ids, problems)),
    )
    return Loaded(settings, tuple(safe_text(problem, limit=300) for problem in problems))


def save(settings: Settings, path: Path) -> None:
    """Write what is remembered (theme, recent lists and models) into the file; the rest of it stays as it is.

    Atomic, and readable by its owner only. Raises SettingsError where it cannot be written, or does not parse: then it
    is left alone, so that what a person wrote is not lost.
    """
    path = path.resolve()  # a link to a file kept elsewhere stays a link
    table = _read(path)
    wanted = dict(table)
    for key, value in _remembered(settings).items():
        if value:
            wanted[key] = value
        else:
            wanted.pop(key, None)
    if wanted == table:
        return
    try:
        before = path.read_text("utf-8") if table else ""
        _write(path, _edited(before, table, wanted))
    except OSError as error:
        raise SettingsError(
            f"{safe_text(str(path))} cannot be written: {error.strerror}.", title="the settings are not saved"
        ) from error


def check_keys(keys: str) -> str | None:
    """What is wrong with keys such as "r", "f5" or "r,ctrl+r"; None when nothing is."""
    for key in (part.strip() for part in keys.split(",")):
        name = key.lower() if "+" in key and len(key) > 1 else key
        if not key:
            return "a key is missing"
        if name in REFUSED_KEYS:
            return f"{key} is taken by terminals before it reaches a program"
        _, _, last = name.rpartition("+")
        plain = len(key) == 1 or name in _NAMED_KEYS
        modified = name != last and name.split("+")[0] in ("ctrl", "shift", "alt", "super", "meta", "hyper")
        if not plain and not modified and key_to_character(name) is None:
            return f"{key!r} is no key"
        if modified and not (len(last) == 1 or last in _NAMED_KEYS or key_to_character(last)):
            return f"{key!r} is no key"
    return None


def _first(value: _Remembered, others: tuple[_Remembered, ...]) -> tuple[_Remembered, ...]:
    return (value, *(other for other in others if other != value))[:_MOST_REMEMBERED]


def _remembered(settings: Settings) -> dict[str, Any]:
    return {
        "theme": settings.theme,
        "recent_lists": [format_batch_sizes(sizes) for sizes in settings.recent_lists],
        "recent_models": list(settings.recent_models),
    }


def _read(path: Path) -> dict[str, Any]:
    shown = safe_text(str(path))
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise SettingsError(f"{shown} is larger than 256 KiB.", title="the settings cannot be read")
        return tomllib.loads(content.decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{shown} is not TOML: {safe_text(str(error))}.",
            title="the settings cannot be read",
            remedy="Correct the file or remove it.",
        ) from error
    except OSError as error:
        raise SettingsError(
            f"{shown} cannot be read: {error.strerror}.", title="the settings cannot be read"
        ) from error


def _text(table: Mapping[str, Any], key: str, problems: list[str]) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        problems.append(f"{key}: must be text")
        return None
    return value


def _texts(table: Mapping[str, Any], key: str, problems: list[str]) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        problems.append(f"{key}: must be a list of texts")
        return ()
    return tuple(value[:_MOST_REMEMBERED])


def _lists(table: Mapping[str, Any], problems: list[str]) -> tuple[tuple[int, ...], ...]:
    lists = []
    for place, text in enumerate(_texts(table, "recent_lists", problems), start=1):
        try:
            lists.append(parse_batch_sizes(text, argument=f"recent_lists, entry {place}").sizes)
        except UsageError as error:
            problems.append(f"{error.argument}: {error.message}")
    return tuple(lists)


def _keymap(
    value: object, binding_ids: Callable[[], Collection[str]] | None, problems: list[str]
) -> dict[str, str]:
    keymap: dict[str, str] = {}
    taken: dict[tuple[str, str], str] = {}
    given = _flat(value, "", problems)
    known = binding_ids() if given and binding_ids is not None else None
    for name, keys in given:
        wrong = None
        if known is not None and name not in known:
            wrong = "no such action"
        elif not isinstance(keys, str):
            wrong = "must be text"
        else:
            wrong = check_keys(keys)
        if wrong is not None:
            problems.append(f"keys.{name}: {wrong}")
            continue
        scope = name.rpartition(".")[0]
        parts = [part.strip() for part in keys.split(",")]
        clash = next((taken[scope, part] for part in parts if (scope, part) in taken), None)
        if clash is not None:
            problems.append(f"keys.{name}: {keys} is given to {clash} already")
            continue
        taken |= {(scope, part): name for part in parts}
        keymap[name] = ",".join(parts)
    return keymap


def _flat(value: object, before: str, problems: list[str]) -> list[tuple[str, Any]]:
    """Ids with dots may be written quoted or as tables: "race.run" = "r", or [keys.race] run = "r"."""
    if not isinstance(value, dict):
        problems.append("keys: must be a table")
        return []
    flat: list[tuple[str, Any]] = []
    for key, inner in value.items():
        name = f"{before}{key}"
        flat += _flat(inner, f"{name}.", problems) if isinstance(inner, dict) else [(name, inner)]
    return flat


def _edited(before: str, table: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The text with only the lines changed whose values changed, so that comments stay.

    Where that does not give what is wanted (a list over several lines, say) the text is written anew without comments.
    """
    lines = before.splitlines()
    for key in ("theme", "recent_lists", "recent_models"):
        if table.get(key) == wanted.get(key):
            continue
        new = [f"{key} = {_inline(wanted[key])}"] if key in wanted else []
        end = next((place for place, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
        found = [place for place in range(end) if re.match(rf"\s*{key}\s*=", lines[place])]
        at = found[0] if found else min(end, len(lines))
        lines[at : at + len(found[:1])] = new
    text = "\n".join(lines) + "\n"
    try:
        if tomllib.loads(text) == wanted:
            return text
    except tomllib.TOMLDecodeError:
        pass
    return tomli_w.dumps(wanted)


def _inline(value: str | list[str]) -> str:
    if isinstance(value, str):
        return tomli_w.dumps({"x": value}).partition("=")[2].strip()
    return "[" + ", ".join(_inline(entry) for entry in value) + "]"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        prefix=f".{path.name}.", dir=path.parent
    )  # made readable by its owner only
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
