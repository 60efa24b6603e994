"""What the benches print: a ratio of two things measured in turn within one run, with its spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def summary(values: Sequence[float]) -> str:
    """Median with minimum and maximum."""
    return (
        f"{statistics.median(values):.3f} (min {min(values):.3f}, max {max(values):.3f}, n = {len(values)})"
    )


def spread(values: Sequence[float]) -> float:
    """Largest over smallest."""
    return max(values) / min(values)


def judged(name: str, ratio: float, least: float | None, most: float | None) -> str:
    """One line: the ratio, the bounds it is to keep, and whether it does."""
    bounds = " and ".join(
        text
        for text in (
            f"at least {least:g}" if least is not None else "",
            f"at most {most:g}" if most is not None else "",
        )
        if text
    )
    kept = (least is None or ratio >= least) and (most is None or ratio <= most)
    return f"{name}: {ratio:.3f}; wanted {bounds}: {'kept' if kept else 'NOT KEPT'}"
