"""The search for the peak, pure (ask and tell): double, probe around the best, leave what surely loses, end when told apart.

Rounds as in a sweep: every size still in question gets one block a round, in a fresh seeded order, so that drift falls on all
alike. After a round all blocks are fitted together (`engine.rivals`). A size leaves when it surely loses to the leader, at
95 % for all sizes and all looks together (the error is spent over the looks as 1 / (l (l + 1)), which sums to 1).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from engine import stats
from engine.climb import Step, next_step
from engine.measure import Ask
from engine.results import Block, Failure, Measurement, Prepared, State
from engine.rivals import Field, Row, fit, level_of
from engine.standing import KNEE, TIE, knee_of
from engine.suggest import between

LEAST_TO_LEAVE = 2
"""Blocks before a size may be left for good: one may have been interrupted."""
NAMED_BLOCKS = stats.MIN_BLOCKS
"""Blocks of a size that the verdict names first, so that its row has an interval."""
HOPELESS = 0.5
FLAT_NEAR, NEAR, STEEP_NEAR = 1.5, 1.25, 1.07
"""How near the leader's neighbours must be (ratio of the sizes): nearer where the curve falls off faster."""
FLAT, STEEP = -0.01, -0.03
"""Log ratios of a neighbour to the leader, down to which the curve is flat there, and below which it is steep."""
MOST_PROBES = 16
TIED_WITHIN = 0.02
"""Two sizes whose log ratio is known this well (95 %, one pair) and that still cannot be told apart are tied."""
PLATEAU_WITHIN = 0.04
"""The same on a plateau, where which of many alike sizes leads makes no difference to anybody."""
PLATEAU_SPAN, PLATEAU_SIZES = 8, 4
TIED_PART = 1 / 50
"""So are two of which one has had this part of the budget."""
_CAPS = ("oom", "killed", "forecast")


@dataclass(slots=True)
class _Trial:
    """One size of the search."""

    batch_size: int
    reason: str
    blocks: list[Block] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    prepared: Prepared | None = None
    failure: Failure | None = None
    state: State = "measuring"
    spent_s: float = 0.0
    calls: int = 0
    over: int = 0
    """Calls above the limit."""
    look_at: int = 0
    """Calls at which the limit is judged next: each look is a chance to be wrong, so looks are few."""
    left: str = ""
    """Why it gets no more blocks: "" while it may."""
    confirmed: tuple[Block, ...] = ()
    kept_from: str | None = None

    def add(self, block: Block, limit_ms: float | None) -> None:
        self.blocks.append(block)
        self.calls += len(block.call_ms)
        if limit_ms is not None:
            self.over += sum(call > limit_ms for call in block.call_ms)
        self.rows.append(Row(self.batch_size, (self.kept_from, block.worker, block.round), level_of(block)))
        self.spent_s += block.seconds

    @property
    def block_s(self) -> float:
        """What one more block takes."""
        return self.blocks[-1].seconds if self.blocks else 0.0

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


