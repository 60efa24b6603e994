"""One batch size as the table's cells: texts with their styles, and the raw values that the table is sorted by. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

import msgspec
from rich.style import Style
from rich.text import Text

from engine import events
from engine.results import State
from tui import formats
from tui.terminal import Charset, safe_text
from tui.theming import Palette

Mark = Literal["peak", "lead", "knee", "limit", "fell"]
"""What a row is marked as: the peak (what leads, as long as that is not certain), the knee, the best size under the limit,
and a size that is slower in a fresh process than its row says."""

_BRIEF: dict[Mark, str] = {"fell": "fell", "peak": "pk", "lead": "ld", "knee": "kn", "limit": "lim"}

Key = Literal["batch", "throughput", "interval", "p50", "p99", "per_item", "memory", "state"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table; the widths of all come to 78, which with a scroll bar is 80."""

    key: Key
    width: int


COLUMNS = (
    Column("batch", 16),
    Column("throughput", 10),
    Column("interval", 8),
    Column("p50", 8),
    Column("p99", 8),
    Column("per_item", 10),
    Column("memory", 7),
    Column("state", 11),
)


class ResultRow(msgspec.Struct, frozen=True, gc=False):
    """What the table shows of one batch size. A struct: thousands are made and compared at each look at a long run."""

    batch_size: int
    state: State = "measuring"
    throughput: float | None = None
    low: float | None = None
    high: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    ms_per_item: float | None = None
    memory_mb: float | None = None
    marks: tuple[Mark, ...] = ()

    @classmethod
    def of(cls, point: events.Point, marks: Sequence[Mark] = ()) -> ResultRow:
        """The row of a point, with the figures that count: those of a fresh process where it disagrees with the run.

        The run's percentiles then say nothing of the calls that count; the details have them.
        """
        fresh = point.counts_instead
        return cls(
            batch_size=point.batch_size,
            state=point.state,
            throughput=fresh.throughput if fresh else point.throughput,
            low=fresh.low if fresh else point.throughput_low,
            high=fresh.high if fresh else point.throughput_high,
            p50_ms=None if fresh else point.latency_ms.p50,
            p99_ms=None if fresh else point.latency_ms.p99,
            ms_per_item=1000.0 / fresh.throughput if fresh else point.ms_per_item,
            memory_mb=point.memory_mb,
            marks=tuple(marks),
        )


def result_rows(points: Iterable[events.Point], verdict: events.Verdict | None) -> tuple[ResultRow, ...]:
    """The rows of a run, marked by its verdict."""
    marked: dict[int, list[Mark]] = {}
    if verdict is not None:
        found: tuple[tuple[Mark, int | None], ...] = (
            ("peak" if verdict.certain else "lead", verdict.peak),
            # A knee that is the peak only for want of a smaller one says nothing while the peak is open.
            ("knee", verdict.knee if verdict.certain or verdict.knee != verdict.peak else None),
            ("limit", verdict.limit.best if verdict.limit else None),
        )
        for mark, size in found:
            if size is not None:
                marked.setdefault(size, []).append(mark)
    rows = list(points)
    for point in rows:
        if point.fell:
            marked.setdefault(point.batch_size, []).append("fell")
    return tuple(ResultRow.of(point, marked.get(point.batch_size, ())) for point in rows)


def heads(unit: str, charset: Charset, sorted_by: Key, *, descending: bool) -> tuple[Text, ...]:
    """The columns' heads, with an arrow at the one that the rows are sorted by."""
    shown = safe_text(unit, charset, limit=8)
    item = shown.partition("/")[0]
    item = item[:-1] if item.endswith("s") and len(item) > 1 else item
    names: dict[Key, str] = {
        "batch": "batch",
        "throughput": shown,
        "interval": "±",
        "p50": "p50 ms",
        "p99": "p99 ms",
        "per_item": f"ms/{item}"[:8],
        "memory": "MB",
        "state": "state",
    }
    arrow = ("▼" if descending else "▲") if charset == "unicode" else ("v" if descending else "^")
    texts = []
    for column in COLUMNS:
        name = names[column.key] if charset == "unicode" else formats.to_ascii(names[column.key])
        if column.key == sorted_by:
            # One column stays free: the head before must not run into this one.
            name = f"{name} {arrow}" if len(name) + 2 < column.width else f"{name}{arrow}"
        texts.append(_placed(name, column, "bold"))
    return tuple(texts)


