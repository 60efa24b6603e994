"""The race of a run: laps in turn, their progress, and the result of the rounds that were run whole."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal, Protocol

from engine import events, race, wire
from engine.errors import BatchpeakError, WorkerLostError
from engine.plan import Plan
from engine.process import Cancelled
from engine.results import Failure
from engine.runner import LoadedWorker


class Teller(Protocol):
    """What a race needs of its run: the clock, the way out for events, and the pause between two laps."""

    def head(self) -> dict[str, Any]: ...

    def told(self, event: events.AnyEvent) -> events.AnyEvent: ...

    def status(self, phase: Literal["measuring"], text: str) -> events.AnyEvent: ...

    def stopwatch(self) -> Callable[[], float]: ...

    def rest(self, phase: Literal["measuring"]) -> Iterator[events.AnyEvent]: ...


class RaceRun:
    """One race in a worker that has the model loaded. `stream` may be drawn once; `drop` gives the worker up when it is lost."""

    def __init__(self, run: Teller, plan: Plan, worker: LoadedWorker, drop: Callable[[], None]) -> None:
        self._run = run
        self._plan = plan
        self._worker = worker
        self._drop = drop
        self._rounds = race.Rounds(
            least=plan.min_rounds, precision=plan.precision, budget_s=plan.budget_s / 6
        )
        self._sizes = [min(plan.lane_batch_size, plan.images), plan.images]
        self._chunked = False

    def stream(self) -> Iterator[events.AnyEvent]:
        """The race's events, its result last. What ends it early is raised on after the result of the whole rounds."""
        try:
            answer = yield from self._laps()
        except WorkerLostError:
            self._drop()
            yield from self._result(None)
            raise
        except Cancelled:
            yield from self._result(None)
            raise
        yield from self._result(answer)

    def _laps(self) -> Generator[events.AnyEvent, None, wire.Reply]:
        """All laps; returns the worker's answer on whether the lanes' outputs agree."""
        images, sizes = self._plan.images, self._sizes
        now = self._run.stopwatch()
        yield self._run.status("measuring", "racing")
        while (turn := self._rounds.next_lane(now())) is not None:
            yield from self._run.rest("measuring")
            lane, number = turn
            reply = yield from self._lap(wire.Lap(lane, images, sizes[lane], number))
            if isinstance(reply, wire.LapDone):
                yield self._progress(lane, images, images, number)
                self._rounds.tell(race.Lap(lane, number, reply.batch_size, reply.total_ms, reply.call_ms))
                continue
            failure = reply.failure if isinstance(reply, wire.FailedReply) else None
            if failure is None or failure.kind != "oom" or not self._plan.chunked or sizes[lane] == 1:
                raise _cannot_run(failure, sizes[lane], self._plan)
            sizes[lane] //= 2
            self._chunked = True
            self._rounds.laps.clear()
        return self._worker.process.request(wire.CompareLaps())

    def _lap(self, lap: wire.Lap) -> Generator[events.AnyEvent, None, wire.Reply]:
        for reply in self._worker.process.replies(lap):
            if not isinstance(reply, wire.RaceStep):
                return reply
            yield self._progress(reply.lane, reply.done, reply.total, lap.round)
        raise WorkerLostError("it ended a lap without an answer.")

    def _progress(self, lane: int, done: int, total: int, number: int) -> events.AnyEvent:
        return self._run.told(
            events.RaceProgress(**self._run.head(), lane=lane, done=done, total=total, round=number)
        )

    def _result(self, answer: wire.Reply | None) -> Iterator[events.AnyEvent]:
        """The result of the rounds that were run whole; nothing when there is none."""
        laps, images = self._rounds.laps, self._plan.images
        if len(laps) < len(race.LANES):
            return
        agreement = answer if isinstance(answer, wire.Agreement) else wire.Agreement(None, "not compared")
        fastest, low, high = race.speedup(laps)
        lanes = [
            race.lane_of(laps, lane, race.lane_name(images, self._sizes[lane]), images) for lane in race.LANES
        ]
        yield self._run.told(
            events.RaceFinished(
                **self._run.head(),
                lanes=(lanes[0], lanes[1]),
                speedup=fastest,
                speedup_low=low,
                speedup_high=high,
                outputs_agree=agreement.agree,
                agreement=agreement.text,
                rounds=len(laps) // 2,
                chunked=self._chunked,
            )
        )


def _cannot_run(failure: Failure | None, batch_size: int, plan: Plan) -> BatchpeakError:
    if failure is None:
        return WorkerLostError("it gave an answer that fits no question.")
    remedy = ""
    if failure.kind == "oom" and batch_size == plan.images:
        remedy = "Race fewer images (--images), or the largest size that fits, in chunks (--chunked)."
    return BatchpeakError(
        f"calls of {batch_size} failed: {failure.title}: {failure.message}",
        title="the race cannot be run",
        remedy=remedy,
    )
