"""Where the sizes stand: peak, ties, knee, the kind of peak and how sure it is, before any limit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine import events
from engine.points import confirmed_of
from engine.results import Block, Measurement
from engine.rivals import Field, apart, fit, rows_of
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
    counting: Field | None = None
    """The levels that count: those of the run, but of `unconfirmed` those of the confirmation."""
    unconfirmed: tuple[int, ...] = ()
    fallen: tuple[int, ...] = ()
    """Those of `unconfirmed` that are slower in a fresh process."""
    undecided: tuple[int, ...] = ()
    """Once one has fallen: the sizes, the peak perhaps among them, that only the run's own figures put among the best."""
    unproven: tuple[int, ...] = ()
    """Once one has fallen: all sizes that none has measured in a fresh process and that may have fallen there as well."""
    figures: Mapping[int, Figure] = dataclasses.field(default_factory=dict)
    """Items per second of each deployable size that count: the fields' levels are for comparing only."""
    of_run: Mapping[int, Figure] = dataclasses.field(default_factory=dict)
    """The same as the run measured them, which is what the rows show."""

    @property
    def settled(self) -> bool:
        """Whether the peak and the sizes it is compared with have blocks enough for what is said of them."""
        return self.peak is not None and not self.short

    @property
    def short(self) -> tuple[int, ...]:
        """Of the peak and its ties those with too few blocks, ascending."""
        counting = self.counting
        if counting is None or self.peak is None:
            return ()
        return tuple(size for size in sorted((self.peak, *self.ties)) if counting.blocks(size) < MIN_BLOCKS)

    def beside(self, first: int, second: int) -> Field | None:
        """The field in which two sizes are compared: the run, in which they shared rounds, unless a fresh process says otherwise
        of either; then fresh processes where both have one, else each at the figure that counts.
        """
        both = self.confirmed
        if both is None or not {first, second} & set(self.unconfirmed):
            return self.counting
        return both if first in both.sizes and second in both.sizes else self.counting

    def ratio(self, batch_size: int) -> float | None:
        """Throughput of a size over that of the peak, both as they count; None when either is unknown."""
        if self.counting is None or self.peak is None or batch_size not in self.counting.sizes:
            return None
        field = self.beside(batch_size, self.peak) or self.counting
        return math.exp(field.difference(batch_size, self.peak))

    def best_of(self, sizes: Iterable[int]) -> int:
        """Of these sizes the one to prefer: the peak, else the highest of those whose figures count. Raises ValueError on none."""
        among = list(sizes)
        proven = [size for size in among if size not in self.undecided] or among
        if self.peak in proven or self.counting is None:
            return self.peak if self.peak in proven else max(proven)
        return self.counting.leader_of(proven)

    def throughput(self, batch_size: int) -> Figure | None:
        """Items per second; of a size whose confirmation disagrees the confirmed figure. None for one that is not deployable."""
        return self.figures.get(batch_size)


def stand(measurements: Iterable[Measurement]) -> Standing:
    """The standing of all sizes. Empty-safe; failures and sizes that the model did not really process take no part."""
    known = sorted(measurements, key=lambda one: one.batch_size)
    field = fit(rows_of(known))
    if field is None:
        return Standing()
    deployable = [one for one in known if one.deployable]
    standing = replace(
        _of_run(field),
        figures=_figures({one.batch_size: counting_blocks(one) for one in deployable}),
        of_run=_figures({one.batch_size: one.blocks for one in deployable}),
    )
    standing = _with_confirmations(known, field, standing)
    return replace(
        standing,
        kind=_kind(known, field, standing),
        certain=_certain(standing) and not standing.undecided,
    )


def counting_blocks(measurement: Measurement) -> tuple[Block, ...]:
    """The blocks whose figure counts: those of the run, or of the fresh process where that one disagrees."""
    fresh = confirmed_of(measurement)
    return measurement.blocks if fresh is None or fresh.agrees else measurement.confirmed


def _figure(blocks: Sequence[Block]) -> Figure | None:
    value, interval = throughput_estimate(blocks), throughput_interval(blocks)
    return (
        Figure(value, (interval.high - interval.low) / 2.0 if interval else None)
        if value is not None
        else None
    )


def _figures(blocks: Mapping[int, Sequence[Block]]) -> dict[int, Figure]:
    return {size: figure for size, of in blocks.items() if (figure := _figure(of)) is not None}


ERROR = (1.0 - CONFIDENCE) / 2.0
"""Half of the error is for telling who loses at all, half for how far those that do not may be above the peak."""


def _of_run(field: Field) -> Standing:
    standing = Standing(peak=field.leader, field=field, counting=field)
    return replace(standing, ties=_ties(standing), knee=knee_of(field, field.leader))


def _ties(standing: Standing) -> tuple[int, ...]:
    """The other sizes that cannot be told from the peak, or lie within 2 % of it."""
    others = [size for size in _sizes(standing) if size != standing.peak]
    return tuple(
        size
        for size in others
        if _highest(standing, size, ERROR / len(others)) >= 0.0 or _difference(standing, size) >= TIE
    )


