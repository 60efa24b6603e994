"""The timed loop: cold call, warm-up, calibration, blocks. Knows neither torch nor the model: a step, a clock and a flag."""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from engine.worker.inbox import StopFlag

Clock = Callable[[], int]
"""Nanoseconds of a clock that only goes forward, e.g. time.perf_counter_ns."""
Step = Callable[[], object]
"""One call of the model, waited for."""

SECOND = 1_000_000_000
BLOCK_NS = SECOND // 20
LONGEST_BLOCK_NS = 10 * BLOCK_NS
"""A block calibrated on a quiet machine ends early on one that has become far slower: a size may not eat the others' time."""
APPROACH_NS = SECOND // 100
"""Calls before a block that are not timed, for this long: since the last block the core has slept or served another size.
Seen on a small CNN after 50 ms of idleness: the first call takes twice as long, the next twenty 5 to 10 % more, together 3 %
of a block. Beside torch's Timer, 5 ms left 2 % of that and 10 ms nothing that could be told from noise."""
LONG_CALL_NS = 10 * APPROACH_NS
"""Seen on the same CNN after another size: a call of 30 ms takes 3 to 20 % more than the next, one of 180 ms no more."""
GROUP_BELOW_NS = 50_000
"""Calls shorter than this are timed several at once; reading the clock then costs under 1 % of what it times."""
WARM_UP_CALLS = 2
WARM_UP_NS = SECOND // 5
WARM_UP_CEILING_NS = 2 * SECOND
SETTLED = 1.5
"""A last call over this many times the median of the `SETTLED_CALLS` before it: not warm yet."""
SETTLED_CALLS = 5
_TYPICAL_CALLS = 25
_MOST_CALLS = 1_000_000


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What warming up took, and how long a call was at its end (median), ns."""

    calls: int
    elapsed_ns: int
    call_ns: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calls of one block, a multiple of `group`, the calls that are timed as one."""

    calls: int
    group: int


@dataclass(frozen=True, slots=True)
class Timed:
    """Times of one block: `total_ns` from the first call's start to the last one's end, `group_ns` per group made."""

    total_ns: int
    group_ns: tuple[int, ...]


def time_once(step: Step, clock: Clock) -> tuple[object, int]:
    """What one call returned and how long it took, at least 1 ns."""
    begin = clock()
    output = step()
    end = clock()
    return output, max(end - begin, 1)


def warm_up(step: Step, clock: Clock, stop: StopFlag) -> WarmUp:
    """Call until the device has settled: 2 calls and 0.2 s at least, 2 s at most; a single call longer than that is enough.

    Raises StopRequested between calls when the flag goes up.
    """
    recent: deque[int] = deque(maxlen=_TYPICAL_CALLS)
    calls = 0
    begin = before = clock()
    while True:
        stop.check()
        step()
        now = clock()
        recent.append(max(now - before, 1))
        before = now
        calls += 1
        elapsed = now - begin
        if elapsed >= WARM_UP_CEILING_NS:
            break
        if calls >= WARM_UP_CALLS and elapsed >= WARM_UP_NS and _settled(recent):
            break
    return WarmUp(calls, elapsed, round(median(recent)))


def _settled(recent: deque[int]) -> bool:
    if len(recent) <= SETTLED_CALLS:
        return True
    *_, last = recent
    return last <= SETTLED * median(list(recent)[-SETTLED_CALLS - 1 : -1])


def calibrate(call_ns: int) -> Calibration:
    """Calls for a block of about 50 ms (one, if a call is longer), in groups of at least 50 us."""
    group = math.ceil(GROUP_BELOW_NS / call_ns) if call_ns < GROUP_BELOW_NS else 1
    groups = max(round(BLOCK_NS / (group * call_ns)), 1)
    return Calibration(min(groups, max(_MOST_CALLS // group, 1)) * group, group)


def lengthened(calibration: Calibration, timed: Timed) -> Calibration:
    """For the next block: more calls when this one took under half of what it should, because warming up met a busy machine.

    Never fewer, and the same group, so that the blocks of a size stay comparable.
    """
    if timed.total_ns * 2 >= BLOCK_NS:
        return calibration
    groups = calibration.calls // calibration.group
    wanted = round(BLOCK_NS * groups / timed.total_ns)
    most = max(_MOST_CALLS // calibration.group, 1)
    return Calibration(max(min(wanted, most), groups) * calibration.group, calibration.group)


def approach(
    step: Step, calibration: Calibration, call_ns: int, clock: Clock, stop: StopFlag, *, switched: bool
) -> None:
    """Call untimed until the caches are as they are between two calls of a block: about 10 ms of short calls.

    A longer call warms itself in its first milliseconds. It is made once when another size ran last (`switched`),
    and not at all when it outlasts the approach by far: there it would change nothing and cost as much as what is measured.
    Never more calls than a block has. Raises StopRequested after the last call when the flag goes up.
    """
    short = call_ns < APPROACH_NS
    if not (short or (switched and call_ns < LONG_CALL_NS)):
        return
    begin = clock()
    for _ in range(calibration.calls if short else 1):
        step()
        if stop.up or clock() - begin >= APPROACH_NS:
            break
    stop.check()


def time_block(step: Step, calibration: Calibration, clock: Clock, stop: StopFlag) -> Timed:
    """Time `calibration.calls` calls back to back, fewer when they outlast `LONGEST_BLOCK_NS` by far.

    Raises StopRequested between groups when the flag goes up. To be called with the collector quiet.
    The clock is read once between two groups, so that the groups' times add up to the total.
    """
    group = calibration.group
    groups = calibration.calls // group
    # Made before the timing: a list that grows takes memory at moments that nobody chose.
    marks = [0] * (groups + 1)
    if group == 1:
        start = marks[0] = clock()
        latest = start + LONGEST_BLOCK_NS
        for index in range(1, groups + 1):
            step()
            now = marks[index] = clock()
            if stop.up or now > latest:
                break
    else:
        inner = range(group)
        start = marks[0] = clock()
        latest = start + LONGEST_BLOCK_NS
        for index in range(1, groups + 1):
            for _ in inner:
                step()
            now = marks[index] = clock()
            if stop.up or now > latest:
                break
    stop.check()
    del marks[index + 1 :]
    return Timed(
        total_ns=max(marks[-1] - marks[0], 1),
        group_ns=tuple(max(after - before, 1) for before, after in pairwise(marks)),
    )


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Collect garbage now, and not again until the end: a collection in a timed call costs milliseconds."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
