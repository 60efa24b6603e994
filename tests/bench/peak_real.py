"""Does the search find the same good size every time on this machine, and better than a plain loop given the same time?

`python -m tests.bench.peak_real [--runs 10] [--model MODEL] [--threads N] [--allocator keep]`, on a quiet machine. It runs the
search several times, each in a fresh process; gives a plain loop over the powers of two, which takes the highest single figure,
the same time as often; and then measures all sizes that either of them named once more, interleaved in one run. Prints what each
one named and what that size really reaches, as a share of the best of them. Exit code 1 when a peak of the search reaches
less than 97 % of the best.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass

import msgspec

from engine import events
from engine.plan import BUILT_IN_MODEL, Plan
from engine.results import Failure
from engine.runner import WorkerRunner
from engine.session import Session

ENOUGH = 0.97
LOOP_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run named, and how long its measuring took, seconds (without the model's load)."""

    peak: int
    recommended: int
    ties: tuple[int, ...]
    certain: bool
    seconds: float


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--model", default=BUILT_IN_MODEL)
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--allocator", default="system")
    arguments.add_argument("--budget", type=float, default=60.0, help="of one search, seconds")
    chosen = arguments.parse_args()
    plan = Plan(
        kind="peak",
        model=chosen.model,
        threads=chosen.threads,
        allocator=chosen.allocator,
        budget_s=chosen.budget,
        confirm=False,
    )
    found = [search(msgspec.structs.replace(plan, seed=seed)) for seed in range(chosen.runs)]
    share_s = statistics.median(answer.seconds for answer in found)
    looped = [plain_loop(plan, share_s) for _ in range(chosen.runs)]
    sizes = {size for answer in found for size in (answer.peak, answer.recommended)} | set(looped)
    truth = remeasured(plan, tuple(sorted(sizes)))
    best = max(truth.values())
    print(
        "| run | search: peak | of best | recommended | of best | ties | certain | seconds | loop | of best |"
    )
    print("|---:|---:|---:|---:|---:|---|---|---:|---:|---:|")
    for index, (answer, size) in enumerate(zip(found, looped, strict=True), start=1):
        ties = ", ".join(map(str, answer.ties)) or "none"
        print(
            f"| {index} | {answer.peak} | {truth[answer.peak] / best:.3f} | {answer.recommended} "
            f"| {truth[answer.recommended] / best:.3f} | {ties} | {'yes' if answer.certain else 'no'} "
            f"| {answer.seconds:.1f} | {size} | {truth[size] / best:.3f} |"
        )
    worst = min(truth[answer.peak] for answer in found) / best
    print(
        f"\nRemeasured, interleaved: {', '.join(f'{size}: {value:,.0f}/s' for size, value in truth.items())}."
    )
    print(f"Worst peak of the search: {worst:.3f} of the best.")
    print(f"Worst recommended size: {min(truth[answer.recommended] for answer in found) / best:.3f}.")
    print(f"Worst of the plain loop: {min(truth[size] for size in looped) / best:.3f}.")
    return 0 if worst >= ENOUGH else 1


def search(plan: Plan) -> Answer:
    """One search in a session of its own."""
    loaded_at = ended_at = 0.0
    verdict: events.Verdict | None = None
    with Session() as session:
        for event in session.run(plan):
            if isinstance(event, events.ModelReady):
                loaded_at = loaded_at or event.t
            elif isinstance(event, events.Verdict):
                verdict = event
            elif isinstance(event, events.RunFinished):
                ended_at = event.t
    if verdict is None or verdict.peak is None:
        raise SystemExit("a search named no peak")
    return Answer(
        verdict.peak, verdict.recommended or verdict.peak, verdict.ties, verdict.certain, ended_at - loaded_at
    )


def plain_loop(plan: Plan, seconds: float) -> int:
    """What a loop over the powers of two names in the same time: one visit to each size, the highest single figure wins."""
    sizes = [1 << power for power in range(LOOP_LARGEST.bit_length())]
    figures: dict[int, float] = {}
    with Session() as session:
        worker = session.start_worker(plan, 0)
        try:
            runner = WorkerRunner(
                plan,
                worker,
                lambda: session.start_worker(plan, 1),
                free_mb=lambda: None,
                on_prepared=lambda _: None,
            )
            began = time.monotonic()
            for index, size in enumerate(sizes, start=1):
                if isinstance(runner.prepare(size), Failure):
                    break
                items, spent = 0, 0.0
                while not items or time.monotonic() - began < seconds * index / len(sizes):
                    block = runner.block(size, 0)
                    if isinstance(block, Failure):
                        break
                    items += block.items
                    spent += block.seconds
                if items:
                    figures[size] = items / spent
        finally:
            worker.process.close()
    return max(figures, key=lambda size: figures[size])


def remeasured(plan: Plan, sizes: tuple[int, ...]) -> dict[int, float]:
    """Throughput of each size, items/s, from one interleaved sweep at a quarter of the usual interval."""
    sweep = msgspec.structs.replace(
        plan, kind="sweep", batch_sizes=sizes, precision=0.005, budget_s=240.0, size_budget_s=20.0
    )
    points: dict[int, float] = {}
    with Session() as session:
        for event in session.run(sweep):
            if isinstance(event, events.Point) and event.throughput is not None:
                points[event.batch_size] = event.throughput
    return points


if __name__ == "__main__":
    sys.exit(main())
