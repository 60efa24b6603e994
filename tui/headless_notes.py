"""What else is to be known of the sizes: failures, other figures, doubts. Each thing is said once for all its sizes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from engine.events import Point, Warned
from engine.record import RunRecord
from tui import formats
from tui.formats import sentences

_SKIPPED = "skipped: "
_MOST_SIZES = 6
_CONFIRMS = 0.1
"""Relative half width up to which a figure that agrees confirms another."""
_WEIGHT = {
    "outliers": "time_share",
    "noisy": "half_width",
    "other-load": "busy_cores",
    "clock-groups": "group",
    "timer": "resolution_s",
}
"""The number by which one size's warning is worse than another's of the same kind."""


def remark(point: Point) -> str:
    """Why a size has no figures, in one piece; "" for one that has."""
    if point.error is None:
        return point.reason if point.state == "skipped" else ""
    title, message = point.error.title, point.error.message
    if title.startswith(_SKIPPED):
        return title.removeprefix(_SKIPPED)
    if title in (point.state, message) or (title == "out of memory" and title in message.lower()):
        title = ""
    return ": ".join(filter(None, (title, message)))


def failure_lines(record: RunRecord) -> list[str]:
    """Why sizes have no figures, a line for each reason."""
    return _grouped(record, lambda point: [f"{point.state}, {said}"] if (said := remark(point)) else [])


def note_lines(record: RunRecord, unit: str) -> list[str]:
    """Confirmations that disagree, figures of another run, and the doubts about single sizes.

    Of doubts of one kind only the worst is told whole, with its remedy; what is said of the run as a whole is left out.
    """
    said = _grouped(record, lambda point: _facts(point, unit))
    told = {warning.kind for warning in record.warnings}
    # Noise beside a busy machine has its cause and remedy already; how wide it is stands in the table.
    if "other-load" in told:
        told.add("noisy")
    doubts: dict[str, list[tuple[int, Warned]]] = {}
    for size, point in sorted(record.points.items()):
        for warned in point.warnings:
            if warned.kind not in told:
                doubts.setdefault(warned.kind, []).append((size, warned))
    return [
        f"Note: batch size {text}" for text in said + [_doubt(kind, of, told) for kind, of in doubts.items()]
    ]


def confirmed_lines(record: RunRecord, unit: str) -> list[str]:
    """What fresh processes measured of the sizes where they agree; figures too wide to contradict anything confirm nothing."""
    sure: list[str] = []
    wide: list[str] = []
    for size, point in sorted(record.points.items()):
        fresh = point.confirmed
        if fresh is None or not fresh.agrees:
            continue
        figure = f"{size:,} at {formats.throughput(fresh.throughput, fresh.low, fresh.high)} {unit}"
        if fresh.low is None or fresh.high is None:
            wide.append(figure)
            continue
        figure += f" ± {formats.plus_minus(fresh.throughput, fresh.low, fresh.high)}"
        (sure if fresh.high - fresh.low <= 2.0 * _CONFIRMS * fresh.throughput else wide).append(figure)
    heads = (
        ("Confirmed in a fresh process", sure),
        ("In a fresh process, too uncertain to confirm it", wide),
    )
    return [f"{head}: {'; '.join(of)}." for head, of in heads if of]


def listed(sizes: Sequence[int]) -> str:
    """Sizes in a row; of many their number and their ends."""
    if len(sizes) > _MOST_SIZES:
        return f"{len(sizes):,} sizes from {sizes[0]:,} to {sizes[-1]:,}"
    return ", ".join(f"{size:,}" for size in sizes)


def _facts(point: Point, unit: str) -> list[str]:
    said = []
    if point.effective_batch_size not in (None, point.batch_size) and not _warned(point, "batch-size"):
        said.append(
            f"the model was given {point.batch_size:,} and answered for {point.effective_batch_size:,}; "
            f"throughput counts {point.effective_batch_size:,}, and this size cannot be the peak"
        )
    fresh = point.confirmed
    if fresh is not None and not fresh.agrees:
        figure = formats.throughput(fresh.throughput, fresh.low, fresh.high)
        why = f" ({fresh.reason})" if fresh.reason else ""
        said.append(f"in a fresh process {figure} {unit}{why}: that figure counts")
    if point.kept_from:
        said.append(f"taken over from run {point.kept_from}")
    return said


def _warned(point: Point, kind: str) -> bool:
    return any(warned.kind == kind for warned in point.warnings)


def _grouped(record: RunRecord, of: Callable[[Point], Iterable[str]]) -> list[str]:
    sizes: dict[str, list[int]] = {}
    for size, point in sorted(record.points.items()):
        for text in of(point):
            sizes.setdefault(text, []).append(size)
    return [f"{listed(of_text)}: {text}" for text, of_text in sizes.items()]


def _doubt(kind: str, of: Sequence[tuple[int, Warned]], told: Collection[str]) -> str:
    weight = _WEIGHT.get(kind, "")
    size, worst = max(of, key=lambda pair: pair[1].numbers.get(weight, 0.0))
    others = [other for other, _ in of if other != size]
    same = all(warned.text == worst.text for _, warned in of)
    if same or not others:
        head = listed([one for one, _ in of])
    else:
        head = f"{size:,} (less so {listed(others)})" if weight else f"{size:,} (also {listed(others)})"
    remedy = "" if kind == "outliers" and "other-load" in told else worst.remedy
    return f"{head}: {sentences(worst.text, remedy)}"
