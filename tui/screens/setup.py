"""Model and options: everything that changes a figure, with what this machine can do, checked in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, cast, get_args

import msgspec
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from engine import host
from engine.errors import BatchpeakError, UsageError
from engine.models import check
from engine.plan import BUILT_IN_MODEL, Dtype, Plan, parse_count, parse_precision, parse_seconds
from tui.screens.choice import Choice
from tui.screens.dialog import Dialog
from tui.terminal import safe_text
from tui.widgets.field import Field

MOST_THREADS = 4096
LAYOUTS = ("contiguous", "channels-last")
COMPILES = ("off", "default", "reduce-overhead", "max-autotune")
ALLOCATORS = ("system", "keep")
PROCESSES = ("one", "one per size")


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


class Setup(Dialog[Plan]):
    """Answers the changed plan, None when nothing changes."""

    HEADING = "Model and options"
    KEYS = "enter measure   tab, down next   left, right choose   escape back"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "measure", id="setup.apply", tooltip="Measure with these options"),
        Binding("down", "next", "next", id="setup.next", show=False, tooltip="The next field"),
        Binding("up", "previous", "before", id="setup.previous", show=False, tooltip="The field before"),
    ]

    def __init__(
        self, plan: Plan, machine: Machine, ask_devices: Callable[[], list[host.Device]] | None
    ) -> None:
        super().__init__()
        self._plan = plan
        self._machine = machine
        self._ask_devices = ask_devices
        """None while something is measured: asking starts a process that would disturb it."""

    def body(self) -> Iterable[Widget]:
        plan, cores = self._plan, self._machine.cores
        threads = "" if plan.threads is None else str(plan.threads)
        yield _field(
            "model",
            Field(plan.model, id="model", suggestions=(*self._machine.models, BUILT_IN_MODEL)),
        )
        yield _field(
            "input",
            Field(
                plan.input or "",
                placeholder="as the model tells, else 3x224x224 or ids:128:int64",
                id="input",
            ),
        )
        yield _field("device", Choice(self._machine.devices, plan.device, id="device"))
        yield _field(
            "threads",
            Field(threads, placeholder=f"{cores}, as many as are usable", id="threads"),
        )
        yield _field("dtype", Choice(get_args(Dtype), plan.dtype, id="dtype"))
        yield _field("layout", Choice(LAYOUTS, LAYOUTS[plan.channels_last], id="layout"))
        yield _field("compile", Choice(COMPILES, plan.compile or "off", id="compile"))
        yield _field("allocator", Choice(ALLOCATORS, plan.allocator, id="allocator"))
        yield _field("processes", Choice(PROCESSES, PROCESSES[plan.fresh], id="processes"))
        yield _field("precision", Field(f"{plan.precision * 100:g}%", id="precision"))
        yield _field("budget", Field(f"{plan.budget_s:g}s", id="budget"))
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

    def action_apply(self) -> None:
        plan = self._check()
        if plan is None:
            return
        try:
            # Looks at files, so it is for the decision, not for every letter.
            check(plan)
        except UsageError as error:
            field = error.argument.removeprefix("--").lower()
            self._refuse(UsageError(error.message, argument=field, remedy=error.remedy))
        else:
            self.dismiss(plan)

    def action_next(self) -> None:
        self.focus_next()

    def action_previous(self) -> None:
        self.focus_previous()

    def _check(self) -> Plan | None:
        """The plan as the fields say; None when one cannot be used, which is then marked and named."""
        line = self.query_one("#setup-check", Static)
        for field in self.query(Input):
            field.set_class(False, "-bad")
        try:
            plan = self._asked()
        except UsageError as error:
            self._refuse(error)
            return None
        line.set_class(False, "-bad")
        over = plan.threads is not None and plan.threads > self._machine.cores
        line.update(
            Text(
                f"{plan.threads} threads on {self._machine.cores} usable cores wait for each other"
                if over
                else f"{self._machine.cores} usable cores"
            )
        )
        return plan

    def _refuse(self, error: UsageError) -> None:
        """Mark the field that the error names, if it is one of these, and say what is wrong with it."""
        for field in self.query(f"#{error.argument}"):
            field.set_class(True, "-bad")
        line = self.query_one("#setup-check", Static)
        said = f"{error.argument}: {error.message} {error.remedy}".rstrip()
        line.update(Text(safe_text(said)))
        line.set_class(True, "-bad")

    def _asked(self) -> Plan:
        def typed(name: str) -> str:
            return self.query_one(f"#{name}", Input).value.strip()

        def chosen(name: str) -> str:
            return self.query_one(f"#{name}", Choice).value

        if not typed("model"):
            raise UsageError(f"name one, for example {BUILT_IN_MODEL}.", argument="model")
        threads = typed("threads")
        # What is shown may not be what was given: characters that steer the terminal are shown as signs.
        same_model = typed("model") == safe_text(self._plan.model).strip()
        return msgspec.structs.replace(
            self._plan,
            model=self._plan.model if same_model else typed("model"),
            input=typed("input") or None,
            device=chosen("device"),
            threads=parse_count(threads, argument="threads", most=MOST_THREADS) if threads else None,
            dtype=cast("Dtype", chosen("dtype")),
            channels_last=chosen("layout") == LAYOUTS[1],
            compile=None if chosen("compile") == "off" else chosen("compile"),
            allocator=chosen("allocator"),
            fresh=chosen("processes") == PROCESSES[1],
            precision=parse_precision(typed("precision"), argument="precision"),
            budget_s=parse_seconds(typed("budget"), argument="budget"),
        )


def _field(name: str, widget: Widget) -> Horizontal:
    return Horizontal(Label(name), widget, classes="field")
