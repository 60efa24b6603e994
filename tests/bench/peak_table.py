"""Prints how often the search is right, over curves with a known truth: `python -m tests.bench.peak_table [--runs 100]`."""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ProcessPoolExecutor

from tests.unit.curves import CURVES
from tests.unit.peak_simulation import (
    LIMIT_CURVES,
    SETTINGS,
    LimitOutcome,
    Outcome,
    Setting,
    Summary,
    exhaustive_s,
    limits_for,
    search,
    search_under_limit,
    summary,
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=100, help="searches per curve and noise")
    arguments.add_argument("--processes", type=int, default=2)
    chosen = arguments.parse_args()
    began = time.monotonic()
    jobs = [(index, setting, chosen.runs) for setting in SETTINGS for index in range(len(CURVES))]
    with ProcessPoolExecutor(chosen.processes) as pool:
        rows = list(pool.map(_row, jobs))
        limited = [one for part in pool.map(_limited, range(max(1, chosen.runs // 5))) for one in part]
    print(f"{chosen.runs} searches per curve and noise, {len(rows) * chosen.runs:,} in all.\n")
    print(
        "| noise | curve | best | peak >= 98 % | worst | ties hold best | knee >= 95 % | certain | falsely certain "
        "| sizes | seconds | of exhaustive |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for (index, setting, _), (found, exhaustive, _) in zip(jobs, rows, strict=True):
        best, _ = CURVES[index].best()
        print(_line(setting.name, CURVES[index].name, f"{best}", found, found.seconds / exhaustive))
    print("\nOver all curves:\n")
    print(
        "| noise | peak >= 98 % | ties hold best | knee >= 95 % | certain | falsely certain "
        "| of exhaustive: median of all runs | median of the worst curve |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for setting in SETTINGS:
        of_setting = [row for job, row in zip(jobs, rows, strict=True) if job[1] == setting]
        every = summary([one for _, _, outcomes in of_setting for one in outcomes])
        ratios = [one.measured_s / exhaustive for _, exhaustive, outcomes in of_setting for one in outcomes]
        worst = max(found.seconds / exhaustive for found, exhaustive, _ in of_setting)
        print(
            f"| {setting.name} | {every.good:.1%} | {every.ties_hold:.1%} | {every.knee_good:.1%} | {every.certain:.0%} "
            f"| {every.falsely_certain:.1%} | {statistics.median(ratios):.3f} | {worst:.3f} |"
        )
    _print_limits(limited)
    print(f"\nSimulated in {time.monotonic() - began:.0f} s.")


def _row(job: tuple[int, Setting, int]) -> tuple[Summary, float, list[Outcome]]:
    index, setting, runs = job
    curve = CURVES[index]
    _, best = curve.best()
    outcomes = [search(curve, setting, seed, best=best) for seed in range(runs)]
    return summary(outcomes), exhaustive_s(curve, setting), outcomes


def _limited(seed: int) -> list[LimitOutcome]:
    return [
        search_under_limit(curve, limit_ms, seed) for curve in LIMIT_CURVES for limit_ms in limits_for(curve)
    ]


def _line(noise: str, curve: str, best: str, found: Summary, ratio: float) -> str:
    return (
        f"| {noise} | {curve} | {best} | {found.good:.0%} | {found.worst:.3f} | {found.ties_hold:.0%} | "
        f"{found.knee_good:.0%} | {found.certain:.0%} | {found.falsely_certain:.0%} | {found.sizes:g} | "
        f"{found.seconds:.1f} | {ratio:.3f} |"
    )


def _print_limits(limited: list[LimitOutcome]) -> None:
    passes, fails = sum(one.passes for one in limited), sum(one.fails for one in limited)
    false_passes = sum(one.false_passes for one in limited)
    false_fails = sum(one.false_fails for one in limited)
    answered = [one for one in limited if one.best is not None]
    print(
        f"\nUnder a limit ({len(limited):,} searches; three in four of the limits within 3 % of a size's true p99):\n"
    )
    print("| said | times | wrong | share |")
    print("|---|---:|---:|---:|")
    print(f"| pass | {passes:,} | {false_passes} | {false_passes / max(1, passes):.1%} |")
    print(f"| fail | {fails:,} | {false_fails} | {false_fails / max(1, fails):.1%} |")
    print(
        f"\n{len(answered)} of {len(limited)} searches named a size; its throughput over that of the fastest size that truly "
        f"keeps the limit: median {statistics.median(one.best_share for one in answered):.3f}."
    )
    wrong = sum(one.best_share > 1.0 for one in answered)
    print(f"The size named truly misses the limit in {wrong / max(1, len(answered)):.1%} of them (at least).")


if __name__ == "__main__":
    main()
