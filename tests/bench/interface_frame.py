"""Time from the command to the first frame with the table, over `python -c "import textual.app, textual.widgets"`."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.drained import PROGRAM, DrainedTerminal
from tests.bench.ratios import judged, summary
from tests.pty.real_terminal import environment

OF_THE_TABLE = b"ms/image"
"""A heading that nothing but the table has."""


def first_frame(home: Path) -> float:
    """Seconds."""
    begun = time.perf_counter()
    terminal = DrainedTerminal([*PROGRAM, "interface", "--no-save"], environ=environment(home))
    try:
        took = terminal.first(OF_THE_TABLE) - begun
        terminal.leave()
    finally:
        terminal.close()
    return took


def import_textual(home: Path) -> float:
    """Seconds."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", "import textual.app, textual.widgets"],
        env=environment(home),
        cwd=home,
        check=True,
    )
    return time.perf_counter() - begun


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    repeats = arguments.parse_args().repeats
    ratios = []
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        import_textual(home)
        first_frame(home)
        for repeat in range(repeats):
            if repeat % 2:
                ours, theirs = first_frame(home), import_textual(home)
            else:
                theirs, ours = import_textual(home), first_frame(home)
            ratios.append(ours / theirs)
            print(f"first frame {ours:.2f} s, imports {theirs:.2f} s, ratio {ratios[-1]:.3f}", flush=True)
    print("ratio:", summary(ratios))
    print(judged("first frame over imports, median", statistics.median(ratios), None, 1.5))


if __name__ == "__main__":
    main()
