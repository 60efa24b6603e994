"""Which sizes can be told apart: one fit of all blocks as size + round, so that drift cancels and few blocks still count.

The model is log(items/s of a block) = level of its size + effect of its round + noise. A round is one block at every
live size, so what falls on a whole round (heat, a neighbour) falls out of the comparison. Noise is estimated per size and
drawn towards the noise of all sizes together (moderated t, Smyth 2004, doi:10.2202/1544-6115.1027): two blocks of a
hopeless size are enough to leave it, while a size that is itself unsteady keeps its own, wider interval. Blocks far off
their fit are pulled in (Huber), since an interruption tells nothing about the model.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.latency import median
from engine.results import Block, Measurement
from engine.stats import location_of, t_quantile

Array = npt.NDArray[np.float64]

PRIOR_DF = 8.0
"""Weight of the noise of all sizes together in the noise of one, in degrees of freedom."""
HUBER = 2.5
"""Residuals beyond this many standard deviations are pulled in to it."""
ENOUGH = 6
"""Blocks of one size among which an interrupted one stands out."""


@dataclass(frozen=True, slots=True)
class Row:
    """One block as the fit sees it."""

    batch_size: int
    round: Hashable
    level: float
    """Natural log of items per second."""


@dataclass(frozen=True, slots=True)
class Field:
    """The sizes beside each other. Levels are natural logs of items per second; differences of them are log ratios."""

    sizes: tuple[int, ...]
    levels: Array
    covariance: Array
    """Of the levels, for noise of 1; only differences of it mean something."""
    noise: Array
    """Standard deviation of one block's level, per size; NaN-free: empty when no noise can be estimated."""
    freedom: Array
    counts: tuple[int, ...]

    def level(self, batch_size: int) -> float:
        return float(self.levels[self.sizes.index(batch_size)])

    def blocks(self, batch_size: int) -> int:
        return self.counts[self.sizes.index(batch_size)]

    def throughput(self, batch_size: int) -> float:
        """Items per second at a size."""
        return math.exp(self.level(batch_size))

    @property
    def leader(self) -> int:
        """The size with the highest level. Raises ValueError on an empty field."""
        return self.leader_of(self.sizes)

    def leader_of(self, sizes: Iterable[int]) -> int:
        """The one of `sizes` with the highest level."""
        return max(sizes, key=self.level)

    def difference(self, first: int, second: int) -> float:
        """Log ratio of the throughputs, first over second."""
        return self.level(first) - self.level(second)

    def half_width(self, first: int, second: int, alpha: float) -> float:
        """How far the log ratio may be off, on each side, with one-sided error `alpha`; infinite when unknown."""
        a, b = self.sizes.index(first), self.sizes.index(second)
        if a == b:
            return 0.0
        if not self.noise.size:
            return math.inf
        spread = self.covariance[a, a] + self.covariance[b, b] - 2.0 * self.covariance[a, b]
        weight_a, weight_b = 1.0 / self.counts[a], 1.0 / self.counts[b]
        variance = (weight_a * self.noise[a] ** 2 + weight_b * self.noise[b] ** 2) / (weight_a + weight_b)
        # The side with fewer blocks carries most of the doubt, so its degrees of freedom count most.
        freedom = (weight_a + weight_b) / (weight_a / self.freedom[a] + weight_b / self.freedom[b])
        return t_quantile(1.0 - alpha, _whole(freedom)) * math.sqrt(max(float(spread * variance), 0.0))

    def highest(self, first: int, second: int, alpha: float) -> float:
        """The log ratio is surely (error `alpha`) not above this."""
        return self.difference(first, second) + self.half_width(first, second, alpha)

    def lowest(self, first: int, second: int, alpha: float) -> float:
        """The log ratio is surely (error `alpha`) not below this."""
        return self.difference(first, second) - self.half_width(first, second, alpha)

    def with_fresh(self, fresh: Field, sizes: Iterable[int]) -> Field:
        """This field with `sizes` standing at their levels in `fresh`, which shares no round with anything here."""
        levels, covariance, counts = self.levels.copy(), self.covariance.copy(), list(self.counts)
        noise, freedom = self.noise.copy(), self.freedom.copy()
        for size in sizes:
            here, there = self.sizes.index(size), fresh.sizes.index(size)
            levels[here], counts[here] = fresh.levels[there], fresh.counts[there]
            if noise.size:
                noise[here], freedom[here] = fresh.noise[there], fresh.freedom[there]
            # Only differences mean something: these make that of the size and any other the sum of both doubts.
            covariance[here, :] = covariance[:, here] = (np.diag(covariance) - 1.0 / np.array(counts)) / 2.0
            covariance[here, here] = 1.0 / counts[here]
        return Field(self.sizes, levels, covariance, noise, freedom, tuple(counts))


