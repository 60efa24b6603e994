"""Prints how often the 95 % interval of a sweep holds the truth, per kind of noise: python -m tests.bench.coverage_table [sweeps]."""

from __future__ import annotations

import sys
from time import perf_counter

from tests.unit.coverage import CASES, SIZES, mean_and_t, median_and_deviation, simulate, simulate_plain
from tests.unit.scripted import Noise


def main() -> None:
    sweeps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(
        f"{sweeps} sweeps a row; stable: share of sizes; holds: share of stable sizes whose interval holds the truth"
    )
    head = f"{'noise':44s} {'batch':>6s} {'stable':>7s} {'holds':>7s} {'blocks':>7s} {'±':>6s}   {'seconds'}"
    print(head)
    for name, noise in CASES.items():
        began = perf_counter()
        figures = simulate(noise, sweeps)
        took = perf_counter() - began
        for batch_size in SIZES:
            of = figures[batch_size]
            print(
                f"{name:44s} {batch_size:6d} {of.stable_share:7.1%} {of.holds:7.1%} {of.median_blocks:7.0f} "
                f"{of.median_half_width:6.2%}" + (f"   {took:.1f}" if batch_size == SIZES[0] else "")
            )
    print(
        "\na plain stop at the first narrow interval from six blocks on, one call a block: how often it holds the truth"
    )
    print(f"{'noise':44s} {'mean, t':>9s} {'median':>9s}")
    for lingering in (0.0, 0.3, 0.5):
        for level in (0.01, 0.03, 0.10):
            noise = Noise(block=level, lingering=lingering)
            shares = [simulate_plain(rule, noise, sweeps) for rule in (mean_and_t, median_and_deviation)]
            name = f"{level:.0%} a block, lingering {lingering:g}"
            print(f"{name:44s} {shares[0]:9.1%} {shares[1]:9.1%}")


if __name__ == "__main__":
    main()
