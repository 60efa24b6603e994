"""The search for a model: those used before, the built-in one, the installed libraries', and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.models.catalogue import Listing
from engine.plan import BUILT_IN_MODEL
from tui.screens.dialog import Dialog
from tui.screens.model_files import FilePicker
from tui.terminal import safe_text
from tui.widgets.field import Field

MOST_SHOWN = 200
FEWEST_LETTERS = 2
"""One letter names a thousand models."""
FILES = "a file ..."


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that can be chosen, and where it comes from."""

    spec: str
    note: str


class Found(Message):
    """The libraries have answered."""

    def __init__(self, query: str, listing: Listing) -> None:
        super().__init__()
        self.query = query
        self.listing = listing


def known_offers(query: str, recent: Sequence[str]) -> list[Offer]:
    """What is offered without asking anyone: models used before, and the built-in one, that hold every word of the query."""
    known = [Offer(spec, "used before") for spec in recent if spec != BUILT_IN_MODEL]
    known.append(Offer(BUILT_IN_MODEL, "built-in, trained"))
    words = query.lower().split()
    return [one for one in known if all(word in one.spec.lower() for word in words)]


class ModelPicker(Dialog[str]):
    """Answers the chosen model as it is typed, None when none was."""

    HEADING = "Find a model"
    ROWS_BELOW = 3
    KEYS = "enter choose   up, down move   f2 a file   escape back"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", "next", id="models.next", show=False, tooltip="The next model"),
        Binding("up", "move(-1)", "before", id="models.before", show=False, tooltip="The model before"),
        Binding("f2", "files", "a file", id="models.files", tooltip="Look for a model's file"),
    ]

    def __init__(
        self, recent: Sequence[str], search: Callable[[str], Listing] | None, *, folder: Path
    ) -> None:
        super().__init__()
        self._recent = recent
        self._search = search
        """Asks the libraries for names with these words; None while something is measured, which it would disturb."""
        self._folder = folder
        self._offers: list[Offer] = []
        self._listing = Listing((), ())
        self._answered = ""
        self._asked = False
        self._shown_for = ""

    def body(self) -> Iterable[Widget]:
        yield Field("", id="model-words", placeholder="letters of its name, e.g. resnet")
        yield OptionList(id="models", markup=False, compact=True)

    def below(self) -> Iterable[Widget]:
        yield Static(id="models-note")

    def on_mount(self) -> None:
        self.query_one("#model-words", Field).focus()
        self._show()

    @property
    def _query(self) -> str:
        return self.query_one("#model-words", Field).value.strip()

    def on_input_changed(self) -> None:
        self._look()
        self._show()

    def _look(self) -> None:
        """Ask for what is typed now, unless an answer is waited for: a question to a library may start a process."""
        query = self._query
        if self._search is None or self._asked or len(query) < FEWEST_LETTERS or query == self._answered:
            return
        self._asked = True
        self.run_worker(partial(self._ask, self._search, query), thread=True, exit_on_error=False)

    def _ask(self, search: Callable[[str], Listing], query: str) -> None:
        try:
            found = search(query)
        except Exception as error:  # noqa: BLE001 - the thread's edge: said in the dialog, which goes on without
            found = Listing((), (f"The search failed: {error}.",))
        self.post_message(Found(query, found))

    def on_found(self, event: Found) -> None:
        self._asked = False
        self._listing, self._answered = event.listing, event.query
        self._look()
        self._show()

    def _show(self) -> None:
        query = self._query
        answered = bool(query) and query == self._answered
        offers = known_offers(query, self._recent)
        seen = {one.spec for one in offers}
        if answered:
            offers += [Offer(one.spec, one.source) for one in self._listing.entries if one.spec not in seen]
        models = self.query_one("#models", OptionList)
        chosen = self._stood_on() if query == self._shown_for else None
        self._shown_for = query
        models.clear_options()
        self._offers = offers[:MOST_SHOWN]
        rows = [f"{safe_text(one.spec, limit=120)}  ({one.note})" for one in self._offers]
        models.add_options([Option(Text(row, no_wrap=True, overflow="ellipsis")) for row in (*rows, FILES)])
        # What was chosen stays chosen when the libraries' answer puts more under it.
        models.highlighted = self._offers.index(chosen) if chosen in self._offers else 0
        self.query_one("#models-note", Static).update(Text(self._note(query, len(offers), answered=answered)))

    def _stood_on(self) -> Offer | None:
        index = self.query_one("#models", OptionList).highlighted
        return self._offers[index] if index is not None and index < len(self._offers) else None

    def _note(self, query: str, count: int, *, answered: bool) -> str:
        if self._search is None:
            return "The libraries' names are not searched while a model is measured: that would disturb it."
        if len(query) < FEWEST_LETTERS:
            return "Type to search torchvision, timm and the transformers cache."
        if not answered:
            return "asking the libraries for their names ..."
        said = list(self._listing.notes)
        if count > MOST_SHOWN:
            said.insert(0, f"{count:,} match; {MOST_SHOWN} are listed.")
        return " ".join(said) or f"{count:,} match."

    def action_move(self, step: int) -> None:
        models = self.query_one("#models", OptionList)
        (models.action_cursor_down if step > 0 else models.action_cursor_up)()

    def on_input_submitted(self) -> None:
        self._choose(self.query_one("#models", OptionList).highlighted or 0)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._choose(event.option_index)

    def _choose(self, index: int) -> None:
        if index < len(self._offers):
            self.dismiss(self._offers[index].spec)
        else:
            self.action_files()

    def action_files(self) -> None:
        self.app.push_screen(FilePicker(self._folder), self._file_chosen)

    def _file_chosen(self, spec: str | None) -> None:
        if spec is not None:
            self.dismiss(spec)
