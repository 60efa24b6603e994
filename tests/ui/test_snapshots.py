"""Pictures of the two screens and of the edit dialog at three sizes, dark, light and without colour: a change of look is seen before it is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from textual.pilot import Pilot

from engine import host
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tests.ui.driving import PATIENCE_S, TERMINAL
from tui.app import BatchpeakApp
from tui.screens.race import RaceScreen
from tui.settings import Settings
from tui.surroundings import Surroundings

Snapshot = Callable[..., bool]

every_look = pytest.mark.parametrize("look", ["dark", "light", "no-colour"])
every_size = pytest.mark.parametrize(
    "size", [(80, 24), (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}"
)


@dataclass
class Clock:
    """Stands still until a test moves it."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


def app_in(look: str, clock: Callable[[], float] = lambda: 1000.0) -> BatchpeakApp:
    """The app with a scripted sweep and race, under a clock that stands still."""
    terminal = replace(TERMINAL, no_colour=look == "no-colour")
    return BatchpeakApp(
        Plan(),
        Surroundings(terminal, settings=Settings(theme=look), now=clock),
        session_factory=lambda: scripted.ScriptedSession(scripted.whole_sweep, scripted.whole_race),
        save=False,
    )


async def over(pilot: Pilot[Any], serial: int = 1) -> None:
    """Wait for the end of the run with this number, and for the frame that shows it."""
    app = pilot.app
    assert isinstance(app, BatchpeakApp)
    for _ in range(int(PATIENCE_S / 0.01)):
        if app.runs.active.serial == serial and not app.runs.busy:
            break
        await pilot.pause(0.01)
    else:
        raise TimeoutError(f"run {serial} never ended")
    await pilot.pause()


@every_look
@every_size
def test_the_sweep_looks_as_it_did(snap_compare: Snapshot, size: tuple[int, int], look: str) -> None:
    assert snap_compare(app_in(look), terminal_size=size, run_before=over)


@every_look
@every_size
def test_the_race_in_replay_looks_as_it_did(snap_compare: Snapshot, size: tuple[int, int], look: str) -> None:
    clock = Clock()

    async def replaying(pilot: Pilot[Any]) -> None:
        await over(pilot)
        await pilot.press("R")
        await over(pilot, 2)
        clock.seconds += 4.0
        screen = pilot.app.screen
        assert isinstance(screen, RaceScreen)
        screen.draw_status()
        await pilot.pause()

    assert snap_compare(app_in(look, clock), terminal_size=size, run_before=replaying)


@every_look
@every_size
def test_the_edit_dialog_looks_as_it_did(snap_compare: Snapshot, size: tuple[int, int], look: str) -> None:
    async def opened(pilot: Pilot[Any]) -> None:
        await over(pilot)
        await pilot.press("e")
        await pilot.pause()

    assert snap_compare(app_in(look), terminal_size=size, run_before=opened)


@pytest.mark.parametrize("key", ["m", "w", "enter"], ids=["options", "why", "details"])
def test_the_dialogs_look_as_they_did(
    snap_compare: Snapshot, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(host, "usable_cores", lambda: host.Usable(2, 2, None))
    monkeypatch.setattr(host, "devices", lambda: [host.Device("cpu")])

    async def opened(pilot: Pilot[Any]) -> None:
        await over(pilot)
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(app_in("dark"), terminal_size=(80, 24), run_before=opened)
