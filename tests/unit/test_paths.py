"""Paths as people type them: nobody's home, names too long for any file, null characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import BatchpeakError, UsageError
from engine.models.preflight import check
from engine.paths import expanded, is_file, is_folder
from engine.plan import Plan
from tui.cli_options import parse_folder

ODD = ["~nobody-of-that-name/x.pt", "x" * 300 + ".pt", "a\0b.pt", "/proc/1/fd/x.pt"]


@pytest.mark.parametrize("text", ODD)
def test_looking_at_any_path_raises_nothing(text: str) -> None:
    path = expanded(text)
    assert not is_file(path)
    assert not is_folder(path)


def test_the_own_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/nets") == tmp_path / "nets"
    assert is_folder(expanded("~"))


@pytest.mark.parametrize("text", ODD)
def test_an_odd_path_is_refused_in_words_wherever_it_stands(text: str) -> None:
    with pytest.raises(UsageError):
        parse_folder(text, argument="--image-dir")
    with pytest.raises(BatchpeakError):
        check(Plan(model=text))
    with pytest.raises(BatchpeakError):
        check(Plan(model="os:getcwd", weights=text, input="3x8x8"))
