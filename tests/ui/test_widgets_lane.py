"""A lane of the race: what it says at every width, and that it draws only when something moved."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from tui.terminal import Charset
from tui.theming import load_themes
from tui.widgets.lane import LanePicture, lane_text

PALETTE = load_themes().get("dark").palette


def lines(*lane: object, width: int = 40, charset: Charset = "unicode") -> list[str]:
    return lane_text(*lane, width, PALETTE, charset).plain.split("\n")  # type: ignore[arg-type]


def test_a_lane_tells_its_name_its_remark_and_how_far_it_is() -> None:
    assert lines("256 calls of 1", 128, 256, "round 1") == [
        "256 calls of 1                   round 1",
        "██████████████▌░░░░░░░░░░░░░░ 128 of 256",
    ]


def test_a_lane_in_plain_is_ascii() -> None:
    first, second = lines("256 calls of 1…", 128, 256, "41.8 ms — 画", charset="ascii")
    assert first.isascii()
    assert second == "[#############..............] 128 of 256"
    assert second.isascii()


@pytest.mark.parametrize("charset", ["unicode", "ascii"])
@pytest.mark.parametrize("width", [1, 5, 12, 20, 44, 80, 200])
@pytest.mark.parametrize(
    ("done", "total"),
    [(0, 256), (1, 256), (255, 256), (256, 256), (300, 256), (-3, 256), (0, 0), (5, -1), (9, 10**9)],
)
def test_every_width_is_kept(width: int, done: int, total: int, charset: Charset) -> None:
    drawn = lines("a name [/x] of 300 letters" * 10, done, total, "round 1", width=width, charset=charset)
    assert [len(line) for line in drawn] == [width, width]


def test_the_bar_is_full_only_when_all_is_done() -> None:
    assert lines("x", 999, 1000, "", charset="ascii")[1].count("#") + 1 == lines(
        "x", 1000, 1000, "", charset="ascii"
    )[1].count("#")
    assert "▉" in lines("x", 999, 1000, "")[1]
    assert "░" not in lines("x", 5, 5, "")[1]


def test_an_unknown_total_shows_an_empty_bar_and_no_count() -> None:
    assert lines("x", 0, 0, "waiting")[1] == "░" * 40


class LaneApp(App[None]):
    renders = 0

    def compose(self) -> ComposeResult:
        app = self

        class Counting(LanePicture):
            def render(self):  # type: ignore[no-untyped-def]
                app.renders += 1
                return super().render()

        yield Counting(PALETTE)


async def test_a_lane_at_rest_is_not_drawn_again() -> None:
    app = LaneApp()
    async with app.run_test(size=(40, 6)) as pilot:
        lane = app.query_one(LanePicture)
        lane.show("one", 10, 256, "round 1")
        await pilot.pause()
        drawn = app.renders
        lane.show("one", 10, 256, "round 1")
        lane.paint_with(PALETTE)
        await pilot.pause()
        assert app.renders == drawn
        lane.show("one", 200, 256, "round 1")
        await pilot.pause()
        assert app.renders == drawn + 1
        lane.paint_with(load_themes().get("light").palette)
        await pilot.pause()
        assert app.renders == drawn + 2
