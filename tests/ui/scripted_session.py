"""A session that plays a script: events, with gates that the test opens. No clock, no sleep, no process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine import events
from engine.errors import BatchpeakError
from engine.plan import Plan
from engine.results import Block, Measurement, Prepared

PATIENCE_S = 20.0
"""A gate that is not opened within this time fails the test instead of hanging it."""


class Gate:
    """The script stops here until the test opens it; `reached` tells the test that it has."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def open(self) -> None:
        self.opened.set()


Step = events.AnyEvent | Gate | Exception
Script = Callable[[Plan, str], Sequence[Step]]
"""Makes the steps of a run from its plan and its id."""


class ScriptedSession:
    """Plays one script a run; the last one again when there are more runs than scripts."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = scripts
        self.plans: list[Plan] = []
        self.priors: list[tuple[Measurement, ...]] = []
        self.threads: set[int] = set()
        self.closed = False
        self._cancelled = threading.Event()
        self._going = threading.Event()
        self._going.set()

    def run(
        self,
        plan: Plan,
        *,
        prior: Sequence[Measurement] = (),
        resumes: str | None = None,
        sink: Callable[[events.AnyEvent], object] | None = None,
    ) -> Iterator[events.AnyEvent]:
        self.plans.append(plan)
        self.priors.append(tuple(prior))
        self.threads.add(threading.get_ident())
        self._cancelled.clear()
        run = f"run{len(self.plans):04}"
        script = self._scripts[min(len(self.plans), len(self._scripts)) - 1]
        for step in script(plan, run):
            if self._cancelled.is_set():
                break
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Gate):
                step.reached.set()
                self._wait(step)
                continue
            if not self._going.is_set():
                yield self._told(sink, status(run, "paused", "paused between two blocks"))
                while not self._going.wait(0.01) and not self._cancelled.is_set():
                    pass
                yield self._told(sink, status(run, "measuring", ""))
            yield self._told(sink, step)
        if self._cancelled.is_set():
            yield self._told(sink, events.RunFinished(run=run, t=9.0, reason="cancelled", elapsed_s=9.0))

    def _wait(self, gate: Gate) -> None:
        for _ in range(int(PATIENCE_S / 0.01)):
            if gate.opened.wait(0.01) or self._cancelled.is_set():
                return
        raise TimeoutError("the test never opened a gate")

    @staticmethod
    def _told(sink: Callable[[events.AnyEvent], object] | None, event: events.AnyEvent) -> events.AnyEvent:
        if sink is not None:
            sink(event)
        return event

    def cancel(self) -> None:
        self._cancelled.set()

    def pause(self) -> None:
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def close(self) -> None:
        self.closed = True


def started(plan: Plan, run: str) -> events.RunStarted:
    return events.RunStarted(
        run=run,
        t=0.0,
        kind=plan.kind,
        plan=plan,
        host={"hostname": "box-07", "usable_cores": 2},
        started_at="2026-03-01T10:00:00Z",
        version="0.1.0",
    )


def ready(run: str, name: str = "fashion-cnn") -> events.ModelReady:
    return events.ModelReady(
        run=run,
        t=0.5,
        name=name,
        parameters=421_642,
        input="1x28x28",
        unit="images/s",
        load_s=0.5,
        threads=2,
        device="cpu",
        worker=1,
    )


def status(run: str, phase: Any, text: str = "", batch_size: int | None = None) -> events.Status:
    return events.Status(run=run, t=1.0, phase=phase, text=text, batch_size=batch_size)


FIGURES: dict[int, tuple[float, float, float, float | None]] = {
    1: (6_139.0, 0.011, 0.16, 0.24),
    8: (14_532.0, 0.008, 0.55, 0.71),
    32: (20_801.0, 0.006, 1.54, 1.90),
    128: (21_373.0, 0.012, 5.99, 6.80),
    512: (17_538.0, 0.029, 29.2, None),
}
"""Throughput, half width of its interval relative, p50 and p99 in ms."""


def figures(size: int) -> tuple[float, float, float, float | None]:
    """Those of the table above; a smooth curve between and beyond."""
    if size in FIGURES:
        return FIGURES[size]
    rate = size / (0.1 + 0.045 * size) * 1000.0
    return (rate, 0.01, size / rate * 1000.0, size / rate * 1100.0)


def point(run: str, size: int, state: Any = "stable", **changes: Any) -> events.Point:
    """A point with plausible figures; without any for the states that have none."""
    if state in ("oom", "error", "skipped"):
        words = {"oom": "out of memory", "error": "the model raised", "skipped": "skipped"}[state]
        fields: dict[str, Any] = {"error": events.ErrorText(words, f"batch size {size}: {words}")}
    else:
        rate, half, p50, p99 = figures(size)
        fields = {
            "throughput": rate,
            "throughput_low": rate * (1 - half),
            "throughput_high": rate * (1 + half),
            "latency_ms": events.Latency(p50=p50, p90=p50 * 1.1, p95=p50 * 1.15, p99=p99),
            "ms_per_item": p50 / size,
            "calls": 1_024 if p99 is not None else 40,
            "blocks": 12,
            "cold_ms": p50 * 3,
            "memory_mb": 12.0 + size / 4,
            "faults_per_call": 17_216.0 if size == 512 else 3.0,
            "effective_batch_size": size,
        }
    return events.Point(run=run, t=2.0, batch_size=size, state=state, **(fields | changes))


def block(run: str, size: int, seed: int = 0) -> events.BlockMeasured:
    """Raw times around the size's figure."""
    rate, _, p50, _ = figures(size)
    times = tuple(p50 * (1.0 + 0.04 * (((index * 7 + seed) % 11) - 5) / 5) for index in range(24))
    return events.BlockMeasured(
        run=run,
        t=2.0,
        block=Block(
            batch_size=size, calls=24, seconds=24 * size / rate, call_ms=times, items=24 * size, round=seed
        ),
    )


