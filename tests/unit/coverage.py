"""Many simulated sweeps of the scripted model: how often the interval of a stable size holds the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine import stats
from engine.schedule import Sweep
from tests.unit.scripted import Clock, Noise, ScriptedRunner, drive

SIZES = (1, 8, 32, 128, 512)

CASES = {
    "1 % a call": Noise(call=0.01),
    "3 % a call": Noise(call=0.03),
    "10 % a call": Noise(call=0.10),
    "1 % a call, spikes": Noise(call=0.01, spike_rate=0.001),
    "3 % a call, spikes": Noise(call=0.03, spike_rate=0.001),
    "10 % a call, spikes": Noise(call=0.10, spike_rate=0.001),
    "1 % a block": Noise(call=0.01, block=0.01),
    "3 % a block": Noise(call=0.01, block=0.03),
    "10 % a block": Noise(call=0.01, block=0.10),
    "10 % a block, spikes": Noise(call=0.01, block=0.10, spike_rate=0.001),
    "3 % a block, lingering 0.3": Noise(call=0.01, block=0.03, lingering=0.3),
    "10 % a block, lingering 0.3": Noise(call=0.01, block=0.10, lingering=0.3),
    "3 % a block, lingering 0.5": Noise(call=0.01, block=0.03, lingering=0.5),
}


@dataclass(slots=True)
class Coverage:
    """What the sweeps said of one batch size."""

    sweeps: int = 0
    stable: int = 0
    held: int = 0
    blocks: list[int] = field(default_factory=list)
    half_widths: list[float] = field(default_factory=list)

    @property
    def stable_share(self) -> float:
        return self.stable / self.sweeps

    @property
    def holds(self) -> float:
        """Share of the sweeps with a stable size whose interval holds the truth; 1 when none was stable."""
        return self.held / self.stable if self.stable else 1.0

    @property
    def median_blocks(self) -> float:
        return float(np.median(self.blocks)) if self.blocks else 0.0

    @property
    def median_half_width(self) -> float:
        return float(np.median(self.half_widths)) if self.half_widths else 0.0


def simulate(noise: Noise, sweeps: int, sizes: tuple[int, ...] = SIZES) -> dict[int, Coverage]:
    """Coverage by batch size over seeded sweeps with the default precision and ceilings."""
    figures = {size: Coverage() for size in sizes}
    for seed in range(sweeps):
        clock = Clock()
        runner = ScriptedRunner(clock, noise=noise, seed=seed, keep_calls=False)
        sweep = Sweep(sizes, seed=seed)
        drive(sweep, runner, clock)
        for measurement in sweep.measurements():
            of = figures[measurement.batch_size]
            of.sweeps += 1
            if measurement.state != "stable":
                continue
            interval = stats.throughput_interval(measurement.blocks)
            assert interval is not None
            of.stable += 1
            of.held += interval.low <= runner.truth(measurement.batch_size) <= interval.high
            of.blocks.append(len(measurement.blocks))
            of.half_widths.append(interval.relative_half_width)
    return figures


Floats = NDArray[np.float64]
PlainInterval = Callable[[Floats], tuple[Floats, Floats]]
"""From blocks (rows: sweeps) to each row's location and the half width of its interval."""


def mean_and_t(times: Floats) -> tuple[Floats, Floats]:
    """The textbook interval of the mean."""
    count = times.shape[1]
    error = times.std(axis=1, ddof=1) / math.sqrt(count)
    return times.mean(axis=1), stats.t_quantile(0.975, count - 1) * error


def median_and_deviation(times: Floats) -> tuple[Floats, Floats]:
    """The textbook robust figure: the median, with the median absolute deviation as its spread."""
    count = times.shape[1]
    median = np.median(times, axis=1)
    spread = 1.4826 * np.median(np.abs(times - median[:, None]), axis=1)
    return median, stats.t_quantile(0.975, count - 1) * spread / math.sqrt(count)


def simulate_plain(
    interval: PlainInterval, noise: Noise, sweeps: int, *, precision: float = 0.02, most_blocks: int = 200
) -> float:
    """How often the first interval within the precision holds the truth, when every block from the sixth on is looked at.

    One batch size of one call a block, true time 1.
    """
    random = np.random.default_rng(0)
    shared = random.standard_normal((sweeps, most_blocks))
    for block in range(1, most_blocks):
        fresh = math.sqrt(1.0 - noise.lingering**2) * shared[:, block]
        shared[:, block] = noise.lingering * shared[:, block - 1] + fresh
    times = np.exp(noise.block * shared - noise.block**2 / 2.0)
    live = np.arange(sweeps)
    held = 0
    for count in range(stats.MIN_BLOCKS, most_blocks + 1):
        location, half_width = interval(times[live, :count])
        narrow = half_width <= precision * location
        held += int(np.count_nonzero(np.abs(location - 1.0)[narrow] <= half_width[narrow]))
        live = live[~narrow]
        if not len(live):
            break
    return held / (sweeps - len(live))
