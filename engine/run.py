"""One run: its clock, its events, and the way from plan to run-finished. Driven by `engine.session`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec

import engine
from engine import checks, events, measure, peak, points, wire
from engine.errors import BatchpeakError, StoreError, WorkerLostError
from engine.plan import Plan
from engine.process import Cancelled
from engine.race_run import RaceRun
from engine.results import Block, Failure, Measurement, Prepared
from engine.runner import MOST_FRESH, LoadedWorker, LoadFailedError, WorkerRunner
from engine.schedule import Sweep
from engine.search import Search

Sink = Callable[[events.AnyEvent], None]

POINT_EVERY_S = 0.8
"""A size that is being measured is told again at most this often."""
VERDICT_EVERY_S = 1.0
LAST_LINES = 8
CONFIRM_S = 3.0
"""Time for one confirmation, seconds of measuring."""


class Workers(Protocol):
    """What a run needs of its session."""

    @property
    def cancelled(self) -> bool: ...

    @property
    def paused(self) -> bool: ...

    def cancel(self) -> None: ...

    def wait_while_paused(self) -> None: ...

    def warm_worker(self, plan: Plan) -> LoadedWorker | None: ...

    def start_worker(self, plan: Plan, index: int) -> LoadedWorker: ...

    def keep_warm(self, plan: Plan, worker: LoadedWorker) -> None: ...

    def drop_worker(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run is told of the world outside: the time, the machine, its memory."""

    clock: Callable[[], float]
    utc_now: Callable[[], datetime]
    host_facts: Callable[[], dict[str, Any]]
    free_mb: Callable[[], float | None]


