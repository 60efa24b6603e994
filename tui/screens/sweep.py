"""The sweep screen: header, live table, chart, the state and the advice in words, and the row under the cursor in full."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widgets import Static

from engine import events, host
from engine.plan import Plan
from tui.screens.detail import DetailPane, detail_of
from tui.screens.figures import curves_of
from tui.screens.header import Header
from tui.screens.key_line import KeyLine
from tui.screens.run_screen import RunScreen
from tui.state import Change, RunView
from tui.theming import Palette
from tui.widgets.curve_chart import CurveChart
from tui.widgets.result_rows import result_rows
from tui.widgets.results_table import ResultsTable

if TYPE_CHECKING:
    from tui.screens.edit_list import Edited
    from tui.screens.limit import LimitAsked

LONGER = 4.0
"""How many times its usual time a size gets when it is measured longer."""


class SweepScreen(RunScreen):
    """Shows the app's sweep, and asks the app for what its keys stand for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "run", id="run", tooltip="Measure the list again, in the warm process"),
        Binding("e", "edit", "edit", id="edit", tooltip="Change the batch sizes and run"),
        Binding("p", "peak", "peak", id="peak", tooltip="Search for the batch size with the highest throughput"),
        Binding("l", "limit", "limit", id="limit", tooltip="Set the latency that the calls must stay under"),
        Binding("m", "setup", "model", id="model", tooltip="Choose the model and how it is run"),
        Binding("R", "race", "race", id="race", tooltip="Race single calls against one call of all images"),
        Binding("w", "why", "why", id="why", tooltip="Why the curve bends, and what to try"),
        Binding("s", "take_away", "save", id="save", tooltip="Copy or save the table"),
        Binding("enter,d", "detail", "details", id="details", show=False, tooltip="Everything known of the row under the cursor"),
        Binding("plus", "longer", "longer", id="longer", show=False, key_display="+",
                tooltip="Measure the size under the cursor longer"),
        Binding("a", "add", "add", id="add", show=False, tooltip="Add the sizes that the verdict suggests, and run"),
        Binding("o", "sort", "sort", id="sort", show=False, tooltip="Sort by the next column"),
        Binding("O", "sort_reverse", "reverse", id="sort-reverse", show=False, tooltip="Turn the order round"),
        Binding("J", "scroll_detail(3)", "details down", id="details.down", show=False, tooltip="Scroll the details down"),
        Binding("K", "scroll_detail(-3)", "details up", id="details.up", show=False, tooltip="Scroll the details up"),
        Binding("escape", "back", "cancel", id="back", show=False, tooltip="Close the details; cancel the run after asking"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._detail_of: tuple[events.Point, int, Palette] | None = None
        """What the details were drawn from, so that they are not made again of the same."""

    @property
    def view(self) -> RunView:
        return self.owner.runs.sweep

    def compose(self) -> ComposeResult:
        owner = self.owner
        yield Header(owner.runs.sweep.plan, owner.terminal.charset)
        with Horizontal(id="main"):
            with Vertical(id="figures"):
                yield ResultsTable(owner.palette, owner.terminal.charset, id="table")
                yield CurveChart(owner.palette, owner.terminal.charset, id="chart")
            yield DetailPane()
        yield Static(id="status")
        yield Static(id="advice")
        yield KeyLine()

    def draw_status(self) -> None:
        view, runs = self.view, self.owner.runs
        words = view.status(self.owner.now())
        if not view.busy and runs.active.busy:
            words = "a race is being run: R shows it, x cancels it"
        self._say("#status", words, self.owner.palette.dim)
        self._say("#advice", view.advice(), "")
        self.set_class(view.phase == "failed", "-failed")

    def _say(self, selector: str, words: str, style: object) -> None:
        """Change a line only when its words changed, so that nothing is written for nothing."""
        line = self.query_one(selector, Static)
        text = Text(self.owner.safe(words), style=style)  # type: ignore[arg-type]
        if line.content != text:
            line.update(text, layout=False)  # its height is fixed

    def draw_figures(self, change: Change) -> None:
        view = self.view
        if change.model or change.restarted:
            self.query_one(Header).show(view.plan, view.record)
        if change.rows or change.verdict or change.restarted or change.model:
            self.query_one(ResultsTable).show(result_rows(view.points(), view.record.verdict), view.unit)
            self.query_one(CurveChart).show(curves_of(view))
        self._draw_detail()

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        self.call_after_refresh(self._draw_detail)  # there may be room for it only now

    def _draw_detail(self) -> None:
        pane = self.query_one(DetailPane)
        size = self.query_one(ResultsTable).selected
        point = next((row for row in self.view.points() if row.batch_size == size), None)
        if point is None or not pane.display:
            return
        # A point comes with every change of what is known of its size.
        looked = (point, pane.histogram_width, self.owner.palette)
        if looked == self._detail_of:
            return
        self._detail_of = looked
        record = self.view.record
        pane.show(
            detail_of(
                point,
                record.measurements.get(point.batch_size),
                self.view.unit,
                pane.histogram_width,
                self.owner.palette,
                self.owner.terminal.charset,
            )
        )

    def recolour(self) -> None:
        palette = self.owner.palette
        self.query_one(ResultsTable).paint_with(palette)
        self.query_one(CurveChart).paint_with(palette)
        self.draw_status()
        self._draw_detail()

    def on_data_table_row_highlighted(self) -> None:
        self._draw_detail()

    # What is possible now

    def why_not(self, action: str, parameters: tuple[object, ...] = ()) -> str:
        view, record = self.view, self.view.record
        if action in ("run", "peak", "limit", "longer", "add") and view.busy:
            return "while measuring"
        if action in ("run", "peak", "longer", "add") and self.owner.runs.busy:
            return "while a race is run"  # it would be ended unasked
        match action:
            case "limit" | "take_away" if not record.points:
                return "nothing measured yet"
            case "why" if record.verdict is None and not record.warnings:
                return "nothing to explain yet"
            case "longer" if self._longer() is None:
                return "nothing measured at this size"
            case "add" if not self._suggested():
                return "no size is suggested"
            case "sort" | "sort_reverse" | "detail" if not view.points():
                return "no rows yet"
            case "detail" if self.has_class("-wide"):
                return "the details are beside the table"
            case "scroll_detail":
                return self._why_not_scroll()
            case "back" if not self._detail_open and (told := self.owner.why_not("cancel")):
                return told
        return super().why_not(action, parameters)

    @property
    def _detail_open(self) -> bool:
        """Whether the details have taken the chart's place."""
        return self.has_class("-detail") and not self.has_class("-wide")

    def _why_not_scroll(self) -> str:
        pane = self.query_one(DetailPane)
        if not pane.display:
            return "the details are closed"
        return "" if pane.max_scroll_y > 0 else "all of the details is on the screen"

    # Keys. Dialogs are imported when they are asked for: the first frame does not wait for them.

    def action_run(self) -> None:
        self.owner.runs.start(self.view.plan)

    def action_peak(self) -> None:
        plan = msgspec.structs.replace(self.view.plan, kind="peak")
        self.owner.runs.start(plan, self.view.unchanged(plan))

    def action_edit(self) -> None:
        from tui.screens.edit_list import EditList, additions

        view = self.view
        sizes = tuple(point.batch_size for point in view.points()) or view.plan.batch_sizes
        verdict = view.record.verdict
        dialog = EditList(
            sizes,
            recent=self.owner.settings.recent_lists,
            offers=additions(
                sizes, verdict.suggestions if verdict else (), verdict.peak if verdict else None
            ),
            kept=len(view.unchanged(self._sweep_of(sizes))),
        )
        self.app.push_screen(dialog, self._edited)

    def _edited(self, edited: Edited | None) -> None:
        if edited is None:
            return
        plan = self._sweep_of(edited.sizes)
        self.owner.remember(self.owner.settings.with_list(edited.sizes))
        self.owner.runs.start(plan, self.view.unchanged(plan) if edited.keep else ())

    def _sweep_of(self, sizes: tuple[int, ...]) -> Plan:
        return msgspec.structs.replace(self.view.plan, kind="sweep", batch_sizes=sizes)

    def action_limit(self) -> None:
        from tui.screens.limit import LimitDialog

        plan = self.view.plan
        self.app.push_screen(LimitDialog(plan.limit_ms, plan.percentile), self._limited)

    def _limited(self, asked: LimitAsked | None) -> None:
        if asked is not None:
            self.owner.judge_again(asked.ms, asked.percentile)

    def action_setup(self) -> None:
        from engine.asking import Asking
        from engine.models import catalogue
        from tui.screens.setup import Machine, Setup

        busy = self.owner.runs.active.busy
        machine = Machine(host.usable_cores().cores, models=self.owner.settings.recent_models)
        asking = Asking()
        # Both start processes, which would disturb what is measured; what still runs ends with the dialog.
        devices = None if busy else partial(host.devices, asking=asking)
        search = None if busy else partial(catalogue.search, ask=catalogue.asker(asking))
        dialog = Setup(self.view.plan, machine, devices, search, closed=asking.stop)
        self.app.push_screen(dialog, self._set_up)

    def _set_up(self, plan: Plan | None) -> None:
        if plan is not None:
            self.owner.remember(self.owner.settings.with_model(plan.model))
            self.owner.runs.start(plan)

    def action_race(self) -> None:
        from tui.screens.race import RaceScreen

        self.app.push_screen(RaceScreen())

    def action_why(self) -> None:
        from tui.screens.why import Why

        self.app.push_screen(Why(self.view.plan, self.view.record), self._set_up)

    def action_take_away(self) -> None:
        from tui.screens.take_away import TakeAway

        self.app.push_screen(TakeAway(self.view.record))

    def action_detail(self) -> None:
        if not self.has_class("-wide"):
            self.toggle_class("-detail")
            self.call_after_refresh(self._draw_detail)

    def action_scroll_detail(self, lines: int) -> None:
        self.query_one(DetailPane).scroll_relative(y=lines, animate=False)

    def action_back(self) -> None:
        if self._detail_open:
            self.remove_class("-detail")
        else:
            self.owner.ask_cancel()

    def action_sort(self) -> None:
        self.query_one(ResultsTable).sort_by_next_column()

    def action_sort_reverse(self) -> None:
        self.query_one(ResultsTable).reverse_order()

    def _longer(self) -> int | None:
        """The size under the cursor when it was measured and may be measured on."""
        size = self.query_one(ResultsTable).selected
        point = self.view.record.points.get(size) if size is not None else None
        return size if point is not None and point.blocks else None

    def action_longer(self) -> None:
        size = self._longer()
        if size is None:
            return
        view = self.view
        sizes = tuple(point.batch_size for point in view.points())
        plan = msgspec.structs.replace(self._sweep_of(sizes), precision=max(0.001, view.plan.precision / 2))
        prior = tuple(
            msgspec.structs.replace(known, state="measuring") if known.batch_size == size else known
            for known in view.unchanged(plan)
        )
        self.owner.runs.start(plan, prior)

    def _suggested(self) -> tuple[int, ...]:
        verdict = self.view.record.verdict
        known = {point.batch_size for point in self.view.points()}
        return (
            tuple(s.batch_size for s in verdict.suggestions if s.batch_size not in known) if verdict else ()
        )

    def action_add(self) -> None:
        sizes = tuple(sorted({*(point.batch_size for point in self.view.points()), *self._suggested()}))
        plan = self._sweep_of(sizes)
        self.owner.runs.start(plan, self.view.unchanged(plan))
