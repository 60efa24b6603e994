"""The first part of the search, pure: how far to double, judged from one block a size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.costmodel import CallTime, fit_cost

BETTER = 1.05
"""A size that is less than this times the best before it has not paid for its doubling."""
IN_A_ROW = 2
STILL_TO_GAIN = 1.01
"""While the cost line promises this much more, and the last size is the best, doubling goes on."""
HOPELESS = 0.5
"""Below this part of the best nothing more is looked for."""
LOOK_PART = 1 / 40
"""Looking a step further is cheap when a call costs at most this part of the budget."""
GO_PART = 1 / 10
"""A step that promises more may cost this part of the budget."""


@dataclass(frozen=True, slots=True)
class Step:
    """One doubled size: the time of a call, and items per second."""

    batch_size: int
    ms: float
    throughput: float


@dataclass(frozen=True, slots=True)
class Next:
    """The next size and why; or None and why the doubling ends."""

    batch_size: int | None
    reason: str


def next_step(
    steps: Sequence[Step], *, last_tried: int, max_batch_size: int, left_s: float, budget_s: float
) -> Next:
    """Where to double to. `last_tried` is the largest size tried, measured or not; times are in seconds.

    Doubling ends when two sizes in a row are under 1.05 times the best before them; it goes on after that while the curve still
    rises and its cost line promises more, or while looking further costs next to nothing (a second peak may lie there).
    """
    if last_tried >= max_batch_size:
        return Next(None, f"{max_batch_size} is the largest size allowed")
    size = min(2 * last_tried, max_batch_size)
    if not steps:
        return Next(size, f"{last_tried} failed; a larger size may work")
    last = steps[-1]
    call_s = last.ms * size / last.batch_size / 1000.0
    if call_s > left_s / 2.0:
        return Next(None, f"a call of {size} would take about {call_s:.1f} s, too long for the time left")
    best = max(steps, key=lambda step: step.throughput)
    idle = _without_gain(steps)
    doubling = f"doubling: {best.batch_size} is the fastest so far"
    if idle < IN_A_ROW and last_tried <= last.batch_size * 2:
        return Next(size, doubling)
    if last_tried > last.batch_size * 2:
        return Next(None, f"{last.batch_size} is the largest size that works")
    if last.throughput < HOPELESS * best.throughput:
        return Next(None, f"{last.batch_size} has under half the throughput of {best.batch_size}")
    if call_s <= LOOK_PART * budget_s:
        return Next(size, f"a look beyond {best.batch_size}, in case of a second peak")
    if last is best and call_s <= GO_PART * budget_s and _promised(steps, max_batch_size) > STILL_TO_GAIN:
        return Next(size, f"throughput still rises at {last.batch_size}")
    return Next(None, f"{IN_A_ROW} sizes in a row gained less than 5 %")


def _without_gain(steps: Sequence[Step]) -> int:
    """How many of the last sizes gained less than `BETTER` over the best before them."""
    count = 0
    for index in range(len(steps) - 1, 0, -1):
        before = max(step.throughput for step in steps[:index])
        if steps[index].throughput >= BETTER * before:
            break
        count += 1
    return count


def _promised(steps: Sequence[Step], max_batch_size: int) -> float:
    """What the cost line gives at the largest size over the best measured."""
    model = fit_cost([CallTime(step.batch_size, step.ms, 0.02) for step in steps])
    if model is None:
        return 1.0
    best = max(step.throughput for step in steps)
    return model.ideal_throughput(max_batch_size) / best
