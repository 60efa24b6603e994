"""The keys of the screens and the words of the tables, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from rich.text import Text
from textual import actions
from textual.binding import ActiveBinding, Binding, BindingType
from textual.dom import DOMNode
from textual.widget import Widget
from textual.widgets import Static

from tui.screens.dialog import Dialog

WORDS: tuple[tuple[str, str], ...] = (
    ("batch", "images per call"),
    ("images/s", "throughput: images processed / wall time of the timed calls"),
    ("±", "half width of the throughput's 95 % interval"),
    ("p50, p99", "half, 99 % of the calls took at most this long; — when too few calls were timed to say"),
    ("ms/image", "wall time of a call / its images"),
    ("peak", "the batch size with the highest throughput; ties are those that cannot be told from it"),
    ("knee", "the smallest size that surely reaches 95 % of the peak: usually the one to deploy"),
    ("limit", "the latency that a percentile of the calls must stay under"),
    ("stable", "enough blocks, and the interval is as narrow as asked for"),
    ("noisy", "the time is up and the interval is still wide: it is shown as wide as it is"),
    ("short", "too few blocks for an interval; none is invented"),
    ("oom", "did not fit in memory; larger sizes are skipped"),
)


@runtime_checkable
class SaysWhyNot(Protocol):
    """What has actions and knows why one of them is impossible at the moment."""

    def why_not(self, action: str, parameters: tuple[object, ...] = ()) -> str:
        """The reason in a few words; empty when it is possible."""


class Help(Dialog[None]):
    """Two lists: keys and what they do here, and what the words mean."""

    HEADING = "Keys and words"
    KEYS = "up, down scroll   escape close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q", "close", "close", id="help.close", tooltip="Close the help"),
        Binding("down,j", "scroll(1)", "down", id="help.down", show=False, tooltip="Scroll down"),
        Binding("up,k", "scroll(-1)", "up", id="help.up", show=False, tooltip="Scroll up"),
        Binding("pagedown", "scroll(10)", "page down", id="help.page-down", show=False, tooltip="Page down"),
        Binding("pageup", "scroll(-10)", "page up", id="help.page-up", show=False, tooltip="Page up"),
    ]

    def __init__(
        self, bindings: Iterable[ActiveBinding], asleep: Mapping[str, Sequence[Binding]] | None = None
    ) -> None:
        super().__init__()
        self._asleep = asleep or {}
        sleeping = {binding.id for grouped in self._asleep.values() for binding in grouped}
        listed = [
            active.binding
            for active in bindings
            if active.binding.id and active.binding.tooltip and active.binding.id not in sleeping
        ]
        # What is on the last line of the screen comes first, moving in the table last.
        self._listed = sorted(
            listed, key=lambda binding: (not binding.show, (binding.id or "").startswith("table."))
        )

    def body(self) -> Iterable[Widget]:
        keys: dict[str, tuple[list[str], str]] = {}
        for binding in self._listed:
            keys.setdefault(binding.id or "", ([], binding.tooltip))[0].append(
                self.app.get_key_display(binding)
            )
        yield Static(_columns([(", ".join(shown), told) for shown, told in keys.values()]), id="help-keys")
        for why, grouped in self._asleep.items():
            shown = [(self.app.get_key_display(binding), binding.tooltip) for binding in grouped]
            text = Text(f"Not possible at the moment ({why}):\n")
            text.append_text(_columns(shown))
            yield Static(text, classes="help-asleep")
        yield Static(_columns(WORDS), id="help-words")

    def action_scroll(self, lines: int) -> None:
        self.query_one(".dialog-body").scroll_relative(y=lines, animate=False)


def impossible(*nodes: DOMNode) -> dict[str, list[Binding]]:
    """The keys that can do nothing at the moment, as the person's key map has them, under the reason why."""
    found: dict[str, dict[str, Binding]] = {}
    for node in nodes:
        if not isinstance(node, SaysWhyNot):
            continue
        for _, binding in node._bindings:  # noqa: SLF001 - with the key map applied; nothing public has those
            if not binding.id or not binding.tooltip:
                continue
            _, action, parameters = actions.parse(binding.action)
            if why := node.why_not(action, parameters):
                found.setdefault(why, {}).setdefault(binding.id, binding)
    return {why: list(grouped.values()) for why, grouped in found.items()}


def _columns(rows: Sequence[tuple[str, str]]) -> Text:
    width = max((len(name) for name, _ in rows), default=0)
    text = Text()
    for name, meaning in rows:
        text.append(f"{name:>{width}}", "bold")
        text.append(f"  {meaning}\n")
    text.rstrip()
    return text
