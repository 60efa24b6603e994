"""The choice of a model's file, folder by folder; of a Python file, also which of its names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.errors import ModelError
from engine.models.candidates import Candidate, candidates, is_model_file
from engine.paths import is_folder
from tui import formats
from tui.screens.dialog import Dialog
from tui.screens.setup_plan import spec_of_file
from tui.terminal import safe_text

MOST_ENTRIES = 2_000
"""Of a folder with more, the rest is not listed: the list would take seconds, and nobody scrolls that far."""
KIND_WORDS = {"module": "nn.Module class", "class": "class", "function": "function", "name": "object"}


def entries_of(folder: Path) -> tuple[list[Path], str]:
    """Folders, then files that may hold a model, each by name; and what is to be said about the list, "" if nothing.

    Hidden ones are left out. Raises nothing: a folder that cannot be read is empty, and that is said.
    """
    try:
        there = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        folders = sorted((one for one in there if is_folder(one)), key=_by_name)
        files = sorted((one for one in there if is_model_file(one) and not is_folder(one)), key=_by_name)
    except OSError as error:
        return [], f"This folder cannot be read: {error.strerror or error}."
    listed = [*folders, *files]
    if len(listed) > MOST_ENTRIES:
        return listed[
            :MOST_ENTRIES
        ], f"Only the first {MOST_ENTRIES:,} of {len(listed):,} entries are listed."
    return listed, "" if files else "No file here ends in .py .pt .pth .ts .pt2 or .onnx."


def _by_name(entry: Path) -> str:
    return entry.name.casefold()


class FilePicker(Dialog[str]):
    """Answers the model as it is typed: `net.py:build`, `model.onnx`. None when nothing was chosen."""

    HEADING = "A model's file"
    ROWS_BELOW = 3
    KEYS = "enter open, choose   left the folder above   escape back"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,backspace", "up", "above", id="files.up", tooltip="The folder above"),
    ]

    def __init__(self, started_in: Path, folder: Path | None = None) -> None:
        super().__init__()
        self._started_in = started_in
        self._folder = folder or started_in
        self._entries: list[Path] = []
        self._file: Path | None = None
        """The Python file whose names are listed, None while a folder is."""
        self._names: Sequence[Candidate] = ()

    def body(self) -> Iterable[Widget]:
        yield Static(id="files-place")
        yield OptionList(id="files", markup=False, compact=True)

    def below(self) -> Iterable[Widget]:
        yield Static(id="files-note")

    def on_mount(self) -> None:
        self.query_one("#files", OptionList).focus()
        self._list()

    def _list(self, chosen: Path | None = None) -> None:
        self._file = None
        self._entries, note = entries_of(self._folder)
        rows = ["..  the folder above"]
        rows += [
            f"{safe_text(one.name)}/" if is_folder(one) else safe_text(one.name) for one in self._entries
        ]
        self._fill(str(self._folder), rows, note)
        files = self.query_one("#files", OptionList)
        files.highlighted = (
            self._entries.index(chosen) + 1 if chosen in self._entries else min(1, len(rows) - 1)
        )

    def _fill(self, place: str, rows: Sequence[str], note: str) -> None:
        self.query_one("#files-place", Static).update(
            Text(safe_text(place, limit=300), no_wrap=True, overflow="fold")
        )
        files = self.query_one("#files", OptionList)
        files.clear_options()
        files.add_options([Option(Text(row, no_wrap=True, overflow="ellipsis")) for row in rows])
        files.highlighted = 0
        self.query_one("#files-note", Static).update(Text(safe_text(note, limit=400)))

    def action_up(self) -> None:
        if self._file is not None:
            self._list(self._file)
        elif self._folder != self._folder.parent:
            came_from, self._folder = self._folder, self._folder.parent
            self._list(came_from)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        index = event.option_index
        if index == 0:
            self.action_up()
        elif self._file is not None:
            self.dismiss(spec_of_file(self._file, self._started_in, self._names[index - 1].name))
        elif is_folder(self._entries[index - 1]):
            self._folder = self._entries[index - 1]
            self._list()
        elif self._entries[index - 1].suffix == ".py":
            self._look_into(self._entries[index - 1])
        else:
            self.dismiss(spec_of_file(self._entries[index - 1], self._started_in))

    def _look_into(self, file: Path) -> None:
        """List what the Python file defines; the file is read, not run."""
        try:
            names = candidates(file)
        except ModelError as error:
            self.query_one("#files-note", Static).update(
                Text(safe_text(formats.sentences(error.message, error.remedy), limit=400))
            )
            return
        self._file, self._names = file, names
        rows = ["..  the files"]
        rows += [
            f"{one.name}  ({KIND_WORDS[one.kind]}{', needs ' + ', '.join(one.arguments) if one.arguments else ''})"
            for one in names
        ]
        note = (
            "Which of its names is the model, or builds it? What it needs is given under arguments."
            if names
            else "Nothing in this file can be a model: it defines no class and no function."
        )
        self._fill(str(file), rows, note)
        self.query_one("#files", OptionList).highlighted = 1 if names else 0
