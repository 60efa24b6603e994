"""Writes to the terminal only what changes on it. Pure: text in, less text out, the same screen.

Textual writes a whole line, or all of the screen, when a part of it changed, and sets and resets the colours of every
piece anew: 20 KB for a dialog on 80x24, almost a second on a line of 25 KB/s. Here it is known what the terminal
shows; of what is written, the cells that differ go out, with the shortest change of cursor and colours.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rich.cells import get_character_cell_size

_TOKEN = re.compile(
    r"\x1b\[(?P<row>\d+);(?P<column>\d+)H"
    r"|\x1b\[(?P<style>[\d;]*)m"
    r"|(?P<text>[^\x00-\x1f\x7f]+)"
    r"|\n(?=\x1b\[\d+;\d+H)"  # followed by a move: it goes nowhere itself
    r"|(?P<harmless>\x1b\[\?(?!1049|1047|47|5|6|7|69)\d+(?:[hl]|\$p)|\x1b\](?!8;)[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[<>=]\d*u)"
    r"|(?P<other>\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|.)",
    re.DOTALL,
)
_GAP = 7
"""Cells that did not change are written again when a move over them would be as long."""

Cell = tuple[str, str]
"""The character, and the parameters of its style as SGR takes them ("" for the terminal's default)."""
_Style = tuple[frozenset[str], str, str]


class LeanOutput:
    """Knows what the terminal shows, as far as this was written through here since the last `forget`."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, Cell]] = {}
        self._at: tuple[int, int] | None = None
        """Where the next character is to go, 1-based; None: unknown, so all is passed on until the next move."""
        self._sent_at: tuple[int, int] | None = None
        self._style = ""
        self._sent_style: str | None = None
        """None: unknown, whatever program wrote last may have left it."""
        self._size: tuple[int, int] | None = None
        self._out: list[str] = []

    def forget(self, columns: int | None = None, rows: int | None = None) -> None:
        """The terminal may show anything: after a resize, and when something else wrote to it. Its size, if that is known."""
        self._rows.clear()
        self._at = self._sent_at = None
        self._sent_style = None
        if columns is not None and rows is not None:
            self._size = columns, rows

    def lean(self, data: str) -> str:
        """What must be sent so that the terminal shows what it would after `data`."""
        self._out = []
        for token in _TOKEN.finditer(data):
            kind = token.lastgroup
            if kind == "text":
                self._write(token[0])
            elif kind == "style":
                given = token["style"].strip(";")
                fresh = not given or given == "0" or given.startswith("0;") or not self._style
                self._style = given.removeprefix("0;") if fresh else f"{self._style};{given}"
                if self._style == "0":
                    self._style = ""
            elif kind == "column":
                self._at = (int(token["row"]), int(token["column"]))
            elif kind == "harmless":
                self._out.append(token[0])
            elif kind == "other":
                self._pass_on(token[0])
        if self._at is not None:
            self._move(self._at)
        if self._sent_style:
            self._set_style("")
        return "".join(self._out)

    def _pass_on(self, sequence: str) -> None:
        """Something that may do anything to the screen."""
        if self._at is not None:
            self._move(self._at)
        self._set_style(self._style)
        self._out.append(sequence)
        self.forget()

    def _write(self, text: str) -> None:
        if self._at is None:
            # Where this goes is not known, so it may be on any row.
            self._rows.clear()
            self._set_style(self._style)
            self._out.append(text)
            return
        row, column = self._at
        if self._size is not None and (row > self._size[1] or column + len(text) - 1 > self._size[0]):
            # Drawn for another size than the terminal has by now: it lands wherever the terminal puts it.
            self._move(self._at)
            self._set_style(self._style)
            self._out.append(text)
            self._rows.clear()
            self._at = self._sent_at = None
            return
        shown = self._rows.setdefault(row, {})
        if not text.isascii() and not _one_column_each(text):
            # Wide and combined characters: terminals do not agree on their width, so the row is unknown from here on.
            self._move(self._at)
            self._set_style(self._style)
            self._out.append(text)
            shown.clear()
            self._at = self._sent_at = None
            return
        style = self._style
        cells = [(character, style) for character in text]
        differs = [place for place, cell in enumerate(cells) if shown.get(column + place) != cell]
        if differs:
            begin = before = differs[0]
            for place in (*differs[1:], len(cells) + _GAP):
                if place - before >= _GAP:
                    self._move((row, column + begin))
                    self._set_style(style)
                    self._out.append(text[begin : before + 1])
                    self._sent_at = (row, column + before + 1)
                    begin = place
                before = place
            shown.update(enumerate(cells, column))
        self._at = (row, column + len(text))

    def _move(self, to: tuple[int, int]) -> None:
        if self._sent_at != to:
            self._out.append(f"\x1b[{to[0]};{to[1]}H")
            self._sent_at = to

    def _set_style(self, style: str) -> None:
        if style != self._sent_style:
            self._out.append(style_change(self._sent_style, style))
            self._sent_style = style


def _one_column_each(text: str) -> bool:
    return text.isprintable() and all(get_character_cell_size(character) == 1 for character in text)


@lru_cache(maxsize=4096)
def style_change(before: str | None, after: str) -> str:
    """The shortest sequence from one style to another; None is one that nobody knows."""
    if not after:
        return "\x1b[m"
    if before is None:
        return f"\x1b[0;{after}m"
    (old, old_ink, old_paper), (new, ink, paper) = _parsed(before), _parsed(after)
    if not old <= new or (old_ink and not ink) or (old_paper and not paper):
        return f"\x1b[0;{after}m"
    changed = sorted(new - old)
    changed += [ink] if ink != old_ink else []
    changed += [paper] if paper != old_paper else []
    return f"\x1b[{';'.join(changed)}m" if changed else ""


def _parsed(style: str) -> _Style:
    """Attributes, foreground and background; what is none of these counts as an attribute."""
    attributes, ink, paper = set(), "", ""
    parts = style.split(";") if style else []
    while parts:
        part = parts.pop(0)
        if part in ("38", "48"):
            length = {"5": 2, "2": 4}.get(parts[0] if parts else "", 0)
            part, parts = ";".join((part, *parts[:length])), parts[length:]
        if part.startswith("38;") or part in _INKS:
            ink = part
        elif part.startswith("48;") or part in _PAPERS:
            paper = part
        else:
            attributes.add(part)
    return frozenset(attributes), ink, paper


_INKS = frozenset(str(code) for code in (*range(30, 38), 39, *range(90, 98)))
_PAPERS = frozenset(str(code) for code in (*range(40, 48), 49, *range(100, 108)))
