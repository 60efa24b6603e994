"""The command palette: every action that is possible now, by its name, with the key that does the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

_HIDDEN = frozenset({"commands", "interrupt"})


class KeyCommands(Provider):
    """Offers the screen's and the app's bindings; nothing is in the palette that has no key."""

    def _possible(self) -> Iterator[tuple[str, str, str, str]]:
        """Name, explanation, key and action of each binding that is enabled now."""
        seen: set[str] = set()
        # What the last line names comes first, then the rest; the table's motions are keys alone.
        ordered = sorted(self.screen.active_bindings.values(), key=lambda active: not active.binding.show)
        for active in ordered:
            binding = active.binding
            if binding.id is None or binding.id in _HIDDEN or binding.id in seen or not active.enabled:
                continue
            if binding.id.startswith("table."):
                continue
            seen.add(binding.id)
            yield binding.description, active.tooltip, self.app.get_key_display(binding), binding.action

    async def discover(self) -> Hits:
        """Everything, before anything is typed."""
        for name, explanation, key, action in self._possible():
            yield DiscoveryHit(
                Text(f"{name}  [{key}]"),
                partial(self._do, action),
                text=name,
                help=explanation or None,
            )

    async def search(self, query: str) -> Hits:
        """What fits the letters typed, in the name or in the explanation."""
        matcher = self.matcher(query)
        for name, explanation, key, action in self._possible():
            score = max(matcher.match(name), 0.8 * matcher.match(explanation))
            if score > 0:
                yield Hit(
                    score,
                    Text(f"{name}  [{key}]"),
                    partial(self._do, action),
                    text=name,
                    help=explanation or None,
                )

    async def _do(self, action: str) -> None:
        await self.app.run_action(action, self.screen)
