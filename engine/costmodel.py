"""Time per call as a fixed cost plus a cost per item, where it holds; what that allows, and what untried sizes will take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine import events
from engine.rivals import Field
from engine.stats import CONFIDENCE, t_quantile

LEAVES = 0.10
"""A call this much longer than the line, surely and from there on, has left it."""
OWN_DOUBT = 0.01
"""Relative error of a time beside its noise: no machine follows the line to more than this."""


@dataclass(frozen=True, slots=True)
class CallTime:
    """Time of one call at a size, ms, with its relative standard error."""

    batch_size: int
    ms: float
    error: float


@dataclass(frozen=True, slots=True)
class Line:
    """t = fixed + per_item * batch size, ms; the bounds are 95 % intervals, None where nothing is left to judge them by."""

    fixed: float
    per_item: float
    fixed_bounds: tuple[float, float] | None
    per_item_bounds: tuple[float, float] | None
    sizes: tuple[int, ...]
    doubt: float
    """Relative standard deviation of the times around the line."""
    covariance: tuple[float, float, float]
    """Variance of fixed, covariance, variance of per_item."""

    def ms(self, batch_size: int) -> float:
        return self.fixed + self.per_item * batch_size

    def error(self, batch_size: int) -> float:
        """Standard error of the line itself at a size, ms."""
        first, both, second = self.covariance
        return math.sqrt(max(0.0, first + 2.0 * both * batch_size + second * batch_size**2))


@dataclass(frozen=True, slots=True)
class CostModel:
    """The line and the times it was fitted to. Build it with `fit_cost`."""

    line: Line
    times: tuple[CallTime, ...]
    leaves_line_at: int | None

    def forecast_ms(self, batch_size: int) -> float:
        """Expected time of one call, ms: measured where measured, along the curve between and beyond, the line below."""
        times = self.times
        if batch_size <= times[0].batch_size:
            return (
                min(times[0].ms, self.line.ms(batch_size))
                if batch_size < times[0].batch_size
                else times[0].ms
            )
        last = times[-1]
        if batch_size >= last.batch_size:
            if self.leaves_line_at is not None:
                return last.ms * batch_size / last.batch_size
            return last.ms + self.line.per_item * (batch_size - last.batch_size)
        above = next(index for index, time in enumerate(times) if time.batch_size >= batch_size)
        low, high = times[above - 1], times[above]
        share = (batch_size - low.batch_size) / (high.batch_size - low.batch_size)
        return low.ms + share * (high.ms - low.ms)

    def ideal_throughput(self, batch_size: int) -> float:
        """Items per second that the line alone would give."""
        return batch_size / self.line.ms(batch_size) * 1000.0

    @property
    def gain_of_batching(self) -> float:
        """How many times the throughput of single calls batching can bring at the most: 1/c over 1/(a + c)."""
        return (self.line.fixed + self.line.per_item) / self.line.per_item

    @property
    def fixed_share(self) -> float:
        """The part of a single call that is fixed cost, 0 to 1."""
        return self.line.fixed / (self.line.fixed + self.line.per_item)

    def slowdown(self, batch_size: int) -> float | None:
        """Measured time over the line's at a size, minus 1; None for a size without a time."""
        for time in self.times:
            if time.batch_size == batch_size:
                return time.ms / self.line.ms(batch_size) - 1.0
        return None

    def event(self, *, item: str = "image", because: str = "", where: str = "") -> events.Cost:
        """What the verdict says of the cost. `item` names one item, `because` the reason for leaving the line, if known,
        `where` the process in which the size that leaves it was measured, when that is another one.
        """
        fixed, per_item = self.line.fixed_bounds, self.line.per_item_bounds
        return events.Cost(
            fixed_ms=self.line.fixed,
            per_item_ms=self.line.per_item,
            leaves_line_at=self.leaves_line_at,
            fixed_low_ms=fixed[0] if fixed else None,
            fixed_high_ms=fixed[1] if fixed else None,
            per_item_low_ms=per_item[0] if per_item else None,
            per_item_high_ms=per_item[1] if per_item else None,
            fitted_on=self.line.sizes,
            text=self._text(item, because, where),
        )

    def _text(self, item: str, because: str, where: str) -> str:
        gain = self.gain_of_batching
        parts = (
            [
                f"batching can bring at most {gain:,.{0 if gain >= 100 else 1}f} times",
                f"{self.fixed_share:.0%} of a single call is fixed cost",
            ]
            if gain >= 1.05
            else ["batching brings next to nothing: a call has hardly any fixed cost"]
        )
        leaves = self.leaves_line_at
        slower = self.slowdown(leaves) if leaves is not None else None
        if slower is not None:
            parts.append(
                f"from {leaves} on each {item} costs {slower:.0%} more than the line"
                + (f" {where}" if where else "")
                + (f": {because}" if because else "")
            )
        return "; ".join(parts).replace("%", " %")


