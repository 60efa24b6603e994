"""The list of models: what is built in, what installed libraries offer, and a sentence for what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.models import catalogue


class Library:
    """Answers as the child would that imports the library; counts how often it is asked."""

    def __init__(self, *names: str, noise: str = "") -> None:
        self.names = names
        self.noise = noise
        self.asked = 0

    def __call__(self, command: Sequence[str]) -> str:
        self.asked += 1
        listed = ", ".join(f'"{name}"' for name in self.names)
        return f"{self.noise}\nbatchpeak-names:[{listed}]\n"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the packages that count as installed; a test changes the list."""
    names = ["timm"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name in names else None)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0/x")
    return names


def specs(listing: catalogue.Listing) -> list[str]:
    return [entry.spec for entry in listing.entries]


def test_the_built_in_model_and_the_library_are_listed(installed: list[str], tmp_path: Path) -> None:
    found = catalogue.search("n", ask=Library("resnet18", "vit_tiny"), cache=tmp_path)
    assert specs(found) == ["timm:resnet18", "timm:vit_tiny", "fashion-cnn"]
    assert found.notes == (
        "torchvision is not installed: pip install 'batchpeak[torchvision]' adds its models.",
    )


def test_a_search_finds_every_word_and_puts_the_nearest_first(installed: list[str], tmp_path: Path) -> None:
    library = Library("seresnet18", "resnet18d", "resnet18", "resnet50")
    assert specs(catalogue.search("ResNet 18", ask=library, cache=tmp_path)) == [
        "timm:resnet18",
        "timm:resnet18d",
        "timm:seresnet18",
    ]
    assert specs(catalogue.search("timm:resnet50", ask=library, cache=tmp_path)) == ["timm:resnet50"]


def test_a_library_is_asked_once(installed: list[str], tmp_path: Path) -> None:
    library = Library("resnet18")
    first = catalogue.search("18", ask=library, cache=tmp_path / "new")
    assert catalogue.search("18", ask=library, cache=tmp_path / "new") == first
    assert library.asked == 1


def test_a_cache_that_was_cut_short_is_asked_again(installed: list[str], tmp_path: Path) -> None:
    library = Library("resnet18")
    catalogue.search("18", ask=library, cache=tmp_path)
    for file in tmp_path.iterdir():
        file.write_text('["resn')
    assert "timm:resnet18" in specs(catalogue.search("18", ask=library, cache=tmp_path))
    assert library.asked == 2


def test_what_a_library_prints_when_imported_is_no_name(installed: list[str], tmp_path: Path) -> None:
    found = catalogue.search("a", ask=Library("a", noise="Welcome! [1, 2]"), cache=tmp_path)
    assert specs(found) == ["timm:a", "fashion-cnn"]


def test_a_library_that_does_not_import_is_said_and_the_rest_listed(
    installed: list[str], tmp_path: Path
) -> None:
    def broken(command: Sequence[str]) -> str:
        raise subprocess.CalledProcessError(1, command)

    found = catalogue.search("a", ask=broken, cache=tmp_path)
    assert specs(found) == ["fashion-cnn"]
    assert "timm is installed, but cannot be imported beside this torch." in found.notes


def test_a_cache_folder_that_cannot_be_written_does_no_harm(installed: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = catalogue.search("a", ask=Library("a"), cache=tmp_path / "file" / "below")
    assert specs(found) == ["timm:a", "fashion-cnn"]


def test_models_in_the_transformers_cache_are_listed(
    installed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed[:] = ["transformers"]
    for name, file in (("models--google--vit", "config.json"), ("models--only--tokens", "vocab.txt")):
        snapshot = tmp_path / "hub" / name / "snapshots" / "1"
        snapshot.mkdir(parents=True)
        (snapshot / file).write_text("{}")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert specs(catalogue.search("vit", ask=Library(), cache=tmp_path)) == ["hf:google/vit"]


def test_without_a_query_the_kinds_are_told_and_no_library_is_asked(
    installed: list[str], tmp_path: Path
) -> None:
    library = Library("resnet18")
    said = [str(entry) for entry in catalogue.search("", ask=library, cache=tmp_path).entries]
    assert library.asked == 0
    assert said[0].startswith("fashion-cnn")
    assert any(line.startswith("file.py:NAME") for line in said)
    assert any(line.startswith("timm:NAME") and "`batchpeak models WORD` searches" in line for line in said)
    assert any("pip install 'batchpeak[onnx]'" in line for line in said)
