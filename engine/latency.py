"""Percentiles of call times, the calls they need, and the test against a latency limit; pure. `engine.stats` passes them on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.distributions import binomial_tail_at_least, binomial_tail_at_most
from engine.events import Latency
from engine.results import Block

Floats = NDArray[np.float64]
LimitSays = Literal["pass", "fail", "unknown"]

CONFIDENCE = 0.95
MIN_CALLS_FOR_PERCENTILE = 8
_MOST_CALLS_FORETOLD = 10_000_000


def call_times(blocks: Sequence[Block]) -> Floats:
    """The wall times of all calls, ms, in measured order; means of groups where calls were timed in groups."""
    count = sum(len(block.call_ms) for block in blocks)
    return np.fromiter(chain.from_iterable(block.call_ms for block in blocks), np.float64, count)


def percentile(times: Sequence[float] | Floats, q: float) -> float:
    """The q-th percentile, 0 < q <= 100: the smallest of `times` with at least q % of them at or under it.

    (Nearest rank, the inverse of the empirical distribution; type 1 of Hyndman and Fan 1996. It is always a time that
    was measured.) Raises ValueError without times.
    """
    values = np.asarray(times, dtype=np.float64)
    if not len(values):
        raise ValueError("no percentile of nothing")
    rank = _rank(len(values), q)
    return float(np.partition(values, rank)[rank])


def median(values: Floats) -> float:
    """The middle value, or the mean of the two middle ones. Raises ValueError without values.

    `numpy.median` takes five times as long for the few thousand values of a run, and loads numpy.ma for it.
    """
    count = len(values)
    if not count:
        raise ValueError("no median of nothing")
    low, high = (count - 1) // 2, count // 2
    placed = np.partition(values, (low, high) if low != high else low)
    return (float(placed[low]) + float(placed[high])) / 2.0


def calls_needed(percentile: float) -> int:
    """Calls from which a percentile is shown: the fewest of which, with 95 % confidence, the slowest lies beyond it.

    Smallest n with 1 - q^n >= 0.95, and at least 8: p50 8, p90 29, p95 59, p99 299.
    """
    q = percentile / 100.0
    needed = math.ceil(math.log(1.0 - CONFIDENCE) / math.log(q) - 1e-12)
    return max(MIN_CALLS_FOR_PERCENTILE, needed)


def latency_percentiles(blocks: Sequence[Block]) -> Latency:
    """p50, p90, p95 and p99 of all timed calls, ms; None for those that need more calls."""
    times = np.sort(call_times(blocks))
    known = {q: float(times[_rank(len(times), q)]) for q in (50, 90, 95, 99) if len(times) >= calls_needed(q)}
    return Latency(p50=known.get(50), p90=known.get(90), p95=known.get(95), p99=known.get(99))


def _rank(count: int, q: float) -> int:
    return min(count, max(1, math.ceil(q * count / 100.0 - 1e-9))) - 1


def limit_verdict(
    call_ms: Sequence[float] | Floats, limit_ms: float, percentile: float
) -> tuple[LimitSays, int | None]:
    """Whether the percentile of the calls stays under the limit, with 95 % confidence, and else how many more calls.

    An exact binomial test of the share of calls over the limit against 1 - q: "pass" when as few over would be seen
    at most once in 20 if the share were 1 - q, "fail" when as many would. For "unknown" the second value is how many
    further calls would decide if calls kept going over at the present rate; None when they would not. Calls are taken as
    independent, and the test is for the calls there are: measuring on until it passes gives luck more than its one chance.
    """
    times = np.asarray(call_ms, dtype=np.float64)
    return limit_says(len(times), int(np.count_nonzero(times > limit_ms)), percentile)


def limit_says(calls: int, over: int, percentile: float) -> tuple[LimitSays, int | None]:
    """`limit_verdict` from counts: `over` of `calls` calls took longer than the limit."""
    share = 1.0 - percentile / 100.0
    verdict = _judged(calls, over, share)
    if verdict != "unknown":
        return verdict, None
    return verdict, _more_calls(calls, over, share)


def percentile_at_least(times: Floats, q: float) -> float | None:
    """What the percentile surely (95 %, binomial) reaches, in the times' unit; None when so few calls tell nothing.

    The largest time that `limit_verdict` would call exceeded, were it the limit: for any limit that these calls fail it is
    above that limit, which their plain percentile need not be.
    """
    share = 1.0 - q / 100.0
    count = len(times)
    exceeded = next(
        (
            over
            for over in range(1, count + 1)
            if binomial_tail_at_least(over, count, share) <= 1.0 - CONFIDENCE
        ),
        None,
    )
    return None if exceeded is None else float(np.sort(times)[count - exceeded])


def _judged(calls: int, over: int, share: float) -> LimitSays:
    if binomial_tail_at_most(over, calls, share) <= 1.0 - CONFIDENCE:
        return "pass"
    if binomial_tail_at_least(over, calls, share) <= 1.0 - CONFIDENCE:
        return "fail"
    return "unknown"


def _more_calls(calls: int, over: int, share: float) -> int | None:
    def decided(total: int) -> bool:
        # rounded towards the limit's own share: the cautious side
        expected = total * over / calls if calls else 0.0
        count = math.ceil(expected - 1e-9) if expected <= total * share else math.floor(expected + 1e-9)
        return _judged(total, max(count, over), share) != "unknown"

    high = max(calls, 8)
    while not decided(high):
        high *= 2
        if high > _MOST_CALLS_FORETOLD:
            return None
    low = max(calls, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high - calls
