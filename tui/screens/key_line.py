"""The last line of a screen: the keys that do something now, as many as fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.screen import Screen
from textual.widget import Widget

_GAP, _NARROW_GAP = "  ", " "
_ALWAYS = frozenset({"help", "quit", "cancel", "pause"})
"""Words of the keys that stay when there is no room for all."""


class KeyLine(Widget):
    """One line of keys and what they do. Draws only when that changed; a click does what the key does."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-line--key"}
    DEFAULT_CSS = """
    KeyLine { height: 1; dock: bottom; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[tuple[str, str, str], ...] = ()

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if screen is self.screen and (keys := self._possible()) != self._keys:
            self._keys = keys
            self.refresh()

    def _possible(self) -> tuple[tuple[str, str, str], ...]:
        """Key, its display and its word for each enabled binding that is to be shown; one entry per action."""
        found: dict[str, tuple[str, str, str]] = {}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if binding.show and active.enabled and binding.id is not None:
                entry = (binding.key, self.app.get_key_display(binding), binding.description)
                found.setdefault(binding.id, entry)
        declared = [
            getattr(binding, "id", None) for node in (self.screen, self.app) for binding in node.BINDINGS
        ]
        # A key of the person's own stands where the key that it replaces stood.
        return tuple(found[name] for name in sorted(found, key=lambda name: _place(declared, name)))

    def render(self) -> Text:
        """As many keys as fit; those of `_ALWAYS` are among them."""
        key_style = self.get_visual_style("key-line--key").rich_style
        entries, gap = list(self._keys), _GAP
        while entries and self._width(entries, gap) > self.size.width:
            # Closer together before any is left out.
            if gap == _GAP and self._width(entries, _NARROW_GAP) <= self.size.width:
                gap = _NARROW_GAP
                break
            droppable = [entry for entry in entries if entry[2] not in _ALWAYS]
            if not droppable:
                break
            entries.remove(droppable[-1])
        text = Text(no_wrap=True, overflow="crop")
        for key, shown, word in entries:
            start = len(text)
            text.append(shown, key_style)
            text.append(f" {word}")
            text.stylize(Style(meta={"@click": f"app.simulate_key('{key}')"}), start)
            text.append(gap)
        return text

    @staticmethod
    def _width(entries: Sequence[tuple[str, str, str]], gap: str) -> int:
        return sum(len(shown) + len(word) + 1 + len(gap) for _, shown, word in entries) - len(gap)


def _place(names: list[str | None], name: str) -> int:
    return names.index(name) if name in names else len(names)
