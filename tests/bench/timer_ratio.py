"""Throughput at batch size 1, the engine's over that of torch.utils.benchmark.Timer.blocked_autorange, same model, block and block.

Two processes that run the same differ by some 5 % for as long as they live (their memory lies elsewhere), which hides what is
looked for. So both measure in one process, the engine's own: the model that is swept lets the Timer measure it whenever it is
called with two images (`timer_inside.py`), and the engine's rounds, in which batch sizes 1 and 2 take turns in random order,
interleave the two. Each repeat is a run of its own in a new process. Its ratio is formed round by round, the engine's block over
the Timer's turn beside it, so that what slows the machine for a while slows both, and put together as the engine puts two batch
sizes together (`engine.stats.paired_ratio`). Beside it stands the throughput that the run reported over the Timer's, each from
its own blocks alone.

`--apart` compares the engine's process with the Timer in another, and that with a third, in turns of a few blocks.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from pathlib import Path

from engine import events
from engine.plan import Plan
from engine.results import Block
from engine.session import Session
from engine.stats import interval_of_times, paired_ratio
from tests.bench import timer_inside
from tests.bench.plain_loop import PlainProcess
from tests.bench.ratios import judged, summary

MODEL = Path(timer_inside.__file__)
APART_TURN_S = 0.2
APART_BLOCKS = 4


def inside(seconds: float) -> tuple[float, float]:
    """The engine over the Timer in the same process, round by round and as reported, from a run of about `seconds`."""
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
    ours: dict[int, float] = {}
    rounds: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        turns = Path(folder) / "turns"
        os.environ[timer_inside.TURNS] = str(turns)
        with Session() as session:
            for event in session.run(plan):
                if isinstance(event, events.SizePrepared) and event.prepared.batch_size == 2:
                    # Its turns while the size was made ready lie outside the rounds.
                    prepared = len(turns.read_text().splitlines())
                elif isinstance(event, events.BlockMeasured) and event.block.batch_size == 1:
                    ours[event.block.round] = event.block.seconds / event.block.items
                elif isinstance(event, events.BlockMeasured):
                    rounds.append(event.block.round)
                elif isinstance(event, events.Point) and event.batch_size == 1:
                    reported = event.throughput
        found = [1.0 / float(line) for line in turns.read_text().splitlines()[prepared:]]
    theirs = dict(zip(rounds, found, strict=True))
    # The first round is the one that the engine leaves out of its own figures.
    shared = sorted(ours.keys() & theirs.keys())[1:]
    paired = paired_ratio([math.log(theirs[index] / ours[index]) for index in shared])
    alone = interval_of_times(found)
    if reported is None or paired is None or alone is None:
        raise SystemExit("too few rounds: give more --seconds")
    print(
        f"ours {reported:,.0f} images/s, Timer {alone.estimate:,.0f} images/s, ratio {reported / alone.estimate:.4f}; "
        f"in {len(shared)} rounds {paired[0]:.4f}",
        flush=True,
    )
    return paired[0], reported / alone.estimate


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
    pairs = [inside(given.seconds or 40.0) for _ in range(given.repeats)]
    paired = [by_round for by_round, _ in pairs]
    print("reported over the Timer, each alone:", summary([reported for _, reported in pairs]))
    print("the engine over the Timer, round by round:", summary(paired))
    print(judged("median", statistics.median(paired), 0.99, 1.01))


if __name__ == "__main__":
    main()
