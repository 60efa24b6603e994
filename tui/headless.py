"""A run without the interface: from the plan to the exit code, told by an output and kept in a run file."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, TextIO

from engine import events, store
from engine.errors import (
    EXIT_DONE,
    EXIT_INTERNAL,
    EXIT_LIMIT_MISSED,
    EXIT_NOTHING_MEASURED,
    EXIT_USAGE,
    BatchpeakError,
)
from engine.plan import Plan
from engine.record import RunRecord
from engine.results import Measurement
from tui.headless_outputs import JsonLines, Lines, Output, Printer, Sentences
from tui.headless_signals import Interrupts
from tui.headless_summary import failed, failure, measured
from tui.terminal import charset_for, wants_no_colour

EXIT_BROKEN_PIPE = 141
"""What a shell reports of a program that was ended because nobody read its output any more."""

Style = Literal["auto", "json", "plain"]


class SessionLike(Protocol):
    """What a headless run needs of `engine.session.Session`; tests script one."""

    def run(
        self,
        plan: Plan,
        *,
        prior: Sequence[Measurement] = (),
        resumes: str | None = None,
        sink: Callable[[events.AnyEvent], None] | None = None,
        run_id: str | None = None,
    ) -> Iterator[events.AnyEvent]: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The streams, the environment, and how a session is started; tests pass their own."""

    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    new_session: Callable[[], SessionLike]
    check: Callable[[Plan], None] = lambda _: None
    """Refuses a plan that is known to fail, before a process is started or a file made."""

    @classmethod
    def real(cls) -> Surroundings:
        return cls(sys.stdout, sys.stderr, os.environ, _real_session, _check)

    def printer(self, *, errors: bool = False) -> Printer:
        """Text lines for the output, or for the error stream."""
        stream = self.stderr if errors else self.stdout
        width = None if errors else self.width
        return Printer(stream, charset_for(stream.encoding, self.environ), width)

    @property
    def width(self) -> int | None:
        """Columns of the terminal that the output goes to; None for a pipe or file, whose lines may be long."""
        return shutil.get_terminal_size().columns if self.stdout.isatty() else None

    @property
    def draws(self) -> bool:
        """Whether the output can be drawn over: a terminal that can move its cursor."""
        return self.stdout.isatty() and self.environ.get("TERM", "") not in ("", "dumb", "unknown")


@dataclass(frozen=True, slots=True)
class Keeping:
    """Whether and where a run is saved."""

    save: bool = True
    directory: Path | None = None


def run(
    plan: Plan,
    *,
    style: Style = "auto",
    keeping: Keeping = Keeping(),
    prior: Sequence[Measurement] = (),
    resumes: str | None = None,
    around: Surroundings | None = None,
) -> int:
    """Measure as planned and tell it. Returns the exit code.

    Raises UsageError for a plan that is known to fail and StoreError when the run cannot be saved, both before anything is
    measured; and the session's own error when something unexpected happened.
    """
    around = around or Surroundings.real()
    around.check(plan)
    run_id = secrets.token_hex(4)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    writer = store.create(plan, run_id, now, keeping.directory) if keeping.save else None
    record = RunRecord()
    telling = _Telling(_output(style, around))
    with contextlib.ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts())
        interrupts.on_leaving(telling.output.abandon)
        if writer is not None:
            stack.callback(_put_away, writer, record)
        stack.callback(telling.close, record, lambda: _saved(writer, record, keeping))
        session = around.new_session()
        stack.callback(session.close)
        stream = session.run(
            plan, prior=prior, resumes=resumes, sink=writer.write if writer else None, run_id=run_id
        )
        interrupts.on_first(session.cancel)
        for event in stream:
            record.add(event)
            telling.event(event, record)
            if interrupts.received is not None or telling.unread:
                session.cancel()
    if telling.unread:
        return interrupts.exit_code or EXIT_BROKEN_PIPE
    finished = record.finished
    if finished is not None and failed(finished) and (style == "json" or not measured(record)):
        around.printer(errors=True).line(f"batchpeak: {failure(finished)}")
    if telling.lost is not None and interrupts.received is None:
        raise BatchpeakError(
            f"{telling.lost.strerror or telling.lost}.",
            title="the output could not be written",
            remedy=f"`batchpeak show {run_id}` prints it again." if writer else "",
        )
    return interrupts.exit_code or exit_code(record)


def exit_code(record: RunRecord) -> int:
    """What the run's end means to a script; interrupts are the caller's."""
    finished = record.finished
    if finished is not None and finished.usage:
        return EXIT_USAGE
    if not measured(record):
        return EXIT_NOTHING_MEASURED
    if finished is None or failed(finished):
        return EXIT_INTERNAL
    if record.race is None and record.verdict is not None and record.verdict.peak is None:
        return EXIT_NOTHING_MEASURED  # figures, but at no size of what the model is there for
    limit = record.verdict.limit if record.verdict else None
    return EXIT_LIMIT_MISSED if limit is not None and limit.best is None else EXIT_DONE


class _Telling:
    """Passes events to the output and outlives it: an output that is gone must not take the run along."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.lost: OSError | None = None

    @property
    def unread(self) -> bool:
        """Whether the reader of a pipe has left: then nobody wants the rest measured."""
        return isinstance(self.lost, BrokenPipeError)

    def event(self, event: events.AnyEvent, record: RunRecord) -> None:
        if self.lost is None:
            try:
                self.output.event(event, record)
            except OSError as error:
                self.lost = error

    def close(self, record: RunRecord, saved: Callable[[], str]) -> None:
        if self.lost is None:
            try:
                self.output.close(record, saved())
            except OSError as error:
                # A terminal that hung up is told by its signal, which has cancelled the run already.
                self.lost = None if error.errno == errno.EIO else error


def _output(style: Style, around: Surroundings) -> Output:
    if style == "json":
        return JsonLines(around.stdout.buffer)
    if style == "plain":
        return Sentences(Printer(around.stdout, "ascii"))
    printer = around.printer()
    if not around.draws:
        return Lines(printer)
    from tui.headless_live import LiveTable

    return LiveTable(around.stdout, printer.charset, no_colour=wants_no_colour(around.environ))


def _put_away(writer: store.RunWriter, record: RunRecord) -> None:
    """Close the file; that of a run that never began, or was refused before it measured anything, is taken away."""
    writer.close()
    if record.started is None or _refused(record):
        with contextlib.suppress(OSError):
            writer.path.unlink()


def _refused(record: RunRecord) -> bool:
    return record.finished is not None and record.finished.usage and not record.measurements


def _saved(writer: store.RunWriter | None, record: RunRecord, keeping: Keeping) -> str:
    if writer is None or _refused(record):
        return ""
    if any(warning.kind == "not-saved" for warning in record.warnings):
        return f"Saved in part: {writer.path}"
    reference = record.id if keeping.directory is None else str(writer.path)
    return f"Saved: {writer.path} (batchpeak show {reference})" if record.id else ""


def _check(plan: Plan) -> None:
    from engine.models import preflight

    preflight.check(plan)


def _real_session() -> SessionLike:
    from engine.session import Session

    return Session()