def prepared(run: str, size: int) -> events.SizePrepared:
    return events.SizePrepared(
        run=run,
        t=1.0,
        prepared=Prepared(
            batch_size=size, cold_ms=3.0, calls_per_block=24, effective_batch_size=size, memory_mb=12.0
        ),
    )


ADVICE = (
    "Deploy 32: surely 95 % of the peak, at 26 % of its latency. "
    "The drop at 512 goes with 17,216 page faults a call; w tries with kept memory."
)


def verdict(run: str, **changes: Any) -> events.Verdict:
    fields: dict[str, Any] = {
        "peak": 128,
        "ties": (),
        "knee": 32,
        "kind": "interior",
        "limit": None,
        "cost": None,
        "certain": True,
        "advice": ADVICE,
        "recommended": 32,
        "suggestions": (
            events.Suggestion(64, "between knee and peak"),
            events.Suggestion(256, "between peak and drop"),
        ),
        "diagnosis": events.Diagnosis(
            "faults",
            "The drop from 512 on goes with 17,216 page faults a call.",
            "Kept memory takes them away.",
            "batchpeak sweep fashion-cnn --allocator keep",
            {"faults_per_call": 17_216.0},
        ),
    }
    return events.Verdict(run=run, t=3.0, **(fields | changes))


def finished(run: str, reason: Any = "completed", **changes: Any) -> events.RunFinished:
    return events.RunFinished(run=run, t=9.0, reason=reason, elapsed_s=9.0, **changes)


def whole_sweep(plan: Plan, run: str) -> list[Step]:
    """A sweep from start to end without a stop."""
    steps: list[Step] = [started(plan, run), status(run, "starting"), ready(run), status(run, "warming")]
    for size in plan.batch_sizes:
        steps += [
            prepared(run, size),
            *(block(run, size, seed) for seed in range(6)),
            point(run, size, "noisy" if size == 512 else "stable"),
        ]
    return [*steps, verdict(run), finished(run)]


def stopping_after(count: int, gate: Gate) -> Script:
    """A sweep that stops at the gate when `count` sizes are settled, the next one measuring."""

    def script(plan: Plan, run: str) -> list[Step]:
        steps: list[Step] = [started(plan, run), ready(run), status(run, "warming")]
        for index, size in enumerate(plan.batch_sizes):
            if index == count:
                steps += [
                    status(run, "measuring", "", size),
                    point(run, size, "measuring"),
                    verdict(run, peak=None, knee=None, advice="", diagnosis=None, suggestions=()),
                    status(run, "measuring", "", size),
                    gate,
                ]
            steps += [prepared(run, size), block(run, size), point(run, size)]
        return [*steps, verdict(run), finished(run)]

    return script


def failing(error: BatchpeakError) -> Script:
    """A run that ends before anything is measured."""
    return lambda plan, run: [
        started(plan, run),
        finished(
            run,
            "failed",
            error=events.ErrorText(error.title, error.message),
            remedy=error.remedy,
        ),
    ]


def lanes() -> tuple[events.Lane, events.Lane]:
    single = tuple(0.5 + 0.01 * (index % 5) for index in range(256))
    return (
        events.Lane("256 calls of 1", 256, 1, sum(single), sum(single) / 256, single[0], single),
        events.Lane("1 call of 256", 1, 256, 13.4, 13.4 / 256, 13.4, (13.4,)),
    )


def race_finished(run: str) -> events.RaceFinished:
    first, second = lanes()
    return events.RaceFinished(
        run=run,
        t=5.0,
        lanes=(first, second),
        speedup=9.93,
        speedup_low=9.71,
        speedup_high=10.2,
        outputs_agree=True,
        rounds=8,
        agreement="all 256 classes equal, largest difference 2e-06",
    )


def whole_race(plan: Plan, run: str) -> list[Step]:
    """A race from start to end without a stop."""
    return [
        started(plan, run),
        ready(run),
        events.RaceProgress(run=run, t=1.0, lane=0, done=128, total=256),
        events.RaceProgress(run=run, t=1.5, lane=0, done=256, total=256),
        events.RaceProgress(run=run, t=2.0, lane=1, done=256, total=256),
        race_finished(run),
        finished(run),
    ]
