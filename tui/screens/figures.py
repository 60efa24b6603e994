"""What the chart is given, made from a run's view. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine import events
from tui.state import RunView
from tui.widgets.curves import CurvePoint, Curves
from tui.widgets.result_rows import ResultRow


def curve_points(points: Iterable[events.Point]) -> tuple[CurvePoint, ...]:
    """The curve of a run: every size that has figures, as they count, or a word saying why it has none."""
    return tuple(
        CurvePoint(row.batch_size, row.throughput, row.low, row.high, row.p50_ms, row.state)
        for row in map(ResultRow.of, points)
        if row.throughput is not None or row.state != "measuring"
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
