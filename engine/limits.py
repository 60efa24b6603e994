"""Sizes against a latency limit: pass, fail or how many more calls it takes; judged from stored calls, never by measuring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from engine import events, stats
from engine.results import Block, Measurement
from engine.standing import Standing


def judge_limit(
    measurements: Iterable[Measurement], standing: Standing, *, limit_ms: float, percentile: int
) -> events.Limit:
    """The verdict of every deployable size, and the passing one with the highest throughput.

    Each size is judged by its own calls: that a small size fails says nothing about a larger one. Calls of a confirming
    process count alone when they suffice.
    """
    known = sorted((one for one in measurements if one.deployable), key=lambda one: one.batch_size)
    verdicts = tuple(verdict_of(one, limit_ms=limit_ms, percentile=percentile) for one in known)
    passing = [verdict.batch_size for verdict in verdicts if verdict.verdict == "pass"]
    best = standing.best_of(passing) if standing.field is not None and passing else None
    return events.Limit(
        ms=limit_ms,
        percentile=percentile,
        best=best,
        verdicts=verdicts,
        text=_text(known, verdicts, best, limit_ms, percentile),
    )


def verdict_of(measurement: Measurement, *, limit_ms: float, percentile: int) -> events.LimitVerdict:
    """One size against the limit. Where calls are timed in groups, the groups' means are what is judged."""
    judged_by = _judged_by(measurement, limit_ms, percentile)
    says = _verdict(measurement.batch_size, judged_by, limit_ms, percentile)
    return msgspec.structs.replace(says, fresh=judged_by is not measurement.blocks)


def limit_words(limit_ms: float) -> str:
    """The limit as it was set: "20 ms", "1,500 ms"."""
    return f"{limit_ms:,g} ms"


def _judged_by(measurement: Measurement, limit_ms: float, percentile: int) -> Sequence[Block]:
    """The calls of the confirming process where they suffice for a verdict, else those of the run."""
    fresh = measurement.confirmed
    decided = (
        bool(fresh) and _verdict(measurement.batch_size, fresh, limit_ms, percentile).verdict != "unknown"
    )
    return fresh if decided else measurement.blocks


def _verdict(
    batch_size: int, blocks: Sequence[Block], limit_ms: float, percentile: int
) -> events.LimitVerdict:
    times = stats.call_times(blocks)
    over = int(np.count_nonzero(times > limit_ms))
    says, more = stats.limit_says(len(times), over, percentile)
    group = max((block.group for block in blocks), default=1)
    return events.LimitVerdict(
        batch_size=batch_size,
        verdict=says,
        more_calls=None if more is None else more * group,
        calls=len(times),
        over=over,
    )


def _text(
    known: Sequence[Measurement],
    verdicts: Sequence[events.LimitVerdict],
    best: int | None,
    limit_ms: float,
    percentile: int,
) -> str:
    limit = limit_words(limit_ms)
    unknown = [verdict for verdict in verdicts if verdict.verdict == "unknown"]
    if not verdicts:
        return f"Nothing was measured against the limit of {limit}."
    if best is None and not unknown:
        time, nearest, or_more = min(_latency(one, limit_ms, percentile) for one in known)
        where = " in a fresh process" if any(v.fresh for v in verdicts if v.batch_size == nearest) else ""
        sizes = f"none of {len(verdicts)} sizes stays" if len(verdicts) > 1 else "the one size does not stay"
        return f"{sizes} under {limit}; nearest: batch size {nearest} with a p{percentile} of {_ms(time)} ms{or_more}{where}"
    parts = []
    if best is None:
        parts.append(f"no size surely stays under {limit} yet")
    else:
        parts.append(f"p{percentile} stays under {limit} at batch size {best}")
    failing = [verdict.batch_size for verdict in verdicts if verdict.verdict == "fail"]
    passing = [verdict.batch_size for verdict in verdicts if verdict.verdict == "pass"]
    odd = [size for size in failing if passing and size < passing[-1]]
    if odd:
        parts.append(
            f"the latency does not simply rise with the batch size: {_list(odd)} "
            f"{'misses' if len(odd) == 1 else 'miss'} the limit while {passing[-1]} keeps it"
        )
    parts.extend(_only_alone(known, verdicts, limit_ms, percentile))
    if unknown and len(unknown) <= 3:
        parts.extend(_needs(verdict) for verdict in unknown)
    elif unknown:
        parts.append(f"{_list([verdict.batch_size for verdict in unknown])} need more calls to say")
    return "; ".join(parts)


def _only_alone(
    known: Sequence[Measurement], verdicts: Sequence[events.LimitVerdict], limit_ms: float, percentile: int
) -> list[str]:
    """Sizes of which a fresh process says the opposite of the run, whose latencies the table shows."""
    said = []
    for verdict, one, many in (("fail", "misses", "miss"), ("pass", "keeps", "keep")):
        sizes = [
            measured.batch_size
            for measured, found in zip(known, verdicts, strict=True)
            if found.fresh
            and found.verdict == verdict
            and _verdict(measured.batch_size, measured.blocks, limit_ms, percentile).verdict
            not in (verdict, "unknown")
        ]
        if sizes:
            said.append(f"{_list(sizes)} {one if len(sizes) == 1 else many} it in a fresh process only")
    return said


def _needs(verdict: events.LimitVerdict) -> str:
    if verdict.more_calls is None:
        return f"{verdict.batch_size} lies so near the limit that more calls would hardly decide it"
    return f"{verdict.batch_size} needs {verdict.more_calls:,} more calls to say"


def _latency(measurement: Measurement, limit_ms: float, percentile: int) -> tuple[float, int, str]:
    """The percentile, ms, its size, and "" or " or more": with too few calls for a figure only what it surely reaches is known."""
    times = stats.call_times(_judged_by(measurement, limit_ms, percentile))
    if len(times) >= stats.calls_needed(percentile):
        return stats.percentile(times, percentile), measurement.batch_size, ""
    surely = stats.percentile_at_least(times, percentile)
    return (
        surely if surely is not None else float(times.max(initial=0.0)),
        measurement.batch_size,
        " or more",
    )


def _ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _list(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))
