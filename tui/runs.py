"""The runs of the app: which is going, what comes next, what the screens are told. Knows no widget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from engine.errors import BatchpeakError
from engine.plan import Plan
from engine.results import Measurement
from tui.runner import Request, Runner
from tui.state import NOTHING, Change, Changed, Ended, RunView, Saving

TICK_S = 1.0
"""Between two looks at the clock while a run goes and nothing is heard of it."""


class Runs:
    """One sweep (or search) and one race, of which at most one is going. Used by the app's thread only."""

    def __init__(
        self,
        plan: Plan,
        runner: Runner,
        *,
        save: bool,
        now: Callable[[], float],
        tell: Callable[[Changed], object],
        ended: Callable[[RunView], object],
        unsaved: Callable[[BatchpeakError], object],
    ) -> None:
        self.sweep = RunView(plan)
        self.race = RunView(msgspec.structs.replace(plan, kind="race"))
        self.active = self.sweep
        self.runner = runner
        self._save = save
        self._now = now
        self._tell = tell
        self._ended = ended
        self._unsaved = unsaved
        self.serial = 0
        self._next: Callable[[], None] | None = None
        self._heard_at = 0.0

    @property
    def busy(self) -> bool:
        return self.active.busy

    def start(self, plan: Plan, prior: Iterable[Measurement] = ()) -> None:
        """Begin a run. One that is going is cancelled first; the new one begins after its last message."""
        if self.busy:
            self.cancel()
            self._next = partial(self.start, plan, tuple(prior))
            return
        self.active = self.race if plan.kind == "race" else self.sweep
        self.serial += 1
        self._tell(Changed(self.active, self.active.begin(plan, self.serial, self._now())))
        self.runner.start(Request(self.serial, plan, tuple(prior), save=self._save))

    def cancel(self) -> None:
        """Ask the run to end, and nothing to follow it. What it measured is kept."""
        self._next = None
        if self.busy and not self.active.cancel_asked:
            self._tell(Changed(self.active, self.active.ask_cancel()))
            self.runner.cancel(self.active.serial)

    def pause(self, pause: bool) -> None:
        """Stop between two blocks, or go on."""
        if self.busy and not self.active.cancel_asked and pause != self.active.pause_asked:
            self._tell(Changed(self.active, self.active.ask_pause(pause)))
            (self.runner.pause if pause else self.runner.resume)()

    def take(self) -> None:
        """Fold in what the runner has delivered, and tell the screens what it changed."""
        now = self._heard_at = self._now()
        change, over = NOTHING, False
        for delivery in self.runner.take():
            change |= self.active.take(delivery, now)
            if isinstance(delivery, Saving) and delivery.error is not None:
                self._unsaved(delivery.error)
            over = over or (isinstance(delivery, Ended) and delivery.serial == self.active.serial)
        if change:
            self._tell(Changed(self.active, change))
        if over:
            following, self._next = self._next, None
            if following is not None:
                following()
            else:
                self._ended(self.active)

    def tick(self) -> None:
        """Once a second: take what waited for a wake-up; move the clock on when nothing else moved it."""
        if self.busy and self._now() - self._heard_at >= 0.9 * TICK_S:
            self.take()
            self._tell(Changed(self.active, Change(phase=True)))
