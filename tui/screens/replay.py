"""The race in slow motion: how far each lane was at a moment, from the recorded times. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate

from engine.events import Lane

WATCHABLE_MS = 8_000.0
"""About how long the slower lane takes to watch at the speed that is chosen first."""
_SLOWEST, _FASTEST = 1 / 4096, 4.0


@dataclass(frozen=True, slots=True)
class Moment:
    """One lane at one moment: images answered of all, and the lane's own time, standing still once it is done."""

    done: int
    total: int
    ms: float


@dataclass(frozen=True, slots=True)
class Replay:
    """A race being replayed. `speed` is replayed ms / watched ms; `began_at` and `now` are seconds of one clock."""

    lanes: tuple[Lane, Lane]
    speed: float
    began_at: float
    from_ms: float = 0.0

    @classmethod
    def of(cls, lanes: tuple[Lane, Lane], now: float) -> Replay:
        """From the start, at the power of two at which the slower lane can be watched."""
        longest = max(lane.total_ms for lane in lanes)
        speed = 1.0
        while longest / speed < WATCHABLE_MS / 1.5 and speed > _SLOWEST:
            speed /= 2
        while longest / speed > WATCHABLE_MS * 1.5 and speed < _FASTEST:
            speed *= 2
        return cls(lanes, speed, now)

    def at_ms(self, now: float) -> float:
        """The moment of the race that is shown now, ms since both lanes' start."""
        return self.from_ms + (now - self.began_at) * 1000.0 * self.speed

    def over(self, now: float) -> bool:
        """Whether both lanes have reached their end."""
        return self.at_ms(now) >= max(lane.total_ms for lane in self.lanes)

    def why_not(self, factor: float) -> str:
        """Why it cannot go that much faster (or slower); empty when it can."""
        if self.speed * factor < _SLOWEST:
            return "as slow as it goes"
        return "as fast as it goes" if self.speed * factor > _FASTEST else ""

    def faster(self, factor: float, now: float) -> Replay:
        """The same moment, at another speed."""
        speed = min(max(self.speed * factor, _SLOWEST), _FASTEST)
        return replace(self, speed=speed, from_ms=self.at_ms(now), began_at=now)

    def moments(self, now: float) -> tuple[Moment, Moment]:
        """Both lanes as they are now."""
        at = self.at_ms(now)
        first, second = (_moment(lane, at) for lane in self.lanes)
        return first, second

    @property
    def words(self) -> str:
        """The speed as a person says it: "64 times slower", "real time", "2 times faster"."""
        if self.speed == 1.0:
            return "real time"
        return f"{1 / self.speed:g} times slower" if self.speed < 1 else f"{self.speed:g} times faster"


def _moment(lane: Lane, at_ms: float) -> Moment:
    total = round(lane.total_ms / lane.ms_per_item) if lane.ms_per_item > 0 else lane.calls * lane.batch_size
    if at_ms >= lane.total_ms:
        return Moment(total, total, lane.total_ms)
    ends = tuple(accumulate(lane.call_ms))
    calls = bisect_right(ends, at_ms)
    return Moment(min(calls * lane.batch_size, total), total, max(0.0, at_ms))
