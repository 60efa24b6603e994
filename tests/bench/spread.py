"""How much the reported throughput differs from repeat to repeat (max/min per size): ours against the plain loop, at equal total time."""

from __future__ import annotations

import argparse

from engine import events
from engine.plan import DEFAULT_BATCH_SIZES, Plan
from engine.session import Session
from tests.bench.plain_loop import PlainProcess
from tests.bench.ratios import spread


def ours(session: Session, seconds: float, threads: int) -> dict[int, float]:
    plan = Plan(threads=threads, confirm=False, precision=0.001, budget_s=seconds, size_budget_s=seconds)
    found: dict[int, float] = {}
    for event in session.run(plan):
        if isinstance(event, events.Point) and event.throughput is not None:
            found[event.batch_size] = event.throughput
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    arguments.add_argument("--threads", type=int, default=1)
    given = arguments.parse_args()
    plain = PlainProcess(threads=given.threads)
    seen: dict[str, list[dict[int, float]]] = {"ours": [], "plain loop": []}
    try:
        with Session() as session:
            ours(session, 2.0, given.threads)
            plain.ask(do="loop", batch_sizes=DEFAULT_BATCH_SIZES, calls=3)
            for repeat in range(given.repeats):
                answer = plain.ask(do="loop", batch_sizes=DEFAULT_BATCH_SIZES, calls=50)
                seen["plain loop"].append({int(size): value for size, value in answer["throughput"].items()})
                # The same wall time, warm-up and all.
                seen["ours"].append(ours(session, answer["seconds"], given.threads))
                print(f"repeat {repeat + 1}: {answer['seconds']:.1f} s each", flush=True)
    finally:
        plain.close()
    print("batch  ours max/min  plain loop max/min")
    for size in DEFAULT_BATCH_SIZES:
        ours_spread, plain_spread = (
            spread([run[size] for run in seen[who]]) for who in ("ours", "plain loop")
        )
        verdict = "smaller" if ours_spread < plain_spread else "NOT SMALLER"
        print(f"{size:>5}  {ours_spread:>12.3f}  {plain_spread:>18.3f}  {verdict}")


if __name__ == "__main__":
    main()
