"""One theme file: its fields checked one by one, and what the interface and the charts take from it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme as TextualTheme

from tui.terminal import safe_text

PREFIX = "bp-"
"""Put before the names of our CSS variables, so that none of Textual's is hit: `$bp-throughput`, `$bp-oom`."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_ATTRIBUTES = frozenset({"bold", "dim", "italic", "underline", "reverse"})
_FLAGS = ("dark", "ansi")
_INTERFACE = (
    "background",
    "foreground",
    "primary",
    "secondary",
    "accent",
    "surface",
    "panel",
    "success",
    "warning",
    "error",
)
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "interface": (*_INTERFACE, "cursor"),
    "chart": ("throughput", "latency", "previous", "axis", "label"),
    "marks": ("peak", "knee", "limit"),
    "states": ("measuring", "stable", "noisy", "short", "oom", "error", "skipped", "cancelled"),
}
_REQUIRED = (
    ("interface", "background"),
    ("interface", "foreground"),
    ("interface", "primary"),
    ("chart", "throughput"),
    ("chart", "latency"),
)


@dataclass(frozen=True, slots=True)
class Palette:
    """The styles that charts, tables and lanes paint with; hashable, so that a picture can be cached by it."""

    throughput: Style
    latency: Style
    previous: Style
    axis: Style
    label: Style
    dim: Style
    peak: Style
    knee: Style
    limit: Style
    measuring: Style
    stable: Style
    noisy: Style
    short: Style
    oom: Style
    error: Style
    skipped: Style
    cancelled: Style

    def state(self, word: str) -> Style:
        """The style of a state's word; the plain one for a word that is no state."""
        style: Style = getattr(self, word) if word in _SECTIONS["states"] else Style.null()
        return style


@dataclass(frozen=True, slots=True)
class Theme:
    """A theme, checked: Textual's part of it and ours."""

    name: str
    description: str
    textual: TextualTheme
    palette: Palette
    source: str
    """`batchpeak` for those that come with the program, else the file's path."""

    @property
    def ansi(self) -> bool:
        """Whether it uses the terminal's own colours."""
        return self.textual.ansi


@dataclass(frozen=True, slots=True)
class ThemeProblems:
    """Everything that is wrong with one theme file."""

    source: str
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.source}: {'; '.join(self.problems)}"


class _FaultsError(Exception):
    """All failures of one file."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__()
        self.problems = tuple(problems)


def parse_theme(text: str, source: str) -> Theme | ThemeProblems:
    """The theme that a TOML text describes, or everything that is wrong with it."""
    try:
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _FaultsError([f"not TOML: {error}"]) from error
        return _build(table, source)
    except _FaultsError as faults:
        return ThemeProblems(source, tuple(safe_text(problem) for problem in faults.problems))


@dataclass(frozen=True, slots=True)
class _Paint:
    """A parsed style: text attributes, a colour (None: the terminal's or theme's own) and one behind."""

    attributes: tuple[str, ...] = ()
    colour: Color | None = None
    behind: Color | None = None

    def style(self) -> Style:
        words = Style.parse(" ".join(self.attributes)) if self.attributes else Style()
        return words + Style.from_color(
            self.colour.rich_color if self.colour else None, self.behind.rich_color if self.behind else None
        )


def _build(table: dict[str, object], source: str) -> Theme:
    problems = [*_unknown(table), *_missing(table)]
    name = table.get("name")
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        problems.append("name: letters, digits, - and _ only, at most 40")
    description = table.get("description", "")
    if not isinstance(description, str):
        problems.append("description: must be text")
    flags = {}
    for flag in _FLAGS:
        flags[flag] = table.get(flag, False)
        if not isinstance(flags[flag], bool):
            problems.append(f"{flag}: must be true or false")
    paints: dict[tuple[str, str], _Paint] = {}
    for section, known in _SECTIONS.items():
        entries = table.get(section, {})
        if not isinstance(entries, dict):
            problems.append(f"{section}: must be a table")
            continue
        for key in known:
            if key in entries:
                try:
                    paints[section, key] = _parse_paint(
                        entries[key], plain=section == "interface" and key != "cursor"
                    )
                except ValueError as error:
                    problems.append(f"{section}.{key}: {error}")
    if problems:
        raise _FaultsError(problems)
    palette_paints = _palette_paints(paints)
    return Theme(
        name=str(name),
        description=safe_text(str(description), limit=80),
        textual=_textual_theme(str(name), flags, paints, palette_paints),
        palette=Palette(**{key: paint.style() for key, paint in palette_paints.items()}),
        source=source,
    )


def _unknown(table: Mapping[str, object]) -> Iterable[str]:
    for key, value in table.items():
        if key in _SECTIONS and isinstance(value, dict):
            for inner in value:
                if inner not in _SECTIONS[key]:
                    yield f"{key}.{inner}: unknown field"
        elif key not in ("name", "description", *_FLAGS, *_SECTIONS):
            yield f"{key}: unknown field"


def _missing(table: Mapping[str, object]) -> Iterable[str]:
    for key in ("name", "dark"):
        if key not in table:
            yield f"{key}: missing"
    for section, key in _REQUIRED:
        entries = table.get(section, {})
        if isinstance(entries, dict) and key not in entries:
            yield f"{section}.{key}: missing"


def _parse_paint(value: object, *, plain: bool) -> _Paint:
    """A colour, with text attributes before it unless `plain`: "#ffcc00", "bold #ffcc00", "bold none", "reverse"."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a colour, as text")
    front, behind = value.strip(), None
    if not plain and " on " in f" {front}":
        front, _, back = f" {front}".partition(" on ")
        behind = _parse_colour(back)
    words = front.split()
    attributes = []
    while words and words[0] in _ATTRIBUTES and not plain:
        attributes.append(words.pop(0))
    colour = _parse_colour(" ".join(words)) if words else None
    return _Paint(tuple(attributes), colour, behind)


