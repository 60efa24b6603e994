"""How long the cursor takes to move in a run of 2,000 batch sizes, while it is measured and after."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from engine.plan import Plan
from tests.bench import keys
from tests.bench.ratios import judged, summary
from tests.pty.real_terminal import RealTerminal, environment

SIZES = 2_000
BETWEEN_KEYS_S = 0.13
"""As a person presses keys; not a divisor of a second, so that presses fall on all moments of a redraw."""


def interface(script: str) -> int:
    """The interface in this process, with a session that measured all sizes already, or goes on for ever."""
    from tests.pty.scripted_app import EndlessSession
    from tests.ui.scripted_session import ScriptedSession, whole_sweep
    from tui.start import run

    def session() -> ScriptedSession:
        return EndlessSession() if script == "measuring" else ScriptedSession(whole_sweep)

    return run(Plan(batch_sizes=tuple(range(1, SIZES + 1))), session_factory=session, save=False)


def moves(home: Path, script: str, repeats: int) -> list[float]:
    """Milliseconds of each move of the cursor."""
    command = [sys.executable, "-m", "tests.bench.interface_rows", "--be", script]
    terminal = RealTerminal(command, environ=environment(home), columns=120, rows=40)
    took = []
    try:
        terminal.shows("finished" if script == "finished" else "measuring")
        keys.until(lambda: keys.size_under_the_cursor(terminal) is not None, "the cursor", terminal)
        time.sleep(2.0)  # until what the start left to draw is drawn
        for key in (
            [keys.DOWN] * repeats + [keys.PAGE_DOWN, keys.END, keys.HOME, keys.END] + [keys.UP] * repeats
        ):
            took.append(keys.moves_cursor(terminal, key) * 1000.0)
            time.sleep(BETWEEN_KEYS_S)
    finally:
        terminal.close()
    return took


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=40)
    arguments.add_argument("--be", choices=["measuring", "finished"], help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.be is not None:
        return interface(given.be)
    with tempfile.TemporaryDirectory() as place:
        for script in ("finished", "measuring"):
            took = moves(Path(place), script, given.repeats)
            print(f"cursor moves with {SIZES:,} sizes, {script}, ms:", summary(took))
            print(judged(f"cursor moves, {script}, ms, median", statistics.median(took), None, 100))
            print(judged(f"cursor moves, {script}, ms, slowest", max(took), None, 100))
    return 0


if __name__ == "__main__":
    sys.exit(main())
