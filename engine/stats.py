"""The statistics of blocks, pure: throughput and ratios with their intervals, outliers, drift; those of calls from `engine.latency`.

The sample is the *block*, not the call: calls of one block share what the machine does in those 50 ms, so only the
spread between blocks tells how far a figure can be trusted. The location is the 20 % trimmed mean of the blocks' time per
item: a neighbour's hiccup in a few blocks does not move it, while a tail that is in every block counts in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import TypeVar

import numpy as np

from engine.distributions import (
    binomial_tail_at_least,
    binomial_tail_at_most,
    chi_squared_quantile,
    t_quantile,
)
from engine.latency import (
    CONFIDENCE,
    MIN_CALLS_FOR_PERCENTILE,
    Floats,
    LimitSays,
    call_times,
    calls_needed,
    latency_percentiles,
    limit_says,
    limit_verdict,
    median,
    percentile,
    percentile_at_least,
)
from engine.results import Block

__all__ = [
    "CONFIDENCE",
    "MIN_BLOCKS",
    "MIN_CALLS_FOR_PERCENTILE",
    "Drift",
    "Floats",
    "Interval",
    "LimitSays",
    "Location",
    "Outliers",
    "binomial_tail_at_least",
    "binomial_tail_at_most",
    "call_times",
    "calls_needed",
    "drift",
    "interval_of_times",
    "latency_percentiles",
    "limit_says",
    "limit_verdict",
    "location_of",
    "luck_factor",
    "mean_throughput",
    "outliers",
    "paired_ratio",
    "percentile",
    "percentile_at_least",
    "ratio_interval",
    "settled",
    "t_quantile",
    "throughput_estimate",
    "throughput_interval",
]

T = TypeVar("T")

MIN_BLOCKS = 6
"""Below this no interval is given: with one block trimmed at each end, fewer leave under three degrees of freedom."""
LUCK_GUARD = 0.8
"""Confidence of the bound in `luck_factor`; the smallest of 0.7, 0.8 and 0.9 that kept 95 % intervals true at 3 % noise
and 93 % and more at 10 % when every measurement stops at its first narrow interval."""
_TRIM = 0.2
_LARGEST_AUTOCORRELATION = 0.8


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its confidence interval, in the figure's own unit; all three finite and above 0."""

    estimate: float
    low: float
    high: float

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width as a fraction of the estimate: 0.02 is "± 2 %"."""
        return (self.high - self.low) / 2.0 / self.estimate


@dataclass(frozen=True, slots=True)
class Outliers:
    """Calls far above the typical one. `time_share` is the part of the wall time lost to their excess over the median."""

    calls: int
    of: int
    share: float
    time_share: float
    largest_ms: float
    median_ms: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A steady change of throughput, relative, per second of measured time, with its 95 % interval."""

    per_second: float
    low: float
    high: float
    seconds: float
    """Measured time from the first to the last round."""
    significant: bool
    """Whether 99 % confidence excludes no drift."""

    @property
    def total(self) -> float:
        """Relative change from the first to the last round."""
        return math.expm1(max(-50.0, min(50.0, self.per_second * self.seconds)))


@dataclass(frozen=True, slots=True)
class Location:
    """Natural log of items/s, its standard error (the one that the interval is made with) and the degrees of freedom of that."""

    level: float
    error: float
    freedom: int


@dataclass(frozen=True, slots=True)
class _Location:
    """A trimmed mean, its standard error and the degrees of freedom of that."""

    mean: float
    error: float
    freedom: int


# --- throughput -------------------------------------------------------------------------------------------------


