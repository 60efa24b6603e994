"""The race: many small calls against few large ones. Which lap comes next, when it is enough, and what came out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine import stats
from engine.events import Lane

LANES = (0, 1)
ENOUGH_ROUNDS = 24


@dataclass(frozen=True, slots=True)
class Lap:
    """One lane run through once: `call_ms` are the wall times of its calls, `total_ms` of the lane as a whole."""

    lane: int
    round: int
    batch_size: int
    total_ms: float
    call_ms: tuple[float, ...]


@dataclass(slots=True)
class Rounds:
    """Asks for laps in the order A B, B A, A B, ... so that drift falls on both lanes alike; takes what came out.

    At least `least` rounds are run; then until the speed-up's 95 % interval is within `precision`, `budget_s` is used up, or
    ENOUGH_ROUNDS have been run.
    """

    least: int = 2
    precision: float = 0.02
    budget_s: float = 10.0
    laps: list[Lap] = field(default_factory=list)

    def next_lane(self, now: float) -> tuple[int, int] | None:
        """(lane, round) of the next lap, or None when the race is over. A round that was begun is ended."""
        done, half = divmod(len(self.laps), 2)
        if not half and self._enough(done, now):
            return None
        first = done % 2
        return (first if not half else 1 - first), done

    def tell(self, lap: Lap) -> None:
        """Take a lap in; laps come in the order in which they were asked for."""
        self.laps.append(lap)

    def _enough(self, done: int, now: float) -> bool:
        if done < max(self.least, 1):
            return False
        if done >= ENOUGH_ROUNDS or now >= self.budget_s:
            return True
        found = stats.paired_ratio(_log_ratios(self.laps))
        interval = found[1] if found else None
        return interval is not None and interval.relative_half_width <= self.precision


def speedup(laps: Sequence[Lap]) -> tuple[float, float | None, float | None]:
    """How many times faster lane 1 is than lane 0 per image, with its 95 % interval (None below `stats.MIN_BLOCKS` whole rounds).

    From the ratios within each round, so that slow drift cancels: `stats.paired_ratio`, whose interval allows for stopping
    at it. Raises ValueError without a whole round.
    """
    found = stats.paired_ratio(_log_ratios(laps))
    if found is None:
        raise ValueError("a speed-up needs one whole round")
    estimate, interval = found
    return (estimate, interval.low, interval.high) if interval else (estimate, None, None)


def lane_of(laps: Sequence[Lap], lane: int, name: str, images: int) -> Lane:
    """The lane's figures from its median lap (by total time). Raises ValueError when it ran no lap."""
    own = sorted((lap for lap in laps if lap.lane == lane), key=lambda lap: lap.total_ms)
    if not own:
        raise ValueError(f"lane {lane} ran no lap")
    typical = own[(len(own) - 1) // 2]
    return Lane(
        name=name,
        calls=len(typical.call_ms),
        batch_size=typical.batch_size,
        total_ms=typical.total_ms,
        ms_per_item=typical.total_ms / images,
        first_answer_ms=typical.call_ms[0],
        call_ms=typical.call_ms,
    )


def lane_name(images: int, batch_size: int) -> str:
    """What a lane does, in words: "256 calls of 1"."""
    calls = -(-images // batch_size)
    return f"{calls:,} call{'s' if calls != 1 else ''} of {min(batch_size, images):,}"


def _log_ratios(laps: Sequence[Lap]) -> list[float]:
    totals: dict[int, dict[int, float]] = {}
    for lap in laps:
        totals.setdefault(lap.round, {})[lap.lane] = lap.total_ms
    return [math.log(both[0] / both[1]) for both in totals.values() if len(both) == len(LANES)]
