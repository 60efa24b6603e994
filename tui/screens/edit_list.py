"""The batch list, checked while it is typed; recent lists and quick additions one key away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from engine.errors import UsageError
from engine.events import Suggestion
from engine.plan import MAX_BATCH_SIZE, MAX_LIST_LENGTH, format_batch_sizes, parse_batch_sizes
from tui.formats import sentences
from tui.screens.choice import Choice
from tui.screens.dialog import Dialog
from tui.widgets.field import Field

KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Edited:
    """The list asked for, and whether rows that did not change are kept instead of measured again."""

    sizes: tuple[int, ...]
    keep: bool


@dataclass(frozen=True, slots=True)
class Addition:
    """Sizes that could be added, and why in words."""

    sizes: tuple[int, ...]
    reason: str


def additions(
    sizes: Sequence[int], suggested: Sequence[Suggestion], peak: int | None
) -> tuple[Addition, ...]:
    """What could be added to a list: what the verdict suggests, between the sizes around the peak, beyond the end."""
    have = set(sizes)
    offers: list[Addition] = []
    fresh = tuple(sorted({entry.batch_size for entry in suggested} - have))
    if fresh:
        reasons = "; ".join(dict.fromkeys(entry.reason for entry in suggested if entry.reason))
        offers.append(Addition(fresh, f"suggested: {reasons}" if reasons else "suggested"))
    ordered = sorted(have)
    around = ordered.index(peak) if peak in have and peak is not None else len(ordered) - 1
    pairs = [(around - 1, around), (around, around + 1)]
    for low, high in pairs:
        if low >= 0 and high < len(ordered):
            between = tuple(size for size in _between(ordered[low], ordered[high]) if size not in have)
            if between:
                offers.append(Addition(between, f"between {ordered[low]:,} and {ordered[high]:,}"))
    if ordered and ordered[-1] * 2 <= MAX_BATCH_SIZE:
        offers.append(Addition((ordered[-1] * 2,), "beyond the end"))
    return tuple(offers)


def _between(low: int, high: int) -> tuple[int, ...]:
    """Up to three sizes that part the span evenly on a log scale; multiples of 8 above 16."""
    found = set()
    for part in (1, 2, 3):
        size = round(low * (high / low) ** (part / 4))
        size = round(size / 8) * 8 if size > 16 else size
        if low < size < high:
            found.add(size)
    return tuple(sorted(found))


class EditList(Dialog[Edited]):
    """Answers what to measure, None when the old list stays."""

    HEADING = "Batch sizes"
    KEYS = "enter run   down more choices   tab next   escape back"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "choices", "choices", id="edit.choices", show=False,
                tooltip="Go to the recent lists and additions"),
    ]  # fmt: skip

    def __init__(
        self,
        sizes: tuple[int, ...],
        *,
        recent: Sequence[tuple[int, ...]] = (),
        offers: Sequence[Addition] = (),
        kept: int = 0,
    ) -> None:
        super().__init__()
        self._sizes = sizes
        self._recent = [entry for entry in recent if entry != sizes][:4]
        self._offers = offers
        self._kept = kept

    def body(self) -> Iterable[Widget]:
        yield Field(format_batch_sizes(self._sizes), id="sizes")
        yield Static(id="sizes-check")
        if self._kept:
            yield Horizontal(
                Label("unchanged rows "),
                Choice((KEEP, "measure again"), KEEP, id="keep"),
                classes="wide-field",
            )
        options = [
            Option(
                Text(f"add {format_batch_sizes(offer.sizes)}  ({offer.reason})", no_wrap=True),
                id=f"add-{index}",
            )
            for index, offer in enumerate(self._offers)
        ]
        options += [
            Option(Text(f"use {format_batch_sizes(entry)}  (recent)", no_wrap=True), id=f"use-{index}")
            for index, entry in enumerate(self._recent)
        ]
        if options:
            yield OptionList(*options, id="choices", markup=False, compact=True)

    def on_mount(self) -> None:
        field = self.query_one("#sizes", Input)
        field.focus()
        self._check(field.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._check(event.value)

    def on_input_submitted(self) -> None:
        sizes = self._check(self.query_one("#sizes", Input).value)
        if sizes is not None:
            keep = bool(self._kept) and self.query_one("#keep", Choice).value == KEEP
            self.dismiss(Edited(sizes, keep))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        field = self.query_one("#sizes", Input)
        kind, _, index = (event.option_id or "").partition("-")
        if kind == "use":
            field.value = format_batch_sizes(self._recent[int(index)])
        else:
            now = self._check(field.value) or self._sizes
            field.value = format_batch_sizes(tuple(sorted({*now, *self._offers[int(index)].sizes})))
        field.cursor_position = len(field.value)
        field.focus()

    def action_choices(self) -> None:
        for choices in self.query("#choices"):
            choices.focus()

    def _check(self, text: str) -> tuple[int, ...] | None:
        """The list when it can be run; says what it will be, or names what is wrong and where."""
        line = self.query_one("#sizes-check", Static)
        try:
            parsed = parse_batch_sizes(text, argument="the list")
        except UsageError as error:
            line.update(Text(sentences(error.message, error.remedy)))
            line.set_class(True, "-bad")
            return None
        count = len(parsed.sizes)
        told = f"{count:,} size{'s' if count != 1 else ''}, {parsed.sizes[0]:,} to {parsed.sizes[-1]:,}"
        if count > MAX_LIST_LENGTH // 20:
            told += "; that will take a while"
        line.update(Text(f"{told}; {parsed.note}" if parsed.note else told))
        line.set_class(False, "-bad")
        return parsed.sizes
