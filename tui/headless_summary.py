"""What is said after the figures: verdict, warnings, the race's result, how the run ended and where it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine import events
from engine.events import Diagnosis, Lane, Limit, RaceFinished, RunFinished, Suggestion, Verdict
from engine.record import RunRecord
from tui import formats
from tui.formats import as_sentence, sentences
from tui.headless_notes import confirmed_lines, note_lines
from tui.headless_rows import item_of, unit_of


def summary(record: RunRecord) -> list[str]:
    """All that is to be said of a run's figures, in lines: verdict or race, then doubts. The advice is the first."""
    said: list[str] = []
    if record.race is not None:
        said.extend(race_lines(record.race, unit_of(record)))
    if record.verdict is not None:
        said.extend(verdict_lines(record.verdict, record))
    said.extend(note_lines(record, unit_of(record)))
    said.extend(warning_lines(record.warnings))
    return said


def verdict_lines(verdict: Verdict, record: RunRecord) -> list[str]:
    """The verdict in words, each line one thing."""
    said = [verdict.advice, _peak(verdict, record), *confirmed_lines(record, unit_of(record))]
    if verdict.limit is not None:
        limit = verdict.limit.text or _limit(verdict.limit)
        # The advice quotes the limit's text where it is the point.
        told = all(part.strip(" .").lower() in verdict.advice.lower() for part in limit.split(";"))
        said.append("" if told else as_sentence(limit))
    if verdict.diagnosis is not None:
        said.extend(_diagnosis(verdict.diagnosis))
    if verdict.cost is not None:
        said.append(
            as_sentence(verdict.cost.text)
            or f"Time per call: {formats.ms(verdict.cost.fixed_ms)} ms fixed"
            f" + {formats.ms(verdict.cost.per_item_ms)} ms per {item_of(unit_of(record))}."
        )
    said.append(_suggestions(verdict.suggestions))
    return list(dict.fromkeys(filter(None, said)))


def warning_lines(warnings: Iterable[events.Warning]) -> list[str]:
    """Each warning with its remedy, said once."""
    said = ("Warning: " + sentences(one.text, one.remedy) for one in warnings)
    return list(dict.fromkeys(said))


def race_lines(race: RaceFinished, unit: str) -> list[str]:
    """The race's result: the speed-up, a line for each lane, and whether the answers were the same."""
    slow, fast = race.lanes
    between = formats.span(race.speedup_low, race.speedup_high, unit="×")
    said = [
        f"{fast.name} is {formats.speedup(race.speedup, race.speedup_low, race.speedup_high)} as fast as {slow.name}"
        + (
            f" (95 % interval {between})."
            if between
            else f"; {race.rounds:,} round{'s' if race.rounds != 1 else ''} are too few for an interval."
        ),
        *(lane_line(lane, unit) for lane in race.lanes),
    ]
    if race.chunked:
        said.append("The images did not fit in one call: the largest size that fits was raced in chunks.")
    if race.outputs_agree is False:
        said.append(f"The answers of the two lanes differ. {as_sentence(race.agreement)}".rstrip())
    elif race.outputs_agree is None:
        said.append(
            f"Whether the answers are the same could not be compared. {as_sentence(race.agreement)}".rstrip()
        )
    else:
        said.append(as_sentence(race.agreement) or "Both lanes gave the same answers.")
    return said


def lane_line(lane: Lane, unit: str) -> str:
    """One lane's times in words."""
    return (
        f"{lane.name}: {formats.ms(lane.total_ms)} ms in all, {formats.ms(lane.ms_per_item)} ms per {item_of(unit)}, "
        f"first answer after {formats.ms(lane.first_answer_ms)} ms"
    )


def ending(finished: RunFinished | None) -> str:
    """How the run ended, "" when it went through."""
    if finished is None:
        return "The run has no end: it is still going, or it was killed. `batchpeak resume` measures what is missing."
    if finished.reason == "completed":
        return ""
    if finished.reason == "cancelled":
        return f"Cancelled after {formats.duration(finished.elapsed_s)}; what was measured is kept."
    return f"Ended after {formats.duration(finished.elapsed_s)}: {failure(finished)}"


def failure(finished: RunFinished) -> str:
    """Why the run failed, with what to do about it."""
    if finished.error is None:
        return "the measuring process was lost." if finished.reason == "worker-lost" else "it failed."
    text = f"{finished.error.title}: {finished.error.message}"
    return f"{text} {finished.remedy}" if finished.remedy else text


def failed(finished: RunFinished) -> bool:
    """Whether the run ended otherwise than it should, and not by a person's wish."""
    return finished.reason in ("failed", "worker-lost")


def measured(record: RunRecord) -> bool:
    """Whether the run has any figure."""
    return record.race is not None or any(point.throughput is not None for point in record.points.values())


def _peak(verdict: Verdict, record: RunRecord) -> str:
    if verdict.peak is None:
        return "" if verdict.advice or not measured(record) else "No peak can be named."
    point = record.points.get(verdict.peak)
    figure = ""
    if point is not None and point.throughput is not None:
        best = (point.throughput, point.throughput_low, point.throughput_high)
        if point.confirmed is not None and not point.confirmed.agrees:
            best = (point.confirmed.throughput, point.confirmed.low, point.confirmed.high)
        figure = f", {formats.throughput(*best)} {unit_of(record)}"
        figure += f" ± {formats.plus_minus(*best)}" if best[1] is not None else ""
    sure = "" if verdict.certain else " (uncertain)"
    said = f"Peak: batch size {verdict.peak:,}{figure}{sure}."
    ties = [f"{size:,}" for size in verdict.ties if size != verdict.peak]
    if ties:
        said += f" {'Ties with it' if verdict.certain else 'Not told apart from it'}: {', '.join(ties)}."
    if verdict.knee is not None and verdict.knee != verdict.peak:
        said += f" Knee: {verdict.knee:,}."
    return said


def _suggestions(found: Iterable[Suggestion]) -> str:
    sizes: dict[str, list[str]] = {}
    for one in found:
        sizes.setdefault(one.reason, []).append(f"{one.batch_size:,}")
    said = "; ".join(f"{' or '.join(of)} ({why})" for why, of in sizes.items())
    return f"Worth a try: {said}." if said else ""


def _limit(limit: Limit) -> str:
    asked = f"p{limit.percentile} at most {formats.ms(limit.ms)} ms"
    if limit.best is None:
        return f"No size is sure to keep {asked}."
    return f"Best size that keeps {asked}: {limit.best:,}."


def _diagnosis(found: Diagnosis) -> list[str]:
    said = sentences(found.text, found.remedy)
    return [said, f"Try: {found.command}"] if found.command else [said]