def cells(row: ResultRow, palette: Palette, charset: Charset) -> tuple[Text, ...]:
    """The row's cells, each as wide as its column."""
    state = palette.state(row.state)
    measured = row.throughput is not None
    plain: str | Style = "" if measured else palette.dim
    texts: dict[Key, tuple[str, str | Style]] = {
        "batch": (f"{row.batch_size}", palette_of_marks(row.marks, palette) or plain),
        "throughput": (formats.throughput(row.throughput, row.low, row.high), _marked(row, palette) or plain),
        "interval": (formats.plus_minus(row.throughput, row.low, row.high), palette.dim),
        "p50": (formats.ms(row.p50_ms), plain),
        "p99": (formats.ms(row.p99_ms), plain),
        "per_item": (formats.ms_per_item(row.ms_per_item, row.throughput, row.low, row.high), plain),
        "memory": (formats.memory_mb(row.memory_mb), plain),
        "state": (row.state, state),
    }
    values = {
        "throughput": row.throughput,
        "p50": row.p50_ms,
        "p99": row.p99_ms,
        "per_item": row.ms_per_item,
        "memory": row.memory_mb,
    }
    for column in COLUMNS:
        value = values.get(column.key)
        if value is not None and len(texts[column.key][0]) >= column.width:
            texts[column.key] = (_short(value), texts[column.key][1])
    if row.marks:
        texts["batch"] = (_named(row), texts["batch"][1])
    if charset == "ascii":
        texts = {key: (formats.to_ascii(text), style) for key, (text, style) in texts.items()}
    return tuple(_placed(texts[column.key][0], column, texts[column.key][1]) for column in COLUMNS)


def palette_of_marks(marks: Sequence[Mark], palette: Palette) -> Style | None:
    """The style of the first mark; None without any. What merely leads is marked by its word."""
    if not marks or marks[0] in ("lead", "fell"):
        return None
    style: Style = getattr(palette, marks[0])
    return style


def sort_value(row: ResultRow, key: Key) -> float | str | None:
    """The raw value that a row is sorted by; None when it has none."""
    match key:
        case "batch":
            return row.batch_size
        case "throughput":
            return row.throughput
        case "interval":
            return _half_width(row)
        case "p50":
            return row.p50_ms
        case "p99":
            return row.p99_ms
        case "per_item":
            return row.ms_per_item
        case "memory":
            return row.memory_mb
        case "state":
            return row.state


def order(rows: Iterable[ResultRow], key: Key, *, descending: bool) -> list[int]:
    """Batch sizes in the order of a column's raw values; rows without a value come last either way."""
    known = [(sort_value(row, key), row.batch_size) for row in sorted(rows, key=_size)]
    present = [(value, size) for value, size in known if value is not None]
    present.sort(key=itemgetter(0), reverse=descending)
    return [size for _, size in present] + [size for value, size in known if value is None]


def _size(row: ResultRow) -> int:
    return row.batch_size


def _half_width(row: ResultRow) -> float | None:
    if not row.throughput or row.low is None or row.high is None:
        return None
    return (row.high - row.low) / 2 / row.throughput


def _short(value: float) -> str:
    """Three digits and a sign for the rest, where the figure in full would run into its neighbour or lose digits."""
    for size, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}" if value < 999.5 * size else f"{value:.2e}".replace("e+", "e")
    return f"{value:.2e}".replace("e-0", "e-")


def _named(row: ResultRow) -> str:
    """The batch size behind its marks; these are abbreviated rather than cut."""
    words = f"{'+'.join(row.marks)} {row.batch_size}"
    if len(words) <= COLUMNS[0].width:
        return words
    return f"{'+'.join(_BRIEF[mark] for mark in row.marks)} {row.batch_size}"


def _marked(row: ResultRow, palette: Palette) -> Style | None:
    return palette.peak if "peak" in row.marks else None


def _placed(text: str, column: Column, style: str | Style) -> Text:
    """The text at its place in the column: words to the left, figures to the right; cut rather than moved."""
    cut = text[-column.width :] if column.key == "batch" else text[: column.width]
    placed = (
        f"  {cut}"[: column.width].ljust(column.width) if column.key == "state" else cut.rjust(column.width)
    )
    return Text(placed, style=style, no_wrap=True, end="")
