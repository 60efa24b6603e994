"""What the interface writes, computes and holds while it measures and when it is idle, and how soon it answers a key on a slow line."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import psutil

from tests.bench import keys
from tests.bench.drained import PROGRAM, DrainedTerminal, run_file, tail, wait_for_end
from tests.bench.ratios import judged, summary
from tests.pty.real_terminal import RealTerminal, environment

KIB = 1024
SLOW_LINE = 25 * KIB
"""Bytes per second."""
SETTLING_S = 2.0
IDLE_S = 5.0
BETWEEN_KEYS_S = 0.37


def options(seconds: float, folder: Path) -> tuple[str, ...]:
    """The usual batch sizes, measured for this long: the precision is out of reach."""
    spans = ("--budget", f"{seconds:g}s", "--size-budget", f"{seconds:g}s")
    return ("interface", "--precision", "0.1%", "--no-confirm", *spans, "--save-dir", str(folder))


def measuring(terminal: RealTerminal, folder: Path) -> None:
    """Wait for the first measured block."""
    terminal.until(
        lambda: (path := run_file(folder)) is not None and b'"block"' in tail(path), "the first block"
    )


def cost(home: Path, size: tuple[int, int], seconds: float) -> tuple[float, int, float, float]:
    """KiB per second while measuring, bytes in all while idle, CPU time while measuring in % of a core, most resident MB."""
    folder = home / f"{size[0]}x{size[1]}"
    terminal = DrainedTerminal(
        [*PROGRAM, *options(seconds, folder)], environ=environment(home), columns=size[0], rows=size[1]
    )
    try:
        measuring(terminal, folder)
        process = psutil.Process(terminal.process.pid)
        begun, written = time.perf_counter(), len(terminal.output)
        times = process.cpu_times()
        # A little before the end: the end itself is not measuring.
        while (took := time.perf_counter() - begun) < 0.8 * seconds:
            time.sleep(0.5)
        written = len(terminal.output) - written
        after = process.cpu_times()
        busy = after.user + after.system - times.user - times.system
        wait_for_end(folder, seconds + 120.0)
        time.sleep(SETTLING_S)
        idle = terminal.quiet_for(IDLE_S)
        # The end of a run is when it holds the most: all measurements, the verdict and the chart.
        memory = process.memory_info().rss / 1e6
        terminal.leave()
    finally:
        terminal.close()
    return written / took / KIB, idle, 100.0 * busy / took, memory


def echoes(home: Path, seconds: float, repeats: int) -> list[float]:
    """Seconds from each key to what it does, on a slow line while measuring."""
    folder = home / "slow"
    terminal = RealTerminal(
        [*PROGRAM, *options(seconds, folder)],
        environ=environment(home, SSH_CONNECTION="192.0.2.1 50000 192.0.2.2 22"),
        bytes_per_s=SLOW_LINE,
    )
    took = []
    try:
        measuring(terminal, folder)
        keys.until(lambda: keys.size_under_the_cursor(terminal) is not None, "the cursor", terminal)
        for repeat in range(repeats):
            for key in (keys.DOWN, keys.UP):
                took.append(keys.moves_cursor(terminal, key))
                time.sleep(BETWEEN_KEYS_S)
            took.append(keys.shows(terminal, "e", "Batch sizes"))
            time.sleep(BETWEEN_KEYS_S)
            took.append(keys.shows(terminal, f",{1000 + repeat}", f",{1000 + repeat}"))
            time.sleep(BETWEEN_KEYS_S)
            took.append(keys.hides(terminal, "\x1b", "Batch sizes"))
            time.sleep(BETWEEN_KEYS_S)
    finally:
        terminal.close()
    return took


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=30.0)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for size in ((80, 24), (120, 40), (200, 50)):
            home = Path(place) / f"{size[0]}"
            home.mkdir()
            written, idle, busy, memory = cost(home, size, given.seconds)
            at = f"at {size[0]}x{size[1]}"
            print(judged(f"KiB/s written while measuring, {at}", written, None, 10))
            print(judged(f"bytes written while idle, {at}", idle, None, 0))
            print(judged(f"CPU time while measuring, % of a core, {at}", busy, None, 3))
            print(judged(f"resident memory, MB, {at}", memory, None, 80), flush=True)
        took = echoes(Path(place), 600.0, given.repeats)
        print("a key's echo on a line of 25 KiB/s, s:", summary(took))
        print(judged("a key's echo, s, median", statistics.median(took), None, 0.5))
        print(judged("a key's echo, s, slowest", max(took), None, 0.5))


if __name__ == "__main__":
    main()