class Run:
    """One run. `stream` may be drawn once."""

    def __init__(
        self,
        session: Workers,
        surroundings: Surroundings,
        plan: Plan,
        prior: tuple[Measurement, ...],
        resumes: str | None,
        sink: Sink | None,
        run_id: str,
    ) -> None:
        self._session = session
        self._plan = plan
        self._prior = prior
        self._resumes = resumes
        self._sink = sink
        self._id = run_id
        self._surroundings = surroundings
        self._clock = surroundings.clock
        self._begun = self._clock()
        self._host: dict[str, Any] = {}
        self._unit = "images/s"
        self._queue: deque[events.AnyEvent] = deque()
        self._workers = 0
        self._confirmed: dict[int, tuple[Block, ...]] = {}
        self._last_point: dict[int, float] = {}
        self._last_verdict = 0.0
        self._waited = 0.0
        """Seconds in which the run was paused."""

    def stream(self) -> Iterator[events.AnyEvent]:
        """The run's events from run-started to run-finished; an unexpected error is raised after the last one."""
        reason: events.Reason = "completed"
        error: BatchpeakError | None = None
        unexpected: BaseException | None = None
        try:
            self._host = self._surroundings.host_facts()
            yield self.told(
                events.RunStarted(
                    **self.head(),
                    kind=self._plan.kind,
                    plan=self._plan,
                    host=self._host,
                    started_at=self._surroundings.utc_now()
                    .isoformat(timespec="seconds")
                    .replace("+00:00", "Z"),
                    version=engine.__version__,
                    resumes=self._resumes,
                )
            )
            yield from self._race() if self._plan.kind == "race" else self._sizes()
        except Cancelled:
            reason = "cancelled"
        except LoadFailedError as failed:
            reason, error = "failed", failed
        except WorkerLostError as lost:
            reason, error = "worker-lost", lost
        except BatchpeakError as failed:
            reason, error = "failed", failed
        except GeneratorExit:
            # The consumer has gone: nobody hears what would be said, but nothing may keep running.
            self._session.cancel()
            self._session.drop_worker()
            raise
        except Exception as bug:  # noqa: BLE001 - said in run-finished, then raised on
            reason, unexpected = "failed", bug
        if self._session.cancelled:
            reason = "cancelled"
        yield from self._flush()
        yield self.told(
            events.RunFinished(
                **self.head(),
                reason=reason,
                elapsed_s=round(self._clock() - self._begun, 3),
                error=_text_of(error, unexpected) if reason != "cancelled" else None,
                remedy=error.remedy if error else "",
                usage=getattr(error, "usage", False),
            )
        )
        if unexpected is not None:
            raise unexpected

    # Sweeps and searches

    def _sizes(self) -> Iterator[events.AnyEvent]:
        plan = self._plan
        yield from self._prior_events()
        strategy: Sweep | Search
        if plan.kind == "peak":
            strategy = Search(
                max_batch_size=plan.max_batch_size,
                precision=plan.precision,
                budget_s=plan.budget_s,
                size_budget_s=plan.size_budget_s,
                seed=plan.seed,
                limit_ms=plan.limit_ms,
                percentile=plan.percentile,
                prior=self._prior,
            )
        else:
            strategy = Sweep(
                plan.batch_sizes,
                precision=plan.precision,
                budget_s=plan.budget_s,
                size_budget_s=plan.size_budget_s,
                seed=plan.seed,
                prior=self._prior,
                at_once=MOST_FRESH if plan.fresh else None,
            )
        first: LoadedWorker | None = None
        if not plan.fresh:
            yield from self._load()
            first = self._session.warm_worker(plan)
        runner = WorkerRunner(
            plan,
            first,
            self._start_again,
            free_mb=self._surroundings.free_mb,
            on_prepared=lambda prepared: self._queue.append(
                events.SizePrepared(**self.head(), prepared=prepared)
            ),
        )
        try:
            yield from self._drive(strategy, runner)
            yield from self._judged(strategy)
            yield from self._confirm(strategy, runner)
        finally:
            self._hold_on_to(runner)
        yield from self._warnings(strategy)

    def _drive(self, strategy: measure.Strategy, runner: WorkerRunner) -> Iterator[events.AnyEvent]:
        settled: set[int] = {m.batch_size for m in strategy.measurements() if m.state != "measuring"}
        self._last_verdict = self._clock()
        happenings = measure.drive(strategy, runner, self.stopwatch())
        said: tuple[str, int] | None = None
        try:
            yield self.status("warming", "warming up")
            for ask, happening in happenings:
                yield from self._flush()
                yield from self._raw(happening)
                if said != (ask.reason, ask.batch_size) and isinstance(happening, Prepared):
                    said = (ask.reason, ask.batch_size)
                    yield self.status("measuring", ask.reason, ask.batch_size)
                yield from self._changed(strategy, ask.batch_size, settled)
                if self._plan.fresh and ask.batch_size in settled:
                    runner.release(ask.batch_size)
                yield from self.rest("measuring")
        except (Cancelled, WorkerLostError, LoadFailedError):
            strategy.cancel()
            yield from self._points(strategy, settled)
            yield from self._judged(strategy)
            raise
        yield from self._points(strategy, settled)

    def stopwatch(self) -> Callable[[], float]:
        """Seconds from now on, without those in which the run is paused."""
        begun, waited = self._clock(), self._waited
        return lambda: self._clock() - begun - (self._waited - waited)

    def rest(self, phase: Literal["measuring", "confirming"]) -> Iterator[events.AnyEvent]:
        """Between two blocks: wait while the run is paused. Raises Cancelled when it is to end."""
        if self._session.paused:
            paused_at = self._clock()
            yield self.status("paused", "paused between two blocks")
            self._session.wait_while_paused()
            self._waited += self._clock() - paused_at
            if not self._session.cancelled:
                yield self.status(phase, "")
        if self._session.cancelled:
            raise Cancelled

    def _raw(self, happening: measure.Happening) -> Iterator[events.AnyEvent]:
        match happening:
            case Prepared():
                yield self.told(events.SizePrepared(**self.head(), prepared=happening))
            case Block():
                yield self.told(events.BlockMeasured(**self.head(), block=happening))
            case (size, failure):
                yield self.told(events.SizeFailed(**self.head(), batch_size=size, failure=failure))

    def _changed(
        self, strategy: measure.Strategy, batch_size: int, settled: set[int]
    ) -> Iterator[events.AnyEvent]:
        now = self._clock()
        for measurement in strategy.measurements():
            size = measurement.batch_size
            if size in settled:
                continue
            if measurement.state != "measuring":
                settled.add(size)
                yield self._point(strategy, measurement)
            elif size == batch_size and now - self._last_point.get(size, -1.0) >= POINT_EVERY_S:
                yield self._point(strategy, measurement)
        if now - self._last_verdict >= VERDICT_EVERY_S:
            yield from self._judged(strategy)

    def _points(self, strategy: measure.Strategy, settled: set[int]) -> Iterator[events.AnyEvent]:
        for measurement in strategy.measurements():
            if measurement.batch_size not in settled:
                settled.add(measurement.batch_size)
                yield self._point(strategy, measurement)

    def _point(self, strategy: measure.Strategy, measurement: Measurement) -> events.AnyEvent:
        size = measurement.batch_size
        if measurement.blocks:
            # A row without figures yet does not hold back the first one that has them.
            self._last_point[size] = self._clock()
        return self.told(
            points.point_of(
                self._with_confirmed(measurement),
                **self.head(),
                reason=strategy.reason(size),
                warnings=checks.point_warnings(measurement, precision=self._plan.precision),
            )
        )

    def _with_confirmed(self, measurement: Measurement) -> Measurement:
        blocks = self._confirmed.get(measurement.batch_size)
        return msgspec.structs.replace(measurement, confirmed=blocks) if blocks else measurement

    def _measurements(self, strategy: measure.Strategy) -> list[Measurement]:
        return [self._with_confirmed(measurement) for measurement in strategy.measurements()]

    def _judged(self, strategy: measure.Strategy) -> Iterator[events.AnyEvent]:
        self._last_verdict = self._clock()
        judgement = peak.judge(
            self._measurements(strategy), plan=self._plan, host=self._host, unit=self._unit
        )
        yield self.told(judgement.event(**self.head()))

    def _confirm(self, strategy: measure.Strategy, runner: WorkerRunner) -> Iterator[events.AnyEvent]:
        plan = self._plan
        if not plan.confirm or plan.fresh or self._session.cancelled:
            return
        tried: set[int] = set()
        while waiting := [size for size in self._to_confirm(strategy) if size not in tried]:
            if not tried:
                # The fresh process needs the memory that this one holds for all sizes.
                runner.release_all()
            for size in waiting:
                tried.add(size)
                yield self.status("confirming", f"measuring {size} once more in a fresh process", size)
                try:
                    failure = yield from self._confirmation(size)
                except (WorkerLostError, LoadFailedError) as error:
                    yield self._not_confirmed(size, error.message, error.remedy)
                else:
                    if failure is not None:
                        yield self._not_confirmed(size, f"{failure.title}: {failure.message}")
                measurement = next(m for m in strategy.measurements() if m.batch_size == size)
                yield self._point(strategy, measurement)
            yield from self._judged(strategy)

    def _to_confirm(self, strategy: measure.Strategy) -> tuple[int, ...]:
        measurements = self._measurements(strategy)
        return peak.judge(measurements, plan=self._plan, host=self._host, unit=self._unit).to_confirm

    def _not_confirmed(self, size: int, why: str, remedy: str = "") -> events.AnyEvent:
        self._confirmed.pop(size, None)
        return self.told(
            events.Warning(
                **self.head(),
                kind="not-confirmed",
                text=f"batch size {size} could not be confirmed in a fresh process: {why}",
                remedy=remedy,
            )
        )

    def _confirmation(self, size: int) -> Generator[events.AnyEvent, None, Failure | None]:
        """Measure the size alone in a fresh process; returns why that failed, if it did."""
        plan = self._plan
        worker = self._session.start_worker(plan, self._next_index())
        runner = WorkerRunner(
            plan, worker, self._start_again, free_mb=lambda: None, on_prepared=lambda _: None
        )
        once_more = Sweep(
            (size,), precision=plan.precision, budget_s=CONFIRM_S, size_budget_s=CONFIRM_S, seed=plan.seed
        )
        try:
            for _, happening in measure.drive(once_more, runner, self.stopwatch()):
                if isinstance(happening, Block):
                    self._confirmed[size] = (*self._confirmed.get(size, ()), happening)
                    yield self.told(events.BlockMeasured(**self.head(), block=happening, confirming=True))
                elif isinstance(happening, tuple):
                    return happening[1]
                yield from self.rest("confirming")
            return None
        finally:
            for held in runner.live():
                held.process.close()

    def _warnings(self, strategy: measure.Strategy) -> Iterator[events.AnyEvent]:
        found = checks.run_warnings(strategy.measurements(), host=self._host, plan=self._plan)
        yield from self._told_all(found)

    def _told_all(self, found: Iterable[events.Warned]) -> Iterator[events.AnyEvent]:
        for warned in found:
            yield self.told(
                events.Warning(
                    **self.head(),
                    kind=warned.kind,
                    text=warned.text,
                    remedy=warned.remedy,
                    numbers=warned.numbers,
                )
            )

    def _prior_events(self) -> Iterator[events.AnyEvent]:
        """What was taken over is told again, raw, so that this run's file can be understood without the other one."""
        for measurement in self._prior:
            kept_from = measurement.kept_from or self._resumes
            if measurement.prepared is not None:
                yield self.told(events.SizePrepared(**self.head(), prepared=measurement.prepared))
            for block in measurement.blocks:
                yield self.told(events.BlockMeasured(**self.head(), block=block))
            if measurement.state != "measuring":
                point = points.point_of(
                    measurement,
                    **self.head(),
                    warnings=checks.point_warnings(measurement, precision=self._plan.precision),
                )
                yield self.told(msgspec.structs.replace(point, kept_from=kept_from))

    # The race

    def _race(self) -> Iterator[events.AnyEvent]:
        yield from self._load()
        worker = self._session.warm_worker(self._plan)
        if worker is None:
            raise WorkerLostError("it ended before the race began.")
        yield from RaceRun(self, self._plan, worker, self._session.drop_worker).stream()
        yield from self._told_all(checks.run_warnings((), host=self._host, plan=self._plan))

    # Workers

    def _load(self) -> Iterator[events.AnyEvent]:
        warm = self._session.warm_worker(self._plan)
        if warm is not None:
            try:
                # What earlier runs made in it would only take memory from this one.
                warm.process.request(wire.Release())
            except WorkerLostError:
                self._session.drop_worker()
                warm = None
        if warm is None:
            yield self.status("starting", "starting the measuring process and loading the model")
            warm = self._start_again()
            self._session.keep_warm(self._plan, warm)
        else:
            self._ready(warm, load_s=0.0)
        yield from self._flush()

    def _start_again(self) -> LoadedWorker:
        worker = self._session.start_worker(self._plan, self._next_index())
        self._ready(worker, load_s=worker.ready.load_s)
        return worker

    def _ready(self, worker: LoadedWorker, *, load_s: float) -> None:
        ready = worker.ready
        self._unit = ready.unit
        self._queue.append(
            events.ModelReady(
                **self.head(),
                name=ready.name,
                parameters=ready.parameters,
                input=ready.input,
                unit=ready.unit,
                load_s=load_s,
                description=ready.description,
                threads=ready.threads,
                device=ready.device,
                timing=ready.timing,
                worker=worker.index,
            )
        )

    def _hold_on_to(self, runner: WorkerRunner) -> None:
        """After the sizes: keep the shared worker for the next run, end those of single sizes."""
        runner.close_fresh()
        if not self._plan.fresh:
            current = runner.current
            if current is None or not current.process.alive:
                self._session.drop_worker()
            else:
                current.prepared.clear()
                self._session.keep_warm(self._plan, current)

    def _next_index(self) -> int:
        self._workers += 1
        return self._workers

    # Events

    def head(self) -> dict[str, Any]:
        return {"run": self._id, "t": round(self._clock() - self._begun, 4)}

    def status(
        self,
        phase: Literal["starting", "loading", "warming", "measuring", "paused", "confirming", "cancelling"],
        text: str,
        batch_size: int | None = None,
    ) -> events.AnyEvent:
        return self.told(events.Status(**self.head(), phase=phase, text=text, batch_size=batch_size))

    def _flush(self) -> Iterator[events.AnyEvent]:
        while self._queue:
            yield self.told(self._queue.popleft())

    def told(self, event: events.AnyEvent) -> events.AnyEvent:
        """Store first; a place that stops taking lines (a full disk) ends the saving, not the measuring."""
        if self._sink is not None:
            try:
                self._sink(event)
            except StoreError as error:
                self._sink = None
                self._queue.append(
                    events.Warning(**self.head(), kind="not-saved", text=error.message, remedy=error.remedy)
                )
        return event


def _text_of(error: BatchpeakError | None, unexpected: BaseException | None) -> events.ErrorText | None:
    if isinstance(error, WorkerLostError) and error.last_lines:
        last_words = "\n".join(error.last_lines[-LAST_LINES:])
        return events.ErrorText(error.title, f"{error.message} Its last lines:\n{last_words}")
    if error is not None:
        return events.ErrorText(error.title, error.message)
    if unexpected is not None:
        return events.ErrorText("internal error", f"{type(unexpected).__name__}: {unexpected}")
    return None
