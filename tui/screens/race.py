"""The race screen: two lanes with their real progress, the result in figures, and the replay in slow motion."""

from __future__ import annotations

from typing import ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Static

from engine import events
from engine.plan import Plan
from tui import formats
from tui.screens.header import Header
from tui.screens.key_line import KeyLine
from tui.screens.race_edit import RaceEdit, race_title
from tui.screens.replay import Replay
from tui.screens.run_screen import RunScreen
from tui.state import Change, RunView
from tui.widgets.lane import LanePicture


class RaceScreen(RunScreen):
    """Shows the app's race; starts one when none was run yet."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "race", id="race.run", tooltip="Race again"),
        Binding("e", "edit", "edit", id="race.edit", tooltip="Change the images and the size of the calls"),
        Binding("enter", "replay", "replay", id="race.replay", tooltip="Watch the race again in slow motion"),
        Binding("left,less_than_sign", "speed(0.5)", "slower", id="race.slower", tooltip="Replay at half the speed", key_display="←"),
        Binding("right,greater_than_sign", "speed(2.0)", "faster", id="race.faster", tooltip="Replay at twice the speed", key_display="→"),
        Binding("escape,R", "back", "back", id="race.back", tooltip="Back to the sweep; a race goes on", key_display="esc"),
    ]  # fmt: skip
    SMALLEST = (44, 12)

    def __init__(self) -> None:
        super().__init__()
        self._replay: Replay | None = None
        self._replayed = 0
        """Serial of the race that was replayed by itself."""
        self._frames: Timer | None = None

    @property
    def view(self) -> RunView:
        return self.owner.runs.race

    def compose(self) -> ComposeResult:
        owner = self.owner
        yield Header(owner.runs.race.plan, owner.terminal.charset)
        with Vertical(id="race"):
            yield Static(id="race-title")
            yield LanePicture(owner.palette, owner.terminal.charset, id="lane-0", classes="lane")
            yield LanePicture(owner.palette, owner.terminal.charset, id="lane-1", classes="lane")
            yield Static(id="race-result")
        yield Static(id="status")
        yield Static(id="advice")
        yield KeyLine()

    def on_mount(self) -> None:
        self._frames = self.set_interval(1.0 / self.owner.terminal.refresh_hz, self._frame, pause=True)
        if self.view.serial == 0 and not self.owner.runs.active.busy:
            self.action_run()

    def draw_status(self) -> None:
        view, owner = self.view, self.owner
        words = view.status(owner.now())
        if self._replay is not None:
            words = f"replay, {self._replay.words}"
        elif not view.busy and owner.runs.active.busy:
            words = "the sweep is still being measured; r ends it and races"
        self._say("#status", words, owner.palette.dim)
        self._say("#advice", self._advice(), "")
        self._draw_lanes()

    def draw_figures(self, change: Change) -> None:
        view = self.view
        self.query_one(Header).show(view.plan, view.record)
        self._say(
            "#race-title",
            race_title(view.plan.images, min(view.plan.lane_batch_size, view.plan.images)),
            "bold",
        )
        if change.restarted:
            self._stop_replay()
        result = self.query_one("#race-result", Static)
        text = Text() if view.record.race is None else result_text(view.record.race, self._unit_word())
        if self.owner.terminal.charset == "ascii":
            text = Text(formats.to_ascii(text.plain))
        if result.content != text:
            result.update(text)
        if view.record.race is not None and not view.busy and self._replayed != view.serial:
            self._replayed = view.serial
            self.action_replay()

    def recolour(self) -> None:
        for lane in self.query(LanePicture):
            lane.paint_with(self.owner.palette)
        self.draw_status()

    def _unit_word(self) -> str:
        return self.view.unit.partition("/")[0].removesuffix("s")

    def _advice(self) -> str:
        view = self.view
        race = view.record.race
        if view.phase == "failed" and view.failure is not None:
            return formats.sentences(view.failure.message, view.failure.remedy)
        if race is None:
            return "Both lanes get the same images; rounds run A B B A, so that drift falls on both alike."
        return race_advice(race, self._unit_word())

    def _say(self, selector: str, words: str, style: object) -> None:
        line = self.query_one(selector, Static)
        text = Text(self.owner.safe(words), style=style)  # type: ignore[arg-type]
        if line.content != text:
            line.update(text, layout=False)  # its height is fixed

    # Lanes

    def _draw_lanes(self) -> None:
        view = self.view
        race = view.record.race
        moments = self._replay.moments(self.owner.now()) if self._replay is not None else None
        plan = view.plan
        sizes = (min(plan.lane_batch_size, plan.images), plan.images)
        for number in (0, 1):
            picture = self.query_one(f"#lane-{number}", LanePicture)
            name = race.lanes[number].name if race is not None else _lane_name(plan.images, sizes[number])
            if moments is not None:
                moment = moments[number]
                picture.show(name, moment.done, moment.total, f"{formats.ms(moment.ms)} ms")
            elif race is not None:
                picture.show(name, plan.images, plan.images, f"{formats.ms(race.lanes[number].total_ms)} ms")
            else:
                told = view.record.progress.get(number)
                words = "waiting" if told is None else f"round {told.round + 1}"
                picture.show(name, told.done if told else 0, told.total if told else plan.images, words)

    # Keys

    def why_not(self, action: str, parameters: tuple[object, ...] = ()) -> str:
        if action in ("run", "edit", "replay") and self.view.busy:
            return "while racing"
        if action in ("run", "edit") and self.owner.runs.busy:
            return "while a sweep is measured"  # it would be ended unasked
        if action == "replay" and self.view.record.race is None:
            return "no race was finished yet"
        if action == "speed":
            if self._replay is None:
                return "no replay is going"
            return self._replay.why_not(cast("float", parameters[0]))
        return super().why_not(action, parameters)

    def action_run(self) -> None:
        self.owner.runs.start(self.view.plan)

    def action_edit(self) -> None:
        self.app.push_screen(RaceEdit(self.view.plan), self._edited)

    def _edited(self, plan: Plan | None) -> None:
        if plan is not None:
            self.owner.runs.start(plan)

    def action_replay(self) -> None:
        race = self.view.record.race
        if race is None or self._frames is None:
            return
        self._replay = Replay.of(race.lanes, self.owner.now())
        self._frames.resume()
        self.draw_status()
        self.refresh_bindings()

    def action_speed(self, factor: float) -> None:
        if self._replay is not None:
            self._replay = self._replay.faster(factor, self.owner.now())
            self.draw_status()
            self.refresh_bindings()

    def _frame(self) -> None:
        if self._replay is not None and self._replay.over(self.owner.now()):
            self._stop_replay()
        self.draw_status()

    def _stop_replay(self) -> None:
        if self._frames is not None:
            self._frames.pause()
        if self._replay is not None:
            self._replay = None
            self.refresh_bindings()

    def action_back(self) -> None:
        self.app.pop_screen()  # a race that is going goes on: the app owns it


def _lane_name(images: int, size: int) -> str:
    calls = -(-images // size)
    return f"{calls:,} call{'s' if calls != 1 else ''} of {size:,}"


def result_text(race: events.RaceFinished, item: str) -> Text:
    """Totals, time per image, time to the first answer, and the speed-up with its interval."""
    heads = ("", "total ms", f"ms/{item}", "first answer ms")
    rows = [
        (
            lane.name,
            formats.ms(lane.total_ms),
            formats.ms(lane.ms_per_item),
            formats.ms(lane.first_answer_ms),
        )
        for lane in race.lanes
    ]
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    text = Text(no_wrap=True)
    for number, row in enumerate((heads, *rows)):
        line = "   ".join(
            f"{cell:<{width}}" if column == 0 else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        text.append(line + "\n", "bold" if number == 0 else "")
    text.append("\nspeed-up ")
    figure = formats.speedup(race.speedup, race.speedup_low, race.speedup_high)
    text.append(*((figure, "bold") if _tells(race) else (f"about {figure}", "")))
    interval = formats.span(race.speedup_low, race.speedup_high)
    text.append(
        f"  ({interval}, 95 % interval, {race.rounds} rounds)"
        if interval
        else "  (too few rounds for an interval)"
    )
    agreed = {True: "yes", False: "NO", None: "not known"}[race.outputs_agree]
    text.append(f"\nsame answers: {agreed}")
    if race.agreement:
        text.append(f", {race.agreement}")
    return text


def _tells(race: events.RaceFinished) -> bool:
    """Whether one lane is surely the faster: there is an interval, and 1 is not in it."""
    low, high = race.speedup_low, race.speedup_high
    return low is not None and high is not None and not low <= 1.0 <= high


def race_advice(race: events.RaceFinished, item: str) -> str:
    """What the result means, in a sentence; no winner where the interval holds 1."""
    single, batch = race.lanes
    low, high = race.speedup_low, race.speedup_high
    if not _tells(race):
        told = (
            "Too few rounds to be sure which lane is faster."
            if low is None
            else "The measurements cannot tell which lane is faster."
        )
    elif race.speedup > 1.0:
        told = f"{batch.name} is {formats.speedup(race.speedup, low, high)} as fast as {single.name}."
    else:
        told = f"{single.name} is faster: {batch.name} reaches {formats.speedup(race.speedup, low, high)} of its speed."
    first, last = single.first_answer_ms, batch.first_answer_ms
    wait = f" The first answer comes after {formats.ms(last)} ms instead of {formats.ms(first)} ms."
    chunked = f" All {item}s did not fit in one call: chunks were raced." if race.chunked else ""
    return told + wait + chunked
