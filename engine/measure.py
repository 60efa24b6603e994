"""The protocols that a run is made of: a runner that times, and a strategy that decides what to time next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.results import Block, Failure, Measurement, Prepared


@dataclass(frozen=True, slots=True)
class Ask:
    """What a strategy wants next: one block at `batch_size`. `reason` says in words why (peak search), "" otherwise."""

    batch_size: int
    round: int
    reason: str = ""


class Runner(Protocol):
    """Times blocks. The real one talks to a worker process; tests script one with a known cost curve."""

    def prepare(self, batch_size: int) -> Prepared | Failure:
        """Make a size ready (inputs, cold call, memory, warm-up, calibration)."""

    def block(self, batch_size: int, round_index: int) -> Block | Failure:
        """Time one block at a prepared size."""


class Strategy(Protocol):
    """Decides, by ask and tell, which size gets the next block; pure: no clock, no process.

    `now` is seconds since the run's measuring began, given by the caller. The caller prepares a size at its first ask.
    """

    def ask(self, now: float) -> Ask | None:
        """The next block to measure; None when the run is done."""

    def tell_prepared(self, prepared: Prepared, now: float) -> None: ...

    def tell(self, block: Block, now: float) -> None: ...

    def tell_failure(self, batch_size: int, failure: Failure, now: float) -> None: ...

    def measurements(self) -> Sequence[Measurement]:
        """All sizes known so far, ascending, each in its state; sizes not yet asked for are `measuring` without blocks."""

    def reason(self, batch_size: int) -> str:
        """Why the size is being tried; "" when the person listed it."""

    def cancel(self) -> None:
        """End the run: sizes without a verdict become `cancelled` (they keep their blocks)."""


Happening = Prepared | Block | tuple[int, Failure]


def drive(strategy: Strategy, runner: Runner, now: Callable[[], float]) -> Iterator[tuple[Ask, Happening]]:
    """Ask, time, tell, until the strategy is done. Yields what happened, after the strategy was told, with what was asked.

    `now` is in seconds since the measuring began, pauses taken out. The next block is timed only when the next value is drawn,
    so a consumer that wants quiet (to draw, to write) takes its time between two values.
    """
    ready: set[int] = set()
    while (ask := strategy.ask(now())) is not None:
        size = ask.batch_size
        if size not in ready:
            prepared = runner.prepare(size)
            if isinstance(prepared, Failure):
                strategy.tell_failure(size, prepared, now())
                yield ask, (size, prepared)
                continue
            ready.add(size)
            strategy.tell_prepared(prepared, now())
            yield ask, prepared
        block = runner.block(size, ask.round)
        if isinstance(block, Failure):
            ready.discard(size)
            strategy.tell_failure(size, block, now())
            yield ask, (size, block)
            continue
        strategy.tell(block, now())
        yield ask, block
