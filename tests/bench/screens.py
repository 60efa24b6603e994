"""The README's pictures: the real program measures on this machine, and its two screens are drawn as SVG files."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from textual.pilot import Pilot

from engine import events
from engine.plan import Plan, parse_batch_sizes, parse_seconds
from engine.results import Measurement
from engine.session import Session
from tui.app import BatchpeakApp
from tui.screens.race import RaceScreen
from tui.settings import Settings
from tui.surroundings import Surroundings
from tui.terminal import Terminal

SCREENS = Path(__file__).parents[1] / "ui" / "screens"
HOST = "box"
PATIENCE_S = 600.0
MOMENT = 0.6
"""Of the slower lane's time, when the race's picture is taken."""

BLANK = "\xa0 \n"
TERMINAL = Terminal(
    is_tty=True, dumb=False, charset="unicode", no_colour=False, over_ssh=False, columns=100, rows=30
)
_TEXT = re.compile(
    r'(?P<head><text [^>]*?) x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)" textLength="(?P<length>[\d.]+)"(?P<tail>[^>]*)>(?P<text>[^<]*)</text>'
)


class NamelessSession(Session):
    """A session on a machine that is called "box"."""

    def run(
        self,
        plan: Plan,
        *,
        prior: Sequence[Measurement] = (),
        resumes: str | None = None,
        sink: Callable[[events.AnyEvent], None] | None = None,
        run_id: str | None = None,
    ) -> Iterator[events.AnyEvent]:
        for event in super().run(plan, prior=prior, resumes=resumes, sink=sink, run_id=run_id):
            if isinstance(event, events.RunStarted):
                event = msgspec.structs.replace(event, host={**event.host, "hostname": HOST})
            yield event


class Watch:
    """The app's clock: real until it is stopped at a moment."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stopped: float | None = None

    def __call__(self) -> float:
        return self._clock() if self._stopped is None else self._stopped

    def stop(self, later_s: float) -> None:
        """Show from now on the moment that lies `later_s` ahead."""
        self._stopped = self._clock() + later_s


def portable(svg: str, name: str) -> str:
    """The picture without links to fonts of the web, with names that stay the same, and every text where its first character is.

    Renderers differ in what they do with spaces at the start of a text.
    """
    svg = re.sub(r"terminal-\d+", name, svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"Fira Code, ?", "", svg)
    return re.sub(r"\n\s*\n+", "\n", _TEXT.sub(_placed, svg))


def _placed(found: re.Match[str]) -> str:
    text = found["text"].replace("&#160;", "\xa0")
    # An entity (&amp;) is one character on the screen.
    columns = len(re.sub(r"&[^;]+;", "x", text))
    if not text.strip(BLANK) or not columns:
        return ""
    width = float(found["length"]) / columns
    left = len(text) - len(text.lstrip(BLANK))
    right = len(text) - len(text.rstrip(BLANK))
    place = f'x="{float(found["x"]) + left * width:g}" y="{found["y"]}" textLength="{float(found["length"]) - (left + right) * width:g}"'
    words = text.strip(BLANK).replace("\xa0", "&#160;")
    return f"{found['head']} {place}{found['tail']}>{words}</text>"


async def over(pilot: Pilot[Any], app: BatchpeakApp, serial: int) -> None:
    """Wait for the end of the run with this number, and for the frame that shows it."""
    async with asyncio.timeout(PATIENCE_S):
        while app.runs.active.serial != serial or app.runs.busy:
            await pilot.pause(0.1)
    await pilot.pause()
    failure = app.runs.active.failure
    if failure is not None:
        raise failure


async def draw(plan: Plan, theme: str, columns: int, rows: int) -> dict[str, str]:
    """Both screens, by name: the sweep with its verdict, and the race being replayed."""
    loop = asyncio.get_running_loop()
    watch = Watch(loop.time)
    terminal = replace(TERMINAL, columns=columns, rows=rows)
    app = BatchpeakApp(
        plan,
        Surroundings(terminal, settings=Settings(theme=theme), now=watch),
        session_factory=NamelessSession,
        save=False,
    )
    pictures = {}
    try:
        async with app.run_test(size=(columns, rows)) as pilot:
            await over(pilot, app, 1)
            pictures["sweep"] = app.export_screenshot(title="batchpeak", simplify=True)
            await pilot.press("R")
            await over(pilot, app, 2)
            screen, race = app.screen, app.runs.race.record.race
            if not isinstance(screen, RaceScreen) or race is None:
                raise RuntimeError("the race has no result")
            screen.action_replay()
            replay = screen._replay
            if replay is not None:
                watch.stop(MOMENT * max(lane.total_ms for lane in race.lanes) / 1000.0 / replay.speed)
            screen.draw_status()
            await pilot.pause()
            pictures["race"] = app.export_screenshot(title="batchpeak", simplify=True)
    finally:
        app.runner.close()
    return {name: portable(svg, name) for name, svg in pictures.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--budget", type=parse_seconds, default=60.0)
    arguments.add_argument(
        "--batch-sizes", type=lambda text: parse_batch_sizes(text).sizes, default=Plan().batch_sizes
    )
    arguments.add_argument("--allocator", default="system")
    arguments.add_argument("--theme", default="dark")
    arguments.add_argument("--columns", type=int, default=100)
    arguments.add_argument("--rows", type=int, default=30)
    arguments.add_argument("--into", type=Path, default=SCREENS)
    given = arguments.parse_args()
    plan = Plan(batch_sizes=given.batch_sizes, budget_s=given.budget, allocator=given.allocator)
    given.into.mkdir(parents=True, exist_ok=True)
    pictures = asyncio.run(draw(plan, given.theme, given.columns, given.rows))
    for name, svg in pictures.items():
        path = given.into / f"{name}.svg"
        path.write_text(svg, encoding="utf-8")
        print(path.name, f"{len(svg) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
