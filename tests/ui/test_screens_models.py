"""Finding a model from the setup dialog: used before, by its name in a library, in a file."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from engine import host
from engine.asking import Asking
from engine.models import catalogue
from engine.models.catalogue import Entry, Listing
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tests.ui.driving import Driver, driving
from tui.screens.model_files import entries_of
from tui.screens.model_picker import known_offers
from tui.settings import Settings

NET = "class Net:\n    def __init__(self, width): ...\ndef build(): ...\n"


def rows(driver: Driver, selector: str) -> list[str]:
    options = driver.app.screen.query_one(selector, OptionList)
    return [str(options.get_option_at_index(index).prompt) for index in range(options.option_count)]


async def opened(driver: Driver) -> None:
    """The dialog, once its first field has the focus."""
    await driver.press("m")
    await driver.until(
        lambda: driver.app.screen.focused is not None and driver.app.screen.focused.id == "model"
    )


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """A library with three models in the place of those that are installed."""
    asked: list[str | None] = []

    def search(query: str | None = None, **_: object) -> Listing:
        asked.append(query)
        names = [name for name in ("resnet18", "resnet50", "vit_b") if (query or "") in name]
        return Listing(tuple(Entry(f"timm:{name}", "timm") for name in names), ("hub is not installed.",))

    monkeypatch.setattr(catalogue, "search", search)
    return asked


async def test_a_librarys_model_is_found_by_its_letters_and_measured(searched: list[str | None]) -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("f2")
        await driver.shows("Type to search torchvision")
        await driver.press(*"resnet5")
        await driver.shows("timm:resnet50")
        assert "hub is not installed." in driver.screen
        assert "r" not in searched  # one letter asks nobody
        await driver.press("enter")
        assert driver.app.screen.query_one("#model", Input).value == "timm:resnet50"


async def test_models_used_before_are_offered_first_and_nothing_is_asked_while_measuring(
    searched: list[str | None],
) -> None:
    settings = Settings(recent_models=("net.py:build", "timm:vit_b"))
    gate = scripted.Gate()
    async with driving(scripted.stopping_after(1, gate), settings=settings) as driver:
        await driver.phase("measuring")
        await opened(driver)
        await driver.press("f2")
        assert rows(driver, "#models")[:2] == ["net.py:build  (used before)", "timm:vit_b  (used before)"]
        await driver.press(*"vit")
        assert rows(driver, "#models") == ["timm:vit_b  (used before)", "a file ..."]
        assert "not searched while a model is measured" in " ".join(driver.screen.split())
        assert searched == []
        gate.open()


async def test_a_file_and_one_of_its_names_are_chosen_with_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "net.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("down", "enter")
        await driver.shows("Find a model")
        await driver.press("f2")
        await driver.shows("nets/")
        assert rows(driver, "#files") == ["..  the folder above", "nets/"]
        await driver.press("enter")
        assert rows(driver, "#files")[1:] == ["net.py"]
        await driver.press("enter")
        assert rows(driver, "#files")[1:] == ["build  (function)", "Net  (class, needs width)"]
        await driver.press("left")
        assert rows(driver, "#files")[1:] == ["net.py"]
        await driver.press("enter", "down", "enter")
        await driver.until(lambda: driver.app.screen.query("#model"))
        assert driver.app.screen.query_one("#model", Input).value == "nets/net.py:Net"
        driver.app.screen.query_one("#model-arg", Input).value = "width=3"
        driver.app.screen.query_one("#input", Input).value = "3x8x8"
        await driver.press("enter")
        await driver.until(lambda: len(driver.session.plans) == 2)
        plan = driver.session.plans[1]
        assert (plan.model, plan.model_args, plan.input) == ("nets/net.py:Net", {"width": "3"}, "3x8x8")
        assert driver.app.settings.recent_models[0] == "nets/net.py:Net"


async def test_a_file_that_is_not_python_says_so_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "[red] broken.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("f2")
        await driver.shows("Find a model")
        await driver.press("f2")
        await driver.shows("[red] broken.py")
        await driver.press("enter")
        await driver.shows("[red] broken.py:1")
        await driver.press("left")
        await driver.until(lambda: f"{tmp_path.name}/" in rows(driver, "#files"))
        files = driver.app.screen.query_one("#files", OptionList)
        assert rows(driver, "#files")[files.highlighted or 0] == f"{tmp_path.name}/"


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_the_field_with_the_focus_and_what_is_said_stay_in_sight(size: tuple[int, int]) -> None:
    async with driving(scripted.whole_sweep, size=size) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("up")
        focused = driver.app.screen.focused
        assert focused is not None
        assert focused.id == "budget"
        await driver.press("backspace", "backspace", "backspace", *"soon")
        await driver.shows("budget: ")
        await driver.shows("soon")
        assert "enter measure" in driver.screen


def test_a_folder_lists_folders_first_and_leaves_out_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.onnx", "A.PT", "notes.txt", ".hidden.py"):
        (tmp_path / name).touch()
    (tmp_path / "zoo").mkdir()
    listed, note = entries_of(tmp_path)
    assert [one.name for one in listed] == ["zoo", "A.PT", "b.onnx"]
    assert note == ""
    assert entries_of(tmp_path / "zoo") == ([], "No file here ends in .py .pt .pth .ts .pt2 or .onnx.")


def test_a_folder_that_cannot_be_read_is_empty_and_said(tmp_path: Path) -> None:
    listed, note = entries_of(tmp_path / "gone")
    assert listed == []
    assert "cannot be read" in note


async def test_a_name_that_steers_the_terminal_is_listed_safely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / os.fsdecode(b"a\x1b[2J\xff.py")).touch()
    monkeypatch.chdir(tmp_path)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("f2")
        await driver.shows("Find a model")
        await driver.press("f2")
        await driver.until(lambda: driver.app.screen.query("#files"))
        assert rows(driver, "#files")[1:] == ["a␛[2J<U+DCFF>.py"]


def test_the_words_of_a_query_are_all_looked_for() -> None:
    offers = known_offers("resnet TIMM", ("timm:resnet50", "timm:vit", "torchvision:resnet50"))
    assert [one.spec for one in offers] == ["timm:resnet50"]


def test_the_built_in_model_is_offered_once() -> None:
    assert [one.spec for one in known_offers("", (Plan().model,))] == [Plan().model]


async def test_one_question_is_asked_at_a_time_and_the_last_one_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    answer = threading.Event()

    def search(query: str, **_: object) -> Listing:
        asked.append(query)
        answer.wait(20.0)
        return Listing((Entry(f"timm:{query}", "timm"),), ())

    monkeypatch.setattr(catalogue, "search", search)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("f2")
        await driver.press(*"resnet")
        await driver.until(lambda: asked == ["re"])
        await driver.shows("asking the libraries")
        answer.set()
        await driver.until(lambda: asked == ["re", "resnet"])
        await driver.shows("timm:resnet  (timm)")
        assert "timm:re " not in driver.screen


async def test_a_search_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(query: str, **_: object) -> Listing:
        raise ValueError(f"no answer to {query}")

    monkeypatch.setattr(catalogue, "search", search)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("f2")
        await driver.press(*"vi")
        await driver.shows("The search failed: no answer to vi.")


async def test_what_the_dialog_asks_for_is_ended_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs_then: list[int] = []
    waiting = threading.Event()
    stop = Asking.stop

    def devices(*, asking: Asking) -> list[host.Device]:
        waiting.set()
        asking.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=60.0)
        return []

    def stopped(asking: Asking) -> None:
        stop(asking)
        runs_then.append(len(driver.session.plans))

    monkeypatch.setattr(host, "devices", devices)
    monkeypatch.setattr(Asking, "stop", stopped)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.until(waiting.is_set)
        await driver.press("enter")
        await driver.until(lambda: len(driver.session.plans) == 2)
        assert runs_then[0] == 1


async def test_the_chosen_model_stays_chosen_when_the_libraries_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = threading.Event()

    def search(query: str, **_: object) -> Listing:
        answer.wait(20.0)
        return Listing((Entry("timm:resnet", "timm"),), ())

    monkeypatch.setattr(catalogue, "search", search)
    settings = Settings(recent_models=("a.py:resnet_a", "b.py:resnet_b"))
    async with driving(scripted.whole_sweep, settings=settings) as driver:
        await driver.phase("finished")
        await opened(driver)
        await driver.press("f2")
        await driver.press(*"re")
        await driver.press("down")
        answer.set()
        await driver.shows("timm:resnet")
        await driver.press("enter")
        assert driver.app.screen.query_one("#model", Input).value == "b.py:resnet_b"


@pytest.mark.parametrize("typed", ["~b", "~nobody/pics", "x" * 300])
async def test_no_path_that_is_typed_ends_the_program(typed: str) -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await opened(driver)
        box = driver.app.screen.query_one("#image-dir", Input)
        box.value = typed
        await driver.until(lambda: box.has_class("-bad"))
        assert driver.text("#setup-check").startswith("image-dir:")
