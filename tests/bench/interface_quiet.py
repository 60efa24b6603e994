"""Throughput and p99 at batch size 1, the interface on a terminal over the headless run: same plan, run in turn."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.drained import PROGRAM, DrainedTerminal, wait_for_end
from tests.bench.ratios import judged, summary
from tests.pty.real_terminal import environment

ENOUGH_CALLS = 299
"""From which on a p99 is told."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run at batch size 1."""

    throughput: float
    p99_ms: float
    calls: int


def options(seconds: float, folder: Path) -> tuple[str, ...]:
    """A plan that measures batch size 1 for this long: the precision is out of reach."""
    span = f"{seconds:g}s"
    return (
        *("--batch-sizes", "1", "--threads", "1", "--precision", "0.1%", "--no-confirm"),
        *("--size-budget", span, "--budget", span, "--save-dir", str(folder)),
    )


def headless(home: Path, folder: Path, seconds: float) -> Figures:
    subprocess.run(
        [*PROGRAM, "sweep", *options(seconds, folder)],
        env=environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return figures(folder, seconds)


def on_a_terminal(home: Path, folder: Path, seconds: float) -> Figures:
    terminal = DrainedTerminal([*PROGRAM, "interface", *options(seconds, folder)], environ=environment(home))
    try:
        found = figures(folder, seconds)
        terminal.leave()
    finally:
        terminal.close()
    return found


def figures(folder: Path, seconds: float) -> Figures:
    """What the run's file says. Raises ValueError when the run was too short for a p99."""
    point = wait_for_end(folder, seconds + 120.0).points[1]
    if point.throughput is None or point.latency_ms is None or point.latency_ms.p99 is None:
        raise ValueError(f"{point.calls} calls, {ENOUGH_CALLS} are needed for a p99: give it more seconds")
    return Figures(point.throughput, point.latency_ms.p99, point.calls)


def compare(repeats: int, seconds: float) -> Sequence[tuple[Figures, Figures]]:
    """Pairs of the interface's figures and the headless run's; which goes first alternates."""
    pairs = []
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for repeat in range(-1, repeats):
            runs: list[Callable[[Path, Path, float], Figures]] = [on_a_terminal, headless]
            if repeat % 2:
                runs.reverse()
            found = {run: run(home, home / f"{repeat}-{run.__name__}", seconds) for run in runs}
            if repeat < 0:
                continue  # the first pair only fills the caches
            ours, theirs = found[on_a_terminal], found[headless]
            pairs.append((ours, theirs))
            print(
                f"on screen {ours.throughput:.0f}/s, p99 {ours.p99_ms:.4f} ms, {ours.calls} calls; "
                f"headless {theirs.throughput:.0f}/s, p99 {theirs.p99_ms:.4f} ms, {theirs.calls} calls",
                flush=True,
            )
    return pairs


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    arguments.add_argument("--seconds", type=float, default=6.0)
    given = arguments.parse_args()
    pairs = compare(given.repeats, given.seconds)
    throughputs = [ours.throughput / theirs.throughput for ours, theirs in pairs]
    tails = [ours.p99_ms / theirs.p99_ms for ours, theirs in pairs]
    print("throughput ratio:", summary(throughputs))
    print("p99 ratio:", summary(tails))
    print(judged("throughput on screen over headless, median", statistics.median(throughputs), 0.98, None))
    print(judged("p99 on screen over headless, median", statistics.median(tails), None, 1.10))


if __name__ == "__main__":
    main()
