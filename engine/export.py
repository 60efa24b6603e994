"""A run as CSV, JSON or Markdown: fixed columns with their units in the names, safe whatever a model's name holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import msgspec

from engine.errors import UsageError
from engine.events import Lane, Point
from engine.record import RunRecord

Format = Literal["csv", "json", "md"]
FORMATS: tuple[Format, ...] = get_args(Format)

Value = str | int | float | None

POINT_COLUMNS: tuple[str, ...] = (
    "run",
    "model",
    "device",
    "threads",
    "dtype",
    "allocator",
    "batch_size",
    "state",
    "marks",
    "throughput",
    "throughput_low",
    "throughput_high",
    "throughput_unit",
    "latency_p50_ms",
    "latency_p90_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "ms_per_item",
    "calls",
    "blocks",
    "cold_ms",
    "memory_mb",
    "faults_per_call",
    "effective_batch_size",
    "confirmed_throughput",
    "confirmed_throughput_low",
    "confirmed_throughput_high",
    "error",
    "warnings",
    "confirmed_faults_per_call",
    "counting_throughput",
)
"""Of sweeps and searches, one row a batch size. New columns are only ever added at the end.

`throughput*` are in `throughput_unit` (images/s or items/s), which depends on the model. `counting_throughput` is what the
verdict rests on: `confirmed_throughput` where that disagrees with `throughput`, else `throughput`.
"""

LANE_COLUMNS: tuple[str, ...] = (
    "run",
    "model",
    "device",
    "threads",
    "dtype",
    "allocator",
    "lane",
    "calls",
    "batch_size",
    "total_ms",
    "ms_per_item",
    "first_answer_ms",
    "speedup",
    "speedup_low",
    "speedup_high",
    "outputs_agree",
)
"""Of races, one row a lane."""


def export(record: RunRecord, form: str) -> str:
    """The run in a format of `FORMATS`, ending in a newline. Raises UsageError for another format."""
    writers: Mapping[str, Callable[[RunRecord], str]] = {"csv": to_csv, "json": to_json, "md": to_markdown}
    if form not in writers:
        raise UsageError(f"{form!r} is not a format; expected {', '.join(FORMATS)}.", argument="--format")
    return writers[form](record)


def table(record: RunRecord) -> tuple[tuple[str, ...], list[dict[str, Value]]]:
    """The columns and rows of the run, figures as numbers with all their digits."""
    common = _common(record)
    if record.race is not None:
        return LANE_COLUMNS, [{**common, **_lane(lane, record)} for lane in record.race.lanes]
    return POINT_COLUMNS, [{**common, **_point(point, record)} for _, point in sorted(record.points.items())]


def to_csv(record: RunRecord) -> str:
    """Comma-separated, one header row, RFC 4180 quoting, lines ending in CR LF; an absent figure is an empty cell.

    A text that a spreadsheet would take for a formula is led by an apostrophe; line ends in texts become blanks.
    """
    columns, rows = table(record)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in columns])
    return out.getvalue()


def to_json(record: RunRecord) -> str:
    """One object: what the run was, its rows under `points` or `lanes`, verdict and warnings. Names as in the events."""
    columns, rows = table(record)
    verdict = record.verdict
    content: dict[str, Any] = {
        "schema": 1,
        "run": record.id,
        "kind": record.started.kind if record.started else None,
        "started_at": record.started.started_at if record.started else None,
        "finished": record.finished.reason if record.finished else None,
        "batchpeak": record.started.version if record.started else None,
        "plan": record.started.plan if record.started else None,
        "host": record.started.host if record.started else {},
        "model": _without_head(record.model) if record.model else None,
        "columns": columns,
        "lanes" if record.race is not None else "points": rows,
        "verdict": _without_head(verdict) if verdict else None,
        "warnings": [_without_head(warning) for warning in record.warnings],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def to_markdown(record: RunRecord) -> str:
    """A heading, what the figures depend on, and a table; figures are rounded to four significant digits."""
    lines = [f"# {_escape(_title(record))}", ""]
    lines.extend(f"- {name}: {_escape(value)}" for name, value in _facts(record))
    lines.append("")
    if record.race is not None:
        lines.extend(_race_table(record))
    elif record.points:
        lines.extend(_point_table(record))
    lines.extend(_fresh_figures(record))
    if record.verdict is not None and record.verdict.advice:
        lines.extend(["", _escape(record.verdict.advice)])
    lines.extend(["", *(f"- {_escape(warning.text)}" for warning in record.warnings)])
    return "\n".join(lines).rstrip("\n") + "\n"


def _common(record: RunRecord) -> dict[str, Value]:
    plan = record.started.plan if record.started else None
    ready = record.model
    return {
        "run": record.id,
        "model": ready.name if ready else plan.model if plan else None,
        "device": (ready.device if ready else "") or (plan.device if plan else None),
        "threads": ready.threads if ready and ready.threads is not None else plan.threads if plan else None,
        "dtype": plan.dtype if plan else None,
        "allocator": plan.allocator if plan else None,
    }


def _point(point: Point, record: RunRecord) -> dict[str, Value]:
    confirmed = point.confirmed
    error = point.error
    return {
        "batch_size": point.batch_size,
        "state": point.state,
        "marks": " ".join(marks(point.batch_size, record)),
        "throughput": point.throughput,
        "throughput_low": point.throughput_low,
        "throughput_high": point.throughput_high,
        "throughput_unit": _unit(record),
        "latency_p50_ms": point.latency_ms.p50,
        "latency_p90_ms": point.latency_ms.p90,
        "latency_p95_ms": point.latency_ms.p95,
        "latency_p99_ms": point.latency_ms.p99,
        "ms_per_item": point.ms_per_item,
        "calls": point.calls,
        "blocks": point.blocks,
        "cold_ms": point.cold_ms,
        "memory_mb": point.memory_mb,
        "faults_per_call": point.faults_per_call,
        "effective_batch_size": point.effective_batch_size,
        "confirmed_throughput": confirmed.throughput if confirmed else None,
        "confirmed_throughput_low": confirmed.low if confirmed else None,
        "confirmed_throughput_high": confirmed.high if confirmed else None,
        "error": f"{error.title}: {error.message}" if error else None,
        "warnings": "; ".join(warned.text for warned in point.warnings),
        "confirmed_faults_per_call": confirmed.faults_per_call if confirmed else None,
        "counting_throughput": confirmed.throughput
        if confirmed and not confirmed.agrees
        else point.throughput,
    }


def _lane(lane: Lane, record: RunRecord) -> dict[str, Value]:
    race = record.race
    return {
        "lane": lane.name,
        "calls": lane.calls,
        "batch_size": lane.batch_size,
        "total_ms": lane.total_ms,
        "ms_per_item": lane.ms_per_item,
        "first_answer_ms": lane.first_answer_ms,
        "speedup": race.speedup if race else None,
        "speedup_low": race.speedup_low if race else None,
        "speedup_high": race.speedup_high if race else None,
        "outputs_agree": None
        if race is None or race.outputs_agree is None
        else str(race.outputs_agree).lower(),
    }


def marks(batch_size: int, record: RunRecord) -> list[str]:
    """What the verdict calls a size: peak, tie, knee, recommended, limit (the best that keeps it); and fell: slower in a
    fresh process.
    """
    verdict, point = record.verdict, record.points.get(batch_size)
    fell = ["fell"] if point is not None and point.fell else []
    if verdict is None:
        return fell
    named = {
        "peak": batch_size == verdict.peak,
        "tie": batch_size in verdict.ties and batch_size != verdict.peak,
        "knee": batch_size == verdict.knee,
        "recommended": batch_size == verdict.recommended,
        "limit": verdict.limit is not None and batch_size == verdict.limit.best,
    }
    return [name for name, holds in named.items() if holds] + fell


def _unit(record: RunRecord) -> str:
    return record.model.unit if record.model else "images/s"


def _without_head(event: msgspec.Struct) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return {name: value for name, value in fields.items() if name not in ("event", "run", "t")}


_FORMULA_STARTS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20|%")
"""With the full-width signs that some spreadsheets take for the narrow ones, and what starts DDE in older ones."""


def _cell(value: Value) -> str | int | float:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    # A leading blank does not keep every spreadsheet from seeing a formula behind it.
    risky = value.lstrip()[:1] in _FORMULA_STARTS
    return ("'" if risky else "") + " ".join(_visible(value).splitlines())


def _visible(text: str) -> str:
    return "".join(
        char if char.isprintable() or char in "\r\n" else " " if char == "\t" else "\ufffd" for char in text
    )


def _title(record: RunRecord) -> str:
    kind = {"sweep": "Batch-size sweep", "peak": "Peak search", "race": "Race"}
    what = kind[record.started.kind] if record.started else "Run"
    return f"{what}: {_common(record)['model'] or 'unknown model'}"


def _facts(record: RunRecord) -> list[tuple[str, str]]:
    common = _common(record)
    started = record.started
    facts: list[tuple[str, Any]] = [
        ("Model", common["model"]),
        ("Input", record.model.input if record.model else None),
        ("Device", common["device"]),
        ("Threads", common["threads"]),
        ("Dtype", common["dtype"]),
        ("Allocator", common["allocator"]),
    ]
    if started is not None:
        plan, host = started.plan, started.host
        switched = [
            name
            for name, on in (
                ("autocast", plan.autocast),
                ("channels last", plan.channels_last),
                (f"compiled ({plan.compile})", plan.compile is not None),
                ("copy to the device timed", plan.transfer),
                ("a fresh process per size", plan.fresh),
            )
            if on
        ]
        facts += [
            ("Options", ", ".join(switched)),
            ("torch", host.get("torch")),
            ("Host", host.get("hostname")),
            ("Processor", host.get("cpu")),
            ("Usable cores", host.get("usable_cores")),
            ("Date", started.started_at),
            ("Seed", plan.seed),
            ("Run", f"{record.id}, batchpeak {started.version}"),
        ]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]


def _point_table(record: RunRecord) -> list[str]:
    unit = _unit(record)
    headers = [
        "batch size",
        unit,
        "95 % interval",
        "p50 ms",
        "p99 ms",
        "ms per item",
        "MB",
        "page faults/call",
        "state",
        "marks",
    ]
    rows = [
        [
            str(point.batch_size),
            _figure(point.throughput),
            _between(point.throughput_low, point.throughput_high),
            _figure(point.latency_ms.p50),
            _figure(point.latency_ms.p99),
            _figure(point.ms_per_item),
            _figure(point.memory_mb),
            _figure(point.faults_per_call),
            point.state,
            ", ".join(marks(point.batch_size, record)),
        ]
        for _, point in sorted(record.points.items())
    ]
    return _markdown_table(headers, rows, left=(8, 9))


def _fresh_figures(record: RunRecord) -> list[str]:
    """A line for each size of which a fresh process says otherwise than the table."""
    said = [
        f"- In a fresh process {size} reaches {_figure(fresh.throughput)} {_escape(_unit(record))} "
        f"({_between(fresh.low, fresh.high)}): that figure counts."
        for size, point in sorted(record.points.items())
        if (fresh := point.confirmed) is not None and not fresh.agrees
    ]
    return ["", *said] if said else []


def _race_table(record: RunRecord) -> list[str]:
    race = record.race
    assert race is not None, "the caller has looked"  # noqa: S101 - for the type checker
    headers = ["lane", "calls", "batch size", "total ms", "ms per item", "first answer ms"]
    rows = [
        [
            lane.name,
            str(lane.calls),
            str(lane.batch_size),
            _figure(lane.total_ms),
            _figure(lane.ms_per_item),
            _figure(lane.first_answer_ms),
        ]
        for lane in race.lanes
    ]
    between = _between(race.speedup_low, race.speedup_high)
    said = f"Speed-up: {_figure(race.speedup)}" + (f" (95 % interval {between})" if between != "—" else "")
    return [*_markdown_table(headers, rows, left=(0,)), "", f"{said}. {_escape(race.agreement)}".rstrip()]


def _markdown_table(headers: list[str], rows: list[list[str]], *, left: tuple[int, ...]) -> list[str]:
    ruler = [":---" if number in left else "---:" for number in range(len(headers))]
    lines = [headers, ruler, *([_escape(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _figure(value: float | None) -> str:
    if value is None:
        return "—"
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _between(low: float | None, high: float | None) -> str:
    return "—" if low is None or high is None else f"{_figure(low)} to {_figure(high)}"


def _escape(text: str) -> str:
    """The text as Markdown shows it literally, on one line: no table break, link, image, tag or emphasis in it."""
    line = " ".join(_visible(text).split())
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#!~" else char for char in line)
