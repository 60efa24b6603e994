"""What the chart is given, made from a run's view. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine import events
from tui.state import RunView
from tui.widgets.curves import CurvePoint, Curves


def curve_points(points: Iterable[events.Point]) -> tuple[CurvePoint, ...]:
    """The curve of a run: every size that has figures, or a word saying why it has none."""
    return tuple(
        CurvePoint(
            point.batch_size,
            point.throughput,
            point.throughput_low,
            point.throughput_high,
            point.latency_ms.p50,
            point.state,
        )
        for point in points
        if point.throughput is not None or point.state != "measuring"
    )


def curves_of(view: RunView) -> Curves:
    """The run's curves, its marks and its limit, and the run before behind."""
    verdict = view.record.verdict
    previous = view.previous.points if view.previous is not None else {}
    return Curves(
        points=curve_points(view.points()),
        previous=curve_points(point for _, point in sorted(previous.items())),
        peak=verdict.peak if verdict is not None else None,
        certain=verdict is not None and verdict.certain,
        knee=verdict.knee if verdict is not None else None,
        limit_ms=view.plan.limit_ms,
        unit=view.unit,
        empty="nothing could be measured" if view.phase == "failed" else "no figures yet",
    )
