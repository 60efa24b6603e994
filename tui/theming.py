"""Themes: those that come with the program, a person's own, and which one to start with.

How the app uses it: load once with `load_themes`, register every `Theme.textual` in `App.__init__`, return
`variable_defaults()` from `get_theme_variable_defaults`, and hand `Theme.palette` to the chart and the tables.
When NO_COLOR is set and not empty: take the theme named `NO_COLOUR`, and pass `ansi_color=True` to `App.__init__`
(Textual would otherwise still send shades of grey). When it is set but empty, remove it from `os.environ` before the
app is made: Textual looks only at whether it is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from tui.terminal import safe_text
from tui.theme_file import PREFIX, Palette, Theme, ThemeProblems, parse_theme

__all__ = [
    "DEFAULT",
    "NO_COLOUR",
    "PREFIX",
    "Palette",
    "Theme",
    "ThemeProblems",
    "Themes",
    "load_themes",
    "parse_theme",
    "variable_defaults",
]

DEFAULT = "dark"
NO_COLOUR = "no-colour"
_LARGEST_FILE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Themes:
    """The themes that can be used, by name, and what is wrong with the files that cannot."""

    by_name: Mapping[str, Theme]
    problems: tuple[ThemeProblems, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Ours in their order, then the person's own."""
        return tuple(self.by_name)

    def get(self, name: str | None) -> Theme:
        """The theme of that name; the default one when there is none."""
        return self.by_name.get(name or DEFAULT, self.by_name[DEFAULT])

    def choose(self, name: str | None, *, no_colour: bool) -> Theme:
        """The theme to start with: NO_COLOR wins over what was remembered."""
        return self.get(NO_COLOUR if no_colour else name)


def load_themes(user_folder: Path | None = None) -> Themes:
    """The themes that come with the program and those in the person's own folder.

    A file of one's own replaces a bundled theme of the same name. Files that cannot be used are left out and told in
    `problems`, one entry per file with all its failures. A folder that is not there is no problem.
    """
    bundled = resources.files("themes")
    by_name: dict[str, Theme] = {}
    problems: list[ThemeProblems] = []
    _load_into(by_name, problems, _toml_files(bundled.iterdir()), own=False)
    by_name = dict(sorted(by_name.items(), key=lambda item: (item[0] != DEFAULT, item[0])))
    if user_folder is not None and user_folder.is_dir():
        try:
            found = _toml_files(user_folder.iterdir())
        except OSError as error:
            problems.append(
                ThemeProblems(safe_text(str(user_folder)), (f"cannot be read: {error.strerror}",))
            )
        else:
            _load_into(by_name, problems, found, own=True)
    return Themes(MappingProxyType(by_name), tuple(problems))


def variable_defaults() -> dict[str, str]:
    """Values of our CSS variables for a theme that is not ours, for `App.get_theme_variable_defaults`."""
    return {f"{PREFIX}{entry.name}": "ansi_default" for entry in fields(Palette)}


def _toml_files(entries: Iterable[Traversable]) -> list[Traversable]:
    return sorted((entry for entry in entries if entry.name.endswith(".toml")), key=lambda entry: entry.name)


def _load_into(
    by_name: dict[str, Theme], problems: list[ThemeProblems], files: Iterable[Traversable], *, own: bool
) -> None:
    taken: dict[str, str] = {}
    for file in files:
        source = safe_text(str(file)) if own else "batchpeak"
        try:
            with file.open("rb") as stream:
                content = stream.read(_LARGEST_FILE + 1)
            text = content.decode("utf-8")
        except OSError as error:
            problems.append(ThemeProblems(source, (f"cannot be read: {error.strerror}",)))
            continue
        except UnicodeDecodeError:
            problems.append(ThemeProblems(source, ("not UTF-8 text",)))
            continue
        if len(content) > _LARGEST_FILE:
            problems.append(ThemeProblems(source, (f"larger than {_LARGEST_FILE // 1024} KiB",)))
            continue
        theme = parse_theme(text, source)
        if isinstance(theme, ThemeProblems):
            problems.append(theme)
        elif theme.name in taken:
            problems.append(
                ThemeProblems(source, (f"the name {theme.name!r} is taken by {taken[theme.name]}",))
            )
        else:
            taken[theme.name] = source
            by_name[theme.name] = theme
