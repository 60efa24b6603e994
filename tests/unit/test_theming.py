"""Themes: what comes with the program, one's own, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import ColorSystem
from textual.app import App
from textual.color import Color

from tui.theming import (
    DEFAULT,
    NO_COLOUR,
    PREFIX,
    Theme,
    ThemeProblems,
    load_themes,
    parse_theme,
    variable_defaults,
)

GOOD = """
name = "mine"
dark = true
[interface]
background = "#101010"
foreground = "white"
primary = "rgb(10,200,30)"
[chart]
throughput = "bold #ffcc00"
latency = "ansi_red"
"""
BUNDLED = load_themes()
PAINTED = [theme for theme in BUNDLED.by_name.values() if not theme.ansi]


def good_theme(text: str = GOOD) -> Theme:
    theme = parse_theme(text, "mine.toml")
    assert isinstance(theme, Theme), theme
    return theme


def contrast(front: Color, back: Color) -> float:
    """WCAG 2 contrast ratio."""

    def luminance(colour: Color) -> float:
        parts = [part / 255 for part in colour.rgb]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(front), luminance(back)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_at_least_six_themes_come_with_the_program_and_none_has_a_fault() -> None:
    assert BUNDLED.problems == ()
    assert set(BUNDLED.names) >= {
        "dark",
        "light",
        "high-contrast",
        "terminal",
        "no-colour",
        "phosphor",
        "riso",
    }
    assert BUNDLED.names[0] == DEFAULT
    assert any(not theme.textual.dark for theme in PAINTED)


@pytest.mark.parametrize("theme", PAINTED, ids=lambda theme: theme.name)
def test_everything_painted_is_readable_on_its_background(theme: Theme) -> None:
    for ground in ("background", "surface"):
        back = Color.parse(getattr(theme.textual, ground))
        assert contrast(Color.parse(theme.textual.foreground), back) >= 7
        for name, value in theme.textual.variables.items():
            if name.startswith(PREFIX):
                least = 3.0 if name in (f"{PREFIX}previous", f"{PREFIX}dim") else 4.5
                assert contrast(Color.parse(value), back) >= least, (name, value, ground)
    cursor = theme.textual.variables
    assert (
        contrast(
            Color.parse(cursor["block-cursor-foreground"]), Color.parse(cursor["block-cursor-background"])
        )
        >= 4.5
    )


def in_256_colours(value: str) -> Color:
    """The colour that a terminal with 256 colours (tmux without more) shows."""
    return Color(*Color.parse(value).rich_color.downgrade(ColorSystem.EIGHT_BIT).get_truecolor())


@pytest.mark.parametrize("theme", PAINTED, ids=lambda theme: theme.name)
def test_a_terminal_with_256_colours_shows_it_readable_and_alike(theme: Theme) -> None:
    back = in_256_colours(theme.textual.background)
    for name, value in theme.textual.variables.items():
        if name.startswith(PREFIX):
            least = 2.5 if name in (f"{PREFIX}previous", f"{PREFIX}dim") else 4.0
            assert contrast(in_256_colours(value), back) >= least, (name, value)
    for ground in ("background", "surface", "panel"):
        value = getattr(theme.textual, ground)
        shifts = zip(Color.parse(value).rgb, in_256_colours(value).rgb, strict=True)
        assert max(abs(exact - shown) for exact, shown in shifts) <= 46, (ground, value)
    curves = [
        in_256_colours(theme.textual.variables[f"{PREFIX}{name}"])
        for name in ("throughput", "latency", "previous")
    ]
    assert len(set(curves)) == 3


@pytest.mark.parametrize("theme", BUNDLED.by_name.values(), ids=lambda theme: theme.name)
def test_the_two_curves_never_look_the_same(theme: Theme) -> None:
    palette = theme.palette
    assert len({palette.throughput, palette.latency, palette.previous}) == 3


def test_the_no_colour_theme_names_no_colour_anywhere() -> None:
    theme = BUNDLED.get(NO_COLOUR)
    app = App()
    app.register_theme(theme.textual)
    app.theme = theme.name
    values = app.get_css_variables()
    assert {value for value in values.values() if "#" in value or "ansi_" in value} <= {"ansi_default"}
    styles = [getattr(theme.palette, name) for name in theme.palette.__slots__]
    assert all(style.color is None and style.bgcolor is None for style in styles)


def test_the_terminal_theme_leaves_the_background_and_the_text_to_the_terminal() -> None:
    theme = BUNDLED.get("terminal")
    assert theme.ansi
    unreadable_somewhere = {
        "ansi_black",
        "ansi_white",
        "ansi_yellow",
        "ansi_bright_white",
        "ansi_blue",
        "ansi_cyan",
    }
    assert not unreadable_somewhere & set(theme.textual.variables.values())
    assert theme.palette.axis.color is None


def test_no_color_wins_over_what_was_remembered() -> None:
    assert BUNDLED.choose("riso", no_colour=True).name == NO_COLOUR
    assert BUNDLED.choose("riso", no_colour=False).name == "riso"
    assert BUNDLED.choose("gone", no_colour=False).name == DEFAULT
    assert BUNDLED.choose(None, no_colour=False).name == DEFAULT


def test_what_a_theme_leaves_out_follows_from_what_it_says() -> None:
    palette = good_theme().palette
    assert str(palette.throughput) == "bold #ffcc00"
    assert str(palette.latency) == "color(1)"
    assert str(palette.previous) == "dim #ffffff"
    assert palette.state("skipped") == palette.dim
    assert palette.state("nonsense") == good_theme(GOOD).palette.state("also nonsense")


def test_every_variable_of_ours_has_a_default_and_a_prefix() -> None:
    variables = {name for name in good_theme().textual.variables if name.startswith(PREFIX)}
    assert variables == set(variable_defaults())
    assert all(Color.parse(value) for value in variable_defaults().values())


def test_all_faults_of_a_file_are_told_at_once() -> None:
    text = """
    name = "a,b"
    dark = "yes"
    colour = 3
    [interface]
    background = "#12"
    foreground = 7
    primary = "red 50%"
    border = "red"
    [chart]
    throughput = "bold chartreuse-ish"
    """
    problems = parse_theme(text, "mine.toml")
    assert isinstance(problems, ThemeProblems)
    told = str(problems)
    for part in (
        "name:",
        "dark: must be",
        "colour: unknown",
        "interface.border: unknown",
        "interface.background: '#12'",
        "interface.foreground: must be",
        "interface.primary: 'red 50%'",
        "chart.throughput: 'chartreuse-ish'",
        "chart.latency: missing",
    ):
        assert part in told
    assert len(problems.problems) == 9


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("not toml at all", "not TOML"),
        ("", "name: missing"),
        ("chart = 3", "chart: must be a table"),
        (GOOD + "[states]\nstable = ''", "states.stable: must be a colour"),
        (GOOD + "[states]\nstable = 'red\x1b'", "not TOML"),
        (GOOD.replace("mine", "x" * 41), "name:"),
        (GOOD.replace('"mine"', '["a"]'), "name:"),
        (GOOD.replace("white", "auto 50%"), "interface.foreground"),
        (GOOD.replace("white", "bold white"), "interface.foreground"),
    ],
)
def test_a_wrong_file_is_told_and_raises_nothing(text: str, part: str) -> None:
    problems = parse_theme(text, "mine.toml")
    assert isinstance(problems, ThemeProblems)
    assert part in str(problems)
    assert "\x1b" not in str(problems)


def test_a_theme_of_ones_own_is_added_or_replaces_one_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    (tmp_path / "b.toml").write_text(GOOD.replace("mine", "riso"))
    (tmp_path / "notes.txt").write_text("not a theme")
    themes = load_themes(tmp_path)
    assert themes.problems == ()
    assert themes.names[-1] == "mine"
    assert themes.get("riso").source.endswith("b.toml")


def test_a_wrong_file_leaves_the_bundled_theme_of_its_name_and_the_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD.replace("mine", "dark").replace("white", "whiteish"))
    (tmp_path / "b.toml").write_text(GOOD)
    (tmp_path / "c.toml").write_text(GOOD)
    (tmp_path / "d.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "e.toml").mkdir()
    (tmp_path / "f.toml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "g.toml").write_text("#" * 70_000)
    themes = load_themes(tmp_path)
    assert themes.get("dark").source == "batchpeak"
    assert "mine" in themes.names
    assert [Path(problem.source).name for problem in themes.problems] == [
        f"{letter}.toml" for letter in "acdefg"
    ]
    assert "is taken by" in str(themes.problems[1])


def test_no_folder_of_ones_own_is_no_fault(tmp_path: Path) -> None:
    assert load_themes(tmp_path / "none").problems == ()


@pytest.mark.parametrize("name", BUNDLED.names)
async def test_every_theme_can_be_worn_by_an_app(name: str) -> None:
    class Wearing(App[None]):
        CSS = f"Screen {{ color: ${PREFIX}throughput; background: $background; }}"

        def __init__(self) -> None:
            super().__init__()
            for theme in BUNDLED.by_name.values():
                self.register_theme(theme.textual)
            self.theme = name

        def get_theme_variable_defaults(self) -> dict[str, str]:
            return variable_defaults()

    app = Wearing()
    async with app.run_test():
        assert app.screen.styles.color == Color.parse(
            BUNDLED.get(name).textual.variables[f"{PREFIX}throughput"]
        )
        app.theme = DEFAULT
