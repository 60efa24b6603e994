"""Where the sizes stand: peak, ties, knee, the kind of peak and how sure it is, before any limit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine import events
from engine.points import confirmed_of
from engine.results import Measurement
from engine.rivals import Field, fit, level_of, rows_of
from engine.stats import CONFIDENCE, MIN_BLOCKS, throughput_estimate, throughput_interval

TIE = math.log(0.98)
"""Sizes within 2 % of the peak count as tied with it, however well they can be told apart."""
KNEE = math.log(0.95)
PLATEAU_SPAN = 4
"""Ties that span this factor are a plateau rather than a peak."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A throughput as its row shows it: items per second, and half the width of its 95 % interval where it has one."""

    value: float
    half_width: float | None


@dataclass(frozen=True, slots=True)
class Standing:
    """`ties` are the other sizes that cannot be told from the peak or lie within 2 % of it, ascending. `certain`: no measured
    size is more than 2 % above the peak, at 95 % confidence for all comparisons together. `unconfirmed`: sizes whose
    confirmation in a fresh process disagrees with the run.
    """

    peak: int | None = None
    ties: tuple[int, ...] = ()
    knee: int | None = None
    kind: events.PeakKind = "none"
    certain: bool = False
    field: Field | None = None
    """Levels of the run; of sizes that were confirmed, those of the confirmation are in `confirmed`."""
    confirmed: Field | None = None
    unconfirmed: tuple[int, ...] = ()
    fallen: tuple[int, ...] = ()
    """Those of `unconfirmed` that are slower in a fresh process."""
    undecided: tuple[int, ...] = ()
    """Once one has fallen: the sizes that only the run's own figures put at the peak's confirmed throughput or above it."""
    figures: Mapping[int, Figure] = dataclasses.field(default_factory=dict)
    """Items per second of each deployable size, as its row shows it: the field's levels are for comparing only."""

    def ratio(self, batch_size: int) -> float | None:
        """Throughput of a size over that of the peak; None when either is unknown.

        Like is compared with like: confirmations with each other when both sizes have one, else the figures of the run.
        """
        field = self.field
        if field is None or self.peak is None or batch_size not in field.sizes:
            return None
        both = self.confirmed
        if both is not None and self.peak in both.sizes and batch_size in both.sizes:
            field = both
        return math.exp(field.difference(batch_size, self.peak))

    def best_of(self, sizes: Iterable[int]) -> int:
        """Of these sizes the one to prefer: the peak, else the highest of those whose figures count. Raises ValueError on none."""
        among = list(sizes)
        if self.peak in among or self.field is None:
            return self.peak if self.peak in among else max(among)
        counting = [size for size in among if size not in self.undecided] or among
        return max(counting, key=self._level)

    def _level(self, batch_size: int) -> float:
        field = self.confirmed if batch_size in self.unconfirmed else self.field
        return field.level(batch_size) if field is not None else 0.0

    def throughput(self, batch_size: int) -> Figure | None:
        """Items per second; of a size whose confirmation disagrees the confirmed figure. None for one that is not deployable."""
        return self.figures.get(batch_size)


def stand(measurements: Iterable[Measurement]) -> Standing:
    """The standing of all sizes. Empty-safe; failures and sizes that the model did not really process take no part."""
    known = sorted(measurements, key=lambda one: one.batch_size)
    field = fit(rows_of(known))
    if field is None:
        return Standing()
    standing = replace(_of_run(known, field, field.leader), figures=_figures(known))
    return _with_confirmations(known, field, standing)


def _figures(known: Iterable[Measurement]) -> dict[int, Figure]:
    found = {}
    for one in known:
        fresh = confirmed_of(one)
        blocks = one.blocks if fresh is None or fresh.agrees else one.confirmed
        value, interval = throughput_estimate(blocks), throughput_interval(blocks)
        if one.deployable and value is not None:
            found[one.batch_size] = Figure(value, (interval.high - interval.low) / 2.0 if interval else None)
    return found


