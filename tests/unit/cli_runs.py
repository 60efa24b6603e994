"""A scripted session and streams for tests of the command line: no process, no torch."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine import events, host
from engine.events import AnyEvent, ErrorText, Latency
from engine.plan import Plan
from engine.results import Block, Measurement, Prepared
from tui.headless import Surroundings

Script = Callable[[Plan, "ScriptedSession"], Iterator[AnyEvent]]
HOST = {**host.host_facts(), "hostname": "box-07"}
RUN = "a1b2c3d4"
"""Stands for the run's id in scripts; the session puts the real one in."""


@dataclass(slots=True)
class ScriptedSession:
    """Yields the script's events as the real session does: stored first, and cut short by `cancel`."""

    script: Script
    plans: list[Plan] = field(default_factory=list)
    prior: tuple[Measurement, ...] = ()
    resumes: str | None = None
    cancelled: bool = False
    closed: bool = False

    def run(
        self,
        plan: Plan,
        *,
        prior: Sequence[Measurement] = (),
        resumes: str | None = None,
        sink: Callable[[AnyEvent], None] | None = None,
        run_id: str | None = None,
    ) -> Iterator[AnyEvent]:
        self.plans.append(plan)
        self.prior, self.resumes = tuple(prior), resumes
        ended = False
        for event in self.script(plan, self):
            if self.cancelled and not isinstance(event, events.RunFinished):
                continue
            if self.cancelled:
                event = finished("cancelled")
            named = msgspec.structs.replace(event, run=run_id or RUN)
            if isinstance(named, events.RunStarted):
                named = msgspec.structs.replace(named, resumes=resumes)
            if sink is not None:
                sink(named)
            ended = isinstance(named, events.RunFinished)
            yield named
        assert ended, "a script ends with run-finished, as every run does"

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        self.closed = True


class Screen(io.TextIOWrapper):
    """A stream that keeps what was written; `tty` says whether it claims to be a terminal."""

    def __init__(self, *, tty: bool = False, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, newline="")
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty

    @property
    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined, no-any-return]


def around(
    script: Script, *, stdout: Any = None, environ: dict[str, str] | None = None
) -> tuple[Surroundings, ScriptedSession]:
    session = ScriptedSession(script)
    streams = Surroundings(
        stdout or Screen(), Screen(), {"TERM": "xterm"} if environ is None else environ, lambda: session
    )
    return streams, session


def started(plan: Plan) -> events.RunStarted:
    return events.RunStarted(
        run=RUN,
        t=0.0,
        kind=plan.kind,
        plan=plan,
        host=HOST,
        started_at="2026-03-01T10:00:00Z",
        version="0.1.0",
    )


def ready(name: str = "fashion-cnn", **more: Any) -> events.ModelReady:
    fields: dict[str, Any] = {
        "parameters": 200_000, "input": "1x28x28", "unit": "images/s", "load_s": 0.5, "threads": 2, "device": "cpu",
    } | more  # fmt: skip
    return events.ModelReady(run=RUN, t=0.5, name=name, **fields)


def stable(size: int, throughput: float, **more: Any) -> events.Point:
    fields: dict[str, Any] = {
        "state": "stable",
        "throughput_low": throughput * 0.99,
        "throughput_high": throughput * 1.01,
        "latency_ms": Latency(1.0, 1.1, 1.2, 1.3),
        "ms_per_item": 1000.0 / throughput,
        "calls": 400,
        "blocks": 8,
        "cold_ms": 5.0,
        "memory_mb": 12.0,
        "faults_per_call": 0.0,
    } | more
    return events.Point(run=RUN, t=1.0, batch_size=size, throughput=throughput, **fields)


def failed(size: int, state: Any, message: str) -> events.Point:
    return events.Point(
        run=RUN, t=1.0, batch_size=size, state=state, error=ErrorText("out of memory", message)
    )


def verdict(peak: int | None, **more: Any) -> events.Verdict:
    fields: dict[str, Any] = {
        "ties": (), "knee": peak, "kind": "interior", "limit": None, "cost": None, "certain": True, "advice": "",
    } | more  # fmt: skip
    return events.Verdict(run=RUN, t=2.0, peak=peak, **fields)


def finished(reason: Any = "completed", **more: Any) -> events.RunFinished:
    return events.RunFinished(run=RUN, t=3.0, reason=reason, elapsed_s=3.0, **more)


def raw(size: int, rounds: int = 8, seconds: float = 0.05) -> Iterator[AnyEvent]:
    """What a size's measuring leaves in a run file besides its points: a steady 10 calls a block."""
    yield events.SizePrepared(run=RUN, t=0.6, prepared=Prepared(size, cold_ms=5.0, calls_per_block=10))
    for number in range(rounds):
        spent = seconds * (1 + 0.001 * (number % 3))
        block = Block(size, 10, spent, (spent * 100,) * 10, 10 * size, round=number)
        yield events.BlockMeasured(run=RUN, t=0.7 + number, block=block)


def sweep(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
    """Sizes 1, 8 and 32; 128 does not fit, 512 is skipped."""
    yield started(plan)
    yield ready()
    yield from raw(1)
    yield stable(1, 200.0, state="measuring")
    yield stable(1, 200.0)
    yield from raw(8)
    yield stable(8, 1600.0)
    yield from raw(32)
    yield stable(32, 6400.0, latency_ms=Latency(1.0, 1.1, None, None), calls=40)
    yield failed(128, "oom", "tried to allocate 48 GB")
    yield events.Point(run=RUN, t=1.0, batch_size=512, state="skipped", reason="128 did not fit")
    yield verdict(32, kind="memory", advice="Deploy 32: the peak.")
    yield events.Warning(
        run=RUN, t=2.0, kind="load", text="Another program used 0.8 cores.", remedy="Stop it."
    )
    yield finished()


def race(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
    yield started(plan)
    yield ready()
    yield events.RaceProgress(run=RUN, t=1.0, lane=0, done=64, total=256)
    yield events.RaceProgress(run=RUN, t=1.2, lane=1, done=256, total=256)
    yield events.RaceFinished(
        run=RUN,
        t=2.0,
        lanes=(
            events.Lane("256 calls of 1", 256, 1, 120.0, 0.46875, 0.5),
            events.Lane("1 call of 256", 1, 256, 30.0, 0.1171875, 30.0),
        ),
        speedup=4.0,
        speedup_low=3.9,
        speedup_high=4.1,
        outputs_agree=True,
        rounds=4,
    )
    yield finished()
