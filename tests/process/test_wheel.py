"""The wheel, built from the sources and installed into an environment of its own: everything that a run needs is in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from engine import __version__

ROOT = Path(__file__).parents[2]
SOURCES = ("engine", "tui", "themes", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / "tree" / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), "tree"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment that holds the wheel, and sees the dependencies of the one that runs the tests."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"),
            *("--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)),
        ],
        check=True,
        capture_output=True,
    )
    # A path line adds the folder and nothing that lies in it: what is installed there as editable stays out.
    (site,) = (home / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return home / "bin" / "batchpeak"


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environ |= {"XDG_STATE_HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd)}
    return subprocess.run([str(program), *arguments], cwd=cwd, env=environ, capture_output=True, text=True)


def test_the_wheel_holds_what_the_tree_holds_and_no_tests(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    tree = {
        path.relative_to(ROOT).as_posix()
        for name in ("engine", "tui", "themes")
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert tree - held == set()
    assert not [name for name in held if name.startswith("tests")]
    assert f"batchpeak-{__version__}.dist-info/licenses/LICENSE" in held


def test_a_sweep_of_the_built_in_model_runs_from_the_wheel(program: Path, tmp_path: Path) -> None:
    done = run(
        program, "sweep", "--json", "--batch-sizes", "1,2", "--budget", "1s", "--no-confirm", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    ready = next(event for event in told if event["event"] == "model-ready")
    assert ready["name"] == "fashion-cnn"
    measured = {event["batch_size"] for event in told if event["event"] == "point" and event["throughput"]}
    assert measured == {1, 2}


def test_code_themes_and_version_come_from_the_wheel(program: Path, tmp_path: Path) -> None:
    asked = (
        "import engine, tui, tui.theming as t, json; from importlib.metadata import version; "
        "print(json.dumps([engine.__file__, tui.__file__, version('batchpeak'), len(t.load_themes().by_name)]))"
    )
    python = program.with_name("python")
    done = run(python, "-c", asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    engine_file, tui_file, version, themes = json.loads(done.stdout)
    assert Path(engine_file).is_relative_to(program.parents[1])
    assert Path(tui_file).is_relative_to(program.parents[1])
    assert version == __version__
    assert themes == len(list((ROOT / "themes").glob("*.toml")))