def _certain(standing: Standing) -> bool:
    if standing.field is None or len(standing.field.sizes) < 2 or not standing.settled:
        return False
    known = bool(standing.field.noise.size)
    return known and all(
        _highest(standing, size, ERROR / len(standing.ties)) <= -TIE for size in standing.ties
    )


def _sizes(standing: Standing) -> tuple[int, ...]:
    return standing.counting.sizes if standing.counting is not None else ()


def _difference(standing: Standing, size: int) -> float:
    """Log ratio of a size to the peak."""
    field = standing.beside(size, standing.peak or size)
    return field.difference(size, standing.peak or size) if field is not None else 0.0


def _highest(standing: Standing, size: int, alpha: float) -> float:
    """What the log ratio of a size to the peak surely does not exceed."""
    field = standing.beside(size, standing.peak or size)
    return field.highest(size, standing.peak or size, alpha) if field is not None else math.inf


def knee_of(field: Field, peak: int) -> int:
    """The smallest size that surely reaches 95 % of the peak: the peak itself at the worst."""
    smaller = [size for size in field.sizes if size < peak]
    if not smaller:
        return peak
    alpha = (1.0 - CONFIDENCE) / len(smaller)
    return min((size for size in smaller if field.lowest(size, peak, alpha) >= KNEE), default=peak)


def _with_confirmations(known: Sequence[Measurement], field: Field, standing: Standing) -> Standing:
    """Let confirmations count: against each other, since a fresh process and a used one differ in more than the size."""
    confirmed = apart({one.batch_size: one.confirmed for one in known if one.batch_size in field.sizes})
    if confirmed is None or standing.peak is None:
        return standing
    unconfirmed = tuple(
        one.batch_size
        for one in known
        if one.batch_size in confirmed.sizes and (said := confirmed_of(one)) is not None and not said.agrees
    )
    fallen = tuple(size for size in unconfirmed if standing.figures[size].value < standing.of_run[size].value)
    found = replace(
        standing,
        confirmed=confirmed,
        counting=field.with_fresh(confirmed, unconfirmed) if unconfirmed else field,
        unconfirmed=unconfirmed,
        fallen=fallen,
        unproven=_unproven(field, confirmed, fallen),
        peak=_peak_of(confirmed, standing.peak, fallen),
    )
    if unconfirmed or found.peak != standing.peak:
        found = replace(found, ties=_ties(found))
    return replace(found, knee=_knee(found, standing.knee), undecided=_undecided(found))


def _peak_of(confirmed: Field, peak: int, fallen: Sequence[int]) -> int:
    """The run's peak; or the size that surely beats it where both run alone, or merely leads there when the peak fell."""
    if peak not in confirmed.sizes:
        return peak
    best, alpha = confirmed.leader, (1.0 - CONFIDENCE) / len(confirmed.sizes)
    return best if peak in fallen or confirmed.lowest(best, peak, alpha) > 0.0 else peak


def _unproven(field: Field, confirmed: Field, fallen: Sequence[int]) -> tuple[int, ...]:
    """What brought one size down in a fresh process may bring down every size that none has measured, from some size on."""
    if not fallen:
        return ()
    holds = max((size for size in confirmed.sizes if size < min(fallen)), default=0)
    return tuple(size for size in field.sizes if size > holds and size not in confirmed.sizes)


def _undecided(standing: Standing) -> tuple[int, ...]:
    confirmed = standing.confirmed
    if not standing.fallen or confirmed is None or standing.peak is None:
        return ()
    return tuple(
        size
        for size in sorted((*standing.ties, standing.peak))
        if size not in confirmed.sizes and (size in standing.unproven or _difference(standing, size) > 0.0)
    )


def _knee(standing: Standing, of_run: int | None) -> int | None:
    """The run's knee where fresh processes do not contradict it; once a size has fallen, the smallest that surely is one there."""
    peak, confirmed = standing.peak, standing.confirmed
    if peak is None or confirmed is None:
        return of_run
    alpha = (1.0 - CONFIDENCE) / len(confirmed.sizes)
    found = [peak]
    if of_run is not None and of_run < peak and of_run not in standing.unproven:
        field = confirmed if {of_run, peak} <= set(confirmed.sizes) else standing.counting or confirmed
        # Where the peak is faster alone, or the knee slower, what the run was sure of is to be shown anew.
        rose = peak in standing.unconfirmed and peak not in standing.fallen
        reached = field.lowest if rose or of_run in standing.fallen else field.highest
        if reached(of_run, peak, alpha) >= KNEE:
            found.append(of_run)
    if standing.fallen and peak in confirmed.sizes:
        # Beside the sure share alone, the figures that the rows show must not speak against it.
        found += [
            size
            for size in confirmed.sizes
            if size < peak
            and confirmed.lowest(size, peak, alpha) >= KNEE
            and _difference(standing, size) >= KNEE
        ]
    return min(found)


def _kind(known: Sequence[Measurement], field: Field, standing: Standing) -> events.PeakKind:
    peak = standing.peak or field.leader
    together = sorted((*standing.ties, peak))
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
