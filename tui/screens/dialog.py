"""The frame of every dialog: a title, a body that scrolls, and one line naming its keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer | None]):
    """A titled box over the screen. Escape closes it with None, so that nothing changes."""

    HEADING: str = ""
    KEYS: str = "escape close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", id="dialog.close", tooltip="Close without changing anything"),
    ]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(self.HEADING), classes="dialog-title")
            with VerticalScroll(classes="dialog-body", can_focus=False):
                yield from self.body()
            yield Static(Text(self.KEYS), classes="dialog-keys")

    def body(self) -> Iterable[Widget]:
        """The widgets between the title and the keys."""
        return ()

    def action_close(self) -> None:
        self.dismiss(None)
