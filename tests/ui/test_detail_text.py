"""What the details say of one batch size: which of its figures counts, and of which process each is."""

from __future__ import annotations

from engine import events
from tui.screens.detail import detail_of
from tui.theming import load_themes

THEMES = load_themes()
PALETTE = THEMES.get("dark").palette


def lines(confirmed: events.Confirmed | None) -> list[str]:
    point = events.Point(
        run="r",
        t=0.0,
        batch_size=32,
        state="stable",
        throughput=11_270.0,
        throughput_low=11_200.0,
        throughput_high=11_340.0,
        calls=400,
        blocks=8,
        faults_per_call=12.0,
        confirmed=confirmed,
    )
    shown = detail_of(point, None, "images/s", 40, PALETTE).figures.plain
    return [" ".join(line.split()) for line in shown.splitlines()]


def test_a_figure_that_counts_instead_of_the_runs_says_so() -> None:
    fresh = events.Confirmed(3_900.0, 3_850.0, 3_950.0, faults_per_call=3_100.0, agrees=False, reason="why")
    found = lines(fresh)
    assert "images/s 11,270 in the run" in found
    assert "fresh process 3,900 this figure counts" in found
    assert "3,850 to 3,950" in found
    assert "page faults 12 a call, in the run" in found
    assert "fresh process 3,100 faults a call" in found


def test_a_confirmation_that_agrees_leaves_the_runs_figure_its_interval() -> None:
    found = lines(events.Confirmed(11_200.0, 11_100.0, 11_300.0, faults_per_call=14.0))
    assert "images/s 11,270 11,200 to 11,340" in found
    assert "fresh process 11,200 agrees" in found
    assert "page faults 12 a call" in found
    assert not any("counts" in line for line in lines(None))