def apart(blocks: Mapping[int, Sequence[Block]]) -> Field | None:
    """The field of sizes that were measured each in a process of its own: figure and doubt of each are of its own blocks.

    Sizes with fewer than `stats.MIN_BLOCKS` blocks are left out; None when no size is left.
    """
    found = {size: place for size, of in sorted(blocks.items()) if (place := location_of(of)) is not None}
    if not found:
        return None
    counts = tuple(len(blocks[size]) for size in found)
    # As of one block, which is what a field holds; a noise of exactly 0 would make every difference sure.
    noise = [
        max(place.error * math.sqrt(count), 1e-5) for place, count in zip(found.values(), counts, strict=True)
    ]
    return Field(
        sizes=tuple(found),
        levels=np.array([place.level for place in found.values()]),
        covariance=np.diag([1.0 / count for count in counts]),
        noise=np.array(noise),
        freedom=np.array([float(place.freedom) for place in found.values()]),
        counts=counts,
    )


def _whole(freedom: float) -> int:
    """Degrees of freedom, rounded down, above 30 to tens: few values, so that their quantiles are looked up, not computed."""
    whole = max(1, int(freedom))
    return whole if whole <= 30 else whole // 10 * 10


def level_of(block: Block) -> float:
    """Natural log of the block's items per second."""
    return math.log(max(block.items, 1) / block.seconds)


def rows_of(measurements: Iterable[Measurement]) -> list[Row]:
    """The blocks of the deployable sizes, ready for the fit; rounds of different processes or runs are kept apart."""
    return [
        Row(known.batch_size, (known.kept_from, block.worker, block.round), level_of(block))
        for known in measurements
        if known.deployable
        for block in known.blocks
    ]


def fit(rows: Sequence[Row]) -> Field | None:
    """The field that the rows tell of; None when there are none."""
    if not rows:
        return None
    sizes = tuple(sorted({row.batch_size for row in rows}))
    place = {size: index for index, size in enumerate(sizes)}
    rounds: dict[Hashable, int] = {}
    size_of = np.array([place[row.batch_size] for row in rows])
    round_of = np.array([rounds.setdefault(row.round, len(rounds)) for row in rows])
    levels = np.array([row.level for row in rows], dtype=np.float64)
    # Centred, so that the constraint of the fit (levels sum to 0) costs no digits.
    centre = float(levels.mean())
    counts = np.zeros((len(rounds), len(sizes)))
    np.add.at(counts, (round_of, size_of), 1.0)
    parts = _parts(counts)
    design = _Design(size_of, round_of, counts, paired=parts == 1)
    values = levels - centre
    lost = len(sizes) + (len(rounds) - parts if parts == 1 else 0)
    freedom = len(rows) - lost
    estimate, effects = design.solve(values)
    bound = math.inf
    for _ in range(3):
        residuals = values - estimate[size_of] - effects[round_of]
        apart = np.abs(residuals[residuals != 0.0])
        scale = median(apart) * 1.5 if freedom > 2 and apart.size else 0.0
        if scale <= 0.0:
            break
        bound = HUBER * scale * math.sqrt(len(rows) / freedom)
        pulled = values - residuals + np.clip(residuals, -bound, bound)
        estimate, effects = design.solve(pulled)
    residuals = values - estimate[size_of] - effects[round_of]
    noise, degrees = _noise(residuals, size_of, len(sizes), freedom, bound)
    if parts == 1 and noise.size:
        design = design.with_round_spread(median(noise), effects)
        estimate, _ = design.solve(
            values - residuals + np.clip(residuals, -HUBER * noise[size_of], HUBER * noise[size_of])
        )
    # Size and round leave one constant open: the rounds' effects are to sum to nothing over the blocks.
    centre += float(np.mean(values - estimate[size_of]))
    per_size = counts.sum(axis=0)
    return Field(
        sizes=sizes,
        levels=estimate + centre,
        covariance=design.inverse,
        noise=noise,
        freedom=degrees,
        counts=tuple(int(count) for count in per_size),
    )


