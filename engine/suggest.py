"""Sizes worth measuring next, each with its reason; and the whole numbers worth trying between two sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from engine import events
from engine.plan import MAX_BATCH_SIZE
from engine.results import Measurement
from engine.standing import Standing, cut_at

STEP = 8
STEP_ABOVE = 16
"""Above this only multiples of `STEP` are tried: kernels work in such tiles, and nobody deploys 137."""
WIDE_GAP = 1.5
HUGE_GAP = 16.0
"""Across more than this factor one size between tells little: each such factor gets one of its own."""
MOST_IN_GAP = 3
MOST = 4


def between(low: int, high: int) -> int | None:
    """The size to try between two sizes: their middle, by ratio when they are far apart; None when nothing lies between."""
    middle = (low + high) / 2.0 if high <= 2 * low else (low * high) ** 0.5
    if middle > STEP_ABOVE:
        middle = round(middle / STEP) * STEP
        if middle <= low:
            middle += STEP
        elif middle >= high:
            middle -= STEP
    size = round(middle)
    if not low < size < high:
        size = low + 1 if low < STEP_ABOVE and low + 1 < high else low
    return size if low < size < high else None


def tiled(size: int) -> int:
    """The size that is tried in place of this one: above 16 the nearest multiple of 8."""
    return size if size <= STEP_ABOVE else (size + STEP // 2) // STEP * STEP


def spread(low: int, high: int) -> list[int]:
    """The sizes to try between two sizes, ascending, evenly spaced by ratio: one, or up to three across a huge gap."""
    count = min(MOST_IN_GAP, 1 + int(math.log(high / low) / math.log(HUGE_GAP)))
    if count == 1:
        middle = between(low, high)
        return [] if middle is None else [middle]
    step = (high / low) ** (1.0 / (count + 1))
    return [size for part in range(count) if low < (size := tiled(round(low * step ** (part + 1)))) < high]


def suggestions(
    measurements: Iterable[Measurement], standing: Standing, limit: events.Limit | None
) -> tuple[events.Suggestion, ...]:
    """At most four sizes that could change the verdict, most telling first."""
    known = sorted(measurements, key=lambda one: one.batch_size)
    field, peak = standing.field, standing.peak
    if field is None or peak is None:
        return _below_failures(known)
    found: list[tuple[int | None, str]] = []
    sizes = field.sizes
    if limit is not None:
        found.extend(_around_limit(limit))
    place = sizes.index(peak)
    beside = [
        (sizes[low], sizes[low + 1])
        for low in (place - 1, place)
        if 0 <= low < len(sizes) - 1 and sizes[low + 1] / sizes[low] > WIDE_GAP
    ]
    # What lies in a huge gap tells more, and costs less, than what lies beyond the last size.
    found.extend(_in_gaps(gap for gap in beside if gap[1] / gap[0] > HUGE_GAP))
    if standing.kind == "rising" and cut_at(known, peak) is None:
        found.append((tiled(2 * peak), f"throughput still rises at {peak}, the largest size measured"))
        found.append((tiled(4 * peak), "if it goes on rising"))
    if standing.kind == "falling" and sizes[0] > 1:
        found.append((_half(sizes[0]), f"throughput falls from {sizes[0]} on, the smallest size measured"))
        found.append((_half(_half(sizes[0])), "if smaller sizes go on being faster"))
    cut = cut_at(known, sizes[-1])
    if standing.kind == "memory" and cut is not None:
        middle = between(sizes[-1], cut)
        reason = f"{sizes[-1]} fits in memory and {cut} does not"
        found.append((middle, reason))
        if middle is not None:
            found.append((between(middle, cut), reason))
    found.extend(_in_gaps(beside))
    knee = standing.knee
    if knee is not None and knee != peak and sizes.index(knee) > 0:
        low = sizes[sizes.index(knee) - 1]
        if knee / low > WIDE_GAP:
            reason = f"a smaller size than {knee} may reach 95 % of the peak"
            found.extend((size, reason) for size in reversed(spread(low, knee)))
    return _unique(found, {one.batch_size for one in known})


def _in_gaps(gaps: Iterable[tuple[int, int]]) -> list[tuple[int | None, str]]:
    return [
        (size, f"the peak may lie between {low} and {high}")
        for low, high in gaps
        for size in spread(low, high)
    ]


def _half(size: int) -> int:
    return tiled(max(1, size // 2))


def _around_limit(limit: events.Limit) -> list[tuple[int | None, str]]:
    verdicts = {verdict.batch_size: verdict.verdict for verdict in limit.verdicts}
    if limit.best is None:
        smallest = min(verdicts, default=1)
        if smallest > 1 and verdicts[smallest] == "fail":
            return [(_half(smallest), f"{smallest}, the smallest size measured, misses the limit")]
        return []
    above = min(
        (size for size, says in verdicts.items() if size > limit.best and says == "fail"), default=None
    )
    if above is None or above / limit.best <= WIDE_GAP:
        return []
    return [(between(limit.best, above), f"{limit.best} keeps the limit and {above} misses it")]


def _below_failures(known: Sequence[Measurement]) -> tuple[events.Suggestion, ...]:
    """When nothing was measured: a smaller size, but only where memory was the reason."""
    cut = cut_at(known, 0)
    if cut is None or cut == 1:
        return ()
    return _unique(
        [
            (_half(_half(cut)), f"{cut} does not fit in memory"),
            (_half(cut), f"{cut} does not fit in memory"),
        ],
        {one.batch_size for one in known},
    )


def _unique(found: Iterable[tuple[int | None, str]], known: set[int]) -> tuple[events.Suggestion, ...]:
    taken = set(known)
    kept = []
    for size, reason in found:
        if size is not None and size not in taken and size <= MAX_BATCH_SIZE:
            taken.add(size)
            kept.append(events.Suggestion(size, reason))
    return tuple(kept[:MOST])
