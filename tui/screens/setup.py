"""Model and options: everything that changes a figure, with what this machine can do, checked in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from engine import host
from engine.errors import BatchpeakError, UsageError
from engine.models import check
from engine.models.catalogue import Listing
from engine.plan import BUILT_IN_MODEL, Plan
from tui import formats
from tui.screens import setup_plan
from tui.screens.choice import Choice
from tui.screens.dialog import Dialog
from tui.screens.model_picker import ModelPicker
from tui.screens.setup_plan import ALLOCATORS, COMPILES, DTYPES, LAYOUTS, NO_YES, PROCESSES
from tui.terminal import safe_text
from tui.widgets.field import Field


@dataclass(frozen=True, slots=True)
class Machine:
    """What the dialog lists as possible here."""

    cores: int
    devices: tuple[str, ...] = ("cpu",)
    models: tuple[str, ...] = ()
    """Models used before, the last first."""


class DevicesKnown(Message):
    """torch has said which devices it can use here."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names


class Opener(Static, can_focus=True):
    """A line that can be stood on, and opens something by enter."""


class Setup(Dialog[Plan]):
    """Answers the changed plan, None when nothing changes."""

    HEADING = "Model and options"
    ROWS_BELOW = 3
    KEYS = "enter measure   f2 find   tab, down next   left, right choose   escape back"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "measure", id="setup.apply", tooltip="Measure with these options"),
        Binding("f2", "find", "find", id="setup.find", tooltip="Find a model: used before, by name, a file"),
        Binding("down", "next", "next", id="setup.next", show=False, tooltip="The next field"),
        Binding("up", "previous", "before", id="setup.previous", show=False, tooltip="The field before"),
    ]

    def __init__(
        self,
        plan: Plan,
        machine: Machine,
        ask_devices: Callable[[], list[host.Device]] | None,
        search: Callable[[str], Listing] | None = None,
        *,
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._plan = plan
        self._machine = machine
        self._ask_devices = ask_devices
        """None while something is measured: asking starts a process that would disturb it."""
        self._search = search
        """Finds models by the words of their name; None as above."""
        self._end_questions = closed
        """Ends what these two started, before anything is measured."""

    def body(self) -> Iterable[Widget]:
        typed, chosen = setup_plan.typed_of(self._plan), setup_plan.chosen_of(self._plan)

        def field(name: str, placeholder: str = "", suggestions: tuple[str, ...] = ()) -> Field:
            return Field(typed[name], id=name, placeholder=placeholder, suggestions=suggestions)

        def choice(name: str, words: tuple[str, ...]) -> Choice:
            return Choice(words, chosen[name], id=name)

        yield _row("model", field("model", suggestions=(*self._machine.models, BUILT_IN_MODEL)))
        yield _row("", Opener(Text("enter: used before, by name, a file"), id="find"))
        yield _row("arguments", field("model-arg", "of the class or function, e.g. width=64 depth=2"))
        yield _row("weights", field("weights", "a file to load into it, or: cached"))
        yield _row("trust", choice("trust", NO_YES))
        yield _row("input", field("input", "as the model tells, else 3x224x224 or ids:128:int64"))
        yield _row("images", field("image-dir", "a folder of images to feed, else made ones"))
        yield _row("device", choice("device", self._machine.devices))
        yield _row("threads", field("threads", f"{self._machine.cores}, as many as are usable"))
        yield _row("inter-op", field("inter-op-threads", "threads that run operations side by side"))
        yield _row("dtype", choice("dtype", DTYPES))
        yield _row("autocast", choice("autocast", NO_YES))
        yield _row("layout", choice("layout", LAYOUTS))
        yield _row("compile", choice("compile", COMPILES))
        yield _row("time copy", choice("transfer", NO_YES))
        yield _row("allocator", choice("allocator", ALLOCATORS))
        yield _row("processes", choice("processes", PROCESSES))
        yield _row("precision", field("precision"))
        yield _row("budget", field("budget"))

    def below(self) -> Iterable[Widget]:
        yield Static(id="setup-check")

    def on_mount(self) -> None:
        self.query_one("#model", Input).focus()
        self._check()
        if self._ask_devices is not None:
            # A thread of its own: torch takes seconds to answer, and the dialog may be closed before.
            self.run_worker(self._look_for_devices, thread=True, exit_on_error=False)

    def _look_for_devices(self) -> None:
        if self._ask_devices is None:
            return
        try:
            names = [device.name for device in self._ask_devices()]
        except BatchpeakError as error:
            self.app.log.warning(str(error))
        else:
            self.post_message(DevicesKnown(tuple(names)))

    def on_devices_known(self, event: DevicesKnown) -> None:
        self.query_one("#device", Choice).offer(event.names)

    def on_input_changed(self) -> None:
        self._check()

    def on_choice_changed(self) -> None:
        self._check()

    def on_input_submitted(self) -> None:
        self.action_apply()

    def action_find(self) -> None:
        self.app.push_screen(
            ModelPicker(self._machine.models, self._search, folder=_here()), self._model_found
        )

    def _model_found(self, spec: str | None) -> None:
        if spec is not None:
            field = self.query_one("#model", Field)
            field.value = spec
            field.cursor_position = len(field.value)
            field.focus()

    def action_apply(self) -> None:
        if isinstance(self.focused, Opener):
            self.action_find()
            return
        plan = self._check()
        if plan is None:
            return
        try:
            # Looks at files, so it is for the decision, not for every letter.
            check(plan)
        except UsageError as error:
            self._refuse(error)
        else:
            self.dismiss(plan)

    def on_unmount(self) -> None:
        """However it is left, by the program's end too: what was asked is waited for by nobody."""
        self._end_questions()

    def dismiss(self, result: Plan | None = None) -> AwaitComplete:
        self._end_questions()
        return super().dismiss(result)

    def action_next(self) -> None:
        self.focus_next()

    def action_previous(self) -> None:
        self.focus_previous()

    def _check(self) -> Plan | None:
        """The plan as the fields say; None when one cannot be used, which is then marked and named."""
        for field in self.query("Input, Choice"):
            field.set_class(False, "-bad")
        typed = {name: self.query_one(f"#{name}", Input).value for name in setup_plan.TYPED}
        chosen = {name: self.query_one(f"#{name}", Choice).value for name in setup_plan.chosen_of(self._plan)}
        try:
            plan = setup_plan.plan_of(self._plan, typed, chosen)
        except UsageError as error:
            self._refuse(error)
            return None
        over = plan.threads is not None and plan.threads > self._machine.cores
        self._say(
            f"{plan.threads} threads on {self._machine.cores} usable cores wait for each other"
            if over
            else f"{self._machine.cores} usable cores"
        )
        return plan

    def _refuse(self, error: UsageError) -> None:
        """Mark the field that the error names, if it is one of these, and say what is wrong with it."""
        name = setup_plan.field_of(error)
        for field in self.query(f"#{name}"):
            field.set_class(True, "-bad")
            field.scroll_visible(animate=False)
        said = formats.sentences(error.message, error.remedy)
        self._say(f"{name}: {error.message[:1]}{said[1:]}", bad=True)

    def _say(self, words: str, *, bad: bool = False) -> None:
        line = self.query_one("#setup-check", Static)
        line.update(Text(safe_text(words, limit=600)))
        line.set_class(bad, "-bad")


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # the folder is gone
        return Path.home()


def _row(name: str, widget: Widget) -> Horizontal:
    return Horizontal(Label(name), widget, classes="field")
