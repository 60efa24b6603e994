"""Starts the interface on this process's terminal, and ends it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

from engine.errors import EXIT_DONE, UsageError
from engine.plan import Plan
from tui.app import BatchpeakApp
from tui.keys import binding_ids
from tui.runner import SessionLike, real_session
from tui.surroundings import find_surroundings


def collect_again() -> None:
    """End the start, in which no garbage is collected (`tui.cli.interface`).

    What was made in it lives until the end: frozen, no later collection walks through it while a model is measured.
    """
    gc.freeze()
    gc.enable()


def run(
    plan: Plan,
    *,
    session_factory: Callable[[], SessionLike] = real_session,
    save: bool = True,
    save_dir: Path | None = None,
    plain: bool = False,
    mouse: bool = True,
) -> int:
    """Show the interface until the person leaves it. Returns the exit code; the measuring process is gone by then.

    Raises UsageError when there is no terminal to show it on.
    """
    if os.environ.get("NO_COLOR") == "":
        del os.environ["NO_COLOR"]  # empty means colours; Textual only looks at whether it is set
    around = find_surroundings(plain=plain, binding_ids=binding_ids)
    if not around.terminal.can_draw:
        raise UsageError(
            around.terminal.why_not(), argument="the interface", remedy="`batchpeak sweep` needs none."
        )
    app = BatchpeakApp(
        plan,
        around,
        session_factory=session_factory,
        save=save,
        save_dir=save_dir,
        at_first_frame=collect_again,
    )
    try:
        code = app.run(mouse=mouse)
    finally:
        app.runner.close()
    return app.return_code or EXIT_DONE if code is None else code
