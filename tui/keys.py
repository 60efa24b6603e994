"""The keys that do the same on every screen. Each has a name for the user's key map; none is one that terminals take."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from tui import screens
from tui.screens.choice import Choice
from tui.screens.dialog import Dialog
from tui.screens.run_screen import RunScreen
from tui.widgets.results_table import ResultsTable

APP_KEYS: list[BindingType] = [
    Binding("space", "pause", "pause", id="pause", tooltip="Pause between two blocks, and go on"),
    Binding("x", "cancel", "cancel", id="cancel", tooltip="Cancel the run; what was measured is kept"),
    Binding("t", "themes", "theme", id="theme", tooltip="Choose the colours, with a preview"),
    Binding("question_mark", "help", "help", id="help", tooltip="Keys and words", key_display="?"),
    Binding("q", "leave", "quit", id="quit", tooltip="Quit; asks while something is being measured"),
    Binding("colon", "command_palette", "commands", id="commands", show=False, key_display=":",
            tooltip="Find an action by its name"),
    Binding("f1", "keys", "keys", id="keys", show=False, tooltip="Show the keys beside the screen"),
    Binding("ctrl+c", "interrupt", "interrupt", id="interrupt", show=False, priority=True,
            tooltip="Cancel the run; when none is going, quit"),
    Binding("ctrl+l", "redraw", "redraw", id="redraw", show=False, priority=True,
            tooltip="Draw the whole screen anew, after another program wrote over it"),
    Binding("ctrl+z", "suspend_process", "suspend", id="suspend", show=False, priority=True,
            tooltip="Pause and go back to the shell; fg comes back"),
]  # fmt: skip


def binding_ids() -> frozenset[str]:
    """The names that a key map may use: of these, of all screens and dialogs and of the table.

    Imports every screen, so it is for the few that have a key map.
    """
    for module in pkgutil.iter_modules(screens.__path__, f"{screens.__name__}."):
        importlib.import_module(module.name)
    classes: list[type[DOMNode]] = [*_family(RunScreen), *_family(Dialog), Choice, ResultsTable]
    found = {binding.id for owner in classes for binding in _only_bindings(owner.BINDINGS)}
    found |= {binding.id for binding in _only_bindings(APP_KEYS)}
    return frozenset(name for name in found if name is not None)


def _only_bindings(kept: Iterable[BindingType]) -> list[Binding]:
    return [binding for binding in kept if isinstance(binding, Binding)]


def _family(root: type[DOMNode]) -> list[type[DOMNode]]:
    return [root, *(inner for child in root.__subclasses__() for inner in _family(child))]
