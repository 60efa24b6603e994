"""Runs the search on curves with a known truth and counts what it got right; used by the tests and by the bench table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.limits import judge_limit
from engine.schedule import Sweep
from engine.search import Search
from engine.standing import stand
from tests.unit.curves import CURVES, Curve, runner_on
from tests.unit.scripted import Noise, drive

GOOD = 0.98
KNEE = 0.95


@dataclass(frozen=True, slots=True)
class Setting:
    """Noise of a block (standard deviation, relative), and whether interruptions of 20 ms come, one a second."""

    noise: float
    spikes: bool = False

    @property
    def name(self) -> str:
        return f"{self.noise:.0%}{', spikes' if self.spikes else ''}"


SETTINGS = (Setting(0.01), Setting(0.03), Setting(0.03, spikes=True), Setting(0.10))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One search against the truth; shares are of the best true throughput among all whole numbers that fit."""

    peak_share: float
    knee_share: float
    ties_hold: bool
    """The truly best of the measured sizes is the peak or among its ties, and one of these reaches 98 % of the best there is."""
    certain: bool
    measured_s: float
    blocks: int
    sizes: int

    @property
    def falsely_certain(self) -> bool:
        return self.certain and self.peak_share < GOOD


def search(curve: Curve, setting: Setting, seed: int, *, best: float) -> Outcome:
    """One search with the default plan. `best` is the curve's true best throughput."""
    runner = runner_on(curve, noise=setting.noise, seed=seed, spikes=setting.spikes)
    strategy = Search(seed=seed)
    blocks = drive(strategy, runner, runner.clock)
    standing = stand(strategy.measurements())
    assert standing.peak is not None
    assert standing.knee is not None
    assert standing.field is not None
    named = {standing.peak, *standing.ties}
    best_measured = max(standing.field.sizes, key=curve.throughput)
    highest = max(map(curve.throughput, named))
    return Outcome(
        peak_share=curve.throughput(standing.peak) / best,
        knee_share=curve.throughput(standing.knee) / best,
        ties_hold=(best_measured in named or highest >= curve.throughput(best_measured))
        and highest >= GOOD * best,
        certain=standing.certain,
        measured_s=runner.measured_s,
        blocks=blocks,
        sizes=len(standing.field.sizes),
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """Shares over many runs; `seconds` is the median of the simulated calls."""

    runs: int
    good: float
    ties_hold: float
    knee_good: float
    certain: float
    falsely_certain: float
    seconds: float
    sizes: float
    worst: float


def summary(outcomes: Sequence[Outcome]) -> Summary:
    def share(found: Iterable[bool]) -> float:
        return sum(found) / len(outcomes)

    return Summary(
        runs=len(outcomes),
        good=share(one.peak_share >= GOOD for one in outcomes),
        ties_hold=share(one.ties_hold for one in outcomes),
        knee_good=share(one.knee_share >= KNEE for one in outcomes),
        certain=share(one.certain for one in outcomes),
        falsely_certain=share(one.falsely_certain for one in outcomes),
        seconds=statistics.median(one.measured_s for one in outcomes),
        sizes=statistics.median(one.sizes for one in outcomes),
        worst=min(one.peak_share for one in outcomes),
    )


def exhaustive_s(curve: Curve, setting: Setting, *, seed: int = 0) -> float:
    """Simulated calls of the exhaustive sweep at the same precision, seconds."""
    runner = runner_on(curve, noise=setting.noise, seed=seed, spikes=setting.spikes)
    strategy = Sweep(curve.exhaustive(), budget_s=math.inf, size_budget_s=math.inf, seed=seed)
    drive(strategy, runner, runner.clock, most_blocks=1_000_000)
    return runner.measured_s


@dataclass(frozen=True, slots=True)
class LimitOutcome:
    """Verdicts on sizes of one search under a limit: how many said pass and fail, and how many of those were wrong."""

    passes: int
    false_passes: int
    fails: int
    false_fails: int
    best: int | None
    best_share: float
    """True throughput of the recommended size over that of the fastest size that truly keeps the limit; 0 without either."""


LIMIT_CURVES = tuple(
    curve for curve in CURVES if curve.name in ("rising, then flat", "interior peak", "small CNN")
)
CALL_NOISE = 0.08


def search_under_limit(curve: Curve, limit_ms: float, seed: int) -> LimitOutcome:
    """One search for the fastest size whose p99 stays under the limit; calls spread log-normally by `CALL_NOISE`."""
    runner = runner_on(curve, noise=0.0, seed=seed, keep_calls=True)
    runner.noise = Noise(call=CALL_NOISE)
    strategy = Search(seed=seed, limit_ms=limit_ms)
    drive(strategy, runner, runner.clock)
    known = strategy.measurements()
    limit = judge_limit(known, stand(known), limit_ms=limit_ms, percentile=99)
    says = {one.batch_size: one.verdict for one in limit.verdicts}
    keeps = {size: p99_ms(curve, size) < limit_ms for size in says}
    passes = [size for size, verdict in says.items() if verdict == "pass"]
    fails = [size for size, verdict in says.items() if verdict == "fail"]
    keeping = [size for size in range(1, curve.largest + 1) if p99_ms(curve, size) < limit_ms]
    share = 0.0
    if limit.best is not None and keeping:
        share = curve.throughput(limit.best) / max(map(curve.throughput, keeping))
    return LimitOutcome(
        passes=len(passes),
        false_passes=sum(not keeps[size] for size in passes),
        fails=len(fails),
        false_fails=sum(keeps[size] for size in fails),
        best=limit.best,
        best_share=share,
    )


def p99_ms(curve: Curve, batch_size: int) -> float:
    """The true p99 of a call under `CALL_NOISE`."""
    return curve.ms(batch_size) * math.exp(2.3263 * CALL_NOISE - CALL_NOISE**2 / 2.0)


def limits_for(curve: Curve) -> tuple[float, ...]:
    """Limits that lie at the p99 of some size, a little above and below, and far from all."""
    return tuple(p99_ms(curve, size) * factor for size in (8, 64) for factor in (0.97, 1.0, 1.03, 1.2))
