"""Throughput at batch size 1, ours over torch.utils.benchmark.Timer.blocked_autorange, same model, in turn, new processes each time."""

from __future__ import annotations

import argparse
import statistics

from engine import events
from engine.plan import Plan
from engine.session import Session
from tests.bench.plain_loop import PlainProcess
from tests.bench.ratios import judged, summary


def ours() -> float:
    plan = Plan(batch_sizes=(1,), threads=1, confirm=False, precision=0.005, size_budget_s=1.0)
    with Session() as session:
        return [
            event.throughput
            for event in session.run(plan)
            if isinstance(event, events.Point) and event.throughput is not None
        ][-1]


def theirs() -> float:
    plain = PlainProcess(threads=1)
    try:
        return float(plain.ask(do="timer", seconds=1.0)["throughput"])
    finally:
        plain.close()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    ratios = []
    for repeat in range(arguments.parse_args().repeats):
        pair = (ours(), theirs()) if repeat % 2 else tuple(reversed((theirs(), ours())))
        ratios.append(pair[0] / pair[1])
        print(
            f"ours {pair[0]:,.0f} images/s, Timer {pair[1]:,.0f} images/s, ratio {ratios[-1]:.4f}", flush=True
        )
    print("ratio:", summary(ratios))
    print(judged("median ratio", statistics.median(ratios), 0.99, 1.01))


if __name__ == "__main__":
    main()
