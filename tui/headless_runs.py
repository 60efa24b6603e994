"""The commands on saved runs: show, runs, export, resume."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine import events, export, host, store
from engine.errors import EXIT_DONE, StoreError, UsageError
from engine.plan import Plan
from engine.record import RunRecord
from engine.results import Measurement
from tui import formats, headless
from tui.headless_outputs import JsonLines, tell_record
from tui.headless_rows import unit_of
from tui.headless_summary import measured

SETTLED = frozenset({"stable", "noisy", "short", "oom", "error", "skipped"})
"""States that a resumed run takes over; sizes in another state are measured anew, whole."""


def show(
    reference: str,
    *,
    style: headless.Style,
    limit_ms: float | None,
    percentile: int | None,
    around: headless.Surroundings,
    directory: Path | None = None,
) -> int:
    """Print a saved run, judged anew; nothing is measured. With another limit the verdict is that of this limit."""
    stream = store.read(store.find(reference, directory))
    record = RunRecord.of(stream)
    if record.measurements and record.started is not None and record.started.kind != "race":
        record.verdict = judged(record, limit_ms=limit_ms, percentile=percentile)
    if style == "json":
        output = JsonLines(around.stdout.buffer)
        for event in stream:
            if not isinstance(event, events.Verdict):
                output.event(event, record)
        if record.verdict is not None:
            output.event(record.verdict, record)
    else:
        tell_record(around.printer(), record, plain=style == "plain", width=around.width)
    asked = record.verdict.limit if record.verdict and limit_ms is not None else None
    return headless.exit_code(record) if asked is not None and measured(record) else EXIT_DONE


def judged(
    record: RunRecord, *, limit_ms: float | None = None, percentile: int | None = None
) -> events.Verdict | None:
    """The verdict that the run's raw measurements allow today, for its own limit or another one."""
    from engine import peak

    if record.started is None:
        return record.verdict
    judgement = peak.judge(
        record.measurements.values(),
        limit_ms=limit_ms,
        percentile=percentile,
        plan=record.started.plan,
        host=record.started.host,
        unit=unit_of(record),
    )
    last = record.finished.t if record.finished else max((p.t for p in record.points.values()), default=0.0)
    return judgement.event(run=record.started.run, t=last)


def list_runs(
    *, most: int | None, as_json: bool, around: headless.Surroundings, directory: Path | None = None
) -> int:
    """Print the saved runs, newest first."""
    found = store.list_runs(directory, most=most)
    if as_json:
        import msgspec

        for summary in found:
            around.stdout.buffer.write(msgspec.json.encode(summary, enc_hook=str) + b"\n")
        around.stdout.flush()
        return EXIT_DONE
    printer = around.printer()
    if not found:
        printer.line("No run has been saved yet; `batchpeak sweep` makes one.")
        return EXIT_DONE
    shown = [("id", "started", "kind", "model", "device", "best", "ended")] + [_listed(one) for one in found]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]) - 1)]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        printer.line("  ".join((*cells, row[-1])).rstrip())
    return EXIT_DONE


def export_run(
    reference: str,
    form: str,
    *,
    target: Path | None,
    force: bool,
    around: headless.Surroundings,
    directory: Path | None = None,
) -> int:
    """Write a run in another format, to a file or to the output."""
    text = export.export(store.record(store.find(reference, directory)), form)
    if target is None:
        # Bytes, so that neither the line ends of CSV nor characters outside the terminal's set are changed.
        around.stdout.flush()
        around.stdout.buffer.write(text.encode())
        around.stdout.buffer.flush()
        return EXIT_DONE
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(target, flags, 0o666), "wb") as file:
            file.write(text.encode())
    except FileExistsError:
        raise UsageError(
            f"{str(target)!r} is there already.", argument="--output", remedy="--force replaces it."
        ) from None
    except OSError as error:
        raise UsageError(
            f"{str(target)!r} cannot be written: {error.strerror}.", argument="--output"
        ) from error
    around.printer().line(f"Written: {target}")
    return EXIT_DONE


def resume(
    reference: str,
    *,
    style: headless.Style,
    keeping: headless.Keeping,
    around: headless.Surroundings,
    directory: Path | None = None,
    facts: Callable[[], dict[str, Any]] = host.host_facts,
) -> int:
    """Measure what an interrupted run did not get to, in a new run that takes the rest over.

    Raises StoreError on a machine that would give other figures: one table is of one machine.
    """
    path = store.find(reference, directory)
    record = store.record(path)
    if record.started is None:
        raise StoreError(f"{path} has no plan.", title="the run cannot be resumed")
    plan = record.started.plan
    prior = taken_over(record)
    if complete(record, plan, prior):
        around.printer(errors=True).line(f"Nothing is missing in run {record.id}.")
        return show(str(path), style=style, limit_ms=None, percentile=None, around=around)
    _same_machine(record.started.host, facts())
    return headless.run(
        plan, style=style, keeping=keeping, prior=prior, resumes=record.started.run, around=around
    )


def _same_machine(then: dict[str, Any], now: dict[str, Any]) -> None:
    """Figures of another processor, core count, torch or allocator do not go together; a host's name may change."""
    names = {
        "cpu": "processor",
        "architecture": "architecture",
        "usable_cores": "usable cores",
        "torch": "torch",
        "allocator_environment": "allocator variables",
    }
    for key, name in names.items():
        if key in then and then[key] != now.get(key):
            raise StoreError(
                f"it was measured with another {name}: {then[key]} then, {now.get(key)} now.",
                title="the run cannot be resumed here",
                remedy="Measure anew with `batchpeak sweep`.",
            )


def taken_over(record: RunRecord) -> tuple[Measurement, ...]:
    """The sizes of a run that need not be measured again, ascending.

    A size that was skipped or killed for want of memory is tried again: what stood in the way may be gone.
    """
    return tuple(
        known
        for _, known in sorted(record.measurements.items())
        if known.state in SETTLED
        and not (known.failure is not None and known.failure.kind in ("killed", "forecast"))
    )


def complete(record: RunRecord, plan: Plan, prior: tuple[Measurement, ...]) -> bool:
    """Whether resuming would measure nothing."""
    if plan.kind == "race":
        return record.race is not None
    if plan.kind == "peak":
        return record.finished is not None and record.finished.reason == "completed"
    return set(plan.batch_sizes) <= {known.batch_size for known in prior}


def _listed(one: store.RunSummary) -> tuple[str, ...]:
    if one.problem:
        return (one.id, "", "", "", "", "", one.problem)
    if one.speedup is not None:
        best = formats.speedup(one.speedup, None, None)
    elif one.best_batch_size is not None:
        best = f"{one.best_batch_size:,}: {formats.throughput(one.best_throughput)} {one.unit or 'images/s'}"
    else:
        best = formats.DASH
    device = one.device + (f", {one.threads} thread{'s' if one.threads != 1 else ''}" if one.threads else "")
    kept = f", {one.allocator}" if one.allocator != "system" else ""
    return (
        one.id,
        formats.when(one.started_at),
        one.kind,
        one.model,
        device + kept,
        best,
        one.reason or "no end",
    )
