"""The headless table: its columns with their units, a point's cells and sentence. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.events import ModelReady, Point, RunStarted, Verdict
from engine.plan import Plan
from engine.record import RunRecord
from tui import formats
from tui.formats import as_sentence
from tui.headless_notes import remark

DEFAULT_UNIT = "images/s"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `width` in plain lines; columns with the highest `rank` go first when the terminal is narrow."""

    header: str
    width: int
    rank: int
    cell: Callable[[Point, str], str]
    left: bool = False


def unit_of(record: RunRecord) -> str:
    """What throughput counts, "images/s" until the model has told."""
    return record.model.unit if record.model else DEFAULT_UNIT


def item_of(unit: str) -> str:
    """One of what throughput counts: "image" for "images/s"."""
    return unit.removesuffix("/s").removesuffix("s") or "item"


def columns_of(record: RunRecord) -> tuple[Column, ...]:
    """All columns of a run as it is known now."""
    counts = any(one.counts_instead for one in record.points.values())
    percentile = record.started.plan.percentile if record.started else 99
    return columns(unit_of(record), percentile, fresh=counts)


def columns(unit: str, percentile: int = 99, *, fresh: bool = False) -> tuple[Column, ...]:
    """All columns, in order. A limit's percentile has its own column where the events carry it.

    `fresh` adds the figures of fresh processes that disagree with the run's, and so count.
    """
    asked = [percentile] if percentile in (90, 95) else []
    return (
        Column("", 4, 2, lambda _, mark: mark),
        Column("batch", 6, 0, lambda point, _: formats.count(point.batch_size)),
        Column(unit, max(len(unit), 9), 0, lambda point, _: _throughput(point)),
        Column("±", 6, 1, lambda point, _: _plus_minus(point)),
        *((Column("fresh", 9, 1, lambda point, _: _fresh(point)),) if fresh else ()),
        Column("p50 ms", 7, 3, lambda point, _: formats.ms(point.latency_ms.p50)),
        *(
            Column(f"p{number} ms", 9, 1, lambda point, _, name=f"p{number}": _percentile(point, name))  # type: ignore[misc]
            for number in asked
        ),
        Column("p99 ms", 9, 1, lambda point, _: _percentile(point, "p99")),
        Column(f"ms/{item_of(unit)}", max(len(item_of(unit)) + 3, 8), 4, lambda point, _: _per_item(point)),
        Column("MB", 6, 5, lambda point, _: formats.memory_mb(point.memory_mb)),
        Column("cold ms", 7, 6, lambda point, _: formats.ms(point.cold_ms)),
        Column("faults/call", 11, 7, lambda point, _: formats.count(point.faults_per_call)),
        Column("state", 9, 0, lambda point, _: point.state, left=True),
    )


def fitting(every: Sequence[Column], width: int) -> tuple[Column, ...]:
    """The columns that fit in `width` characters with two blanks between them; those of rank 0 always stay."""
    kept = list(every)
    while sum(column.width for column in kept) + 2 * (len(kept) - 1) > width:
        worst = max(kept, key=lambda column: column.rank)
        if worst.rank == 0:
            break
        kept.remove(worst)
    return tuple(kept)


def line(cells: Sequence[str], of: Sequence[Column]) -> str:
    """Cells set under their headers, for a line of text."""
    set_out = (
        cell.ljust(column.width) if column.left else cell.rjust(column.width)
        for cell, column in zip(cells, of, strict=True)
    )
    return "  ".join(set_out).rstrip()


def mark_of(size: int, verdict: Verdict | None, *, fell: bool = False) -> str:
    """ "peak", "knee", "p+k" (both), "tie", or "lead" while the peak is not certain: a word, so that no mark is a colour only.

    A size that is slower in a fresh process is marked "fell", or by "+f" behind what else it is.
    """
    mark = _mark(size, verdict)
    if not fell:
        return mark
    return {"": "fell", "p+k": "pk+f"}.get(mark, f"{mark[:1]}+f")


