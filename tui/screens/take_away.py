"""The run as a table to take away: to the clipboard (OSC 52, over SSH too) and into a file whose path is shown."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rich.text import Text
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine import export
from engine.errors import StoreError
from engine.record import RunRecord
from tui.screens.dialog import Dialog
from tui.terminal import safe_text

NAMES = {"md": "Markdown table", "csv": "CSV", "json": "JSON"}
ON_CLIPBOARD = frozenset({"md", "csv"})


def write_beside(folders: Iterable[Path], name: str, suffix: str, content: str) -> Path:
    """Write into the first of the folders that takes it, never over a file that is there. Returns the path.

    Raises StoreError with the last reason when none does.
    """
    reason = "there is no folder to write to"
    for folder in folders:
        for number in range(1, 1000):
            path = folder / (f"{name}.{suffix}" if number == 1 else f"{name}-{number}.{suffix}")
            try:
                with path.open("x", encoding="utf-8", newline="") as file:
                    file.write(content)
            except FileExistsError:
                continue
            except OSError as error:
                reason = f"{error.strerror or type(error).__name__}: {folder}"
                break
            return path
    raise StoreError(
        f"{reason}.", title="the table cannot be written", remedy="Start in a folder of your own."
    )


class TakeAway(Dialog[None]):
    """A choice of formats; stays open to show where the file went."""

    HEADING = "Copy and save"
    KEYS = "enter copy and write the file   escape close"

    def __init__(self, record: RunRecord) -> None:
        super().__init__(classes="small")
        self._record = record

    def body(self) -> Iterable[Widget]:
        options = []
        for suffix, name in NAMES.items():
            where = "clipboard and file" if suffix in ON_CLIPBOARD else "file"
            options.append(Option(Text(f"{name:<16}{where}"), id=suffix))
        yield OptionList(*options, id="choices", markup=False, compact=True)
        yield Static(id="taken")

    def on_mount(self) -> None:
        self.query_one("#choices").focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        suffix = event.option_id or "md"
        content = export.export(self._record, suffix)
        started = self._record.started
        model = re.sub(r"[^A-Za-z0-9.]+", "-", started.plan.model if started else "run").strip("-.")[-40:]
        name = f"batchpeak-{model or 'run'}-{self._record.id}"
        try:
            path = write_beside(_folders(), name, suffix, content)
        except StoreError as error:
            told = f"{error.message} {error.remedy}"
        else:
            told = str(path)
        if suffix in ON_CLIPBOARD:
            self.app.copy_to_clipboard(content)
            told = f"on the clipboard, and in {told}"
        self.query_one("#taken", Static).update(Text(safe_text(told, limit=400)))


def _folders() -> Iterable[Path]:
    """The folder that the program was started in, when it is still there; then the one for temporary files."""
    with contextlib.suppress(FileNotFoundError):
        yield Path.cwd()
    yield Path(tempfile.gettempdir())
