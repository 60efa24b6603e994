"""How many images are raced and in calls of how many, checked while typed."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from rich.text import Text
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from engine.errors import UsageError
from engine.plan import Plan, parse_count
from tui.screens.choice import Choice
from tui.screens.dialog import Dialog
from tui.widgets.field import Field

MOST_IMAGES = 1_000_000
TOO_LARGE = ("say so", "race chunks")
"""What to do when the images do not fit in one call."""


class RaceEdit(Dialog[Plan]):
    """Answers the plan of the race to run, None when nothing changes."""

    HEADING = "The race"
    KEYS = "enter race   tab next   escape back"

    def __init__(self, plan: Plan) -> None:
        super().__init__(classes="small")
        self._plan = plan

    def body(self) -> Iterable[Widget]:
        yield Horizontal(Label("images"), Field(str(self._plan.images), id="images"), classes="field")
        yield Horizontal(
            Label("per call"),
            Field(str(self._plan.lane_batch_size), id="lane-size"),
            classes="field",
        )
        yield Horizontal(
            Label("too large"),
            Choice(TOO_LARGE, TOO_LARGE[self._plan.chunked], id="chunked"),
            classes="field",
        )
        yield Static(id="race-check")

    def on_mount(self) -> None:
        self.query_one("#images", Input).focus()

    def on_input_changed(self) -> None:
        self._check()

    def on_input_submitted(self) -> None:
        plan = self._check()
        if plan is not None:
            self.dismiss(plan)

    def _check(self) -> Plan | None:
        line = self.query_one("#race-check", Static)
        try:
            images = parse_count(self.query_one("#images", Input).value, argument="images", most=MOST_IMAGES)
            size = parse_count(self.query_one("#lane-size", Input).value, argument="per call", most=images)
        except UsageError as error:
            line.update(Text(f"{error.argument}: {error.message}"))
            line.set_class(True, "-bad")
            return None
        line.update(Text(race_title(images, size)))
        line.set_class(False, "-bad")
        return msgspec.structs.replace(
            self._plan,
            kind="race",
            images=images,
            lane_batch_size=size,
            chunked=self.query_one("#chunked", Choice).value == TOO_LARGE[1],
        )


def race_title(images: int, size: int) -> str:
    """What is raced, in words: "256 single calls against one call of 256"."""
    calls = -(-images // size)
    if size == 1:
        return f"{calls:,} single call{'s' if calls != 1 else ''} against one call of {images:,}"
    return f"{calls:,} call{'s' if calls != 1 else ''} of {size:,} against one call of {images:,}"
