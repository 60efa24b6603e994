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


class DialogBody(VerticalScroll, inherit_bindings=False):
    """Scrolls to what has the focus. It has no keys of its own: up and down go from field to field, however long the body."""


class Dialog(ModalScreen[Answer | None]):
    """A titled box over the screen. Escape closes it with None, so that nothing changes."""

    HEADING: str = ""
    KEYS: str = "escape close"
    ROWS_BELOW: ClassVar[int] = 0
    """Rows kept for what stays in sight under the body, with the empty one before it."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", id="dialog.close", tooltip="Close without changing anything"),
    ]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(self.HEADING), classes="dialog-title")
            with DialogBody(classes="dialog-body", can_focus=False):
                yield from self.body()
            yield from self.below()
            yield Static(Text(self.KEYS), classes="dialog-keys")

    def on_resize(self) -> None:
        """Let the body scroll before the lines under it leave the screen: border, title and keys take six rows."""
        room = max(self.size.height - 6 - self.ROWS_BELOW, 1)
        self.query_one(".dialog-body").styles.max_height = room

    def body(self) -> Iterable[Widget]:
        """The widgets between the title and the keys."""
        return ()

    def below(self) -> Iterable[Widget]:
        """What stays in sight under the body, however long that is."""
        return ()

    def action_close(self) -> None:
        self.dismiss(None)
