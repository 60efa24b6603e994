"""The latency limit: a time and a percentile, checked while typed. An empty field takes the limit away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from engine.errors import UsageError
from engine.plan import parse_limit_ms, parse_percentile
from tui.screens.dialog import Dialog
from tui.widgets.field import Field


@dataclass(frozen=True, slots=True)
class LimitAsked:
    """The limit in ms, None for no limit, and the percentile of calls that must stay under it."""

    ms: float | None
    percentile: int


class LimitDialog(Dialog[LimitAsked]):
    """Answers the new limit, None when the old one stays. Nothing is measured again for it."""

    HEADING = "Latency limit"
    KEYS = "enter judge again   tab next   escape back"

    def __init__(self, ms: float | None, percentile: int) -> None:
        super().__init__(classes="small")
        self._ms = ms
        self._percentile = percentile

    def body(self) -> Iterable[Widget]:
        yield Static(
            Text("The calls must stay under this time. Leave it empty for no limit."), classes="hint"
        )
        with Horizontal(classes="field"):
            yield Label("limit")
            yield Field("" if self._ms is None else f"{self._ms:g}ms", placeholder="20ms", id="ms")
        with Horizontal(classes="field"):
            yield Label("percentile")
            yield Field(f"p{self._percentile}", placeholder="p99", id="percentile")
        yield Static(id="limit-check")

    def on_mount(self) -> None:
        self.query_one("#ms", Input).focus()

    def on_input_changed(self) -> None:
        self._check()

    def on_input_submitted(self) -> None:
        asked = self._check()
        if asked is not None:
            self.dismiss(asked)

    def _check(self) -> LimitAsked | None:
        line = self.query_one("#limit-check", Static)
        typed = self.query_one("#ms", Input).value
        try:
            ms = parse_limit_ms(typed, argument="the limit") if typed.strip() else None
            percentile = parse_percentile(
                self.query_one("#percentile", Input).value, argument="the percentile"
            )
        except UsageError as error:
            line.update(Text(error.message))
            line.set_class(True, "-bad")
            return None
        line.update(Text("no limit" if ms is None else f"p{percentile} of the calls at most {ms:g} ms"))
        line.set_class(False, "-bad")
        return LimitAsked(ms, percentile)
