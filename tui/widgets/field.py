"""A line to type in: what is typed, pasted or suggested there cannot steer the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from textual.suggester import SuggestFromList
from textual.widgets import Input

from tui.terminal import safe_text


class Field(Input):
    """An input of one line without a blinking cursor; its value never holds a control character.

    Textual draws an input's value and its suggestion as they are, so a paste or a remembered name could reach the
    terminal as a command. Names that cannot be shown as they are, are not suggested: they could not be typed either.
    """

    def __init__(
        self,
        value: str = "",
        *,
        id: str,  # noqa: A002 - Textual's name
        placeholder: str = "",
        suggestions: Sequence[str] = (),
    ) -> None:
        shown = [name for name in suggestions if safe_text(name) == name]
        super().__init__(
            safe_text(value),
            placeholder=placeholder,
            id=id,
            compact=True,
            select_on_focus=False,
            suggester=SuggestFromList(shown) if shown else None,
        )
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        return safe_text(value)