def _of_run(known: Sequence[Measurement], field: Field, peak: int) -> Standing:
    others = [size for size in field.sizes if size != peak]
    if not others:
        return Standing(peak=peak, knee=peak, kind=_kind(known, field, peak, ()), field=field)
    # Half of the error for telling who loses at all, half for how far those that do not may be above the peak.
    error = (1.0 - CONFIDENCE) / 2.0
    ties = tuple(
        size
        for size in others
        if field.highest(size, peak, error / len(others)) >= 0.0 or field.difference(size, peak) >= TIE
    )
    return Standing(
        peak=peak,
        ties=ties,
        knee=knee_of(field, peak),
        kind=_kind(known, field, peak, ties),
        certain=max(field.counts) >= MIN_BLOCKS
        and bool(field.noise.size)
        and all(field.highest(size, peak, error / len(ties)) <= -TIE for size in ties),
        field=field,
    )


def knee_of(field: Field, peak: int) -> int:
    """The smallest size that surely reaches 95 % of the peak: the peak itself at the worst."""
    smaller = [size for size in field.sizes if size < peak]
    if not smaller:
        return peak
    alpha = (1.0 - CONFIDENCE) / len(smaller)
    return min((size for size in smaller if field.lowest(size, peak, alpha) >= KNEE), default=peak)


def _with_confirmations(known: Sequence[Measurement], field: Field, standing: Standing) -> Standing:
    """Let confirmations count: against each other, since a fresh process and a used one differ in more than the size."""
    levels = {
        one.batch_size: [level_of(block) for block in one.confirmed]
        for one in known
        if len(one.confirmed) >= MIN_BLOCKS and one.batch_size in field.sizes
    }
    if not levels or standing.peak is None:
        return standing
    confirmed = field.confirmed_by(levels)
    alpha = (1.0 - CONFIDENCE) / len(levels)
    unconfirmed = tuple(
        one.batch_size
        for one in known
        if one.batch_size in levels and (said := confirmed_of(one)) is not None and not said.agrees
    )
    fallen = tuple(size for size in unconfirmed if confirmed.level(size) < field.level(size))
    peak, ties, knee = standing.peak, standing.ties, standing.knee
    best = confirmed.leader
    if peak in confirmed.sizes and best != peak and confirmed.lowest(best, peak, alpha) > 0.0:
        ties = (
            tuple(sorted({*ties, peak} - {best}))
            if confirmed.difference(peak, best) >= TIE
            else tuple(size for size in ties if size != best)
        )
        peak = best
    undecided: tuple[int, ...] = ()
    if fallen and peak in confirmed.sizes:
        # What brought one size down in a fresh process may bring down every size that none has measured.
        least = confirmed.level(peak) + TIE
        undecided = tuple(
            size for size in field.sizes if size not in confirmed.sizes and field.level(size) >= least
        )
        level = [
            size
            for size in confirmed.sizes
            if size != peak
            and (confirmed.highest(size, peak, alpha) >= 0.0 or confirmed.difference(size, peak) >= TIE)
        ]
        ties = tuple(sorted((*level, *undecided)))
        if knee not in confirmed.sizes:
            knee = peak
    if (
        knee is not None
        and knee in confirmed.sizes
        and peak in confirmed.sizes
        and (
            knee > peak
            # A knee that fell must reach its 95 % in fresh processes as surely as it did in the run.
            or (confirmed.lowest if knee in fallen else confirmed.highest)(knee, peak, alpha) < KNEE
        )
    ):
        knee = peak
    return replace(
        standing,
        peak=peak,
        ties=ties,
        knee=knee,
        kind=_kind(known, field, peak, ties),
        certain=standing.certain and not undecided,
        confirmed=confirmed,
        unconfirmed=unconfirmed,
        fallen=fallen,
        undecided=undecided,
    )


def _kind(known: Sequence[Measurement], field: Field, peak: int, ties: Sequence[int]) -> events.PeakKind:
    together = sorted((*ties, peak))
    largest = field.sizes[-1]
    cut = cut_at(known, largest) is not None
    if len(field.sizes) == 1:
        return "memory" if cut else "none"
    if together[-1] / together[0] >= PLATEAU_SPAN and (len(together) > 2 or len(field.sizes) == 2):
        return "plateau"
    if largest in together and cut:
        return "memory"
    if peak == largest:
        return "rising"
    if peak == field.sizes[0]:
        return "falling"
    return "interior"


def cut_at(measurements: Iterable[Measurement], size: int) -> int | None:
    """The smallest size above `size` that memory kept from being measured; None when memory is not what ends the list."""
    return min(
        (
            known.batch_size
            for known in measurements
            if known.batch_size > size
            and known.failure is not None
            and known.failure.kind in ("oom", "killed", "forecast")
        ),
        default=None,
    )
