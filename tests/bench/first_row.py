"""Time from the command to the first row with a figure, over `python -c "import torch"`; and from a re-run to its first row; and the parent's memory."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

import psutil

from engine import events
from engine.plan import Plan
from engine.session import Session
from tests.bench.ratios import judged, summary


def first_row() -> tuple[float, float]:
    """Seconds to the first point with a throughput, and the parent's largest resident memory until then, MB."""
    begun = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "tui.cli",
        "sweep",
        "--json",
        "--no-save",
        "--no-confirm",
        "--budget",
        "2s",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        took = memory = 0.0
        watched = psutil.Process(child.pid)
        for line in child.stdout:
            event = json.loads(line)
            memory = max(memory, watched.memory_info().rss / 1e6)
            if not took and event["event"] == "point" and event["throughput"] is not None:
                took = time.perf_counter() - begun
    return took, memory


def import_torch() -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.perf_counter() - begun


def warm_rows(repeats: int) -> list[float]:
    found = []
    with Session() as session:
        for repeat in range(repeats + 1):
            begun = time.perf_counter()
            took = 0.0
            for event in session.run(Plan(confirm=False, budget_s=1.0)):
                if not took and isinstance(event, events.Point) and event.throughput is not None:
                    took = time.perf_counter() - begun
            if repeat:
                found.append(took)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    repeats = arguments.parse_args().repeats
    import_torch()
    first_row()
    ratios, memories = [], []
    for repeat in range(repeats):
        if repeat % 2:
            (ours, memory), theirs = first_row(), import_torch()
        else:
            theirs, (ours, memory) = import_torch(), first_row()
        ratios.append(ours / theirs)
        memories.append(memory)
        print(f"first row {ours:.2f} s, import torch {theirs:.2f} s, ratio {ratios[-1]:.3f}", flush=True)
    print("ratio:", summary(ratios))
    print(judged("first row over import torch, median", statistics.median(ratios), None, 1.5))
    print(judged("memory of the parent, MB, largest", max(memories), None, 60))
    warm = warm_rows(repeats)
    print("re-run to first row, s:", summary(warm))
    print(judged("re-run to first row, s, median", statistics.median(warm), None, 0.3))


if __name__ == "__main__":
    main()
