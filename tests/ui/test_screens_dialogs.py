"""The dialogs: the batch list, the options, the themes, the help."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from engine.errors import BatchpeakError
from engine.events import Suggestion
from engine.plan import Plan
from tests.ui import scripted_session as scripted
from tests.ui.driving import driving
from tui.screens.choice import Choice
from tui.screens.edit_list import Addition, additions
from tui.screens.why import remedied
from tui.settings import Settings


async def test_an_edited_list_is_measured_and_unchanged_rows_are_kept() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("e")
        driver.app.screen.query_one("#sizes", Input).value = "1,8,64"
        await driver.press("enter")
        await driver.until(lambda: len(driver.session.plans) == 2)
        assert driver.session.plans[1].batch_sizes == (1, 8, 64)
        assert [(known.batch_size, known.kept_from) for known in driver.session.priors[1]] == [
            (1, "run0001"),
            (8, "run0001"),
        ]


async def test_all_rows_are_measured_again_when_asked() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("e", "tab", "right", "shift+tab", "enter")
        await driver.until(lambda: len(driver.session.plans) == 2)
        assert driver.session.priors[1] == ()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("1,x,8", "Item 2 is 'x'"),
        ("0", "Item 1 is '0'"),
        ("-4", "Item 1 is '-4'"),
        ("1e3", "Item 1 is '1e3'"),
        ("8;16", "Item 1 is '8;16'"),
        ("", "No batch size in it"),
        ("1..10000/1", "4,096 sizes"),
        ("1,[/red]", "Item 2 is '[/red]'"),
    ],
)
async def test_a_bad_list_is_named_while_typing_and_nothing_starts(typed: str, told: str) -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("e")
        driver.app.screen.query_one("#sizes", Input).value = typed
        await driver.until(lambda: told in " ".join(driver.text("#sizes-check").split()))
        await driver.press("enter", "escape")
        assert len(driver.session.plans) == 1
        assert driver.app.runs.sweep.plan.batch_sizes == Plan().batch_sizes


async def test_merging_is_said() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("e")
        driver.app.screen.query_one("#sizes", Input).value = "128, 8,8 ,1,,512"
        await driver.until(
            lambda: "repeated sizes merged: 8" in " ".join(driver.text("#sizes-check").split())
        )


async def test_quick_additions_and_recent_lists_fill_the_field() -> None:
    settings = Settings(recent_lists=((2, 4, 6),))
    async with driving(scripted.whole_sweep, settings=settings) as driver:
        await driver.phase("finished")
        await driver.press("e")
        await driver.shows("use 2,4,6  (recent)")
        await driver.press("down", "home", "enter")
        field = driver.app.screen.query_one("#sizes", Input)
        assert field.value == "1,8,32,64,128,256,512"
        await driver.press("down", "end", "enter")
        assert field.value == "2,4,6"


def test_additions_lie_around_the_peak_and_beyond_the_end() -> None:
    offers = additions((1, 8, 32, 128, 512), (Suggestion(64, "why"), Suggestion(128, "known")), 128)
    assert offers == (
        Addition((64,), "suggested: why; known"),
        Addition((48, 64, 88), "between 32 and 128"),
        Addition((184, 256, 360), "between 128 and 512"),
        Addition((1024,), "beyond the end"),
    )


@pytest.mark.parametrize("sizes", [(), (1,), (1, 2), (2**31 - 1,)])
def test_additions_exist_for_any_list_and_are_new(sizes: tuple[int, ...]) -> None:
    for offer in additions(sizes, (), None):
        assert set(offer.sizes).isdisjoint(sizes)
        assert offer.sizes


async def test_the_list_that_was_run_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with driving(scripted.whole_sweep, settings_path=path) as driver:
        await driver.phase("finished")
        await driver.press("e")
        driver.app.screen.query_one("#sizes", Input).value = "3,5"
        await driver.press("enter")
        await driver.until(path.exists)
        assert driver.app.settings.recent_lists == ((3, 5),)
        assert '"3,5"' in path.read_text()


async def test_options_change_the_plan_and_are_measured() -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("m")
        driver.app.screen.query_one("#threads", Input).value = "1"
        driver.app.screen.query_one("#dtype", Choice).action_move(1)
        driver.app.screen.query_one("#allocator", Choice).action_move(1)
        driver.app.screen.query_one("#precision", Input).value = "5%"
        await driver.press("enter")
        await driver.until(lambda: len(driver.session.plans) == 2)
        plan = driver.session.plans[1]
        assert (plan.threads, plan.dtype, plan.allocator, plan.precision) == (1, "bfloat16", "keep", 0.05)
        assert driver.session.priors[1] == ()


@pytest.mark.parametrize(
    ("field", "typed"), [("threads", "0"), ("precision", "x"), ("budget", "-1"), ("model", " ")]
)
async def test_an_option_that_cannot_be_used_is_marked_and_nothing_starts(field: str, typed: str) -> None:
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("m")
        box = driver.app.screen.query_one(f"#{field}", Input)
        box.value = typed
        await driver.until(lambda: box.has_class("-bad"))
        assert driver.text("#setup-check").startswith(f"{field}:")
        await driver.press("enter")
        assert len(driver.session.plans) == 1


async def test_a_theme_is_previewed_kept_on_enter_and_given_back_on_escape(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with driving(scripted.whole_sweep, settings_path=path) as driver:
        await driver.phase("finished")
        assert driver.app.theme == "dark"
        await driver.press("t", "down")
        other = driver.app.theme
        assert other != "dark"
        await driver.press("escape")
        assert driver.app.theme == "dark"
        assert not path.exists()
        await driver.press("t", "down", "enter")
        assert driver.app.theme == other
        assert other in path.read_text()


async def test_a_users_own_keys_replace_ours_and_the_last_line_says_so() -> None:
    async with driving(scripted.whole_sweep, settings=Settings(keymap={"run": "z"})) as driver:
        await driver.phase("finished")
        await driver.shows("z run")
        await driver.press("z")
        await driver.until(lambda: len(driver.session.plans) == 2)


async def test_the_help_lists_the_screens_keys_and_the_words() -> None:
    async with driving(scripted.whole_sweep, size=(120, 60)) as driver:
        await driver.phase("finished")
        await driver.press("question_mark")
        for text in ("Change the batch sizes and run", "Cancel the run", "knee", "95 %"):
            assert text in driver.screen


async def test_the_help_lists_what_is_not_possible_at_the_moment_apart() -> None:
    async with driving(scripted.whole_sweep, size=(120, 80)) as driver:
        await driver.phase("finished")
        await driver.press("question_mark")
        await driver.shows("Not possible at the moment")
        now, _, later = driver.screen.partition("Not possible at the moment")
        assert "Pause between two blocks" in later
        assert "Pause between two blocks" not in now
        assert "Change the batch sizes and run" in now
        assert "Change the batch sizes and run" not in later


async def test_eighty_columns_hold_the_keys_of_a_finished_sweep() -> None:
    async with driving(scripted.whole_sweep, size=(80, 24)) as driver:
        await driver.phase("finished")
        last = driver.screen.splitlines()[-1]
        for key in (
            "r run",
            "e edit",
            "p peak",
            "l limit",
            "R race",
            "s save",
            "t theme",
            "? help",
            "q quit",
        ):
            assert key in last


async def test_a_limit_is_not_offered_before_anything_was_measured() -> None:
    error = BatchpeakError("no such file", title="the model cannot be loaded")
    async with driving(scripted.failing(error)) as driver:
        await driver.phase("failed")
        await driver.press("escape")
        await driver.shows("r run")
        assert "l limit" not in driver.screen


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("batchpeak sweep x --allocator keep", {"allocator": "keep"}),
        ("batchpeak sweep x --threads 2", {"threads": 2}),
        ("batchpeak sweep x --fresh", {"fresh": True}),
        ("batchpeak sweep x", None),
        ("", None),
    ],
)
def test_a_diagnosis_command_becomes_a_plan(command: str, changed: dict[str, object] | None) -> None:
    import msgspec

    from engine.events import Diagnosis

    expected = None if changed is None else msgspec.structs.replace(Plan(), **changed)
    assert remedied(Plan(), Diagnosis("x", "y", "z", command)) == expected


async def test_a_model_that_is_known_not_to_load_is_refused_in_its_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with driving(scripted.whole_sweep) as driver:
        await driver.phase("finished")
        await driver.press("m")
        box = driver.app.screen.query_one("#model", Input)
        box.value = "nothing[/red].py:Net"
        await driver.press("enter")
        await driver.until(lambda: box.has_class("-bad"))
        assert driver.text("#setup-check") == "model: nothing[/red].py does not exist."
        assert len(driver.session.plans) == 1
        (tmp_path / "net.py").write_text("class Net: pass\n")
        box.value = "net.py:Net"
        driver.app.screen.query_one("#input", Input).value = "3x8x8"
        await driver.press("enter")
        await driver.until(lambda: len(driver.session.plans) == 2)
        assert (driver.session.plans[1].model, driver.session.plans[1].input) == ("net.py:Net", "3x8x8")


async def test_an_input_that_is_no_shape_is_refused_in_its_field() -> None:
    async with driving(scripted.whole_sweep, plan=Plan(model="net:Net")) as driver:
        await driver.phase("finished")
        await driver.press("m")
        driver.app.screen.query_one("#model", Input).value = "os:getcwd"
        box = driver.app.screen.query_one("#input", Input)
        box.value = "3x"
        await driver.press("enter")
        await driver.until(lambda: box.has_class("-bad"))
        assert driver.text("#setup-check").startswith("input: input 1 is '3x'; '3x' is not a shape.")