def call_times(field: Field) -> list[CallTime]:
    """Time of one call at each size of the field, ascending."""
    found = []
    for index, size in enumerate(field.sizes):
        noise = float(field.noise[index]) if field.noise.size else 0.0
        found.append(
            CallTime(size, size / field.throughput(size) * 1000.0, noise / math.sqrt(field.counts[index]))
        )
    return found


def fit_cost(times: Sequence[CallTime], *, below: float = math.inf) -> CostModel | None:
    """The cost model of at least two sizes; None for fewer, or when time does not grow with the batch size at all.

    The line is fitted by weighted least squares on relative errors to the smallest sizes and takes in the next as long as that
    is not surely slower than it foretells; so the sizes that leave it (cache, memory) do not bend it. Sizes from `below` on,
    measured otherwise than those before, are held against the line and never taken in.
    """
    ordered = sorted(times, key=lambda time: time.batch_size)
    most = sum(time.batch_size < below for time in ordered)
    if most < 2:
        return None
    taken = min(3, most)
    line = _fit(ordered[:taken])
    while taken < most:
        # Among the smallest sizes noise may hide the growth: then the next has to show it.
        if (
            line is not None
            and _left(line, ordered[taken])
            and all(_left(line, time) for time in ordered[taken : taken + 2])
        ):
            break
        taken += 1
        line = _fit(ordered[:taken])
    if line is None:
        return None
    beyond = ordered[taken:]
    while beyond and not _left(line, beyond[0]):
        beyond = beyond[1:]
    return CostModel(line, tuple(ordered), beyond[0].batch_size if beyond else None)


def _left(line: Line, time: CallTime) -> bool:
    """Whether the time is surely more than `LEAVES` above the line."""
    expected = line.ms(time.batch_size)
    doubt = math.hypot(time.error * time.ms, line.error(time.batch_size))
    return time.ms - expected * (1.0 + LEAVES) > 2.0 * doubt


def _fit(times: Sequence[CallTime]) -> Line | None:
    """Least squares of relative errors, with neither cost below 0."""
    weights = [1.0 / (time.ms**2 * (time.error**2 + OWN_DOUBT**2)) for time in times]
    total = math.fsum(weights)
    mean_b = math.fsum(w * time.batch_size for w, time in zip(weights, times, strict=True)) / total
    mean_t = math.fsum(w * time.ms for w, time in zip(weights, times, strict=True)) / total
    spread = math.fsum(w * (time.batch_size - mean_b) ** 2 for w, time in zip(weights, times, strict=True))
    product = math.fsum(
        w * (time.batch_size - mean_b) * (time.ms - mean_t) for w, time in zip(weights, times, strict=True)
    )
    if spread <= 0.0 or product <= 0.0:
        return None
    per_item = product / spread
    fixed = mean_t - per_item * mean_b
    if fixed < 0.0:
        square = math.fsum(w * time.batch_size**2 for w, time in zip(weights, times, strict=True))
        per_item = (
            math.fsum(w * time.batch_size * time.ms for w, time in zip(weights, times, strict=True)) / square
        )
        fixed = 0.0
    misfit = math.fsum(
        w * (time.ms - fixed - per_item * time.batch_size) ** 2
        for w, time in zip(weights, times, strict=True)
    )
    freedom = len(times) - 2
    # Below 1 the times follow the line better than their errors allow: luck, which must not narrow the bounds.
    scale = max(1.0, misfit / freedom) if freedom else 1.0
    second = scale / spread
    both = -mean_b * second
    first = scale / total + mean_b**2 * second
    doubt = math.sqrt(
        math.fsum((time.ms / (fixed + per_item * time.batch_size) - 1.0) ** 2 for time in times)
        / max(freedom, 1)
    )
    reach = t_quantile(0.5 + CONFIDENCE / 2.0, freedom) if freedom else None
    return Line(
        fixed=fixed,
        per_item=per_item,
        fixed_bounds=_bounds(fixed, first, reach),
        per_item_bounds=_bounds(per_item, second, reach),
        sizes=tuple(time.batch_size for time in times),
        doubt=doubt,
        covariance=(first, both, second),
    )


def _bounds(value: float, variance: float, reach: float | None) -> tuple[float, float] | None:
    if reach is None:
        return None
    half = reach * math.sqrt(variance)
    return max(0.0, value - half), value + half
