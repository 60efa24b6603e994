"""An error as a dialog: its title, what happened, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Static

from engine.errors import BatchpeakError, WorkerLostError
from tui.screens.dialog import Dialog
from tui.terminal import safe_text


class FailureDialog(Dialog[None]):
    """Shows one error; the table behind it stays."""

    KEYS = "enter close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,q", "close", "close", id="failure.close", tooltip="Back to the table"),
    ]

    def __init__(self, error: BatchpeakError) -> None:
        self.HEADING = safe_text(error.title[:1].upper() + error.title[1:], limit=120)
        super().__init__(classes="failure")
        self._error = error

    def body(self) -> Iterable[Widget]:
        yield Static(Text(safe_text(self._error.message, limit=4000, lines=True)), id="failure-message")
        if isinstance(self._error, WorkerLostError) and self._error.last_lines:
            lines = "\n".join(safe_text(line, limit=400) for line in self._error.last_lines)
            yield Static(Text(f"Its last lines:\n{lines}"), id="failure-lines")
        if self._error.remedy:
            yield Static(Text(safe_text(self._error.remedy, limit=1000, lines=True)), id="failure-remedy")
