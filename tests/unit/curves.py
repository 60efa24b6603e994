"""Truth curves for the search: what a call really takes at each batch size, and where memory ends or the clock slows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np

from engine.results import Block, Failure, Prepared
from tests.unit.scripted import Clock, Noise, ScriptedRunner

LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Curve:
    """`ms` is the time of one call. `memory_end`: the largest size that fits. `slowdown`: factor on all times at a clock time."""

    name: str
    ms: Callable[[int], float]
    memory_end: int | None = None
    slowdown: Callable[[float], float] = lambda _: 1.0

    @property
    def largest(self) -> int:
        return min(LARGEST, self.memory_end or LARGEST)

    def throughput(self, batch_size: int) -> float:
        """True items/s."""
        return batch_size / self.ms(batch_size) * 1000.0

    def best(self) -> tuple[int, float]:
        """The batch size with the highest true throughput among all whole numbers that fit, and that throughput."""
        return max(
            ((size, self.throughput(size)) for size in range(1, self.largest + 1)), key=lambda pair: pair[1]
        )

    def exhaustive(self) -> tuple[int, ...]:
        """All powers of two that fit, and seven sizes between each two of them."""
        sizes: set[int] = set()
        for power in range(13):
            low = 1 << power
            sizes.update(low + low * eighth // 8 for eighth in range(8))
        return tuple(sorted(size for size in sizes if size <= self.largest))


def _hill(size: int, top: float, width: float, height: float) -> float:
    return height * math.exp(-((math.log2(size / top) / width) ** 2))


def _two_hills(size: int) -> float:
    return size / (2.0 + _hill(size, 32, 1.8, 10.0) + _hill(size, 256, 1.1, 10.1))


def _drawn(points: dict[int, float]) -> Callable[[int], float]:
    """Through measured points, straight in the logarithms."""
    sizes = np.log(np.array(list(points)))
    times = np.log(np.array(list(points.values())))
    slope = float((times[-1] - times[-2]) / (sizes[-1] - sizes[-2]))

    def ms(size: int) -> float:
        at = math.log(size)
        if at > sizes[-1]:
            return math.exp(float(times[-1]) + slope * (at - float(sizes[-1])))
        return math.exp(float(np.interp(at, sizes, times)))

    return ms


def _tiles(size: int, tile: int) -> int:
    return math.ceil(size / tile) * tile


def _throttle(now: float) -> float:
    """Full speed for 4 s, then down to 75 % over 6 s."""
    return 1.0 / (1.0 - 0.25 * min(1.0, max(0.0, (now - 4.0) / 6.0)))


CURVES = (
    Curve("rising, then flat", lambda b: 2.0 + 0.05 * b),
    Curve("interior peak", lambda b: 2.0 + 0.05 * b + b * b / 7200.0),
    Curve("sharp interior peak", lambda b: 1.0 + 0.05 * b * (1.0 + abs(math.log2(b / 64)) ** 1.5 * 0.12)),
    Curve("two near-equal peaks", _two_hills),
    Curve("cliff after 128", lambda b: (1.0 + 0.05 * b) * (1.0 if b <= 128 else 1.35)),
    Curve("cliff after 152", lambda b: (1.0 + 0.05 * b) * (1.0 if b <= 152 else 1.35)),
    Curve("steps at multiples of 8", lambda b: 0.6 + 0.05 * _tiles(b, 8) + b * b / 30000.0),
    Curve("steps at multiples of 16", lambda b: 0.6 + 0.05 * _tiles(b, 16) + b * b / 14000.0),
    Curve("waves of 96", lambda b: 0.5 + 0.03 * _tiles(b, 96)),
    Curve("plateau from 8", lambda b: 0.02 + 0.05 * max(b, 8)),
    Curve("all tie", lambda b: 0.05 * b),
    Curve("falling from 1", lambda b: 0.2 * b**1.15),
    Curve("memory ends after 100", lambda b: 1.0 + 0.05 * b, memory_end=100),
    Curve("throttling, interior peak", lambda b: 2.0 + 0.05 * b + b * b / 7200.0, slowdown=_throttle),
    Curve("10 ms at any size", lambda _: 10.0),
    Curve("small CNN", _drawn({1: 0.163, 8: 0.55, 32: 1.54, 128: 5.99, 512: 29.2, 2048: 163.0})),
    Curve("slow calls", lambda b: 15.0 + 10.0 * b),
)


@dataclass(slots=True)
class CurveRunner(ScriptedRunner):
    """A scripted runner over a curve; interruptions come by time (`spikes_per_s`, each `spike_s` long), as a system's do."""

    curve: Curve = CURVES[0]
    spikes_per_s: float = 0.0
    spike_s: float = 0.02
    measured_s: float = 0.0
    """Sum of the simulated calls, without making sizes ready."""
    _spikes: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        ScriptedRunner.__post_init__(self)
        self._spikes = np.random.default_rng((self.seed, 1))
        self.cost = self._cost

    def _cost(self, batch_size: int) -> float:
        return self.curve.ms(batch_size) / 1000.0

    def prepare(self, batch_size: int) -> Prepared | Failure:
        if self.curve.memory_end is not None and batch_size > self.curve.memory_end:
            return Failure("oom", "out of memory", f"batch size {batch_size} does not fit")
        return ScriptedRunner.prepare(self, batch_size)

    def block(self, batch_size: int, round_index: int) -> Block | Failure:
        start = self.clock.now
        block = ScriptedRunner.block(self, batch_size, round_index)
        if isinstance(block, Failure):
            return block
        factor = self.curve.slowdown(start)
        late = (
            self.spike_s * int(self._spikes.poisson(self.spikes_per_s * block.seconds))
            if self.spikes_per_s
            else 0.0
        )
        seconds = block.seconds * factor + late
        self.clock.advance(seconds - block.seconds)
        self.measured_s += self.clock.now - start
        calls = [call * factor for call in block.call_ms]
        if late and calls:
            calls[int(self._spikes.integers(len(calls)))] += late * 1000.0
        return msgspec.structs.replace(block, seconds=seconds, call_ms=tuple(calls))


def runner_on(
    curve: Curve, *, noise: float, seed: int, spikes: bool = False, keep_calls: bool = False
) -> CurveRunner:
    """A runner whose blocks carry `noise` (standard deviation, relative), and each call as much again."""
    return CurveRunner(
        clock=Clock(),
        noise=Noise(call=noise, block=noise),
        seed=seed,
        keep_calls=keep_calls,
        curve=curve,
        spikes_per_s=1.0 if spikes else 0.0,
    )
