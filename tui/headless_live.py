"""The table that fills and tightens in place on a terminal. Drawn between two events, never by a thread or a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from engine import events
from engine.record import RunRecord
from tui import formats
from tui.headless_notes import failure_lines
from tui.headless_outputs import Printer, tell_end
from tui.headless_rows import Column, columns_of, fitting, headline, mark_of
from tui.terminal import Charset, safe_text

REFRESH_S = 0.5
"""Between two drawings: at most two a second, over SSH too."""

_STYLES = {
    "measuring": "dim",
    "stable": "",
    "noisy": "yellow",
    "short": "yellow",
    "oom": "red",
    "error": "red",
    "skipped": "dim",
    "cancelled": "dim",
}
_BAR_WIDTH = 30
_MOST_WAITING = 40


class LiveTable:
    """Rows in place while the run goes on; at the end the whole table, then verdict, warnings and where it is saved."""

    def __init__(
        self,
        stream: IO[str],
        charset: Charset,
        *,
        no_colour: bool = False,
        now: Callable[[], float] = time.monotonic,
        width: int | None = None,
    ) -> None:
        self._console = Console(
            file=stream,
            no_color=no_colour,
            markup=False,
            emoji=False,
            highlight=False,
            force_terminal=True,
            width=width,
        )
        self._charset: Charset = charset
        self._now = now
        self._drawn_at = -REFRESH_S
        self._stale = False
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            # What is drawn while the run goes on may be cut to the screen's height: at the end the whole is printed.
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def event(self, event: events.AnyEvent, record: RunRecord) -> None:
        """Draw when the event changed something on the screen and the last drawing is long enough ago."""
        if isinstance(event, (events.BlockMeasured, events.SizePrepared, events.SizeFailed)):
            if not self._stale:
                return
        else:
            self._stale = True
        now = self._now()
        if self._stale and now - self._drawn_at >= REFRESH_S:
            self._stale, self._drawn_at = False, now
            self._live.update(self.picture(record), refresh=True)

    def close(self, record: RunRecord, saved: str) -> None:
        """Replace the live picture by the final one and tell the end."""
        self._live.update(Text(""))
        self._live.stop()
        if record.points or record.race is not None:
            self._console.print(self.picture(record, final=True))
            self._console.print()
        tell_end(Printer(self._console.file, self._charset, self._console.width), record, saved)

    def abandon(self) -> None:
        """Show the cursor again."""
        self._console.show_cursor(True)

    def picture(self, record: RunRecord, *, final: bool = False) -> RenderableType:
        """The run as it is known now: header, table or lanes, notes, and while it goes on what is being done."""
        parts: list[RenderableType] = [self._text(headline(record.started, record.model), "bold")]
        if record.started is not None and record.started.kind == "race":
            parts.append(self._lanes(record))
        else:
            parts.append(self._table(record))
            parts.extend(self._text(text, "dim") for text in failure_lines(record))
        if not final:
            parts.append(self._text(_doing(record), "dim"))
        return Group(*parts)

    def _table(self, record: RunRecord) -> Table:
        shown = fitting(columns_of(record), self._console.width)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
        for column in shown:
            table.add_column(
                self._text(column.header, "bold"),
                justify="left" if column.left else "right",
                min_width=min(column.width, len(column.header) or column.width),
                no_wrap=True,
            )
        planned = record.started.plan.batch_sizes if record.started and record.started.kind == "sweep" else ()
        waiting = [size for size in planned if size not in record.points]
        # Rows that nobody can see cost the machine time that belongs to the model.
        hidden = waiting[_MOST_WAITING:]
        for size in sorted({*record.points, *waiting[:_MOST_WAITING]}):
            table.add_row(*self._row(size, record, shown))
        if hidden:
            row = {"batch": f"+{len(hidden):,}", "state": _waits(record)}
            table.add_row(*(self._text(row.get(column.header, ""), "dim") for column in shown))
        return table

    def _row(self, size: int, record: RunRecord, shown: tuple[Column, ...]) -> list[Text]:
        point = record.points.get(size)
        if point is None:
            waiting = {
                "batch": formats.count(size),
                "state": _waits(record),
            }
            return [self._text(waiting.get(column.header, ""), "dim") for column in shown]
        mark = mark_of(size, record.verdict, fell=point.fell)
        style = "bold" if mark.startswith(("p", "k")) and point.state == "stable" else _STYLES[point.state]
        return [self._text(column.cell(point, mark), style) for column in shown]

    def _lanes(self, record: RunRecord) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        plan = record.started.plan if record.started else None
        sizes = (plan.lane_batch_size, plan.images) if plan else (1, 1)
        for lane, size in enumerate(sizes):
            progress = record.progress.get(lane)
            done, total = (progress.done, progress.total) if progress else (0, 0)
            table.add_row(
                self._text(f"calls of {size:,}"),
                self._text(bar(done, total, _BAR_WIDTH, self._charset)),
                self._text(f"{done:,} of {total:,}" if total else "waiting"),
                self._text(f"round {progress.round + 1}" if progress else ""),
            )
        return table

    def _text(self, text: str, style: str = "") -> Text:
        shown = safe_text(text, "unicode")
        return Text(formats.to_ascii(shown) if self._charset == "ascii" else shown, style=style)


def bar(done: int, total: int, width: int, charset: Charset) -> str:
    """A determinate bar of `width` characters; empty while the total is not known."""
    filled = 0 if total <= 0 else min(width, max(0, width * done // total))
    full, empty = ("█", "░") if charset == "unicode" else ("#", ".")
    return full * filled + empty * (width - filled)


def _waits(record: RunRecord) -> str:
    return "waiting" if record.finished is None else "not reached"


def _doing(record: RunRecord) -> str:
    status = record.status
    if status is None:
        return "starting"
    size = f"batch size {status.batch_size:,}" if status.batch_size is not None else ""
    return " ".join(filter(None, (status.phase, size))) + (f": {status.text}" if status.text else "")