def _noise(
    residuals: Array, size_of: npt.NDArray[np.intp], sizes: int, freedom: int, bound: float
) -> tuple[Array, Array]:
    """Noise of one block per size, drawn towards that of all; and its degrees of freedom. Empty without residuals.

    Blocks pulled in count as pulled in, divided by the share of those that were not (Huber's variance of an M-estimate). Not so
    in a size with few blocks: there nobody can say which of two blocks was the interrupted one.
    """
    if freedom < 1:
        return np.empty(0), np.empty(0)
    count = np.bincount(size_of, minlength=sizes).astype(np.float64)
    clipped = np.clip(residuals, -bound, bound)
    kept = float(np.mean(np.abs(residuals) <= bound))
    pulled = np.bincount(size_of, weights=clipped**2, minlength=sizes) / kept**2
    squares = np.where(count >= ENOUGH, pulled, np.bincount(size_of, weights=residuals**2, minlength=sizes))
    own_freedom = count * (freedom / residuals.size)
    pooled = float(pulled.sum()) / freedom
    prior = min(PRIOR_DF, float(freedom))
    variance = (prior * pooled + squares) / (prior + own_freedom)
    # A noise of exactly 0 (a clock that ticks coarsely) would make every difference sure.
    return np.sqrt(np.maximum(variance, 1e-10)), prior + np.maximum(own_freedom - 1.0, 0.0)


def _parts(counts: Array) -> int:
    """Into how many groups the sizes fall that share no round, directly or through others."""
    together = (counts.T @ counts) > 0
    unseen = set(range(together.shape[0]))
    parts = 0
    while unseen:
        parts += 1
        edge = [unseen.pop()]
        while edge:
            near = {int(i) for i in np.flatnonzero(together[edge.pop()])} & unseen
            unseen -= near
            edge.extend(near)
    return parts


class _Design:
    """The normal equations of size + round. `paired` False leaves the rounds out, when they join too few sizes."""

    def __init__(
        self,
        size_of: npt.NDArray[np.intp],
        round_of: npt.NDArray[np.intp],
        counts: Array,
        *,
        paired: bool,
        share: Array | None = None,
    ) -> None:
        self.size_of, self.round_of, self.counts, self.paired = size_of, round_of, counts, paired
        per_round = counts.sum(axis=1)
        self.share = share if share is not None else (1.0 / per_round if paired else np.zeros_like(per_round))
        matrix = np.diag(counts.sum(axis=0)) - (counts * self.share[:, None]).T @ counts
        if paired and share is None:
            # Rounds as free as sizes leave one constant open, which closes here; differences do not see it. (A pseudo-inverse
            # does the same, but its eigenvalues wake the linear algebra's threads, which then spin beside the next block.)
            matrix = matrix + 1.0 / matrix.shape[0]
        self.inverse: Array = np.asarray(np.linalg.inv(matrix), dtype=np.float64)

    def solve(self, values: Array) -> tuple[Array, Array]:
        """Level of each size and effect of each round."""
        per_size = np.bincount(self.size_of, weights=values, minlength=self.counts.shape[1])
        per_round = np.bincount(self.round_of, weights=values, minlength=self.counts.shape[0])
        levels = self.inverse @ (per_size - self.counts.T @ (self.share * per_round))
        return levels, self.share * (per_round - self.counts @ levels)

    def with_round_spread(self, noise: float, effects: Array) -> _Design:
        """The design that also uses what rounds say about sizes they do not share, as far as rounds are alike.

        With few rounds their spread is not known, and only what is shared within rounds counts.
        """
        if effects.size < 5:
            return self
        per_round = self.counts.sum(axis=1)
        own = float(np.mean(noise**2 / per_round))
        spread = max(0.0, float(np.var(effects)) - own) + own / math.sqrt(effects.size)
        share = spread / (noise**2 + per_round * spread)
        return _Design(self.size_of, self.round_of, self.counts, paired=True, share=share)
