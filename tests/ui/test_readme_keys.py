"""The README's tables of keys, against the keys that the screens have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from tui.app import BatchpeakApp
from tui.screens.race import RaceScreen
from tui.screens.sweep import SweepScreen
from tui.widgets.results_table import ResultsTable

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
INTERFACE = README.partition("\n## The interface\n")[2].partition("\n## ")[0]
SWEEP, _, RACE = INTERFACE.partition("The race has a screen of its own")
WRITTEN = {
    "question_mark": "?",
    "colon": ":",
    "plus": "+",
    "escape": "esc",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "up": "arrows",
    "down": "arrows",
    "left": "arrows",
    "right": "arrows",
}
HIDDEN_IN_PASSING = {"keys", "interrupt", "redraw", "suspend", "table.page-up", "table.page-down"}
"""What needs no line: standard keys of terminals and of Textual."""


def keys_of(owner: type[DOMNode]) -> dict[str, set[str]]:
    found = {}
    for binding in owner.BINDINGS:
        assert isinstance(binding, Binding)
        assert binding.id is not None
        if binding.id not in HIDDEN_IN_PASSING:
            found[binding.id] = {WRITTEN.get(key, key) for key in binding.key.split(",")}
    return found


def first_column(text: str) -> list[str]:
    return re.findall(r"^\| (.+?) \|", text, flags=re.MULTILINE)


@pytest.mark.parametrize("owner", [SweepScreen, BatchpeakApp, ResultsTable, RaceScreen])
def test_every_key_has_its_place_in_the_readme(owner: type[DOMNode]) -> None:
    text = RACE if owner is RaceScreen else SWEEP
    column = " ".join(first_column(text))
    told = set(re.findall(r"`(.+?)`", column)) | set(re.findall(r"[a-z]+", column))
    assert {name: keys for name, keys in keys_of(owner).items() if not keys & told} == {}


@pytest.mark.parametrize("owners", [(SweepScreen, BatchpeakApp, ResultsTable), (RaceScreen,)])
def test_the_readme_names_no_key_that_does_nothing(owners: tuple[type[DOMNode], ...]) -> None:
    text = RACE if RaceScreen in owners else SWEEP
    known = {key for owner in owners for keys in keys_of(owner).values() for key in keys}
    told = set(re.findall(r"`(.+?)`", " ".join(first_column(text))))
    assert told
    assert told <= known
