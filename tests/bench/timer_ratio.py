"""Throughput at batch size 1, the engine's over that of torch.utils.benchmark.Timer.blocked_autorange, same model, block and block.

Two processes that run the same differ by some 5 % for as long as they live (their memory lies elsewhere), which hides what is
looked for. So both measure in one process, the engine's own: the model that is swept lets the Timer measure it whenever it is
called with two images (`timer_inside.py`), and the engine's rounds, in which batch sizes 1 and 2 take turns in random order,
interleave the two. Each repeat is a run of its own in a new process, and its ratio is the throughput that the run reported at
batch size 1 over that of the Timer's turns, put together by the same estimator.

`--apart` compares the engine's process with the Timer in another, and that with a third, in turns of a few blocks.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from engine import events
from engine.plan import Plan
from engine.results import Block
from engine.session import Session
from engine.stats import interval_of_times
from tests.bench import timer_inside
from tests.bench.plain_loop import PlainProcess
from tests.bench.ratios import judged, summary

MODEL = Path(timer_inside.__file__)
APART_TURN_S = 0.2
APART_BLOCKS = 4


def inside(seconds: float) -> float:
    """What the engine reported over what the Timer found in the same process, from a run of about `seconds`."""
    plan = Plan(
        model=f"{MODEL}:model",
        input="1x28x28",
        batch_sizes=(1, 2),
        threads=1,
        confirm=False,
        precision=0.0001,
        budget_s=seconds,
        size_budget_s=seconds,
    )
    reported = None
    prepared = 0
    blocks = 0
    with tempfile.TemporaryDirectory() as folder:
        turns = Path(folder) / "turns"
        os.environ[timer_inside.TURNS] = str(turns)
        with Session() as session:
            for event in session.run(plan):
                if isinstance(event, events.SizePrepared) and event.prepared.batch_size == 2:
                    # Its turns while the size was made ready lie outside the rounds.
                    prepared = len(turns.read_text().splitlines())
                elif isinstance(event, events.BlockMeasured):
                    blocks += event.block.batch_size == 1
                elif isinstance(event, events.Point) and event.batch_size == 1:
                    reported = event.throughput
        found = [float(line) for line in turns.read_text().splitlines()[prepared:]]
    theirs = interval_of_times([1.0 / throughput for throughput in found])
    if reported is None or theirs is None:
        raise SystemExit("too few rounds: give more --seconds")
    ratio = reported / theirs.estimate
    print(
        f"ours {reported:,.0f} images/s ({blocks} blocks), Timer {theirs.estimate:,.0f} images/s ({len(found)} turns), "
        f"ratio {ratio:.4f}",
        flush=True,
    )
    return ratio


def apart(seconds: float) -> float:
    """Four blocks of the engine over a turn of the Timer in another process beside them, median of such pairs."""
    plan = Plan(batch_sizes=(1,), threads=1, confirm=False, precision=0.001, size_budget_s=seconds)
    plain = PlainProcess(threads=1)
    ratios: list[float] = []
    blocks: list[Block] = []
    try:
        plain.ask(do="timer", seconds=0.5)
        with Session() as session:
            for event in session.run(plan):
                if not isinstance(event, events.BlockMeasured):
                    continue
                blocks.append(event.block)
                if len(blocks) == APART_BLOCKS:
                    turn = float(plain.ask(do="timer", seconds=APART_TURN_S)["mean_throughput"])
                    ours = sum(block.items for block in blocks) / sum(block.seconds for block in blocks)
                    ratios.append(ours / turn)
                    blocks.clear()
    finally:
        plain.close()
    return statistics.median(ratios)


def timer_over_timer(seconds: float) -> float:
    """The Timer in one new process over the Timer in another, in turn: 1 but for what differs between processes, and noise."""
    one, other = PlainProcess(threads=1), PlainProcess(threads=1)
    ratios = []
    try:
        for process in (one, other):
            process.ask(do="timer", seconds=0.5)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            first, second = (
                float(process.ask(do="timer", seconds=APART_TURN_S)["mean_throughput"])
                for process in (one, other)
            )
            ratios.append(first / second)
    finally:
        one.close()
        other.close()
    return statistics.median(ratios)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    arguments.add_argument("--seconds", type=float, help="of a repeat; by default 40, apart 4")
    arguments.add_argument("--apart", action="store_true", help="in processes of their own")
    given = arguments.parse_args()
    if given.apart:
        seconds = given.seconds or 4.0
        found, floor = [], []
        for _ in range(given.repeats):
            found.append(apart(seconds))
            floor.append(timer_over_timer(seconds))
            print(
                f"ours over the Timer {found[-1]:.4f}, the Timer over the Timer {floor[-1]:.4f}", flush=True
            )
        print("the engine's process over the Timer in another:", summary(found))
        print("the Timer's process over the Timer in another:", summary(floor))
        return
    ratios = [inside(given.seconds or 40.0) for _ in range(given.repeats)]
    print("reported over the Timer:", summary(ratios))
    print(judged("median", statistics.median(ratios), 0.99, 1.01))


if __name__ == "__main__":
    main()
