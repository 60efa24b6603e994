"""Where a headless run is told: event lines, plain columns, or sentences. None of them writes an escape code."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import IO, Protocol

from engine import events
from engine.record import RunRecord
from tui import formats
from tui.headless_notes import failure_lines, remark
from tui.headless_rows import Column, columns_of, fitting, headline, line, sentence, unit_of
from tui.headless_rows import rows as rows_of
from tui.headless_summary import ending, failed, measured, summary
from tui.terminal import Charset, safe_text

_NARROWEST = 20
"""Columns below which breaking between words leaves next to nothing in a line."""


class Printer:
    """Lines of text on a stream, made safe for it: what a model's name or an error holds cannot steer the terminal."""

    def __init__(self, stream: IO[str], charset: Charset, width: int | None = None) -> None:
        self.stream = stream
        self.charset = charset
        self.width = width
        """Columns of the terminal, at which prose is broken between words; None for a pipe or file."""

    def line(self, text: str = "", *, follow: str = "  ") -> None:
        """Print one line; further lines inside the text begin with `follow`."""
        first, *more = text.splitlines() or [""]
        for number, piece in enumerate((first, *more)):
            self.stream.write((follow if number else "") + self.safe(piece) + "\n")
        self.stream.flush()

    def prose(self, text: str) -> None:
        """Print a sentence, broken between words where a terminal would break it inside one."""
        if self.width is None or self.width < _NARROWEST:
            self.line(text)
            return
        for piece in self.safe_lines(text):
            for part in textwrap.wrap(
                piece, self.width - 1, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            ):
                self.stream.write(part + "\n")
        self.stream.flush()

    def safe_lines(self, text: str) -> list[str]:
        """The text's lines, each made safe for the stream."""
        return [self.safe(piece) for piece in text.splitlines()]

    def safe(self, text: str) -> str:
        """The text with signs for control characters, and in ASCII where the stream takes no more."""
        shown = safe_text(text, "unicode")
        return formats.to_ascii(shown) if self.charset == "ascii" else shown


class Output(Protocol):
    """Takes the run's events one after the other; `close` is called once, whatever happened."""

    def event(self, event: events.AnyEvent, record: RunRecord) -> None: ...

    def close(self, record: RunRecord, saved: str) -> None:
        """Tell what is told at the end. `saved` says where the run is, "" when it is nowhere."""

    def abandon(self) -> None:
        """Give the terminal back at once, without another word."""


class JsonLines:
    """The events exactly as they are stored, one line each, flushed one by one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def event(self, event: events.AnyEvent, record: RunRecord) -> None:  # noqa: ARG002
        self._stream.write(events.encode(event))
        self._stream.flush()

    def close(self, record: RunRecord, saved: str) -> None:
        """Nothing: the last event has said it."""

    def abandon(self) -> None:
        """Nothing was taken."""


class Lines:
    """Plain columns for pipes and files: the header once, then a line when a size is settled. Skipped sizes are told at the end."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._columns: tuple[Column, ...] = ()
        self._told: dict[int, tuple[str, ...]] = {}

    def event(self, event: events.AnyEvent, record: RunRecord) -> None:
        if isinstance(event, events.Point) and event.state not in ("measuring", "skipped"):
            self._point(event, record)
        elif isinstance(event, events.ModelReady) and record.started and record.started.kind == "race":
            self._head(record)

    def close(self, record: RunRecord, saved: str) -> None:
        for point, _ in rows_of(record):
            # A size that a killed worker or a dropped line left in the middle still has what was measured of it.
            if point.throughput is not None:
                self._point(point, record)
        if skipped := _skipped(record):
            self._head(record)
        for text in skipped:
            self._printer.line(f"  {text}")
        if self._told or skipped:
            self._printer.line()
        tell_end(self._printer, record, saved)

    def abandon(self) -> None:
        """Nothing was taken."""

    def _head(self, record: RunRecord) -> None:
        if not self._columns:
            self._columns = columns_of(record)[1:]  # marks are known at the end only
            self._printer.line(headline(record.started, record.model))
            if record.started is None or record.started.kind != "race":
                self._printer.line(line([column.header for column in self._columns], self._columns))

    def _point(self, point: events.Point, record: RunRecord) -> None:
        self._head(record)
        cells = tuple(column.cell(point, "") for column in self._columns)
        told = (*cells, remark(point))
        if self._told.get(point.batch_size) != told:
            self._told[point.batch_size] = told
            self._printer.line(_row(cells, self._columns, point), follow="    ")


class Sentences:
    """A sentence when a size is settled, for reading aloud: no columns, no drawing, ASCII."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._told: dict[int, str] = {}
        self._begun = False

    def event(self, event: events.AnyEvent, record: RunRecord) -> None:
        if isinstance(event, events.ModelReady) and not self._begun:
            self._begun = True
            self._printer.line(f"Measuring {headline(record.started, event)}.")
        elif isinstance(event, events.Point) and event.state not in ("measuring", "skipped"):
            self._point(event, record)

    def close(self, record: RunRecord, saved: str) -> None:
        for point, _ in rows_of(record):
            if point.throughput is not None:
                self._point(point, record)
        for text in _skipped(record):
            self._printer.line(f"Batch size {text}.")
        tell_end(self._printer, record, saved)

    def abandon(self) -> None:
        """Nothing was taken."""

    def _point(self, point: events.Point, record: RunRecord) -> None:
        said = sentence(point, unit_of(record))
        if self._told.get(point.batch_size) != said:
            self._told[point.batch_size] = said
            self._printer.line(said)


def _row(cells: Sequence[str], of: Sequence[Column], point: events.Point) -> str:
    """A line of the table where lines may be long: why there are no figures stands behind the state."""
    row, why = line(cells, of), remark(point)
    return f"{row}{' ' * (of[-1].width - len(cells[-1]))}  {why}" if why else row


def _skipped(record: RunRecord) -> list[str]:
    """Why sizes were skipped, a line for each reason."""
    skipped = {size: point for size, point in record.points.items() if point.state == "skipped"}
    return failure_lines(RunRecord(points=skipped))


def tell_end(printer: Printer, record: RunRecord, saved: str) -> None:
    """The last lines of every headless run: verdict, warnings, how it ended, where it is saved.

    Why nothing could be measured is not among them: that goes to the error stream.
    """
    for text in summary(record):
        printer.prose(text)
    finished = record.finished
    if finished is not None and (measured(record) or not failed(finished)) and (text := ending(finished)):
        printer.prose(text)
    if saved:
        printer.prose(saved)


def tell_record(
    printer: Printer, record: RunRecord, *, plain: bool = False, width: int | None = None
) -> None:
    """A whole run as it is known now, rows in ascending order with their marks: what `show` prints."""
    unit = unit_of(record)
    printer.line(headline(record.started, record.model))
    shown = rows_of(record)
    if plain:
        for point, _ in shown:
            printer.line(sentence(point, unit))
    elif shown:
        every = columns_of(record)
        if width is not None:
            every = fitting(every, width)
        printer.line(line([column.header for column in every], every))
        for point, mark in shown:
            cells = [column.cell(point, mark) for column in every]
            printer.line(_row(cells, every, point) if width is None else line(cells, every), follow="    ")
        for text in failure_lines(record) if width is not None else ():
            printer.prose(text)
        printer.line()
    for text in summary(record):
        printer.prose(text)
    if text := ending(record.finished):
        printer.prose(text)
