"""What the screens of a run share: they follow the app's run, draw figures once a second at most, and say when they are too small."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual import events
from textual.screen import Screen
from textual.widgets import Static

from tui.state import NOTHING, Change, Changed, RunView

if TYPE_CHECKING:
    from tui.app import BatchpeakApp

FIGURES_EVERY_S = 1.0
CELLS_A_SECOND = 2_400
"""A larger screen is drawn less often: what is written to a slow line, and computed beside the model, stays as little."""
LONGEST_S = 3.0


class RunScreen(Screen[None]):
    """A screen that looks at one of the app's runs."""

    SMALLEST: ClassVar[tuple[int, int]] = (44, 10)
    """Columns and rows under which a line says the size needed instead."""
    WIDE: ClassVar[int] = 112
    """Columns from which there is room for two panes side by side."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = NOTHING
        self._figures_drawn_at = -LONGEST_S

    @property
    def owner(self) -> BatchpeakApp:
        """The app, which owns the runs."""
        return cast("BatchpeakApp", self.app)

    @property
    @abstractmethod
    def view(self) -> RunView:
        """The run that is shown."""

    @abstractmethod
    def draw_status(self) -> None:
        """Draw the lines in words. Cheap: called at most four times a second."""

    @abstractmethod
    def draw_figures(self, change: Change) -> None:
        """Draw table, chart and what else holds figures: called at most once a second while measuring."""

    def recolour(self) -> None:
        """The theme changed."""

    def why_not(self, action: str, parameters: tuple[object, ...] = ()) -> str:  # noqa: ARG002
        """Why the action can do nothing now, in a few words for the help; empty when it can do something."""
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self.why_not(action, parameters)

    def on_mount(self) -> None:
        self.mount(Static(id="too-small"))
        self.owner.changed.subscribe(self, self._changed)
        self.app.theme_changed_signal.subscribe(self, lambda _: self.recolour())
        self.draw_status()
        self.draw_figures(Change(restarted=True))

    def _changed(self, changed: Changed) -> None:
        if changed.view is not self.view:
            if changed.change.phase or changed.change.restarted:
                self.draw_status()  # whether the other run goes on is said there
            return
        self._waiting |= changed.change
        self.draw_status()
        now = self.owner.now()
        wait = self._figures_drawn_at + self._figures_every_s - now
        if wait <= 0 or not self.view.busy or changed.change.restarted or changed.change.model:
            self._draw_waiting(now)
        # Otherwise the app's tick, or the next change, comes within the second.

    @property
    def _figures_every_s(self) -> float:
        return min(max(self.size.area / CELLS_A_SECOND, FIGURES_EVERY_S), LONGEST_S)

    def _draw_waiting(self, now: float) -> None:
        waiting, self._waiting = self._waiting, NOTHING
        self._figures_drawn_at = now
        self.draw_figures(waiting)

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        least_width, least_height = self.SMALLEST
        small = width < least_width or height < least_height
        self.set_class(small, "-too-small")
        self.set_class(width >= self.WIDE, "-wide")
        self.set_class(height < 17, "-low")
        for line in self.query("#too-small"):
            if isinstance(line, Static):
                line.update(
                    Text(f"{self.app.title} needs {least_width}x{least_height}, this is {width}x{height}")
                )
