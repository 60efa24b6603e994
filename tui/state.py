"""What the interface knows of one run, folded from its deliveries: pure, so it is tested without a terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Literal

import msgspec

from engine import events
from engine.errors import BatchpeakError
from engine.plan import Plan
from engine.record import RunRecord
from engine.results import Measurement, State
from tui.formats import sentences

Phase = Literal["empty", "starting", "measuring", "paused", "cancelling", "finished", "failed"]

BUSY: frozenset[Phase] = frozenset({"starting", "measuring", "paused", "cancelling"})

PHASE_WORDS: dict[Phase, str] = {
    "empty": "ready",
    "starting": "starting",
    "measuring": "measuring",
    "paused": "paused",
    "cancelling": "cancelling",
    "finished": "finished",
    "failed": "failed",
}


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of the run with this serial number."""

    serial: int
    event: events.AnyEvent


@dataclass(frozen=True, slots=True)
class Saving:
    """Where the run is written; or, with an error, that it is measured without being saved."""

    serial: int
    path: Path | None
    error: BatchpeakError | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The last delivery of a run; `error` when it could not go on."""

    serial: int
    error: BatchpeakError | None = None


Delivery = Happened | Saving | Ended


@dataclass(frozen=True, slots=True)
class Change:
    """What a batch of deliveries changed, so that only that is drawn again."""

    rows: frozenset[int] = frozenset()
    model: bool = False
    verdict: bool = False
    race: bool = False
    phase: bool = False
    warnings: bool = False
    restarted: bool = False

    def __or__(self, other: Change) -> Change:
        return Change(
            self.rows | other.rows,
            self.model or other.model,
            self.verdict or other.verdict,
            self.race or other.race,
            self.phase or other.phase,
            self.warnings or other.warnings,
            self.restarted or other.restarted,
        )

    def __bool__(self) -> bool:
        return self != NOTHING


NOTHING = Change()


@dataclass(frozen=True, slots=True)
class Changed:
    """What the app's signal carries to the screens: a run, and what changed in it."""

    view: RunView
    change: Change


