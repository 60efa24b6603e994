"""One of a few words, all of them on one line: the chosen one stands in brackets, so that no colour is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class Choice(Widget, can_focus=True):
    """Left and right move the brackets. `value` is the chosen word."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"choice--chosen"}
    DEFAULT_CSS = "Choice { height: 1; width: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "before", id="choice.before", show=False, tooltip="The choice before"),
        Binding("right,space", "move(1)", "next", id="choice.next", show=False, tooltip="The next choice"),
    ]

    index: reactive[int] = reactive(0)

    class Changed(Message):
        """Another word was chosen."""

    def __init__(self, options: Sequence[str], value: str, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.options = tuple(options) if value in options else (*options, value)
        self.set_reactive(Choice.index, self.options.index(value))

    @property
    def value(self) -> str:
        return self.options[self.index]

    def offer(self, options: Sequence[str]) -> None:
        """List other words; the chosen one stays chosen, and stays listed."""
        value = self.value
        self.options = tuple(options) if value in options else (*options, value)
        self.index = self.options.index(value)
        self.refresh()

    def action_move(self, step: int) -> None:
        self.index = (self.index + step) % len(self.options)
        self.post_message(self.Changed())

    def render(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        chosen = self.get_visual_style("choice--chosen").rich_style
        for number, option in enumerate(self.options):
            if number == self.index:
                text.append(f"[{option}]", chosen)
            else:
                text.append(f" {option} ")
        return text
