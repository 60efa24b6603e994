"""The interface: wires screens and keys to the runs, and owns the runs; screens only look and ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import CommandPalette, Provider
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen
from textual.signal import Signal

from engine.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_NOTHING_MEASURED, BatchpeakError
from engine.plan import Plan
from tui import formats, process_signals, theming
from tui.commands import KeyCommands
from tui.driver import LeanDriver
from tui.keys import APP_KEYS
from tui.messages import DeliveriesWaiting
from tui.runner import Runner, SessionLike, file_in, real_session
from tui.runs import TICK_S, Runs
from tui.screens.confirm import Confirm
from tui.screens.failure import FailureDialog
from tui.screens.sweep import SweepScreen
from tui.settings import Settings, SettingsError
from tui.settings import save as save_settings
from tui.state import Changed, RunView
from tui.surroundings import Surroundings
from tui.terminal import safe_text


class BatchpeakApp(App[int], inherit_bindings=False):
    """Runs sweeps and races and shows them. Returns the program's exit code."""

    TITLE = "batchpeak"
    CSS_PATH = "batchpeak.tcss"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {KeyCommands}
    COMMAND_PALETTE_BINDING = "colon"
    BINDINGS: ClassVar[list[BindingType]] = APP_KEYS

    def __init__(
        self,
        plan: Plan,
        around: Surroundings,
        *,
        session_factory: Callable[[], SessionLike] = real_session,
        save: bool = True,
        save_dir: Path | None = None,
        at_first_frame: Callable[[], None] = lambda: None,
    ) -> None:
        self.around = around
        self.terminal = around.terminal
        self.themes = around.themes
        self.settings = around.settings
        self.now = now = around.now
        super().__init__(driver_class=LeanDriver, ansi_color=True if self.terminal.no_colour else None)
        for theme in self.themes.by_name.values():
            self.register_theme(theme.textual)
        self.theme = self.themes.choose(self.settings.theme, no_colour=self.terminal.no_colour).name
        self.animation_level = "none"
        self.set_class(self.terminal.charset == "ascii", "-ascii")
        self.changed: Signal[Changed] = Signal(self, "changed")
        self.runner = Runner(
            self.post_message, session_factory=session_factory, open_file=file_in(save_dir), now=now
        )
        self.runs = Runs(
            plan,
            self.runner,
            save=save,
            now=now,
            tell=self._tell,
            ended=self._ended,
            unsaved=lambda error: self.warn(
                f"{error.message} Measuring goes on without saving.", error.title
            ),
        )
        self._suspension_paused = False
        self._at_first_frame = at_first_frame

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.variable_defaults()

    @property
    def palette(self) -> theming.Palette:
        """The styles that tables and charts paint with under the current theme."""
        return self.themes.get(self.theme).palette

    def safe(self, text: str) -> str:
        """The text without anything that steers the terminal, in the characters that it can show."""
        shown = safe_text(text, limit=2000)
        return formats.to_ascii(shown) if self.terminal.charset == "ascii" else shown

    def get_default_screen(self) -> Screen[Any]:
        return SweepScreen()

    def on_resize(self, event: Resize) -> None:
        self._forget_terminal(event.size)  # terminals move what they show

    def _forget_terminal(self, size: Size) -> None:
        if isinstance(self._driver, LeanDriver):
            self._driver.forget(*size)

    def on_mount(self) -> None:
        self.set_keymap(self.settings.keymap)
        self._ticker = self.set_interval(TICK_S, self.runs.tick, pause=True)
        self._listen()
        self.app_suspend_signal.subscribe(self, self._suspended, immediate=True)
        self.app_resume_signal.subscribe(self, self._resumed)
        for title, problem in self.around.problems:
            self.warn(problem, title)
        # The first frame before anything else: what the runner imports would delay it.
        self.call_after_refresh(self._first_frame_drawn)

    def _first_frame_drawn(self) -> None:
        self._at_first_frame()
        self.runs.start(self.runs.sweep.plan)

    def warn(self, message: str, title: str) -> None:
        """Tell something that goes away by itself; it is never the only place where it can be read."""
        self.notify(self.safe(message), title=self.safe(title), severity="warning", markup=False)

    # Runs

    def on_deliveries_waiting(self, _: DeliveriesWaiting) -> None:
        if not self.is_running:
            return  # the app is being left and its screens are gone; the runner has saved what it heard
        self.runs.take()
        self.screen.call_after_refresh(self.runner.drawn)

    def _tell(self, changed: Changed) -> None:
        (self._ticker.resume if changed.view.busy else self._ticker.pause)()
        self.changed.publish(changed)
        self.refresh_bindings()

    def _ended(self, view: RunView) -> None:
        if view.failure is not None:
            self.push_screen(FailureDialog(view.failure))

    def judge_again(self, limit_ms: float | None, percentile: int) -> None:
        """Another latency limit for the sweep; nothing is measured for it."""
        try:
            change = self.runs.sweep.judge_again(limit_ms, percentile)
        except BatchpeakError as error:
            self.push_screen(FailureDialog(error))
        else:
            self.changed.publish(Changed(self.runs.sweep, change))

    # Keys

    def why_not(self, action: str, parameters: tuple[object, ...] = ()) -> str:  # noqa: ARG002
        """Why the action can do nothing now, in a few words for the help; empty when it can do something."""
        if action not in ("pause", "cancel"):
            return ""
        if not self.runs.busy:
            return "nothing is being measured"
        return "the run is being cancelled" if self.runs.active.cancel_asked else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self.why_not(action, parameters)

    def action_pause(self) -> None:
        self.runs.pause(not self.runs.active.pause_asked)

    def action_cancel(self) -> None:
        self.runs.cancel()

    def ask_cancel(self) -> None:
        """Cancel after a yes."""
        if self.runs.busy and not self.runs.active.cancel_asked:
            question = Confirm("Cancel the run?", "What was measured is kept.", yes="cancel")
            self.push_screen(question, lambda sure: self.runs.cancel() if sure else None)

    def action_interrupt(self) -> None:
        """The first ctrl+c cancels the run, the next one quits."""
        if self.runs.busy and not self.runs.active.cancel_asked:
            self.runs.cancel()
        else:
            self.exit(EXIT_INTERRUPTED)

    def action_leave(self) -> None:
        if not self.runs.busy:
            sweep = self.runs.sweep
            nothing = sweep.failure is not None and not sweep.record.points
            self.exit(EXIT_NOTHING_MEASURED if nothing else EXIT_DONE)
            return
        question = Confirm("Quit while measuring?", "What was measured is kept.", yes="quit")
        self.push_screen(question, lambda sure: self.exit(EXIT_INTERRUPTED) if sure else None)

    def action_themes(self) -> None:
        from tui.screens.theme_picker import ThemePicker  # late, as all that the first frame does not show

        self.push_screen(ThemePicker(self.themes, self.theme), self._theme_chosen)

    def _theme_chosen(self, name: str | None) -> None:
        if name is not None:
            self.remember(self.settings.with_theme(name))

    def remember(self, settings: Settings) -> None:
        """Use these settings from now on, and write them down when there is a place for it."""
        self.settings = settings
        if self.around.settings_path is not None:
            try:
                save_settings(settings, self.around.settings_path)
            except SettingsError as error:
                self.warn(error.message, error.title)

    def action_help(self) -> None:
        from tui.screens.help import Help, impossible

        self.push_screen(Help(self.screen.active_bindings.values(), impossible(self.screen, self)))

    def action_redraw(self) -> None:
        self._forget_terminal(self.size)
        self.screen.refresh()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder="Find an action by its name", id="--command-palette"))

    def action_keys(self) -> None:
        shown = bool(self.screen.query("HelpPanel"))
        (self.action_hide_help_panel if shown else self.action_show_help_panel)()
        self.screen.set_class(not shown, "-keys")

    def get_key_display(self, binding: Binding) -> str:
        shown = super().get_key_display(binding)
        return shown if shown.isascii() or self.terminal.charset != "ascii" else binding.key

    # The process

    def _listen(self) -> None:
        process_signals.listen(self, interrupt=self.action_interrupt, end=self._end_by_signal)

    def _suspended(self, _: object) -> None:
        self._suspension_paused = self.runs.busy and not self.runs.active.pause_asked
        self.runs.pause(True)

    def _resumed(self, _: object) -> None:
        self._listen()
        if self._suspension_paused:
            self._suspension_paused = False
            self.runs.pause(False)

    def _end_by_signal(self, code: int) -> None:
        self.runs.cancel()
        self.exit(code, return_code=code)