class Search:
    """Finds the peak without a list; a `measure.Strategy`.

    `precision`: relative half width of the leader's interval to aim at. `budget_s`: ceiling on the caller's clock;
    `size_budget_s`: ceiling for one size, in measured seconds. With `limit_ms` it looks for the fastest size that keeps the limit,
    and makes the calls that its percentile needs. `prior`: measurements of an earlier run, not measured again.
    """

    def __init__(
        self,
        *,
        max_batch_size: int = 4096,
        precision: float = 0.02,
        budget_s: float = 60.0,
        size_budget_s: float = 10.0,
        seed: int = 0,
        limit_ms: float | None = None,
        percentile: int = 99,
        prior: Iterable[Measurement] = (),
    ) -> None:
        self._max = max_batch_size
        self._precision = precision
        self._budget_s = budget_s
        self._size_budget_s = size_budget_s
        self._random = random.Random(seed)  # noqa: S311 - an order, not a secret
        self._limit_ms, self._percentile = limit_ms, percentile
        self._trials: dict[int, _Trial] = {}
        self._known: dict[int, Measurement] = {}
        self._queue: list[int] = []
        self._round = 0
        self._looks = 0
        self._probes = 0
        self._phase: Literal["climb", "rounds", "done"] = "climb"
        self.ended = ""
        """Why the search ended, in words; "" while it goes on."""
        for measurement in prior:
            self._take_over(measurement)
        self._queue = [] if self._trials else [1]
        if not self._trials:
            self._trials[1] = _Trial(1, "the smallest size: where doubling begins")

    # --- measure.Strategy ---

    def ask(self, now: float) -> Ask | None:
        """The next block; the same one again until it is told. None when the search is over."""
        while self._phase != "done":
            if now >= self._budget_s and self._anything():
                self._end("the time is over")
                break
            if not self._queue:
                self._next(now)
                continue
            trial = self._trials[self._queue[0]]
            if now + trial.block_s > self._budget_s and self._anything():
                # A block that would end after the ceiling is not begun.
                self._queue.pop(0)
                if not self._queue:
                    self._end("the time is over")
                continue
            return Ask(trial.batch_size, self._round, self.reason(trial.batch_size))
        return None

    def tell_prepared(self, prepared: Prepared, now: float) -> None:  # noqa: ARG002
        """A size was made ready."""
        self._trials[prepared.batch_size].prepared = prepared
        self._known.pop(prepared.batch_size, None)

    def tell(self, block: Block, now: float) -> None:  # noqa: ARG002
        """A block was measured."""
        trial = self._trials[block.batch_size]
        trial.add(block, self._limit_ms)
        self._known.pop(block.batch_size, None)
        if block.batch_size in self._queue:
            self._queue.remove(block.batch_size)

    def tell_failure(self, batch_size: int, failure: Failure, now: float) -> None:  # noqa: ARG002
        """A size failed. Memory's end bounds the search; the same error at the first two sizes ends it."""
        trial = self._trials[batch_size]
        trial.failure = failure
        trial.left = failure.title
        trial.state = {"oom": "oom", "forecast": "skipped", "time": "skipped"}.get(failure.kind, "error")  # type: ignore[assignment]
        self._known.pop(batch_size, None)
        if batch_size in self._queue:
            self._queue.remove(batch_size)
        failed = [
            one for one in self._trials.values() if one.failure is not None and one.failure.kind == "error"
        ]
        if len(failed) == len(self._trials) == 2 and _same_error(*failed):
            self._end("the first two sizes failed alike")

    def measurements(self) -> Sequence[Measurement]:
        """All sizes tried so far, ascending, each in its state."""
        for size, trial in self._trials.items():
            if size not in self._known:
                self._known[size] = trial.measurement()
        return [self._known[size] for size in sorted(self._trials)]

    def reason(self, batch_size: int) -> str:
        """Why a size is tried, and why it was left, in words."""
        trial = self._trials.get(batch_size)
        if trial is None:
            return ""
        return f"{trial.reason}; {trial.left}" if trial.left and trial.failure is None else trial.reason

    def cancel(self) -> None:
        """End the search: sizes still in question become `cancelled` and keep their blocks."""
        if self._phase == "done":
            return
        for trial in self._trials.values():
            if trial.state == "measuring":
                trial.state = "cancelled" if not trial.left else self._settled(trial)
        self._known.clear()
        self._queue, self._phase, self.ended = [], "done", "cancelled"

    # --- the parts of the search ---

    def _next(self, now: float) -> None:
        """Fill the queue for what comes next, or end."""
        if self._phase == "climb":
            self._climb(now)
        else:
            self._rounds(now)

    def _climb(self, now: float) -> None:
        steps = [
            Step(size, trial.block_s * 1000.0 / trial.blocks[-1].calls, trial.blocks[-1].throughput)
            for size, trial in sorted(self._trials.items())
            if trial.blocks and self._deployable(trial)
        ]
        last = max(self._trials)
        cap = self._cap()
        if cap is not None and cap <= last:
            self._begin_rounds()
            return
        if self._two_miss_the_limit():
            self._begin_rounds()
            return
        step = next_step(
            steps,
            last_tried=last,
            max_batch_size=self._max,
            left_s=min(self._budget_s - now, self._size_budget_s),
            budget_s=self._budget_s,
        )
        if step.batch_size is None:
            self._begin_rounds()
            return
        self._add(step.batch_size, step.reason)

    def _begin_rounds(self) -> None:
        self._phase = "rounds"
        throughputs = {size: trial.blocks[-1].throughput for size, trial in self._live().items()}
        best = max(throughputs.values(), default=0.0)
        # One block of many calls is enough to set a size aside for now; the fit may call it back.
        first = [
            size
            for size, throughput in throughputs.items()
            if throughput >= HOPELESS * best or self._trials[size].blocks[-1].calls < 5
        ]
        self._new_round(first)

    def _rounds(self, now: float) -> None:
        live = self._live()
        if not live:
            self._end("nothing is left to measure")
            return
        found = fit([row for trial in live.values() for row in trial.rows])
        if found is None:
            self._end("nothing is left to measure")
            return
        self._looks += 1
        eligible = self._eligible(found)
        if not eligible:
            self._end("no size keeps the limit")
            return
        leader = found.leader_of(eligible)
        plateau = self._plateau(found, eligible, leader)
        wanted = self._in_question(found, eligible, leader, now, PLATEAU_WITHIN if plateau else TIED_WITHIN)
        if not plateau and all(len(self._trials[size].blocks) >= LEAST_TO_LEAVE for size in wanted):
            for low, high, reason in self._gaps(found, eligible, leader):
                size = between(low, high)
                if size is not None and size not in self._trials and self._probes < MOST_PROBES:
                    self._probes += 1
                    self._trials[size] = _Trial(size, reason)
                    wanted.add(size)
        if not wanted:
            self._end(f"{leader} is told apart from the others, or tied")
            return
        wanted.add(leader)
        self._new_round(sorted(wanted))

    def _plateau(self, found: Field, eligible: Sequence[int], leader: int) -> bool:
        """Whether, as far as known, many sizes over a wide span are alike."""
        alpha = (1.0 - stats.CONFIDENCE) / max(1, len(eligible))
        alike = [size for size in eligible if found.highest(size, leader, alpha) >= 0.0]
        return (
            len(alike) >= PLATEAU_SIZES
            and max(alike) >= PLATEAU_SPAN * min(alike)
            and all(len(self._trials[size].blocks) >= NAMED_BLOCKS for size in alike)
        )

    def _in_question(
        self, found: Field, eligible: Sequence[int], leader: int, now: float, within: float
    ) -> set[int]:
        """The sizes that need another block before the verdict stands."""
        others = [size for size in eligible if size != leader]
        alpha = (1.0 - stats.CONFIDENCE) / max(1, len(others))
        # Looks up to the next power of two share the last one's error: no more in all, and its quantiles are computed once.
        look = (1 << self._looks.bit_length()) - 1
        spent = alpha / (look * (look + 1))
        wanted = set()
        for size in others:
            trial = self._trials[size]
            if self._exhausted(trial, now):
                continue
            highest = found.highest(size, leader, spent)
            surely_loses = (highest < 0.0 and len(trial.blocks) >= LEAST_TO_LEAVE) or highest < HOPELESS - 1.0
            below_knee = size > leader or found.highest(size, leader, alpha) < KNEE
            if surely_loses and (below_knee or len(trial.blocks) >= NAMED_BLOCKS):
                trial.left = f"surely slower than {leader}"
                continue
            trial.left = ""
            if (
                len(trial.blocks) < NAMED_BLOCKS
                or surely_loses
                or (found.highest(size, leader, alpha) > -TIE and not self._tied(found, size, leader, within))
            ):
                wanted.add(size)
        named = {leader, knee_of(found, leader)} & set(eligible)
        for size in named:
            if not self._exhausted(self._trials[size], now) and self._needs_more(size, leader):
                wanted.add(size)
        return wanted

    def _tied(self, found: Field, size: int, leader: int, within: float) -> bool:
        """Whether more blocks would hardly tell a size from the leader."""
        return (
            self._trials[size].spent_s >= TIED_PART * self._budget_s
            or found.half_width(size, leader, (1.0 - stats.CONFIDENCE) / 2.0) <= within
        )

    def _needs_more(self, size: int, leader: int) -> bool:
        """Whether a size that the verdict will name lacks blocks, precision or the calls that the limit needs."""
        trial = self._trials[size]
        if len(trial.blocks) < NAMED_BLOCKS:
            return True
        if size != leader:
            return False
        interval = stats.throughput_interval(trial.blocks)
        if interval is not None and interval.relative_half_width > self._precision:
            return True
        return self._limit_ms is not None and self._awaits_the_limit(trial)

    def _awaits_the_limit(self, trial: _Trial) -> bool:
        """Whether the size needs more calls before the limit may be judged, or at that look still more to decide it."""
        trial.look_at = trial.look_at or stats.calls_needed(self._percentile)
        if trial.calls < trial.look_at:
            return True
        says, more = stats.limit_says(trial.calls, trial.over, self._percentile)
        if says == "unknown":
            trial.look_at = trial.calls + max(more or 0, trial.calls // 2)
        return says == "unknown"

    def _gaps(self, found: Field, eligible: Sequence[int], leader: int) -> list[tuple[int, int, str]]:
        """The gaps to probe: beside the leader until its neighbours are near; beside other hills that could still win."""
        gaps = self._gaps_beside(found, leader, f"beside {leader}, the fastest so far")
        alpha = (1.0 - stats.CONFIDENCE) / max(1, len(found.sizes))
        for size in self._other_hills(found, eligible, leader)[:2]:
            if found.highest(size, leader, alpha) > -TIE / 2.0:
                gaps += self._gaps_beside(
                    found, size, f"beside {size}, which may still beat {leader}", least=FLAT_NEAR
                )
        return gaps

    def _gaps_beside(
        self, found: Field, size: int, reason: str, *, least: float = 1.0
    ) -> list[tuple[int, int, str]]:
        measured = sorted(set(found.sizes) | self._bounds())
        place = measured.index(size)
        gaps = []
        for index in (place - 1, place + 1):
            if not 0 <= index < len(measured):
                continue
            low, high = sorted((size, measured[index]))
            fall = found.difference(measured[index], size) if measured[index] in found.sizes else STEEP
            near = FLAT_NEAR if fall > FLAT else NEAR if fall > STEEP else STEEP_NEAR
            if high / low > max(near, least):
                gaps.append((low, high, reason))
        return gaps

    def _other_hills(self, found: Field, eligible: Sequence[int], leader: int) -> list[int]:
        """Eligible sizes higher than both neighbours, the highest first; the leader and its neighbours are not among them."""
        sizes = found.sizes
        at = sizes.index(leader)
        hills = []
        for index, size in enumerate(sizes):
            if size not in eligible or abs(index - at) < 2:
                continue
            sides = [sizes[i] for i in (index - 1, index + 1) if 0 <= i < len(sizes)]
            if all(found.lowest(size, side, 0.1) > 0.0 for side in sides):
                hills.append(size)
        return sorted(hills, key=found.level, reverse=True)

    # --- what is known of the sizes ---

    def _live(self) -> dict[int, _Trial]:
        return {
            size: trial
            for size, trial in sorted(self._trials.items())
            if trial.blocks and trial.failure is None and self._deployable(trial)
        }

    def _deployable(self, trial: _Trial) -> bool:
        prepared = trial.prepared
        return prepared is None or (
            prepared.effective_batch_size in (None, trial.batch_size)
            and prepared.finite
            and not prepared.all_zero
        )

    def _eligible(self, found: Field) -> list[int]:
        """Sizes that may be the answer: all, or under a limit those that do not fail it."""
        if self._limit_ms is None:
            return list(found.sizes)
        says = {size: self._says(self._trials[size]) for size in found.sizes}
        return [
            size
            for size in found.sizes
            if says[size] == "pass"
            or (says[size] == "unknown" and self._trials[size].spent_s < self._size_budget_s)
        ]

    def _says(self, trial: _Trial) -> str:
        if self._limit_ms is None:
            return "pass"
        return stats.limit_says(trial.calls, trial.over, self._percentile)[0]

    def _two_miss_the_limit(self) -> bool:
        measured = [trial for _, trial in sorted(self._trials.items()) if trial.blocks]
        return (
            self._limit_ms is not None
            and len(measured) >= 2
            and all(self._says(trial) == "fail" for trial in measured[-2:])
        )

    def _cap(self) -> int | None:
        """The smallest size that memory, as far as known, does not allow."""
        return min(
            (
                size
                for size, one in self._trials.items()
                if one.failure is not None and one.failure.kind in _CAPS
            ),
            default=None,
        )

    def _bounds(self) -> set[int]:
        """Failed sizes worth probing below. Not below one that the system killed: the next may take the machine with it."""
        return {
            size
            for size, one in self._trials.items()
            if one.failure is not None and one.failure.kind != "killed"
        }

    def _exhausted(self, trial: _Trial, now: float) -> bool:
        return trial.spent_s >= self._size_budget_s or now + trial.block_s > self._budget_s

    def _anything(self) -> bool:
        return any(trial.blocks for trial in self._trials.values())

    # --- changes ---

    def _add(self, batch_size: int, reason: str) -> None:
        self._trials[batch_size] = _Trial(batch_size, reason)
        self._queue.append(batch_size)

    def _new_round(self, sizes: Iterable[int]) -> None:
        self._queue = list(sizes)
        self._random.shuffle(self._queue)
        self._round += 1
        if not self._queue:
            self._end("nothing could be measured")

    def _take_over(self, measurement: Measurement) -> None:
        trial = _Trial(measurement.batch_size, "measured before", kept_from=measurement.kept_from)
        for block in measurement.blocks:
            trial.add(block, self._limit_ms)
            self._round = max(self._round, block.round + 1)
        trial.spent_s = 0.0
        trial.confirmed = measurement.confirmed
        if measurement.failure is not None:
            trial.failure, trial.state, trial.prepared = (
                measurement.failure,
                measurement.state,
                measurement.prepared,
            )
        elif not measurement.blocks:
            return
        self._trials[measurement.batch_size] = trial

    def _end(self, why: str) -> None:
        for trial in list(self._trials.values()):
            if trial.state == "measuring":
                trial.state = self._settled(trial)
            if not trial.blocks and trial.failure is None:
                del self._trials[trial.batch_size]
        self._known.clear()
        self._queue, self._phase, self.ended = [], "done", why

    def _settled(self, trial: _Trial) -> State:
        interval = stats.throughput_interval(trial.blocks)
        if interval is None:
            return "short"
        return "stable" if interval.relative_half_width <= self._precision else "noisy"


def _same_error(one: _Trial, other: _Trial) -> bool:
    """Whether two errors read the same, where each may name its own batch size."""
    first, second = one.failure, other.failure
    if first is None or second is None or (first.title, first.where) != (second.title, second.where):
        return False
    if first.of_size or second.of_size:
        return False
    parts, others = re.split(r"(\d+)", first.message), re.split(r"(\d+)", second.message)
    return len(parts) == len(others) and all(
        a == b or (a == str(one.batch_size) and b == str(other.batch_size))
        for a, b in zip(parts, others, strict=True)
    )
