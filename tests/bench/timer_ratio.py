"""Throughput at batch size 1, ours over torch.utils.benchmark.Timer.blocked_autorange, same model, a fifth of a second each in turn.

A machine with neighbours changes its speed by half from one second to the next, so two measurements of a second each, one
after the other, differ by what the machine did. Here every four blocks of ours, measured one after the other as in any sweep,
are followed by a turn of the Timer that lasts as long, 0.2 s, and the two of a pair are compared. (After every single block the
core would have slept for the Timer's turn before each of ours, as it does in no run.)

Two processes that run the same differ by some 4 % for as long as they live: where their memory lies is chosen at their start. So
each repeat is the mean over several pairs of new processes. What is left is noise, and how much is shown by the same comparison of
the Timer with the Timer in another process.
"""

from __future__ import annotations

import argparse
import statistics
import time

from engine import events
from engine.plan import Plan
from engine.results import Block
from engine.session import Session
from engine.stats import interval_of_times
from tests.bench.plain_loop import PlainProcess
from tests.bench.ratios import judged, summary

TURN_S = 0.2
BLOCKS = 4


def pairs_of(seconds: float) -> tuple[float, list[tuple[float, float]]]:
    """The throughput that the engine reported, and the images/s of each few blocks with those of the Timer's turn after them."""
    plan = Plan(batch_sizes=(1,), threads=1, confirm=False, precision=0.001, size_budget_s=seconds)
    plain = PlainProcess(threads=1)
    pairs: list[tuple[float, float]] = []
    blocks: list[Block] = []
    reported = 0.0
    try:
        plain.ask(do="timer", seconds=0.5)
        with Session() as session:
            for event in session.run(plan):
                if isinstance(event, events.BlockMeasured):
                    blocks.append(event.block)
                    if len(blocks) == BLOCKS:
                        turn = float(plain.ask(do="timer", seconds=TURN_S)["mean_throughput"])
                        ours = sum(block.items for block in blocks) / sum(block.seconds for block in blocks)
                        pairs.append((ours, turn))
                        blocks.clear()
                elif isinstance(event, events.Point) and event.throughput is not None:
                    reported = event.throughput
    finally:
        plain.close()
    return reported, pairs


def ratios_of(seconds: float) -> tuple[float, float]:
    """Of a new pair of processes: the reported figure over that of the Timer's turns, and four blocks over the turn beside them
    (the median of those).
    """
    reported, pairs = pairs_of(seconds)
    timer = interval_of_times([1.0 / theirs for _, theirs in pairs])
    assert timer is not None
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(
        f"ours {reported:,.0f} images/s, Timer {timer.estimate:,.0f} images/s, ratio {reported / timer.estimate:.4f};"
        f" median over {len(pairs)} pairs {ratio:.4f}",
        flush=True,
    )
    return reported / timer.estimate, ratio


def timer_over_timer(seconds: float) -> float:
    """The Timer in one new process over the Timer in another, in turn: 1 but for the machine's noise."""
    one, other = PlainProcess(threads=1), PlainProcess(threads=1)
    ratios = []
    try:
        for process in (one, other):
            process.ask(do="timer", seconds=0.5)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            first, second = (
                float(process.ask(do="timer", seconds=TURN_S)["mean_throughput"]) for process in (one, other)
            )
            ratios.append(first / second)
    finally:
        one.close()
        other.close()
    return statistics.median(ratios)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    arguments.add_argument("--seconds", type=float, default=4.0)
    arguments.add_argument("--processes", type=int, default=4, help="pairs of processes of a repeat")
    given = arguments.parse_args()
    reported, paired, floor = [], [], []
    for _ in range(given.repeats):
        found = [ratios_of(given.seconds) for _ in range(given.processes)]
        reported.append(statistics.geometric_mean(one for one, _ in found))
        paired.append(statistics.geometric_mean(one for _, one in found))
        floor.append(
            statistics.geometric_mean(timer_over_timer(given.seconds) for _ in range(given.processes))
        )
        print(
            f"repeat: reported {reported[-1]:.4f}, beside each other {paired[-1]:.4f}, "
            f"the Timer over itself {floor[-1]:.4f}",
            flush=True,
        )
    print("four blocks over the Timer's turn beside them:", summary(paired))
    print("the Timer over the Timer:", summary(floor))
    print("reported over the Timer:", summary(reported))
    print(judged("reported over the Timer, median", statistics.median(reported), 0.99, 1.01))


if __name__ == "__main__":
    main()
