"""What the app is started in: the terminal, the themes, the person's settings. Looked for once, given to tests."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from tui import settings as stored
from tui import theming
from tui.settings import Settings
from tui.terminal import Terminal, look


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything that the app takes from outside its runs."""

    terminal: Terminal
    themes: theming.Themes = field(default_factory=theming.load_themes)
    settings: Settings = field(default_factory=Settings)
    settings_path: Path | None = None
    """None: nothing is remembered."""
    problems: tuple[tuple[str, str], ...] = ()
    """Title and message of each file that cannot be used, to be told at the start."""
    now: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back."""


def find_surroundings(*, plain: bool, binding_ids: Callable[[], Collection[str]]) -> Surroundings:
    """The surroundings of this process. Files that cannot be used become `problems`, and defaults stand in for them."""
    path = stored.settings_path()
    loaded = stored.load(path, binding_ids)
    themes = theming.load_themes(stored.themes_folder())
    problems = [("a setting cannot be used", problem) for problem in loaded.problems]
    problems += [("a theme cannot be used", str(problem)) for problem in themes.problems]
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return Surroundings(
        terminal=look(os.environ, streams, shutil.get_terminal_size(), plain=plain),
        themes=themes,
        settings=loaded.settings,
        settings_path=path,
        problems=tuple(problems),
    )
