"""The system's allocator against kept memory: throughput and page faults a call at 128 to 2048, interleaved, one thread."""

from __future__ import annotations

import argparse
import statistics

from engine import events
from engine.plan import Plan
from engine.session import Session

SIZES = (128, 256, 512, 1024, 2048)
ALLOCATORS = ("system", "keep")


def run(session: Session, allocator: str, model: str) -> dict[int, tuple[float, float]]:
    plan = Plan(
        model=model,
        batch_sizes=SIZES,
        threads=1,
        allocator=allocator,
        confirm=False,
        budget_s=20.0,
        precision=0.02,
    )
    found: dict[int, tuple[float, float]] = {}
    for event in session.run(plan):
        if isinstance(event, events.Point) and event.throughput is not None:
            found[event.batch_size] = (event.throughput, event.faults_per_call or 0.0)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--model", default="fashion-cnn")
    given = arguments.parse_args()
    seen: dict[str, list[dict[int, tuple[float, float]]]] = {name: [] for name in ALLOCATORS}
    with Session() as system, Session() as keep:
        for repeat in range(given.repeats):
            for name in ALLOCATORS if repeat % 2 == 0 else reversed(ALLOCATORS):
                seen[name].append(run(system if name == "system" else keep, name, given.model))
                print(f"repeat {repeat + 1}, {name}", flush=True)
    print(
        "| batch size | system, images/s | faults/call | keep, images/s | faults/call | keep / system (min to max) |"
    )
    print("|---|---|---|---|---|---|")
    for size in SIZES:
        cells = []
        for name in ALLOCATORS:
            rates, faults = zip(*(run[size] for run in seen[name]), strict=True)
            cells.append(f"{statistics.median(rates):,.0f} | {statistics.median(faults):,.0f}")
        ratios = [
            keep[size][0] / system[size][0] for system, keep in zip(seen["system"], seen["keep"], strict=True)
        ]
        span = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {size} | {cells[0]} | {cells[1]} | {span} |")


if __name__ == "__main__":
    main()
