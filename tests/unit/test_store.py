"""Run files: what is on the disk, what is refused and when, and how runs are found again."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine import events, store
from engine.errors import StoreError
from engine.plan import Plan
from engine.results import Block

AT = "2026-03-01T10:00:00+00:00"


def started(run: str, *, at: str = AT, model: str = "fashion-cnn") -> events.RunStarted:
    return events.RunStarted(
        run=run, t=0.0, kind="sweep", plan=Plan(model=model), host={}, started_at=at, version="0.1.0"
    )


def point(
    run: str, size: int, throughput: float | None, state: str = "stable", **more: object
) -> events.Point:
    return events.Point(run=run, t=1.0, batch_size=size, state=state, throughput=throughput, **more)  # type: ignore[arg-type]


def saved(folder: Path, run: str, *rest: events.AnyEvent, at: str = AT, model: str = "fashion-cnn") -> Path:
    with store.create(Plan(model=model), run, at, folder) as writer:
        for event in (started(run, at=at, model=model), *rest):
            writer.write(event)
    return writer.path


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    wrote = (
        started("a1"),
        point("a1", 8, 100.0),
        events.RunFinished(run="a1", t=2.0, reason="completed", elapsed_s=2.0),
    )
    path = saved(tmp_path, "a1", *wrote[1:])
    assert tuple(store.read(path)) == wrote


def test_only_the_owner_can_read_runs(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = saved(tmp_path / "state" / "runs", "a1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_name_tells_time_model_and_id(tmp_path: Path) -> None:
    path = saved(tmp_path, "ab12", model="../../etc/weird model\n[/red]:x.pt", at="2026-03-01T12:00:00+02:00")
    assert path.parent == tmp_path
    assert path.name == "20260301T100000Z-red-x.pt-ab12.jsonl"
    assert saved(tmp_path, "ab13", model="模型").name.endswith("-model-ab13.jsonl")


def test_the_usual_place_follows_xdg_state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert saved(store.runs_directory(), "a1").parent == tmp_path / "batchpeak" / "runs"


def test_no_home_folder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "")
    with pytest.raises(StoreError, match=r"no home folder.*--no-save"):
        store.prepare()


def test_a_file_in_the_folders_place_is_told_before_measuring(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(StoreError, match=r"Not a directory|File exists"):
        store.prepare(tmp_path / "runs")
    with pytest.raises(StoreError, match="--save-dir"):
        store.create(Plan(), "a1", AT, tmp_path / "runs" / "below")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_told_before_measuring(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        store.prepare(tmp_path)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a file system that takes no files")
def test_a_place_that_takes_no_files_is_told_before_measuring() -> None:
    with pytest.raises(StoreError, match="cannot be saved"):
        store.prepare(Path("/proc/sys/batchpeak"))


def test_a_full_disk_is_found_before_measuring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        store.create(Plan(), "a1", AT, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_midway_is_told_once_and_keeps_what_was_written(tmp_path: Path) -> None:
    writer = store.create(Plan(), "a1", AT, tmp_path)
    room = iter([None, None])

    def sync(_: int) -> None:
        if next(room, "full") == "full":
            raise OSError(errno.ENOSPC, "No space left on device")

    writer._sync = sync
    writer.write(started("a1"))
    writer.write(point("a1", 1, 10.0))
    writer.write(point("a1", 8, 60.0))
    with pytest.raises(StoreError, match="No space left"):
        writer.write(point("a1", 32, 90.0))
    writer.write(point("a1", 128, 99.0))
    assert [event.batch_size for event in store.read(writer.path)[1:] if isinstance(event, events.Point)] == [
        1,
        8,
        32,
    ]


def test_settled_points_are_on_the_disk_and_measuring_ones_do_not_wait(tmp_path: Path) -> None:
    synced: list[int] = []
    writer = store.create(Plan(), "a1", AT, tmp_path)
    writer._sync = synced.append
    writer.write(started("a1"))
    writer.write(point("a1", 1, 10.0, "measuring"))
    assert synced == []
    for state in ("stable", "noisy", "oom"):
        writer.write(point("a1", 1, 10.0, state))
    writer.write(events.RunFinished(run="a1", t=2.0, reason="completed", elapsed_s=2.0))
    assert len(synced) == 4


def test_every_event_is_readable_by_others_at_once(tmp_path: Path) -> None:
    writer = store.create(Plan(), "a1", AT, tmp_path)
    writer.write(started("a1"))
    writer.write(point("a1", 1, 10.0, "measuring"))
    assert len(store.read(writer.path)) == 2


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path, "a1", point("a1", 1, 10.0))
    whole = path.read_bytes()
    for cut in range(1, 60):
        path.write_bytes(whole[:-cut])
        assert [type(event) for event in store.read(path)] == [events.RunStarted]


def test_unknown_fields_and_kinds_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    path = saved(tmp_path, "a1")
    line = events.encode(point("a1", 1, 10.0)).replace(b'"state"', b'"colour":"red","state"')
    with path.open("ab") as file:
        file.write(b'{"event":"heat","run":"a1","t":1.0}\n' + line)
    assert store.read(path)[1] == point("a1", 1, 10.0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not begin"),
        (b"hello\n", "cannot be read"),
        (b"\x00\xff\n", "cannot be read"),
        (b'{"event":"point","run":"a","t":"soon"}\n', "cannot be read"),
        (events.encode(point("a1", 1, 1.0)), "does not begin"),
    ],
)
def test_what_is_no_run_file_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=says) as caught:
        store.read(path)
    assert str(path) in caught.value.message


def test_a_newer_schema_is_refused_in_clear_words(tmp_path: Path) -> None:
    path = saved(tmp_path, "a1")
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":2'))
    with pytest.raises(StoreError, match=r"schema 2.*Update batchpeak"):
        store.read(path)
    assert store.summarise(path).problem == "the run file is newer than this program"


def test_a_run_is_found_by_id_beginning_path_and_last(tmp_path: Path) -> None:
    older = saved(tmp_path, "abc1", at="2026-03-01T10:00:00Z")
    newer = saved(tmp_path, "abd2", at="2026-03-02T10:00:00Z")
    assert store.find("abc1", tmp_path) == older
    assert store.find("abd", tmp_path) == newer
    assert store.find(str(older), tmp_path) == older
    assert store.find("last", tmp_path) == newer


def test_an_id_that_begins_another_is_still_found(tmp_path: Path) -> None:
    short = saved(tmp_path, "abc")
    saved(tmp_path, "abcd")
    assert store.find("abc", tmp_path) == short


@pytest.mark.parametrize(
    ("reference", "says"),
    [("ab", "2 runs: "), ("zz", "'zz'"), ("", "''"), ("./no.jsonl", "no file"), ("[/x]\x1b", "\\?")],
)
def test_a_run_that_cannot_be_told_is_refused(tmp_path: Path, reference: str, says: str) -> None:
    saved(tmp_path, "abc1")
    saved(tmp_path, "abd2")
    with pytest.raises(StoreError, match=says):
        store.find(reference, tmp_path)


def test_with_no_runs_the_command_that_makes_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="batchpeak sweep"):
        store.find("last", tmp_path / "none")
    assert store.list_runs(tmp_path / "none") == []


def test_the_list_tells_the_best_size_of_each_run(tmp_path: Path) -> None:
    ready = events.ModelReady(
        run="b2",
        t=0.5,
        name="fashion-cnn",
        parameters=1,
        input="1x28x28",
        unit="images/s",
        load_s=0.1,
        threads=2,
        device="cpu",
    )
    saved(tmp_path, "a1", at="2026-03-01T10:00:00Z")
    saved(
        tmp_path,
        "b2",
        ready,
        point("b2", 8, 500.0, "measuring"),
        point("b2", 8, 90.0),
        point("b2", 32, 99.0),
        point("b2", 64, 400.0, effective_batch_size=1),
        point("b2", 128, None, "oom"),
        events.RunFinished(run="b2", t=2.0, reason="cancelled", elapsed_s=2.0),
        at="2026-03-02T10:00:00Z",
    )
    (tmp_path / "20260303T100000Z-m-c3.jsonl").write_bytes(b"rubbish\n")
    (tmp_path / "notes.txt").write_text("mine")
    broken, best, bare = store.list_runs(tmp_path)
    assert (broken.id, broken.problem) == ("c3", "not a run file")
    assert (best.id, best.best_batch_size, best.best_throughput, best.unit) == ("b2", 32, 99.0, "images/s")
    assert (best.sizes, best.reason, best.threads) == (3, "cancelled", 2)
    assert (bare.id, bare.best_throughput, bare.reason, bare.problem) == ("a1", None, None, "")


def test_the_list_names_the_peak_of_the_verdict_not_a_size_that_may_be_luck(tmp_path: Path) -> None:
    verdict = events.Verdict(run="a1", t=2.0, peak=8, ties=(), knee=8, kind="interior", limit=None, cost=None)
    path = saved(tmp_path, "a1", point("a1", 8, 90.0), point("a1", 32, 99.0, "short"), verdict)
    assert (store.summarise(path).best_batch_size, store.summarise(path).best_throughput) == (8, 90.0)


def test_a_long_run_killed_among_its_blocks_still_tells_its_best_size(tmp_path: Path) -> None:
    block = Block(batch_size=8, calls=2000, seconds=1.0, call_ms=(0.5,) * 2000, items=16000)
    blocks = [events.BlockMeasured(run="a1", t=1.0, block=block) for _ in range(80)]
    path = saved(tmp_path, "a1", point("a1", 8, 90.0), *blocks)
    assert path.stat().st_size > store._TAIL_BYTES + store._HEAD_BYTES
    assert store.summarise(path).best_throughput == 90.0


def test_a_deleted_run_is_gone_and_a_second_time_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path, "a1")
    store.delete(path)
    assert store.run_files(tmp_path) == []
    with pytest.raises(StoreError, match="cannot be deleted"):
        store.delete(path)


def test_two_processes_save_at_once_without_mixing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[3]);"
        "from tests.unit.test_store import point, saved;"
        "saved(Path(sys.argv[1]), sys.argv[2], *(point(sys.argv[2], n, 1.0 * n) for n in range(1, 200)))"
    )
    root = str(Path(__file__).parents[2])
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), run, root], cwd=root)
        for run in ("a1", "b2")
    ]
    assert [process.wait() for process in running] == [0, 0]
    for run in ("a1", "b2"):
        found = store.read(store.find(run, tmp_path))
        assert len(found) == 200
        assert {event.run for event in found} == {run}


def test_a_file_that_may_not_grow_keeps_whole_lines_readable(tmp_path: Path) -> None:
    """A real refusal by the system, in the middle of a line."""
    program = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.unit.test_store import AT, Plan, StoreError, point, started, store
resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000))
writer = store.create(Plan(), "a1", AT, Path(sys.argv[1]))
writer.write(started("a1"))
refused = 0
for size in range(1, 400):
    try:
        writer.write(point("a1", size, 1.0))
    except StoreError as error:
        refused += 1
        print(error.message)
print(refused, writer.path.stat().st_size)
"""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), root],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("File too large")
    assert done.stdout.splitlines()[-1] == "1 70000"
    found = store.read(store.find("a1", tmp_path))
    sizes = [event.batch_size for event in found if isinstance(event, events.Point)]
    assert sizes == list(range(1, len(sizes) + 1))
    assert len(sizes) > 100


@pytest.mark.parametrize(
    "line",
    [b'{"event":"point","batch_size":"eight"}\n', b'{"event":"verdict",\n', b'{"event":"verdict"\xff\n'],
)
def test_a_file_with_a_broken_line_is_listed_with_its_problem_beside_the_others(
    tmp_path: Path, line: bytes
) -> None:
    saved(tmp_path, "good")
    with saved(tmp_path, "bad").open("ab") as file:
        file.write(line)
    problems = {one.id: one.problem for one in store.list_runs(tmp_path)}
    assert problems["good"] == ""
    assert "cannot be read" in problems["bad"]