def throughput_interval(blocks: Sequence[Block], confidence: float = CONFIDENCE) -> Interval | None:
    """Items/s with its interval; None for fewer than `MIN_BLOCKS` blocks.

    Trimmed mean of the blocks' seconds per item with the t interval of its winsorised variance (Tukey and McLaughlin 1963;
    Yuen 1974), widened by `luck_factor` because a measurement may stop at it, and taken as a factor on both sides so that
    it stays above 0 and can be read as ± x %. Blocks must be in the order in which they were measured: when neighbours
    resemble each other the interval is widened (`_location`). For a number of blocks fixed beforehand it holds more than
    promised (98 to 99 % at 6 to 10 blocks); tests/bench/coverage_table.py prints what it holds at the stopping rule.
    """
    return interval_of_times(_seconds_per_item(blocks), confidence)


def interval_of_times(seconds_per_item: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """`throughput_interval` from the blocks' seconds per item."""
    if len(seconds_per_item) < MIN_BLOCKS:
        return None
    place = _location(_steady(seconds_per_item))
    return _around(1.0 / place.mean, _margin(place.error / place.mean, place.freedom, confidence))


def throughput_estimate(blocks: Sequence[Block]) -> float | None:
    """Items/s by the estimator of `throughput_interval`, for any number of blocks; None without blocks or items."""
    times = sorted(_steady(_seconds_per_item(blocks)))
    if not times:
        return None
    cut = _cut(len(times))
    kept = times[cut : len(times) - cut]
    return len(kept) / sum(kept)


def location_of(blocks: Sequence[Block]) -> Location | None:
    """Where the blocks put a size, as `throughput_interval` sees it; None for fewer than `MIN_BLOCKS` blocks."""
    times = _seconds_per_item(blocks)
    if len(times) < MIN_BLOCKS:
        return None
    place = _location(_steady(times))
    return Location(
        -math.log(place.mean), place.error / place.mean * luck_factor(place.freedom), place.freedom
    )


def mean_throughput(blocks: Sequence[Block]) -> float | None:
    """Items / wall time over all timed calls, interruptions included; None without blocks or items."""
    items = sum(block.items for block in blocks)
    return items / math.fsum(block.seconds for block in blocks) if items > 0 else None


def settled(blocks: Sequence[Block], precision: float) -> bool:
    """Whether the throughput's 95 % interval is within ± `precision`: the rule at which a size is stable."""
    interval = throughput_interval(blocks)
    return interval is not None and interval.relative_half_width <= precision


def luck_factor(freedom: int, confidence: float = LUCK_GUARD) -> float:
    """Upper confidence bound of a standard error as a multiple of its estimate: sqrt(df / chi-squared quantile).

    A measurement that stops when its interval is narrow stops by preference when its blocks happened to agree; the
    interval is then too narrow by about as much as such luck reaches. This factor takes that back: 1.7 at 3 degrees of
    freedom, 1.2 at 17, 1.07 at 100.
    """
    return math.sqrt(freedom / chi_squared_quantile(1.0 - confidence, freedom))


def _seconds_per_item(blocks: Sequence[Block]) -> list[float]:
    """Seconds per item of each block; nothing at all when a block processed no item, for then there is no throughput."""
    if any(block.items <= 0 for block in blocks):
        return []
    return [block.seconds / block.items for block in blocks]


def _steady(values: Sequence[T]) -> Sequence[T]:
    """Without the first once `MIN_BLOCKS` others are there.

    A size's first block gives the first answer. It is taken right after the size's warm-up, seconds away from the blocks of
    other sizes in that round, so under drift it would favour the sizes that come first.
    """
    return values[1:] if len(values) > MIN_BLOCKS else values


def _cut(count: int) -> int:
    """Values trimmed at each end."""
    return int(_TRIM * count)


def _location(values: Sequence[float]) -> _Location:
    """Trimmed mean of at least 3 values in measured order.

    Plain floats: blocks are few, and at ten values this is five times as quick as arrays.

    The standard error is sqrt(SS_w / (h (h - 1))), SS_w the winsorised sum of squares and h the values kept. Positive
    lag-1 autocorrelation r of the winsorised values (corrected for its bias of -1/n) multiplies it by
    sqrt((1 + r) / (1 - r)), the factor for the mean of a first-order autoregression: a neighbour's load outlasts a block.
    """
    count = len(values)
    cut = _cut(count)
    ordered = sorted(values)
    kept = ordered[cut : count - cut]
    lowest, highest = kept[0], kept[-1]
    clipped = [lowest if v < lowest else highest if v > highest else v for v in values]  # noqa: FURB136 - calls of min and max are most of the time here
    centre = sum(clipped) / count
    deviations = [value - centre for value in clipped]
    squares = sum(map(mul, deviations, deviations))
    freedom = len(kept) - 1
    error = math.sqrt(squares / (len(kept) * freedom))
    if squares > 0.0:
        resemblance = sum(map(mul, deviations, deviations[1:])) / squares + 1.0 / count
        r = min(max(resemblance, 0.0), _LARGEST_AUTOCORRELATION)
        error *= math.sqrt((1.0 + r) / (1.0 - r))
    return _Location(sum(kept) / len(kept), error, freedom)


def _margin(error: float, freedom: int, confidence: float) -> float:
    return t_quantile(0.5 + confidence / 2.0, freedom) * luck_factor(freedom) * error


def _around(estimate: float, margin: float) -> Interval:
    """The interval estimate * exp(± margin); the margin is bounded so that nothing overflows."""
    factor = math.exp(min(margin, 50.0))
    return Interval(estimate, estimate / factor, estimate * factor)


# --- ratios -----------------------------------------------------------------------------------------------------


def ratio_interval(
    a_blocks: Sequence[Block], b_blocks: Sequence[Block], confidence: float = CONFIDENCE
) -> Interval | None:
    """Throughput of a / throughput of b with its interval; None when either has fewer than `MIN_BLOCKS` blocks.

    Over the rounds in which both took part the ratio is formed round by round, so that what slowed a whole round (drift,
    neighbours) cancels; the interval is the trimmed one of the log ratios. When fewer than `MIN_BLOCKS` rounds are shared,
    or less than half of the longer series is and neither drifts, the two trimmed means are compared unpaired
    (Yuen 1974, with Welch's degrees of freedom).
    """
    if min(len(_seconds_per_item(a_blocks)), len(_seconds_per_item(b_blocks))) < MIN_BLOCKS:
        return None
    a_times, b_times = _times_by_round(_steady(a_blocks)), _times_by_round(_steady(b_blocks))
    shared = sorted(a_times.keys() & b_times.keys())
    longer = max(len(a_times), len(b_times))
    if len(shared) >= MIN_BLOCKS and (2 * len(shared) >= longer or _drifts(a_blocks) or _drifts(b_blocks)):
        place = _location([math.log(b_times[r] / a_times[r]) for r in shared])
        return _around(math.exp(place.mean), _margin(place.error, place.freedom, confidence))
    a, b = _location(_seconds_per_item(_steady(a_blocks))), _location(_seconds_per_item(_steady(b_blocks)))
    a_part, b_part = (a.error / a.mean) ** 2, (b.error / b.mean) ** 2
    total = a_part + b_part
    if total == 0.0:
        return _around(b.mean / a.mean, 0.0)
    freedom = max(1, int(total**2 / (a_part**2 / a.freedom + b_part**2 / b.freedom)))
    return _around(b.mean / a.mean, _margin(math.sqrt(total), freedom, confidence))


def paired_ratio(
    logs: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, Interval | None] | None:
    """The ratio that pairs of measurements show, from the logs of the pairs' ratios in measured order, with its interval.

    The estimator and the interval of `ratio_interval`; no interval below `MIN_BLOCKS` pairs, nothing at all without a pair.
    """
    if not logs:
        return None
    if len(logs) < MIN_BLOCKS:
        return math.exp(math.fsum(logs) / len(logs)), None
    place = _location(logs)
    found = _around(math.exp(place.mean), _margin(place.error, place.freedom, confidence))
    return found.estimate, found


def _times_by_round(blocks: Iterable[Block]) -> dict[int, float]:
    """Seconds per item of each round (blocks of the same round taken together)."""
    seconds: dict[int, float] = {}
    items: dict[int, int] = {}
    for block in blocks:
        seconds[block.round] = seconds.get(block.round, 0.0) + block.seconds
        items[block.round] = items.get(block.round, 0) + block.items
    return {round_: seconds[round_] / items[round_] for round_ in seconds}


def _drifts(blocks: Sequence[Block]) -> bool:
    found = drift([blocks])
    return found is not None and found.significant


# --- outliers and drift -----------------------------------------------------------------------------------------


def outliers(blocks: Sequence[Block]) -> Outliers | None:
    """Calls over 1.5 times the median and over 5 robust standard deviations of the log times; None below 8 calls.

    The robust standard deviation is 1.4826 times the median absolute deviation, so that the outliers themselves do not
    hide each other.
    """
    times = call_times(blocks)
    if len(times) < MIN_CALLS_FOR_PERCENTILE or float(times.min()) <= 0.0:
        return None
    logs = np.log(times)
    centre = median(logs)
    spread = 1.4826 * median(np.abs(logs - centre))
    beyond = times[logs > centre + max(math.log(1.5), 5.0 * spread)]
    typical = math.exp(centre)
    excess = float((beyond - typical).sum())
    return Outliers(
        calls=len(beyond),
        of=len(times),
        share=len(beyond) / len(times),
        time_share=excess / float(times.sum()),
        largest_ms=float(times.max()),
        median_ms=typical,
    )


def drift(series: Sequence[Sequence[Block]]) -> Drift | None:
    """The common trend of the throughput of several sizes over the run; None when it cannot be told.

    `series` holds the blocks of each size. A line of log throughput over measured time, one slope for all sizes and a
    level for each (the "within" estimator); the variance is clustered by round, because a busy moment falls on all sizes of a
    round. Values are clipped at 4 robust standard deviations around their size's median. Time is the sum of the blocks'
    seconds in round order; time between blocks is not in it.
    """
    flat = sorted(
        (
            (block.round, size, block)
            for size, blocks in enumerate(series)
            for block in blocks
            if block.items > 0
        ),
        key=lambda entry: (entry[0], entry[1]),
    )
    if len(flat) < MIN_BLOCKS:
        return None
    rounds = np.unique(np.array([entry[0] for entry in flat]), return_inverse=True)[1]
    sizes = np.array([entry[1] for entry in flat])
    seconds = np.array([entry[2].seconds for entry in flat])
    levels = np.log(np.array([entry[2].throughput for entry in flat]))
    round_seconds = np.bincount(rounds, weights=seconds)
    middles = np.cumsum(round_seconds) - round_seconds / 2.0
    times = middles[rounds]
    for size in np.unique(sizes):
        of_size = sizes == size
        levels[of_size] = _clipped(levels[of_size])
        levels[of_size] -= levels[of_size].mean()
        times[of_size] -= times[of_size].mean()
    count = len(middles)
    leverage = float(times @ times)
    if count < MIN_BLOCKS or leverage <= 0.0:
        return None
    slope = float(times @ levels) / leverage
    scores = np.bincount(rounds, weights=times * (levels - slope * times))
    error = math.sqrt(float(scores @ scores) * count / (count - 2)) / leverage
    margin = t_quantile(0.975, count - 2) * error
    significant = abs(slope) > max(t_quantile(0.995, count - 2) * error, 1e-12)
    return Drift(slope, slope - margin, slope + margin, float(middles[-1] - middles[0]), significant)


def _clipped(values: Floats) -> Floats:
    centre = median(values)
    spread = 1.4826 * median(np.abs(values - centre))
    return np.clip(values, centre - 4.0 * spread, centre + 4.0 * spread)
