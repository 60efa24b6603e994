"""Drives the app in tests: starts it with a scripted session, and waits for what it shows instead of for a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Static

from engine.plan import Plan
from tests.ui.scripted_session import Script, ScriptedSession
from tui.app import BatchpeakApp
from tui.settings import Settings
from tui.surroundings import Surroundings
from tui.terminal import Terminal

PATIENCE_S = 20.0
DEFAULTS = Settings()

TERMINAL = Terminal(
    is_tty=True, dumb=False, charset="unicode", no_colour=False, over_ssh=False, columns=80, rows=24
)


class Driver:
    """One app under test and the session it runs."""

    def __init__(self, app: BatchpeakApp, pilot: Pilot[int], session: ScriptedSession) -> None:
        self.app = app
        self.pilot = pilot
        self.session = session

    async def until(self, true: Callable[[], object], what: str = "") -> None:
        """Let the app work until the condition holds; fails when it does not within a bound."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        while not true():
            assert loop.time() < end, f"never: {what or true}; the screen:\n{self.screen}"
            await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def phase(self, phase: str) -> None:
        await self.until(
            lambda: self.app.runs.serial and self.app.runs.active.phase == phase, f"phase {phase}"
        )

    async def shows(self, text: str) -> None:
        await self.until(lambda: text in self.screen, f"{text!r} on the screen")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def screen(self) -> str:
        """The lines of the topmost screen as they are drawn."""
        screen = self.app.screen
        _width, height = self.app.size
        strips = screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips[:height])

    def text(self, selector: str) -> str:
        content: Any = self.app.screen.query_one(selector, Static).content
        return getattr(content, "plain", str(content))


@asynccontextmanager
async def driving(
    *scripts: Script,
    plan: Plan | None = None,
    size: tuple[int, int] = (80, 24),
    terminal: Terminal = TERMINAL,
    save_dir: Path | None = None,
    settings: Settings = DEFAULTS,
    settings_path: Path | None = None,
    notifications: bool = True,
) -> AsyncIterator[Driver]:
    """The app running the scripts one after the other."""
    session = ScriptedSession(*scripts)
    app = BatchpeakApp(
        plan or Plan(),
        Surroundings(terminal, settings=settings, settings_path=settings_path),
        session_factory=lambda: session,
        save=save_dir is not None,
        save_dir=save_dir,
    )
    try:
        async with app.run_test(size=size, notifications=notifications) as pilot:
            yield Driver(app, pilot, session)
    finally:
        app.runner.close()
