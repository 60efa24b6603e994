"""The keys that do the same on every screen. Each has a name for the user's key map; none is one that terminals take."""

from __future__ import annotations

from textual.binding import Binding, BindingType

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
    Binding("ctrl+z", "suspend_process", "suspend", id="suspend", show=False, priority=True,
            tooltip="Pause and go back to the shell; fg comes back"),
]  # fmt: skip
