"""The settings file: what is read, what is told, what is written and what is never lost."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from tui.settings import REFUSED_KEYS, Settings, SettingsError, check_keys, load, save

FULL = """\
# mine
theme = "riso"  # the pink one
recent_lists = ["1,8,32", "64..256/64"]
recent_models = ["resnet50"]

[keys]
run = "f5, r"
"race.run" = "r"
[keys.table]
up = "k"
"""
IDS = {"run", "edit", "race.run", "table.up"}


def file_with(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return path


def test_everything_set_is_read(tmp_path: Path) -> None:
    loaded = load(file_with(tmp_path, FULL), lambda: IDS)
    assert loaded.problems == ()
    assert loaded.settings.theme == "riso"
    assert loaded.settings.recent_lists == ((1, 8, 32), (64, 128, 192, 256))
    assert loaded.settings.recent_models == ("resnet50",)
    assert dict(loaded.settings.keymap) == {"run": "f5,r", "race.run": "r", "table.up": "k"}


def test_no_file_gives_the_defaults_without_a_word(tmp_path: Path) -> None:
    loaded = load(tmp_path / "nowhere" / "settings.toml", lambda: IDS)
    assert loaded.settings == Settings()
    assert loaded.problems == ()


@pytest.mark.parametrize("content", [b"theme = ", b"\xff\xfe", b"[keys\n", b"#" * 300_000])
def test_a_file_that_does_not_parse_is_told_and_kept_and_the_defaults_used(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    loaded = load(path, lambda: IDS)
    assert loaded.settings == Settings()
    assert len(loaded.problems) == 1
    assert str(path) in loaded.problems[0]
    assert "stays as it is" in loaded.problems[0]
    with pytest.raises(SettingsError):
        save(loaded.settings.with_theme("light"), path)
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").mkdir()
    assert "cannot be read" in load(tmp_path / "settings.toml").problems[0]
    with pytest.raises(SettingsError):
        save(Settings(theme="x"), tmp_path / "settings.toml")


def test_every_wrong_field_is_told_and_the_others_are_used(tmp_path: Path) -> None:
    text = """
    theme = 3
    colour = "red"
    recent_lists = ["1,8", "8;16"]
    recent_models = [1]
    [keys]
    run = "ctrl+s"
    edit = "e"
    fly = "f"
    "race.run" = 7
    """
    loaded = load(file_with(tmp_path, text), lambda: IDS)
    told = "\n".join(loaded.problems)
    for part in (
        "colour: unknown field",
        "theme: must be text",
        "recent_lists, entry 2: item 1 is '8;16'",
        "recent_models: must be",
        "keys.run: ctrl+s is taken",
        "keys.fly: no such action",
        "keys.race.run: must be text",
    ):
        assert part in told
    assert len(loaded.problems) == 7
    assert loaded.settings == Settings(recent_lists=((1, 8),), keymap={"edit": "e"})


def test_one_key_for_two_actions_of_a_screen_is_told_and_the_first_has_it(tmp_path: Path) -> None:
    loaded = load(file_with(tmp_path, '[keys]\nrun = "z"\nedit = "y,z"\n"race.run" = "z"\n'), lambda: IDS)
    assert dict(loaded.settings.keymap) == {"run": "z", "race.run": "z"}
    assert loaded.problems == ("keys.edit: y,z is given to run already",)


def test_keys_that_is_no_table_is_told(tmp_path: Path) -> None:
    assert load(file_with(tmp_path, 'keys = "r"'), lambda: IDS).problems == ("keys: must be a table",)


@pytest.mark.parametrize("key", sorted(REFUSED_KEYS))
def test_keys_that_terminals_take_are_refused(key: str) -> None:
    assert "taken by terminals" in (check_keys(key) or "")
    assert check_keys(f"r,{key}")
    assert check_keys(key.upper())


@pytest.mark.parametrize(
    "keys", ["r", "R", "?", "f5", "r,ctrl+r", "space", "enter", "pageup", "question_mark", "shift+f3", "+"]
)
def test_keys_that_exist_are_taken(keys: str) -> None:
    assert check_keys(keys) is None


@pytest.mark.parametrize("keys", ["", "r,", "warp", "ctrl+warp", "ctrl+", "rr", "\x1b[A"])
def test_keys_that_do_not_exist_are_told(keys: str) -> None:
    assert check_keys(keys)


def test_control_characters_in_the_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    loaded = load(file_with(tmp_path, '"a\\u001b[2J" = 1\n[keys]\n"b\\u0007" = "r"\n'), lambda: IDS)
    assert len(loaded.problems) == 2
    assert all(problem.isprintable() for problem in loaded.problems)


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "settings.toml"
    settings = Settings().with_theme("light").with_list((1, 8)).with_list((1, 2, 4)).with_model('a\\b "c" ü')
    save(settings, path)
    assert load(path).settings == settings
    assert load(path).problems == ()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
    assert [each.name for each in path.parent.iterdir()] == ["settings.toml"]


def test_saving_keeps_comments_keys_and_fields_of_a_newer_version(tmp_path: Path) -> None:
    path = file_with(tmp_path, FULL + '\n[newer]\nthing = "kept"\n')
    save(load(path).settings.with_theme("light").with_list((1, 2)), path)
    text = path.read_text()
    assert text.startswith("# mine\n")
    assert 'theme = "light"' in text
    assert 'run = "f5, r"' in text
    table = tomllib.loads(text)
    assert table["recent_lists"] == ["1,2", "1,8,32", "64,128,192,256"]
    assert table["newer"] == {"thing": "kept"}
    assert dict(load(path, lambda: IDS).settings.keymap) == {"run": "f5,r", "race.run": "r", "table.up": "k"}


def test_a_list_over_several_lines_is_saved_right_too(tmp_path: Path) -> None:
    path = file_with(tmp_path, '# mine\nrecent_lists = [\n  "1,8",\n]\n[keys]\nrun = "f5"\n')
    save(load(path).settings.with_list((3,)), path)
    assert tomllib.loads(path.read_text()) == {"recent_lists": ["3", "1,8"], "keys": {"run": "f5"}}


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    path = file_with(tmp_path, FULL.replace("64..256/64", "64,128,192,256"))
    before = path.stat()
    save(load(path).settings, path)
    assert path.stat().st_ino == before.st_ino
    save(Settings(), tmp_path / "other.toml")
    assert not (tmp_path / "other.toml").exists()


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text('theme = "dark"\n')
    link = tmp_path / "settings.toml"
    link.symlink_to(real)
    save(Settings(theme="light"), link)
    assert link.is_symlink()
    assert real.read_text() == 'theme = "light"\n'


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError) as told:
        save(Settings(theme="light"), tmp_path / "file" / "settings.toml")
    assert "settings" in told.value.title


def test_recent_things_come_once_the_last_first_and_not_without_end() -> None:
    settings = Settings()
    for number in range(1, 30):
        settings = settings.with_list((number,)).with_model(f"model{number}")
    settings = settings.with_list((25,)).with_model("model25")
    assert settings.recent_lists[:2] == ((25,), (29,))
    assert len(settings.recent_lists) == len(set(settings.recent_lists)) == 10
    assert settings.recent_models[0] == "model25"
    assert len(settings.recent_models) == 10


def test_what_could_not_be_typed_again_is_not_remembered() -> None:
    settings = Settings()
    assert settings.with_list(tuple(range(1, 2000))) == settings
    assert settings.with_list(()) == settings
    assert settings.with_model("x\x1b[2J") == settings
    assert settings.with_model("x" * 1000) == settings
