"""A verdict does not contradict itself, whatever was measured and confirmed; and a limit changes none of what it does not concern."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import events
from engine.digits import rounded
from engine.peak import Judgement, judge
from engine.points import point_of
from engine.results import Failure, Measurement
from engine.standing import KNEE, TIE
from engine.stats import MIN_BLOCKS
from tests.unit.test_peak import measured

HOST = {"os": "Linux 6.1", "usable_cores": 2}
SIZES = st.lists(st.sampled_from((1, 2, 3, 8, 12, 16, 32, 48, 64, 100, 128, 512)), min_size=1, unique=True)


@st.composite
def one_measured(draw: st.DrawFn, size: int) -> Measurement:
    """A size with any number of blocks, of which a fresh process may say anything."""
    if draw(st.integers(0, 14)) == 0:
        return Measurement(size, state="oom", failure=Failure("oom", "out of memory", "tried 2 GB"))
    ms = (0.4 + 0.05 * size) * draw(st.sampled_from((1.0, 1.01, 1.05, 1.4)))
    confirmed = draw(st.sampled_from((None, None, 1.0, 0.8, 1.01, 1.3, 2.5)))
    noise, seed = draw(st.sampled_from((0.001, 0.01, 0.05))), draw(st.integers(0, 99))
    found = measured(
        size,
        ms,
        blocks=draw(st.sampled_from((1, 3, 5, 6, 8, 8, 8))),
        calls=draw(st.sampled_from((5, 50))),
        noise=noise,
        seed=seed,
        faults=draw(st.sampled_from((None, 0, 40 * size))),
    )
    if confirmed is None:
        return found
    alone = measured(
        size, ms * confirmed, noise=noise, seed=seed + 1, faults=draw(st.sampled_from((None, 0, 5000 * size)))
    )
    return msgspec.structs.replace(found, confirmed=alone.blocks)


@st.composite
def everything_measured(draw: st.DrawFn) -> list[Measurement]:
    return [draw(one_measured(size)) for size in sorted(draw(SIZES))]


def numbers_after(words: str, text: str) -> list[int]:
    return [int(found) for found in re.findall(rf"{words} (\d+)", text)]


def holds_together(known: Sequence[Measurement], verdict: Judgement) -> None:
    standing, peak = verdict.standing, verdict.peak
    assert peak not in verdict.ties
    if peak is None or standing.counting is None:
        assert verdict.recommended is None
        return
    # What the rows call fallen is what the verdict takes for fallen.
    points = [point_of(one, run="r", t=0.0) for one in known]
    assert tuple(point.batch_size for point in points if point.fell) == standing.fallen
    # What leads has, of the figures measured alike, none above it by more than chance; and a peak that fell none at all.
    if peak in standing.fallen:
        assert standing.confirmed is not None
        assert peak == standing.confirmed.leader
    # The size to deploy is the one recommended, and stands at the figure that counts.
    for size in numbers_after("Deploy", verdict.advice):
        assert size == verdict.recommended
    for size, figure in re.findall(r"Deploy (\d+): the [^.]*? at ([\d,.]+) images/s", verdict.advice):
        shown = standing.figures[int(size)]
        assert figure.rstrip(".,") == rounded(shown.value, shown.half_width).rstrip(".")
    # No sentence speaks of a drop at a size that the verdict puts at the peak or below it.
    said = verdict.diagnosis.text if verdict.diagnosis else ""
    for size in numbers_after("the drop from", said):
        assert size > peak
        field = standing.beside(size, peak)
        assert field is not None
        assert field.difference(size, peak) < 0.0
    if verdict.cost is not None:
        # One line, one process: that of the run, up to where a size fell; from there on no size that the run alone tells of.
        fell, leaves = min(standing.fallen, default=math.inf), verdict.cost.leaves_line_at
        assert max(verdict.cost.fitted_on) < fell
        assert leaves is None or leaves < fell or leaves not in standing.unproven
    if verdict.certain:
        assert not standing.undecided
        for size in (peak, *verdict.ties):
            assert standing.counting.blocks(size) >= MIN_BLOCKS
        for size in standing.counting.sizes:
            field = standing.beside(size, peak)
            assert field is not None
            assert field.difference(size, peak) <= -TIE
    if verdict.knee is not None and verdict.knee != peak:
        assert verdict.knee < peak
        ratio = standing.ratio(verdict.knee)
        assert ratio is not None
        if verdict.certain:
            assert math.log(ratio) >= KNEE - 0.02


@settings(deadline=None)
@given(everything_measured())
def test_every_sentence_and_figure_of_a_verdict_fits_the_others(known: list[Measurement]) -> None:
    verdict = judge(known, host=HOST)
    holds_together(known, verdict)
    assert events.decode(events.encode(verdict.event(run="r", t=0.0))) is not None


@settings(deadline=None)
@given(everything_measured(), st.sampled_from((0.5, 2.0, 3.5, 9.0)), st.sampled_from((50, 95, 99)))
def test_a_limit_changes_neither_peak_nor_ties_nor_knee(
    known: list[Measurement], limit_ms: float, percentile: int
) -> None:
    free = judge(known, host=HOST)
    for limit in (limit_ms, 3.0 * limit_ms, None):
        under = judge(known, limit_ms=limit, percentile=percentile, host=HOST)
        holds_together(known, under)
        assert (under.peak, under.ties, under.knee, under.certain) == (
            free.peak,
            free.ties,
            free.knee,
            free.certain,
        )
        # A limit that the peak misses is what cuts it; the kind of the curve itself stays.
        assert under.kind in (free.kind, "limit")
        assert under.standing.kind == free.kind
        assert (under.diagnosis is None, under.cost is None) == (free.diagnosis is None, free.cost is None)
    assert under.kind == free.kind
