"""The sweep's schedule, pure: rounds over the listed batch sizes, when a size is settled, and what a failure means for the rest.

Rounds. Every size that is not settled gets one block a round, so that what changes over the run (heat, clocks, neighbours)
falls on all sizes alike. The first round ascends, because small sizes answer soonest; each later one has a fresh seeded order.

When a size is settled. It is `stable` at the first look at which it has at least `stats.MIN_BLOCKS` blocks and its 95 % interval
is within the precision. Stopping there prefers the moments at which blocks agreed by luck: with ordinary t intervals such a
rule holds the truth in 92 % of the cases at 3 % noise instead of 95 %, with a median and its deviation in 78 %. Two things
take the luck out. The interval itself is widened by what luck can do at its number of blocks, and for blocks that resemble
their neighbours (both in `engine.stats`), so that a lucky streak at few blocks is not narrow enough. And beyond
16 blocks a look is taken only when the blocks have grown by a sixteenth: fewer looks, fewer chances.
A size at its ceiling is `noisy`, or `short` with fewer than `stats.MIN_BLOCKS` blocks; its interval is shown as wide as it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine import stats
from engine.measure import Ask
from engine.results import Block, Failure, Measurement, Prepared, State

_SETTLED_BEFORE: frozenset[State] = frozenset({"stable", "noisy", "short", "oom", "error"})
"""States that a resumed run takes over; the others are measured on."""

_STATE_AFTER: dict[str, State] = {
    "oom": "oom",
    "error": "error",
    "killed": "error",
    "forecast": "skipped",
    "time": "skipped",
}
"""The state of a size after each kind of failure."""


@dataclass(slots=True)
class _Size:
    """One batch size and its blocks so far."""

    batch_size: int
    budget_s: float
    precision: float
    state: State = "measuring"
    prepared: Prepared | None = None
    blocks: list[Block] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """Seconds per item of each block."""
    spent_s: float = 0.0
    next_look: int = stats.MIN_BLOCKS + 1
    """From here on the first block, taken right after the warm-up, is out of the figure."""
    failure: Failure | None = None
    confirmed: tuple[Block, ...] = ()
    kept_from: str | None = None

    def add(self, block: Block) -> None:
        self.blocks.append(block)
        self.times.append(block.seconds / max(block.items, 1))
        self.spent_s += block.seconds

    def look(self) -> stats.Interval | None:
        """The interval when a look is due, else None."""
        count = len(self.times)
        if count < self.next_look:
            return None
        self.next_look = count + max(1, count // 16)
        return stats.interval_of_times(self.times)

    def measurement(self) -> Measurement:
        return Measurement(
            self.batch_size,
            state=self.state,
            prepared=self.prepared,
            blocks=tuple(self.blocks),
            confirmed=self.confirmed,
            failure=self.failure,
            kept_from=self.kept_from,
        )


class Sweep:
    """Measures a list of batch sizes; a `measure.Strategy`.

    `precision`: relative half width at which a size is stable. `budget_s`: ceiling for the run, on the caller's clock;
    `size_budget_s`: ceiling for one size, in measured seconds. A size that is reached gets at least one block, whatever the
    ceilings; a size that the run's ceiling keeps from being reached is `skipped`. `prior`: measurements kept from an
    earlier run; sizes settled there stay settled, the others go on from their blocks with a new budget. `at_once`: sizes
    that share the rounds at the most, smallest first; the others wait until one of them is settled.
    """

    def __init__(
        self,
        batch_sizes: Iterable[int],
        *,
        precision: float = 0.02,
        budget_s: float = 60.0,
        size_budget_s: float = 10.0,
        seed: int = 0,
        prior: Iterable[Measurement] = (),
        at_once: int | None = None,
    ) -> None:
        self._precision = precision
        self._at_once = at_once
        self._size_budget_s = size_budget_s
        self._deadline = budget_s
        self._budget_s = budget_s
        self._random = random.Random(seed)  # noqa: S311 - an order, not a secret
        self._sizes = {size: self._fresh(size) for size in sorted(set(batch_sizes))}
        self._changed = set(self._sizes)
        self._known: dict[int, Measurement] = {}
        self._first_errors: list[tuple[int, Failure]] = []
        self._tried: set[int] = set()
        self._queue: list[int] = []
        for measurement in prior:
            if measurement.batch_size in self._sizes:
                self._sizes[measurement.batch_size] = self._kept(measurement)
        for size in list(self._sizes.values()):
            if size.state == "oom":
                self._skip_larger(size.batch_size)
        self._round = 1 + max((b.round for s in self._sizes.values() for b in s.blocks), default=-1)
        self._queue = self._live()

    # --- measure.Strategy ---

    def ask(self, now: float) -> Ask | None:
        """The next block to measure; the same one again until it is told. None when every size is settled."""
        if now >= self._deadline and self._tried:
            self._close()
        if not self._queue:
            self._queue = self._live()
            if not self._queue:
                return None
            self._round += 1
            self._random.shuffle(self._queue)
        return Ask(self._queue[0], self._round)

    def tell_prepared(self, prepared: Prepared, now: float) -> None:  # noqa: ARG002 - as every strategy takes it
        """A size was made ready."""
        size = self._sizes[prepared.batch_size]
        size.prepared = prepared
        self._tried.add(size.batch_size)
        self._changed.add(size.batch_size)

    def tell(self, block: Block, now: float) -> None:  # noqa: ARG002 - as every strategy takes it
        """A block was measured. One that comes after the size was settled or cancelled is kept and settles nothing."""
        size = self._sizes[block.batch_size]
        size.add(block)
        self._tried.add(size.batch_size)
        self._changed.add(size.batch_size)
        self._drop(size.batch_size)
        if size.state != "measuring":
            return
        interval = size.look()
        if interval is not None and interval.relative_half_width <= size.precision:
            size.state = "stable"
        elif size.spent_s >= size.budget_s:
            size.state = self._at_ceiling(size)

    def tell_failure(self, batch_size: int, failure: Failure, now: float) -> None:  # noqa: ARG002 - as every strategy takes it
        """A size failed. Only out-of-memory reaches others: larger sizes without a block are skipped.

        The same error at the first two sizes tried ends the run: it is the model's, not the size's.
        """
        size = self._sizes[batch_size]
        size.failure = failure
        size.state = _STATE_AFTER[failure.kind]
        self._tried.add(batch_size)
        self._changed.add(batch_size)
        self._drop(batch_size)
        if failure.kind == "oom":
            self._skip_larger(batch_size)
        elif failure.kind == "error" and not size.blocks and len(self._tried) <= 2:
            self._first_errors.append((batch_size, failure))
            if len(self._first_errors) == 2 and _same_error(*self._first_errors):
                self._skip_rest(failure)

    def measurements(self) -> Sequence[Measurement]:
        """All sizes, ascending, each in its state."""
        for batch_size in self._changed:
            self._known[batch_size] = self._sizes[batch_size].measurement()
        self._changed.clear()
        return [self._known[batch_size] for batch_size in sorted(self._sizes)]

    def reason(self, batch_size: int) -> str:  # noqa: ARG002 - as every strategy takes it
        """Nothing: the person listed every size."""
        return ""

    def cancel(self) -> None:
        """Sizes not settled become `cancelled` and keep their blocks; nothing more is asked."""
        for size in self._sizes.values():
            if size.state == "measuring":
                self._set(size, "cancelled")
        self._queue = []

    # --- more than the list said ---

    def add(self, batch_sizes: Iterable[int], *, extra_s: float | None = None, now: float = 0.0) -> None:
        """Measure further sizes, or sizes of the list longer, by `extra_s` measured seconds each (default: a size's budget).

        A stable size then aims at half the half width it has; others at the precision of the run. The run's ceiling moves by
        the seconds granted, from `now` when that is later. Sizes that failed are tried again. Sizes skipped because of memory stay skipped.
        """
        extra = self._size_budget_s if extra_s is None else extra_s
        self._deadline = max(self._deadline, now)
        for batch_size in sorted(set(batch_sizes)):
            size = self._sizes.setdefault(batch_size, self._fresh(batch_size))
            if size.blocks:
                interval = stats.interval_of_times(size.times)
                if size.state == "stable" and interval is not None:
                    size.precision = interval.relative_half_width / 2.0
            elif (smaller := self._out_of_memory_below(batch_size)) is not None:
                self._set(size, "skipped", _skipped_for_memory(smaller))
                continue
            size.budget_s = size.spent_s + extra
            size.next_look = len(size.blocks) + 1
            self._deadline += extra
            self._set(size, "measuring")
            size.failure = None
            if batch_size not in self._queue:
                self._queue.append(batch_size)

    # --- inside ---

    def _fresh(self, batch_size: int) -> _Size:
        return _Size(batch_size, self._size_budget_s, self._precision)

    def _kept(self, measurement: Measurement) -> _Size:
        size = self._fresh(measurement.batch_size)
        for block in measurement.blocks:
            size.add(block)
        size.budget_s += size.spent_s
        size.confirmed = measurement.confirmed
        size.kept_from = measurement.kept_from
        if measurement.state in _SETTLED_BEFORE:
            size.state = measurement.state
            size.failure = measurement.failure
            size.prepared = measurement.prepared
        return size

    def _live(self) -> list[int]:
        live = [size.batch_size for size in self._sizes.values() if size.state == "measuring"]
        return live[: self._at_once]

    def _drop(self, batch_size: int) -> None:
        if batch_size in self._queue:
            self._queue.remove(batch_size)

    def _set(self, size: _Size, state: State, failure: Failure | None = None) -> None:
        size.state = state
        size.failure = failure or size.failure
        self._changed.add(size.batch_size)

    def _at_ceiling(self, size: _Size) -> State:
        interval = stats.interval_of_times(size.times)
        if interval is None:
            return "short"
        return "stable" if interval.relative_half_width <= self._precision else "noisy"

    def _close(self) -> None:
        """The run's ceiling is reached: every size ends as it is, but one made ready still gets its block."""
        for size in self._sizes.values():
            if size.state != "measuring":
                continue
            if size.blocks:
                self._set(size, self._at_ceiling(size))
            elif size.prepared is None:
                self._set(size, "skipped", _skipped_for_time(self._budget_s))
        self._queue = self._live()

    def _skip_larger(self, batch_size: int) -> None:
        for size in self._sizes.values():
            if size.batch_size > batch_size and size.state == "measuring" and not size.blocks:
                self._set(size, "skipped", _skipped_for_memory(batch_size))
                self._drop(size.batch_size)

    def _skip_rest(self, failure: Failure) -> None:
        for size in self._sizes.values():
            if size.state == "measuring":
                self._set(size, "skipped", _skipped_for_error(failure))
        self._queue = []

    def _out_of_memory_below(self, batch_size: int) -> int | None:
        failed = [
            s.batch_size for s in self._sizes.values() if s.state == "oom" and s.batch_size < batch_size
        ]
        return min(failed, default=None)


def _skipped_for_memory(at: int) -> Failure:
    return Failure(
        "oom", f"skipped: out of memory at {at}", f"Batch size {at} did not fit in memory already."
    )


def _skipped_for_time(budget_s: float) -> Failure:
    return Failure(
        "time",
        "skipped: the run's time was over",
        f"The ceiling of {budget_s:g} s was reached before this size; a longer --budget reaches it.",
    )


def _skipped_for_error(failure: Failure) -> Failure:
    return Failure(
        "error",
        "skipped: the first two sizes failed alike",
        f"Both raised the same error: {failure.title}: {failure.message}",
        failure.where,
    )


def _same_error(first: tuple[int, Failure], second: tuple[int, Failure]) -> bool:
    """Whether two errors read the same, a number that is the batch size in each counting as equal.

    ("mat1 and mat2 shapes cannot be multiplied (8x784 and 100x10)" names the batch size; "invalid for input of size 6272"
    does not, and may well come from a model that takes one batch size only: that one is not the same at the next size.)
    """
    (first_size, one), (second_size, other) = first, second
    if one.of_size or other.of_size or one.title != other.title or one.where != other.where:
        return False
    one_parts, other_parts = re.split(r"(\d+)", one.message), re.split(r"(\d+)", other.message)
    return len(one_parts) == len(other_parts) and all(
        a == b or (a == str(first_size) and b == str(second_size))
        for a, b in zip(one_parts, other_parts, strict=True)
    )
