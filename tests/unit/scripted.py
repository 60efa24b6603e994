"""A scripted model on a simulated clock: a known cost curve with noise, spikes, drift and failures, so that figures have a truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine import measure
from engine.measure import Runner, Strategy
from engine.results import Block, Failure, Prepared

BLOCK_S = 0.05
"""What a block is calibrated to last."""
SETUP_S = 0.25
"""Simulated time for making a size ready."""
_ROWS = 24
"""Blocks whose noise is drawn at once."""


@dataclass(slots=True)
class Clock:
    """Simulated seconds; whoever works moves it on."""

    now: float = 0.0

    def advance(self, seconds: float) -> None:
        self.now += seconds


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds per call: fixed + per item * batch size, times `cliff` from the batch size `cliff_at` on."""

    fixed_s: float = 0.002
    per_item_s: float = 0.0001
    cliff_at: int | None = 512
    cliff: float = 1.3

    def __call__(self, batch_size: int) -> float:
        seconds = self.fixed_s + self.per_item_s * batch_size
        return seconds * (self.cliff if self.cliff_at is not None and batch_size >= self.cliff_at else 1.0)


@dataclass(frozen=True, slots=True)
class Noise:
    """What disturbs the calls. Every noise has mean 1, so the truth is the batch size / the cost of a call without spikes."""

    call: float = 0.01
    """Log-normal noise of each call by itself."""
    block: float = 0.0
    """Log-normal noise that all calls of a block share."""
    lingering: float = 0.0
    """Correlation of the blocks' shared noise with that of the block before, at the same size."""
    spike_rate: float = 0.0
    """Share of calls that take `spike` times as long."""
    spike: float = 10.0
    drift_per_s: float = 0.0
    """Relative growth of the time per call, per second of the clock: 0.01 is one per cent slower each second."""


@dataclass(slots=True)
class ScriptedRunner:
    """A `measure.Runner` without a model. `failures` fail at preparation, `late_failures` at the given block (from 0).

    `keep_calls=False` leaves the single call times out of the blocks, for simulations that look at throughput only.
    """

    clock: Clock = field(default_factory=Clock)
    cost: Callable[[int], float] = field(default_factory=CostCurve)
    noise: Noise = field(default_factory=Noise)
    seed: int = 0
    failures: Mapping[int, Failure] = field(default_factory=dict)
    late_failures: Mapping[int, tuple[int, Failure]] = field(default_factory=dict)
    processed: Callable[[int], int] | None = None
    """What a call at a batch size really processes, when that is not the batch size."""
    faults_per_call: Callable[[int], int] | None = None
    keep_calls: bool = True
    log: list[str] = field(default_factory=list)
    _random: np.random.Generator = field(init=False)
    _drawn: dict[int, list[tuple[float, list[float]]]] = field(default_factory=dict)
    _shared: dict[int, float] = field(default_factory=dict)
    _blocks: dict[int, int] = field(default_factory=dict)
    _last: int | None = None

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def truth(self, batch_size: int) -> float:
        """Items/s without spikes and drift."""
        items = self.processed(batch_size) if self.processed else batch_size
        return items / self.cost(batch_size)

    def calls_per_block(self, batch_size: int) -> int:
        return max(1, round(BLOCK_S / self.cost(batch_size)))

    def prepare(self, batch_size: int) -> Prepared | Failure:
        self.log.append(f"prepare {batch_size}")
        self.clock.advance(SETUP_S)
        if batch_size in self.failures:
            return self.failures[batch_size]
        return Prepared(
            batch_size,
            cold_ms=self.cost(batch_size) * 20e3,
            calls_per_block=self.calls_per_block(batch_size),
            effective_batch_size=self.processed(batch_size) if self.processed else batch_size,
        )

    def block(self, batch_size: int, round_index: int) -> Block | Failure:
        self.log.append(f"block {batch_size}")
        taken = self._blocks.get(batch_size, 0)
        self._blocks[batch_size] = taken + 1
        if batch_size in self.late_failures and self.late_failures[batch_size][0] == taken:
            return self.late_failures[batch_size][1]
        cost = self.cost(batch_size)
        if self._last != batch_size:
            self.clock.advance(cost)
        self._last = batch_size
        mean, calls = self._draw(batch_size)
        factor = cost * self._shared_factor(batch_size) * math.exp(self.noise.drift_per_s * self.clock.now)
        count = self.calls_per_block(batch_size)
        seconds = mean * count * factor
        self.clock.advance(seconds)
        items = self.processed(batch_size) if self.processed else batch_size
        return Block(
            batch_size,
            calls=count,
            seconds=seconds,
            call_ms=tuple(call * factor * 1e3 for call in calls),
            items=items * count,
            faults=self.faults_per_call(batch_size) * count if self.faults_per_call else None,
            round=round_index,
        )

    def _draw(self, batch_size: int) -> tuple[float, list[float]]:
        """Mean of a block's relative call times, and the times themselves when they are kept."""
        waiting = self._drawn.setdefault(batch_size, [])
        if not waiting:
            sigma, shape = self.noise.call, (_ROWS, self.calls_per_block(batch_size))
            times = np.exp(sigma * self._random.standard_normal(shape) - sigma * sigma / 2.0)
            if self.noise.spike_rate > 0.0:
                times[self._random.random(shape) < self.noise.spike_rate] *= self.noise.spike
            rows = times.tolist() if self.keep_calls else [[]] * _ROWS
            waiting.extend(zip(times.mean(axis=1).tolist(), rows, strict=True))
        return waiting.pop()

    def _shared_factor(self, batch_size: int) -> float:
        sigma, keep = self.noise.block, self.noise.lingering
        if sigma <= 0.0:
            return 1.0
        fresh = float(self._random.standard_normal())
        before = self._shared.get(batch_size)
        level = fresh if before is None else keep * before + math.sqrt(1.0 - keep * keep) * fresh
        self._shared[batch_size] = level
        return math.exp(sigma * level - sigma * sigma / 2.0)


def drive(strategy: Strategy, runner: Runner, clock: Clock, *, most_blocks: int = 100_000) -> int:
    """Ask, measure and tell until the strategy is done, as the session does. Returns the blocks measured.

    Raises AssertionError when the strategy does not end within `most_blocks`.
    """
    blocks = 0
    for _, happening in measure.drive(strategy, runner, lambda: clock.now):
        blocks += isinstance(happening, Block)
        if blocks > most_blocks:
            raise AssertionError(f"no end after {most_blocks} blocks")
    return blocks
