"""ResNet-18 at 224x224: the throughput that is reported, over a hand-written loop in a fresh process, in turn."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from engine import events
from engine.plan import Plan
from engine.session import Session
from tests.bench.ratios import judged, summary

SIZES = (1, 8)
MODEL = Path(__file__).with_name("resnet18.py")


def ours(threads: int, seconds: float) -> dict[int, float]:
    """Images per second that a sweep reports."""
    plan = Plan(
        model=f"{MODEL}:resnet18",
        input="3x224x224",
        batch_sizes=SIZES,
        threads=threads,
        confirm=False,
        size_budget_s=seconds,
        precision=0.005,
    )
    found: dict[int, float] = {}
    with Session() as session:
        for event in session.run(plan):
            if isinstance(event, events.Point) and event.throughput is not None:
                found[event.batch_size] = event.throughput
    return found


def by_hand(threads: int, seconds: float, size: int) -> float:
    """Images per second of the loop, in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.resnet_loop", "--loop", str(size)]
    command += ["--threads", str(threads), "--seconds", str(seconds)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def loop(threads: int, seconds: float, size: int) -> float:
    import torch

    from tests.bench.resnet18 import resnet18

    torch.set_num_threads(threads)
    model, images = resnet18().eval(), torch.randn(size, 3, 224, 224)
    with torch.inference_mode():
        for _ in range(5):
            model(images)
        calls, begun = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - begun) < seconds:
            model(images)
            calls += 1
    return size * calls / elapsed


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=7)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--seconds", type=float, default=8.0, help="for each size")
    arguments.add_argument("--loop", type=int, metavar="SIZE", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.loop is not None:
        print(loop(given.threads, given.seconds, given.loop))
        return
    ratios: dict[int, list[float]] = {size: [] for size in SIZES}
    for repeat in range(given.repeats):
        if repeat % 2:
            reported = ours(given.threads, given.seconds)
            hand = {size: by_hand(given.threads, given.seconds, size) for size in SIZES}
        else:
            hand = {size: by_hand(given.threads, given.seconds, size) for size in SIZES}
            reported = ours(given.threads, given.seconds)
        for size in SIZES:
            ratios[size].append(reported[size] / hand[size])
            print(
                f"batch size {size}: reported {reported[size]:.2f} images/s, by hand {hand[size]:.2f}, "
                f"ratio {ratios[size][-1]:.4f}",
                flush=True,
            )
    for size in SIZES:
        print(f"batch size {size}:", summary(ratios[size]))
        print(judged(f"batch size {size}, median ratio", statistics.median(ratios[size]), 0.97, 1.03))


if __name__ == "__main__":
    main()
