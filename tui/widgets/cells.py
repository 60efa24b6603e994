"""Rows of cells, each a character and the role that says how it looks; charts are put together from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from tui.terminal import Charset, safe_text

Cell = tuple[str, str]
"""A character, one column wide, and its role."""


def write_on_blank(row: list[Cell], begin: int, label: str, role: str, *, gap: int = 0) -> bool:
    """Write over blanks only, with `gap` blanks (or the row's end) around; False when something is there."""
    around = row[max(begin - gap, 0) : begin + len(label) + gap]
    if any(character not in " │" for character, _ in around[:gap] + around[-gap:]) or any(
        character != " " for character, _ in row[begin : begin + len(label)]
    ):
        return False
    row[begin : begin + len(label)] = [(character, role) for character in label]
    return True


def runs(row: Sequence[Cell]) -> Iterator[tuple[str, str]]:
    """Cells joined where neighbours have the same role; blanks join whatever is before them."""
    text, role = "", ""
    for character, its_role in row:
        if text and its_role != role and character != " ":
            yield text, role
            text = ""
        if not text or character != " ":
            role = its_role
        text += character
    if text:
        yield text, role


def put(row: list[Cell], start: int, parts: Sequence[tuple[str, str]]) -> int:
    """Write parts into a row as far as it goes; returns the column after them."""
    for text, role in parts:
        for character in text:
            if 0 <= start < len(row):
                row[start] = (character, role)
            start += 1
    return start


def length(parts: Sequence[tuple[str, str]]) -> int:
    return sum(len(text) for text, _ in parts)


def narrow(text: str, limit: int = 24, charset: Charset = "unicode") -> str:
    """The text safe, cut, and one column per character."""
    return "".join(c if cell_len(c) == 1 else "?" for c in safe_text(text, charset, limit))