@dataclass(slots=True)
class RunView:
    """One run as the screens show it, and the run before it for comparison. Only message handlers change it."""

    plan: Plan
    serial: int = 0
    record: RunRecord = field(default_factory=RunRecord)
    previous: RunRecord | None = None
    saved_to: Path | None = None
    save_error: BatchpeakError | None = None
    error: BatchpeakError | None = None
    pause_asked: bool = False
    cancel_asked: bool = False
    ended: bool = True
    began_at: float = 0.0
    _ended_at: float = 0.0
    _points: tuple[events.Point, ...] | None = None
    """All rows while nothing changed them: they are asked for many times between two changes."""
    _waiting: dict[int, events.Point] = field(default_factory=dict)
    _waiting_for: tuple[tuple[int, ...], str, State] | None = None
    """Rows without figures, and what they were made for: not made again with every point."""

    def begin(self, plan: Plan, serial: int, now: float) -> Change:
        """A new run takes this one's place; this one stays as `previous` when it measured anything."""
        if self.record.points:
            self.previous = self.record
        self.plan, self.serial, self.record = plan, serial, RunRecord()
        self.saved_to = self.save_error = self.error = None
        self.pause_asked = self.cancel_asked = self.ended = False
        self.began_at = self._ended_at = now
        self._points = None
        return Change(
            frozenset(plan.batch_sizes), model=True, verdict=True, race=True, phase=True, restarted=True
        )

    def take(self, delivery: Delivery, now: float) -> Change:
        """Fold one delivery in. One of an older run changes nothing."""
        if delivery.serial != self.serial or self.ended:
            return NOTHING
        match delivery:
            case Happened(_, event):
                return self._happened(event)
            case Saving(_, path, error):
                self.saved_to, self.save_error = path, error
                return Change(phase=True)
            case Ended(_, error):
                self.ended, self.error, self._ended_at = True, error, now
                self._points = None
                return Change(phase=True, verdict=True)

    def _happened(self, event: events.AnyEvent) -> Change:
        if not self.record.add(event):
            return NOTHING
        match event:
            case events.RunStarted() | events.ModelReady():
                self._points = None
                return Change(model=True, phase=True)
            case events.Point():
                self._points = None
                return Change(rows=frozenset({event.batch_size}))
            case events.Warning():
                return Change(warnings=True)
            case events.Verdict():
                return Change(verdict=True)
            case events.RaceProgress() | events.RaceFinished():
                return Change(race=True)
            case events.Status() | events.RunFinished():
                return Change(phase=True)
            case events.SizePrepared() | events.BlockMeasured() | events.SizeFailed():
                return NOTHING  # raw: what they change on the screen comes as a point

    def ask_cancel(self) -> Change:
        """The person wants the run to end; it is cancelling until its last delivery."""
        self.cancel_asked = True
        return Change(phase=True)

    def ask_pause(self, pause: bool) -> Change:
        """The person wants the run to stop between two blocks, or to go on."""
        self.pause_asked = pause
        return Change(phase=True)

    @property
    def phase(self) -> Phase:
        if self.serial == 0:
            return "empty"
        if self.ended:
            finished = self.record.finished
            lost = not self.cancel_asked if finished is None else finished.reason in ("failed", "worker-lost")
            return "failed" if self.error or lost else "finished"
        if self.cancel_asked:
            return "cancelling"
        status = self.record.status
        if status is not None and status.phase == "paused" and self.pause_asked:
            return "paused"
        if self.record.model is None:
            return "starting"
        return "measuring"

    @property
    def busy(self) -> bool:
        return not self.ended

    @property
    def unit(self) -> str:
        """What the throughput counts, e.g. "images/s"."""
        return self.record.model.unit if self.record.model is not None else "images/s"

    @property
    def failure(self) -> BatchpeakError | None:
        """Why the run failed, as an error with a title, a message and a remedy; None when it did not."""
        if self.error is not None:
            return self.error
        finished = self.record.finished
        if self.phase != "failed" or finished is None:
            return None
        if finished.error is None:
            return BatchpeakError("it gave no reason.", title="the run failed", remedy=finished.remedy)
        return BatchpeakError(finished.error.message, title=finished.error.title, remedy=finished.remedy)

    def elapsed(self, now: float) -> float:
        """Seconds since the run was asked for; stands still when it has ended."""
        return (self._ended_at if self.ended else now) - self.began_at

    def points(self) -> tuple[events.Point, ...]:
        """A row for every size: as measured, or without figures when it is in the plan and nothing came. Ascending."""
        if self._points is None:
            self._points = self._all_points()
        return self._points

    def _all_points(self) -> tuple[events.Point, ...]:
        known = self.record.points
        run = self.record.id or ""
        state: State = "measuring"
        if self.serial and self.ended:
            state = "skipped" if self.phase == "failed" else "cancelled"
        listed = self.plan.batch_sizes if self.plan.kind == "sweep" else ()
        if self._waiting_for != (listed, run, state):
            self._waiting_for = (listed, run, state)
            self._waiting = {
                size: events.Point(run=run, t=0.0, batch_size=size, state=state) for size in listed
            }
        return tuple(row for _, row in sorted({**self._waiting, **known}.items(), key=itemgetter(0)))

    def status(self, now: float) -> str:
        """The state in words with its clock, e.g. "measuring 32 · 0:04"; the word comes first, always."""
        phase = self.phase
        if phase == "empty":
            return "ready"
        parts = [PHASE_WORDS[phase]]
        told = self.record.status
        if phase == "starting":
            parts[0] += f" · {told.text if told and told.text else 'loading torch and the model'}"
            if self.pause_asked:
                parts.append("pausing once they are there")
        elif phase == "measuring":
            if self.pause_asked:
                parts[0] = "pausing after this block"
            elif told is not None and told.phase in ("warming", "measuring", "confirming"):
                what = f" {told.batch_size:,}" if told.batch_size else ""
                parts[0] = {"confirming": "confirming"}.get(told.phase, "measuring") + what
                if told.text and len(told.text) < 40 and told.text.lower() not in parts[0]:
                    parts.append(told.text)
        elif phase == "paused":
            parts.append("nothing is measured, space goes on")
        elif phase == "finished":
            finished = self.record.finished
            if finished is None or finished.reason == "cancelled":
                parts[0] = "cancelled"
                parts.append("what was measured is kept")
        parts.append(clock(self.elapsed(now)))
        settled = self._settled()
        if settled and phase != "starting":
            parts.append(settled)
        if self.save_error is not None:
            parts.append("not saved")
        return " · ".join(parts)

    def _settled(self) -> str:
        points = self.points()
        if self.plan.kind == "race" or not points:
            return ""
        done = sum(point.state not in ("measuring", "cancelled") for point in self.record.points.values())
        if self.ended and not done:
            return ""
        return f"{done} of {len(points)} sizes done"

    def advice(self) -> str:
        """The line in plain words under the chart; never empty, so that the screen does not jump."""
        phase = self.phase
        if phase == "failed" and (failure := self.failure) is not None and not self.record.points:
            title = failure.title[:1].upper() + failure.title[1:]
            return f"{title}: {failure.message[:1]}{sentences(failure.message, failure.remedy)[1:]}"
        verdict = self.record.verdict
        early = self.busy and all(point.throughput is None for point in self.record.points.values())
        if verdict is not None and verdict.advice and not early:
            limit = verdict.limit.text if verdict.limit and verdict.limit.text else ""
            told = not limit or "under" in verdict.advice or limit.casefold() in verdict.advice.casefold()
            return verdict.advice if told else f"{verdict.advice} {limit}"
        if phase == "empty":
            return "Nothing is measured yet: r measures the list, e changes it."
        if phase == "starting":
            return "The first rough figures of all sizes come together; then they tighten in place."
        if phase in ("finished", "failed"):
            return "There are not enough measurements to say which batch size is best."
        return "Too early to say which batch size is best."

    def judge_again(self, limit_ms: float | None, percentile: int) -> Change:
        """Another latency limit for what is measured already: a new verdict, and not one call more."""
        from engine import peak  # late: its arithmetic loads numpy, which the first frame does not wait for

        self.plan = msgspec.structs.replace(self.plan, limit_ms=limit_ms, percentile=percentile)
        started, record = self.record.started, self.record
        if started is None or not record.measurements:
            return Change(verdict=True)
        judgement = peak.judge(
            [known for _, known in sorted(record.measurements.items())],
            plan=self.plan,
            host=started.host,
            unit=self.unit,
        )
        last = record.verdict.t if record.verdict else 0.0
        record.verdict = judgement.event(run=started.run, t=last)
        return Change(verdict=True)

    def unchanged(self, plan: Plan) -> tuple[Measurement, ...]:
        """Measurements that a new run with this plan may keep: settled ones under equal conditions,
        of the sizes listed (a search may use any)."""
        before = self.record.started
        if before is None or _conditions(before.plan) != _conditions(plan):
            return ()
        return tuple(
            msgspec.structs.replace(known, kept_from=known.kept_from or before.run)
            for size, known in sorted(self.record.measurements.items())
            if (plan.kind == "peak" or size in plan.batch_sizes)
            and known.blocks
            and known.state in ("stable", "noisy", "short")
        )


def clock(seconds: float) -> str:
    """Whole seconds as m:ss, or h:mm:ss from an hour on."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _conditions(plan: Plan) -> Plan:
    """The plan without what does not change a size's figures: which sizes, for how long, judged how."""
    plain = Plan()
    return msgspec.structs.replace(
        plan,
        kind=plain.kind,
        batch_sizes=plain.batch_sizes,
        precision=plain.precision,
        budget_s=plain.budget_s,
        size_budget_s=plain.size_budget_s,
        seed=plain.seed,
        limit_ms=plain.limit_ms,
        percentile=plain.percentile,
        max_batch_size=plain.max_batch_size,
        force=plain.force,
        confirm=plain.confirm,
        images=plain.images,
        lane_batch_size=plain.lane_batch_size,
        chunked=plain.chunked,
        min_rounds=plain.min_rounds,
    )
