"""How often the runner's thread wakes the interface: each wake-up is paid for in CPU time beside the measuring."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from engine import events
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tui.runner import Request, Runner

PLAN = Plan(batch_sizes=(1, 8))
Told = tuple[float, events.AnyEvent]


class TimedSession:
    """Tells each event at its time on the clock that the runner reads."""

    def __init__(self, told: Sequence[Told]) -> None:
        self._told = told
        self.now = 0.0

    def run(self, plan: Plan, **_: Any) -> Iterator[events.AnyEvent]:
        for at, event in self._told:
            self.now = at
            yield event

    def cancel(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


def wakes(*told: Told) -> list[float]:
    """When the interface was woken by these events, which follow one that wakes it at 0."""
    session = TimedSession([(0.0, scripted.started(PLAN, "a")), *told])
    seen: list[float] = []
    ended = threading.Event()

    def post(_: object) -> None:
        seen.append(session.now)
        runner.drawn()
        if any(type(delivery).__name__ == "Ended" for delivery in runner.take()):
            ended.set()

    runner = Runner(
        post,
        session_factory=lambda: session,
        open_file=lambda _: None,
        now=lambda: session.now,  # type: ignore[arg-type,return-value]
    )
    runner.start(Request(1, PLAN, save=False))
    assert ended.wait(10.0)
    runner.close()
    assert seen[0] == 0.0
    return seen[1:-1]  # the last says that the run ended


def test_figures_wake_the_interface_once_a_second() -> None:
    assert wakes(*((tenth / 10, scripted.point("a", 8)) for tenth in range(1, 26))) == [1.0, 2.0]


def test_a_verdict_waits_for_the_figures_that_it_was_made_of() -> None:
    assert wakes(
        (0.5, scripted.verdict("a")), (1.0, scripted.point("a", 8)), (1.5, scripted.verdict("a"))
    ) == [1.0]


def test_what_is_being_done_is_told_within_a_quarter_of_a_second() -> None:
    told = [(tenth / 10, scripted.status("a", "measuring", str(tenth))) for tenth in range(1, 10)]
    assert wakes(*told) == [0.3, 0.6, 0.9]