def _parse_colour(text: str) -> Color | None:
    text = text.strip()
    if text == "none":
        return None
    try:
        colour = Color.parse(text)
    except ColorParseError as error:
        raise ValueError(f"{text!r} is no colour") from error
    if colour.auto or colour.a < 1:
        raise ValueError(f"{text!r} must be a colour that covers what is under it")
    return colour


def _palette_paints(paints: Mapping[tuple[str, str], _Paint]) -> dict[str, _Paint]:
    """Every style of the palette: as written, else derived from what the theme must have."""

    def first(*keys: tuple[str, str], attributes: tuple[str, ...] = ()) -> _Paint:
        for key in keys:
            if key in paints:
                found = paints[key]
                return _Paint(found.attributes or attributes, found.colour, found.behind)
        return _Paint(attributes)

    foreground = ("interface", "foreground")
    dim = first(
        ("chart", "previous"), foreground, attributes=() if ("chart", "previous") in paints else ("dim",)
    )
    return {
        "throughput": first(("chart", "throughput")),
        "latency": first(("chart", "latency")),
        "previous": dim,
        "axis": first(("chart", "axis"), foreground),
        "label": first(("chart", "label"), foreground),
        "dim": dim,
        "peak": first(
            ("marks", "peak"), ("interface", "accent"), ("chart", "throughput"), attributes=("bold",)
        ),
        "knee": first(("marks", "knee"), ("interface", "success"), foreground, attributes=("bold",)),
        "limit": first(("marks", "limit"), ("interface", "warning"), foreground),
        "measuring": first(("states", "measuring"), foreground, attributes=("italic",)),
        "stable": first(("states", "stable"), ("interface", "success"), foreground),
        "noisy": first(("states", "noisy"), ("interface", "warning"), foreground),
        "short": first(("states", "short"), ("interface", "warning"), foreground),
        "oom": first(("states", "oom"), ("interface", "error"), foreground, attributes=("bold",)),
        "error": first(("states", "error"), ("interface", "error"), foreground, attributes=("bold",)),
        "skipped": first(("states", "skipped"), attributes=dim.attributes)
        if ("states", "skipped") in paints
        else dim,
        "cancelled": first(("states", "cancelled")) if ("states", "cancelled") in paints else dim,
    }


def _textual_theme(
    name: str,
    flags: Mapping[str, object],
    paints: Mapping[tuple[str, str], _Paint],
    palette: Mapping[str, _Paint],
) -> TextualTheme:
    colours = {
        key: _css(paint.colour)
        for (section, key), paint in paints.items()
        if section == "interface" and key != "cursor"
    }
    colourless = all(value == "ansi_default" for value in colours.values())
    theme = TextualTheme(
        name=name,
        dark=bool(flags["dark"]),
        ansi=bool(flags["ansi"]),
        primary=colours["primary"],
        secondary=colours.get("secondary"),
        warning=colours.get("warning"),
        error=colours.get("error"),
        success=colours.get("success"),
        accent=colours.get("accent"),
        foreground=colours["foreground"],
        background=colours["background"],
        surface=colours.get("surface"),
        panel=colours.get("panel"),
    )
    variables = {f"{PREFIX}{key}": _css(paint.colour) for key, paint in palette.items()}
    if theme.ansi:
        variables |= _ansi_variables(theme, colourless=colourless)
    cursor = paints.get(("interface", "cursor"))
    if cursor is not None:
        variables |= {
            "block-cursor-text-style": " ".join(cursor.attributes) or "none",
            "block-cursor-foreground": _css(cursor.colour),
            "block-cursor-background": _css(cursor.behind),
        }
    theme.variables = variables
    return theme


def _ansi_variables(theme: TextualTheme, *, colourless: bool) -> dict[str, str]:
    """Textual's own choice of the sixteen colours replaced where it is unreadable on white or on black, or unwanted."""
    if colourless:
        generated = theme.to_color_system().generate()
        chosen = {
            key: "ansi_default"
            for key, value in generated.items()
            if "ansi_" in value or value == "transparent"
        }
    else:
        chosen = {
            "border": theme.primary,
            "border-blurred": "ansi_default",
            "footer-key-foreground": theme.primary,
            "scrollbar": theme.primary,
            "scrollbar-hover": theme.primary,
            "scrollbar-active": theme.primary,
            "scrollbar-background": "ansi_default",
            "scrollbar-background-hover": "ansi_default",
            "scrollbar-background-active": "ansi_default",
            "text-muted": "ansi_default",
            "text-disabled": "ansi_default",
            "foreground-muted": "ansi_default",
        }
    return chosen | {
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "block-cursor-blurred-text-style": "underline",
        "input-cursor-text-style": "reverse",
        "input-selection-foreground": "ansi_default",
        "button-focus-text-style": "b reverse",
    }


def _css(colour: Color | None) -> str:
    return "ansi_default" if colour is None else colour.hex
