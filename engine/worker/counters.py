"""The system's own counters around a timed block: page faults of this process, and other load on the machine."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import psutil

WINDOW_S = 1.0
"""Other load is that of the latest blocks that add up to this: the kernel counts in ticks of 10 ms, a block lasts 50."""
KNOWN_FROM_S = 0.2
"""Less than this says nothing about other load."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment, seconds since some start."""

    wall: float
    busy: float
    """CPU time of the whole machine that was not idle, all cores together."""
    own: float
    """CPU time of this process, all threads together."""


def read_now() -> Reading:
    """The counters now. Costs about 0.1 ms, so it belongs outside the timing."""
    times = psutil.cpu_times()
    # Guest time is counted in user time already.
    left_out = sum(getattr(times, name, 0.0) for name in ("idle", "iowait", "guest", "guest_nice"))
    return Reading(time.monotonic(), sum(times) - left_out, time.process_time())


def minor_faults() -> int | None:
    """Page faults of this process, all threads, that needed no disk; None where the system does not count them."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class OtherLoad:
    """Busy cores that were not ours, over the latest blocks: what happens between blocks is not looked at."""

    def __init__(self, read: Callable[[], Reading] = read_now) -> None:
        self._read = read
        self._blocks: deque[tuple[float, float]] = deque()
        self._before: Reading | None = None

    def begin(self) -> None:
        """Right before a block's timing."""
        self._before = self._read()

    def end(self) -> float | None:
        """Right after it: other load in cores, at least 0; None as long as too little time was looked at."""
        before, after = self._before, self._read()
        if before is None:
            return None
        self._before = None
        wall = after.wall - before.wall
        other = (after.busy - before.busy) - (after.own - before.own)
        self._blocks.append((wall, other))
        while sum(block[0] for block in self._blocks) - self._blocks[0][0] >= WINDOW_S:
            self._blocks.popleft()
        seen = sum(block[0] for block in self._blocks)
        if seen < KNOWN_FROM_S:
            return None
        return max(sum(block[1] for block in self._blocks) / seen, 0.0)
