"""What a fresh interpreter loads: the command line and the interface start without torch, the headless one without Textual."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "import sys; import {module}; print(' '.join(sorted(sys.modules)))"


def loaded_by(module: str) -> set[str]:
    answer = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in answer.stdout.split()}


@pytest.mark.parametrize(
    "module", ["tui", "tui.start", "tui.cli", "engine.session", "engine.models.catalogue"]
)
def test_nothing_outside_the_measuring_process_loads_torch(module: str) -> None:
    assert "torch" not in loaded_by(module)


def test_the_command_itself_loads_no_interface_and_no_numpy() -> None:
    assert not loaded_by("tui.cli") & {"torch", "textual", "numpy", "plotext", "rich"}


def test_the_headless_run_loads_no_interface() -> None:
    assert not loaded_by("tui.headless") & {"torch", "textual", "plotext"}


def test_the_engine_loads_nothing_that_shows() -> None:
    assert not loaded_by("engine.session") & {"tui", "textual", "rich", "plotext", "click"}


def test_the_first_frame_waits_for_no_dialog() -> None:
    names = subprocess.run(
        [sys.executable, "-c", LOADED.format(module="tui.start")], capture_output=True, text=True, check=True
    ).stdout.split()
    screens = {name.rpartition(".")[2] for name in names if name.startswith("tui.screens.")}
    assert not screens & {"setup", "edit_list", "limit", "race", "take_away", "theme_picker", "why", "help"}
    assert "sweep" in screens
