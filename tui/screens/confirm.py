"""One question with yes and no; anything but a clear yes is no."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Static

from tui.screens.dialog import Dialog


class Confirm(Dialog[bool]):
    """Answers True for yes, False or None for no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "yes", "yes", id="confirm.yes", tooltip="Do it"),
        Binding("n,q", "no", "no", id="confirm.no", tooltip="Leave it as it is"),
    ]

    def __init__(self, question: str, detail: str, *, yes: str) -> None:
        self.HEADING = question
        self.KEYS = f"y {yes}   n go on"
        super().__init__()
        self._detail = detail

    def body(self) -> Iterable[Widget]:
        yield Static(Text(self._detail))

    def action_yes(self) -> None:
        self.dismiss(True)

    def action_no(self) -> None:
        self.dismiss(False)
