"""The diagnosis: why the curve bends, what it costs, which doubts there are, and the remedy one key away."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable
from typing import ClassVar

import msgspec
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Static

from engine.events import Diagnosis, Verdict
from engine.plan import Plan
from engine.record import RunRecord
from tui.formats import sentences
from tui.screens.dialog import Dialog
from tui.terminal import safe_text


def remedied(plan: Plan, diagnosis: Diagnosis | None) -> Plan | None:
    """The plan with the diagnosis's command applied; None when it changes nothing that the interface can try."""
    if diagnosis is None or not diagnosis.command:
        return None
    words = shlex.split(diagnosis.command)
    options = dict(itertools.pairwise(words))
    changed = plan
    if "--allocator" in options:
        changed = msgspec.structs.replace(changed, allocator=options["--allocator"])
    if options.get("--threads", "").isdigit():
        changed = msgspec.structs.replace(changed, threads=int(options["--threads"]))
    if "--fresh" in words:
        changed = msgspec.structs.replace(changed, fresh=True)
    return changed if changed != plan else None


def explanation(record: RunRecord) -> list[tuple[str, str]]:
    """Headings and sentences: the diagnosis, the cost of a call, the limit, and every warning with its remedy."""
    parts: list[tuple[str, str]] = []
    verdict: Verdict | None = record.verdict
    if verdict is not None:
        if verdict.advice:
            parts.append(("What to deploy", verdict.advice))
        if verdict.diagnosis is not None:
            told = verdict.diagnosis
            parts.append(("Why the curve bends", sentences(told.text, told.remedy)))
            if told.command:
                parts.append(("The command that tries it", told.command))
        if verdict.cost is not None and verdict.cost.text:
            parts.append(("What a call costs", sentences(verdict.cost.text)))
        if verdict.limit is not None and verdict.limit.text:
            parts.append(("The limit", sentences(verdict.limit.text)))
    parts += [("A doubt", sentences(warning.text, warning.remedy)) for warning in record.warnings]
    return parts or [("", "There are not enough measurements to say.")]


class Why(Dialog[Plan]):
    """Answers the plan that tries the remedy, None when it is only read."""

    HEADING = "Why"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "try", "try it", id="why.try", tooltip="Measure with the remedy, as a second curve"),
        Binding("q,w", "close", "close", id="why.close", tooltip="Back to the table"),
    ]

    def __init__(self, plan: Plan, record: RunRecord) -> None:
        self._remedied = remedied(plan, record.verdict.diagnosis if record.verdict else None)
        self.KEYS = "enter try it as a second curve   escape close" if self._remedied else "escape close"
        super().__init__()
        self._parts = explanation(record)

    def body(self) -> Iterable[Widget]:
        for heading, told in self._parts:
            text = Text()
            if heading:
                text.append(f"{heading}\n", "bold")
            text.append(safe_text(told, limit=2000, lines=True))
            yield Static(text, classes="paragraph")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._remedied is not None if action == "try" else super().check_action(action, parameters)

    def action_try(self) -> None:
        self.dismiss(self._remedied)