def _mark(size: int, verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    if size == verdict.peak and not verdict.certain:
        return "lead"
    if size == verdict.peak:
        return "peak" if size != verdict.knee else "p+k"
    if size == verdict.knee:
        return "knee"
    return "tie" if size in verdict.ties else ""


def rows(record: RunRecord) -> list[tuple[Point, str]]:
    """Every size with its mark, ascending. Sizes of the plan that were not reached are not in it."""
    return [
        (point, mark_of(size, record.verdict, fell=point.fell))
        for size, point in sorted(record.points.items())
    ]


def sentence(point: Point, unit: str) -> str:
    """A point as a sentence that can be read aloud."""
    head = f"Batch size {point.batch_size:,}: "
    if point.throughput is None:
        why = as_sentence(remark(point))
        word = _STATES[point.state]
        return head + (f"{word}." if not why else why if why.lower().startswith(word) else f"{word}: {why}")
    parts = [f"{_throughput(point)} {unit}"]
    if point.throughput_low is not None and point.throughput_high is not None:
        parts[0] += f", plus or minus {_plus_minus(point)}"
    for name in ("p50", "p99"):
        value = getattr(point.latency_ms, name)
        parts.append(
            f"{name} {formats.ms(value)} ms" if value is not None else f"no {name} from {point.calls:,} calls"
        )
    if point.ms_per_item is not None:
        parts.append(f"{_per_item(point)} ms per {item_of(unit)}")
    if point.memory_mb is not None:
        parts.append(f"{formats.memory_mb(point.memory_mb)} MB")
    if point.faults_per_call is not None:
        parts.append(f"{formats.count(point.faults_per_call)} page faults a call")
    counts = f" In a fresh process {_fresh(point)} {unit}: that figure counts." if _fresh(point) else ""
    return f"{head}{'; '.join(parts)}. {_STATES[point.state].capitalize()}.{counts}"


def headline(started: RunStarted | None, ready: ModelReady | None) -> str:
    """What is measured and how: model, input, and every option that changes the figures; "" before the start."""
    if started is None:
        return ""
    model = ready.name if ready else started.plan.model
    if ready and ready.input:
        model += f", input {ready.input}"
    host = started.host.get("hostname", "")
    return f"{model}: {', '.join(options(started.plan, ready))}" + (f"; on {host}" if host else "")


def options(plan: Plan, ready: ModelReady | None = None) -> list[str]:
    """The options that change the figures, in words."""
    threads = ready.threads if ready and ready.threads is not None else plan.threads
    said = [(ready.device if ready else "") or plan.device]
    if threads is not None:
        said.append(f"{threads} thread" + ("s" if threads != 1 else ""))
    if plan.inter_op_threads is not None:
        said.append(f"{plan.inter_op_threads} inter-op")
    said.append(plan.dtype + (" autocast" if plan.autocast else ""))
    if plan.channels_last:
        said.append("channels last")
    if plan.compile:
        said.append(f"compiled ({plan.compile})")
    if plan.transfer:
        said.append("copy to the device timed")
    if plan.fresh:
        said.append("a fresh process per size")
    said.append(
        f"{plan.allocator} allocator"
        if plan.allocator in ("system", "keep")
        else f"allocator {plan.allocator}"
    )
    return said


_STATES = {
    "measuring": "not finished",
    "stable": "stable",
    "noisy": "noisy",
    "short": "too few blocks for an interval",
    "oom": "out of memory",
    "error": "error",
    "skipped": "skipped",
    "cancelled": "cancelled",
}


def _throughput(point: Point) -> str:
    return formats.throughput(point.throughput, point.throughput_low, point.throughput_high)


def _fresh(point: Point) -> str:
    """What a fresh process measured where that counts, "" where the run's own figure does."""
    fresh = point.counts_instead
    if fresh is None:
        return ""
    return formats.throughput(fresh.throughput, fresh.low, fresh.high)


def _plus_minus(point: Point) -> str:
    return formats.plus_minus(point.throughput, point.throughput_low, point.throughput_high)


def _per_item(point: Point) -> str:
    return formats.ms_per_item(
        point.ms_per_item, point.throughput, point.throughput_low, point.throughput_high
    )


def _percentile(point: Point, name: str) -> str:
    value: float | None = getattr(point.latency_ms, name)
    return formats.percentile(value, point.calls) if point.calls else formats.ms(value)
