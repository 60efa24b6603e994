"""A point from a measurement: every figure that a row shows is derived here, and only those that the blocks support."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine import stats
from engine.events import Confirmed, ErrorText, Latency, Point, Warned
from engine.results import MEASURED, Block, Failure, Measurement

AGREEMENT = 0.02
"""A confirmation this near, relative, agrees whatever the intervals say: within it sizes count as ties as well."""


def point_of(
    measurement: Measurement,
    *,
    run: str,
    t: float,
    reason: str = "",
    warnings: Sequence[Warned] = (),
) -> Point:
    """The measurement as an event. No number in it is other than finite.

    Throughput counts the items that were really processed. There is no interval under `stats.MIN_BLOCKS` blocks, and no
    percentile under the calls it needs. A size that failed or was skipped has no figures, only the count of what was measured.
    Costs one pass over the call times.
    """
    prepared, blocks = measurement.prepared, measurement.blocks
    shown = blocks if measurement.state in MEASURED else ()
    throughput = finite(stats.throughput_estimate(shown))
    interval = stats.throughput_interval(shown)
    failure = measurement.failure
    return Point(
        run=run,
        t=t,
        batch_size=measurement.batch_size,
        state=measurement.state,
        throughput=throughput,
        throughput_low=interval.low if interval else None,
        throughput_high=interval.high if interval else None,
        latency_ms=stats.latency_percentiles(shown) if shown else Latency(),
        ms_per_item=1000.0 / throughput if throughput else None,
        calls=measurement.calls,
        blocks=len(blocks),
        cold_ms=finite(prepared.cold_ms) if prepared else None,
        memory_mb=finite(prepared.memory_mb) if prepared else None,
        faults_per_call=faults_per_call(shown),
        effective_batch_size=prepared.effective_batch_size if prepared else None,
        confirmed=confirmed_of(measurement),
        warnings=tuple(warnings),
        error=ErrorText(failure.title, _with_place(failure)) if failure else None,
        reason=reason,
        kept_from=measurement.kept_from,
        grouped=max((block.group for block in shown), default=1),
        throughput_mean=finite(stats.mean_throughput(shown)),
    )


def confirmed_of(measurement: Measurement) -> Confirmed | None:
    """What a fresh process measured, against what the run measured; None when there was no confirmation.

    It disagrees when both have a 95 % interval, the two do not overlap, and the figures are further apart than `AGREEMENT`:
    a figure without an interval (calls too long for enough blocks) contradicts nothing.
    """
    throughput = finite(stats.throughput_estimate(measurement.confirmed))
    if throughput is None:
        return None
    interval = stats.throughput_interval(measurement.confirmed)
    faults = faults_per_call(measurement.confirmed)
    in_run = stats.throughput_interval(measurement.blocks)
    agrees, reason = True, ""
    if interval is not None and in_run is not None:
        change = throughput / in_run.estimate - 1.0
        overlap = interval.low <= in_run.high and in_run.low <= interval.high
        agrees = overlap or abs(change) <= AGREEMENT
        if not agrees:
            reason = _why(change, faults, faults_per_call(measurement.blocks))
    return Confirmed(
        throughput=throughput,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        faults_per_call=faults,
        agrees=agrees,
        reason=reason,
    )


def faults_per_call(blocks: Sequence[Block]) -> float | None:
    """Minor page faults a call, over the blocks that counted them; None when none did."""
    counted = [block for block in blocks if block.faults is not None]
    calls = sum(block.calls for block in counted)
    return sum(block.faults or 0 for block in counted) / calls if calls else None


def _with_place(failure: Failure) -> str:
    """The failure's message, with the file and line where the user's code raised it."""
    if not failure.where:
        return failure.message
    return f"{failure.message.rstrip('.')} ({failure.where})" if failure.message else failure.where


def finite(value: float | None) -> float | None:
    """The value, or None when it is no finite number."""
    return value if value is not None and math.isfinite(value) else None


def _why(change: float, fresh: float | None, in_run: float | None) -> str:
    """The difference in words, with the page faults of both where they are known."""
    said = f"{100.0 * abs(change):.0f} % {'more' if change > 0 else 'less'} in a fresh process than among the other sizes"
    if fresh is None or in_run is None:
        return f"{said}; page faults are not counted on this system"
    counts = f"{fresh:,.0f} page faults a call there, {in_run:,.0f} here"
    fewer, more = sorted((fresh, in_run))
    differ = more >= 10.0 and more > 1.5 * fewer
    if differ and (fresh < in_run) == (change > 0):
        return f"{said}: {counts}"
    return f"{said}; not explained by page faults ({counts})"
