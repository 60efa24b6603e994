"""The command line with a scripted session: what is printed, what is kept, and the exit codes."""

from __future__ import annotations

import dataclasses
import errno
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from engine import events, store
from engine.events import AnyEvent, ErrorText
from engine.plan import Plan
from tests.unit import cli_runs as runs
from tests.unit.cli_runs import Screen, Script, ScriptedSession
from tui.cli import cli, main
from tui.headless import Surroundings
from tui.headless_signals import Interrupts

ESCAPE = "\x1b"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def do(*arguments: str, script: Script = runs.sweep, **more: Any) -> tuple[int, str, str, ScriptedSession]:
    there, session = runs.around(script, **more)
    code = main(list(arguments), around=there)
    stdout, stderr = there.stdout, there.stderr
    assert isinstance(stdout, Screen)
    assert isinstance(stderr, Screen)
    return code, stdout.text, stderr.text, session


def only_file() -> Path:
    (path,) = store.run_files()
    return path


def test_a_pipe_gets_one_plain_line_for_each_settled_size() -> None:
    code, out, err, session = do("sweep")
    assert (code, err, session.closed) == (0, "", True)
    assert out.isprintable() is False
    assert ESCAPE not in out
    assert "\r" not in out
    lines = out.splitlines()
    assert lines[0] == "fashion-cnn, input 1x28x28: cpu, 2 threads, float32, system allocator; on box-07"
    assert lines[1].split("  ")[0].strip() == "" or lines[1].lstrip().startswith("batch")
    for unit in ("images/s", "p50 ms", "p99 ms", "ms/image", "MB", "faults/call"):
        assert unit in lines[1]
    first = [line.split()[0] for line in lines[2:] if line[:9].strip().isdigit()]
    assert first == ["1", "8", "32", "128"]
    assert "512: skipped" in out


def test_a_percentile_without_enough_calls_is_a_dash_with_their_number() -> None:
    _, out, _, _ = do("sweep")
    (row,) = [line for line in out.splitlines() if line.split()[:1] == ["32"]]
    assert "— n = 40" in row


def test_a_size_that_does_not_fit_says_so_and_the_next_names_it() -> None:
    _, out, _, _ = do("sweep")
    lines = out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.split()[:1] == ["128"])
    assert lines[at].split("oom")[1].strip() == "out of memory: tried to allocate 48 GB"
    assert lines[at + 1].strip() == "512: skipped, 128 did not fit"


def test_verdict_warnings_and_the_runs_place_come_last() -> None:
    _, out, _, _ = do("sweep")
    *_, blank, advice, peak, warning, saved = out.splitlines()
    assert blank == ""
    assert peak == "Peak: batch size 32, 6,400 images/s ± 1.0 %."
    assert advice == "Deploy 32: the peak."
    assert warning == "Warning: Another program used 0.8 cores. Stop it."
    assert saved == f"Saved: {only_file()} (batchpeak show {only_file().stem[-8:]})"


def test_what_is_printed_as_json_is_what_is_stored() -> None:
    code, out, err, _ = do("sweep", "--json")
    assert (code, err) == (0, "")
    assert out == only_file().read_text()
    assert next(event.run for event in map(events.decode, out.splitlines()) if event) == only_file().stem[-8:]


def test_plain_is_a_sentence_for_each_size_in_ascii() -> None:
    code, out, _, _ = do("sweep", "--plain")
    assert code == 0
    assert out.isascii()
    assert (
        "Batch size 32: 6,400 images/s, plus or minus 1.0 %; p50 1.00 ms; no p99 from 40 calls; 0.1562 ms per image; "
        "12 MB; 0 page faults a call. Stable." in out
    )
    assert "Batch size 128: Out of memory: tried to allocate 48 GB" in out


@pytest.mark.parametrize("environ", [{"LC_ALL": "C"}, {"LC_ALL": "en_GB.ISO-8859-1"}])
def test_a_locale_without_unicode_gets_ascii(environ: dict[str, str]) -> None:
    _, out, _, _ = do("sweep", environ=environ)
    assert out.isascii()
    assert "+-" in out
    assert "?" not in out


def test_a_stream_that_takes_latin_1_only_gets_ascii() -> None:
    code, out, _, _ = do("sweep", stdout=Screen(encoding="latin-1"))
    assert code == 0
    assert out.isascii()


def test_a_terminal_gets_a_table_that_is_drawn_in_place_and_left_whole() -> None:
    code, out, _, _ = do("sweep", stdout=Screen(tty=True))
    assert code == 0
    assert ESCAPE in out
    assert f"{ESCAPE}[?25h" in out
    final = out.rpartition(f"{ESCAPE}[?25h")[2]
    for word in ("stable", "oom", "skipped", "p+k", "6,400", "Deploy 32: the peak.", "Saved:"):
        assert word in final


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(term: str) -> None:
    _, out, _, _ = do("sweep", stdout=Screen(tty=True), environ={"TERM": term})
    assert ESCAPE not in out


def test_no_color_leaves_no_colour_code_on_a_terminal() -> None:
    _, out, _, _ = do("sweep", stdout=Screen(tty=True), environ={"TERM": "xterm", "NO_COLOR": "1"})
    for part in out.split(f"{ESCAPE}[")[1:]:
        codes, letter = part[: (end := next(i for i, c in enumerate(part) if c.isalpha()))], part[end]
        if letter == "m":
            assert all(int(code or 0) < 30 for code in codes.split(";"))


HOSTILE = "[/red] [1, 3, 224] [\x1b]0;owned\x07\u202etxt"


def hostile(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
    yield runs.started(plan)
    yield runs.ready(HOSTILE)
    yield runs.failed(1, "error", f"shape {HOSTILE}\nsecond line")
    yield runs.finished("failed", error=ErrorText("no", f"{HOSTILE}"))


@pytest.mark.parametrize("tty", [True, False])
def test_names_and_errors_cannot_steer_the_terminal(tty: bool) -> None:
    code, out, err, _ = do("sweep", stdout=Screen(tty=tty))
    code, out, err, _ = do("sweep", HOSTILE, script=hostile, stdout=Screen(tty=tty))
    assert code == 4
    for text in (out, err):
        assert f"{ESCAPE}]" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
    assert "[/red] [1, 3, 224] [" in out
    assert "[/red] [1, 3, 224] [" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sweep", "-b", "128,x8"), "--batch-sizes: item 2 is 'x8'"),
        (("sweep", "--batch-sizes", "0"), "--batch-sizes"),
        (("sweep", "--batch-sizes", ""), "no batch size"),
        (("sweep", "--batch-sizes", "-4"), "item 1 is '-4'"),
        (("sweep", "--limit", "abc"), "--limit"),
        (("sweep", "--limit", "-1"), "--limit"),
        (("sweep", "--limit", "0"), "--limit"),
        (("sweep", "--percentile", "100"), "--percentile"),
        (("sweep", "--threads", "0"), "--threads"),
        (("sweep", "--threads", "many"), "--threads"),
        (("sweep", "--inter-op-threads", "-1"), "--inter-op-threads"),
        (("sweep", "--device", "gpu"), "--device: 'gpu' is not a device; expected cpu, cuda"),
        (("sweep", "--dtype", "int8"), "--dtype"),
        (("sweep", "--autocast"), "--autocast"),
        (("sweep", "--compile=fast"), "--compile"),
        (("sweep", "--allocator", "/no/such.so"), "--allocator"),
        (("sweep", "--precision", "200%"), "--precision"),
        (("sweep", "--budget", "soon"), "--budget"),
        (("sweep", "--seed", "-1"), "--seed"),
        (("sweep", "--images", "/no/such/folder"), "--image-dir"),
        (("sweep", "--model-arg", "depth"), "--model-arg"),
        (("sweep", "--model-arg", "a=1", "--model-arg", "a=2"), "given twice"),
        (("sweep", "--json", "--plain"), "--plain"),
        (("sweep", "--nonsense"), "--nonsense"),
        (("sweep", "one", "two"), "two"),
        (("sweep", ""), "MODEL"),
        (("sweep", "name\udcff"), "MODEL"),
        (("race", "--images", "0"), "--images"),
        (("race", "--images", "8", "--batch-size", "8"), "--batch-size"),
        (("peak", "--max", "0"), "--max"),
        (("sweeep",), "Did you mean sweep?"),
        (("show", "nothere"), "no run has been saved yet"),
        (("export", "x"), "--format"),
        (("runs", "-n", "0"), "--most"),
    ],
)
def test_a_refusal_names_the_argument_and_nothing_starts(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    there, session = runs.around(runs.sweep)
    assert main(list(arguments), around=there) == 2
    assert says in capsys.readouterr().err
    assert session.plans == []
    assert store.run_files() == []


def test_a_plan_that_is_known_to_fail_is_refused_before_a_file_is_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    there, session = runs.around(runs.sweep)
    there = dataclasses.replace(there, check=Surroundings.real().check)
    assert main(["sweep", "no_such.py:Net"], around=there) == 2
    assert "no_such.py" in capsys.readouterr().err
    assert session.plans == []
    assert store.run_files() == []


def test_merged_sizes_are_said_before_measuring() -> None:
    _, _, err, session = do("sweep", "-b", "128, 8,8 ,1,,512")
    assert session.plans[0].batch_sizes == (1, 8, 128, 512)
    assert "repeated sizes merged: 8" in err
    assert "measuring 1,8,128,512" in err


def test_every_option_reaches_the_plan(tmp_path: Path) -> None:
    do(
        *shlex.split(
            "sweep net.py:make -b 1..4 --device cuda:1 --threads 3 --inter-op-threads 2 --allocator keep --dtype bfloat16"
            " --autocast --channels-last --compile reduce-overhead --transfer --input 3x224x224 --model-arg depth=5"
            " --model-arg name=a=b --weights w.pt --trust --seed 7 --precision 5% --budget 2m --size-budget 4s --fresh"
            " --limit 0.02s --percentile p95 --force --no-confirm"
        ),
        "--images",
        str(tmp_path),
    )  # fmt: skip
    expected = Plan(
        kind="sweep", model="net.py:make", batch_sizes=(1, 2, 4), device="cuda:1", threads=3, inter_op_threads=2,
        allocator="keep", dtype="bfloat16", autocast=True, channels_last=True, compile="reduce-overhead",
        transfer=True, input="3x224x224", model_args={"depth": "5", "name": "a=b"}, weights="w.pt", trust=True,
        seed=7, precision=0.05, budget_s=120.0, size_budget_s=4.0, fresh=True, limit_ms=20.0, percentile=95,
        force=True, confirm=False, image_dir=str(tmp_path),
    )  # fmt: skip
    started = store.record(only_file()).started
    assert started is not None
    assert started.plan == expected


def test_without_options_the_plan_is_the_default_one() -> None:
    _, _, _, session = do("sweep")
    assert session.plans == [Plan()]
    _, _, _, session = do("race", "--images", "64", "--batch-size", "4", script=runs.race)
    assert session.plans == [Plan(kind="race", images=64, lane_batch_size=4)]
    _, _, _, session = do("peak", "--max", "64")
    assert session.plans == [Plan(kind="peak", max_batch_size=64)]


def test_compile_without_a_mode_takes_the_default_one() -> None:
    assert do("sweep", "--compile", "--json")[3].plans[0].compile == "default"


def test_without_a_command_and_without_a_terminal_a_sweep_is_measured() -> None:
    assert do()[3].plans == [Plan()]
    assert do("net.py:make", "--threads", "2")[3].plans == [Plan(model="net.py:make", threads=2)]


def test_a_race_tells_both_lanes_the_speedup_and_its_interval() -> None:
    code, out, _, _ = do("race", script=runs.race)
    assert code == 0
    assert "256 calls of 1: 120 ms in all, 0.469 ms per image, first answer after 0.500 ms\n" in out
    assert "1 call of 256 is 4.00× as fast as 256 calls of 1 (95 % interval 3.90× to 4.10×)." in out
    assert "same answers" in out


def test_a_race_on_a_terminal_shows_real_progress() -> None:
    _, out, _, _ = do("race", script=runs.race, stdout=Screen(tty=True))
    assert "256 of 256" in out
    assert "4.00×" in out


# Saving


def test_a_run_is_kept_elsewhere_or_not_at_all_when_asked(tmp_path: Path) -> None:
    _, out, _, _ = do("sweep", "--save-dir", str(tmp_path / "mine"))
    (path,) = store.run_files(tmp_path / "mine")
    assert f"Saved: {path}" in out
    _, out, _, _ = do("sweep", "--no-save")
    assert "Saved" not in out
    assert store.run_files() == []


def test_a_place_that_cannot_be_written_is_told_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    there, session = runs.around(runs.sweep)
    assert main(["sweep", "--save-dir", str(tmp_path / "file")], around=there) == 2
    assert "--no-save measures without saving" in capsys.readouterr().err
    assert session.plans == []


def test_a_session_that_cannot_start_leaves_no_empty_run_file() -> None:
    there, _ = runs.around(runs.sweep)

    def broken() -> ScriptedSession:
        raise RuntimeError("no")

    there = type(there)(there.stdout, there.stderr, there.environ, broken)
    assert main(["sweep"], around=there) == 1
    assert store.run_files() == []


# Ends


def ends(*points: AnyEvent, verdict: events.Verdict | None = None, **how: Any) -> Script:
    def script(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
        yield runs.started(plan)
        yield runs.ready()
        yield from points
        if verdict is not None:
            yield verdict
        yield runs.finished(**how)

    return script


MISSED = runs.verdict(
    1,
    limit=events.Limit(
        1.0, 99, None, (), "none of 5 sizes stays under 1 ms; nearest: batch size 1 at 10.1 ms"
    ),
    advice="None of 5 sizes stays under 1 ms; nearest: batch size 1 at 10.1 ms.",
)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (ends(runs.stable(1, 10.0), verdict=runs.verdict(1)), 0),
        (ends(runs.stable(1, 10.0), verdict=MISSED), 3),
        (ends(runs.failed(1, "error", "shapes"), verdict=runs.verdict(None)), 4),
        # Figures, but of no size that could be deployed: every output was NaN.
        (ends(runs.stable(1, 10.0), verdict=runs.verdict(None)), 4),
        (ends(reason="failed", error=ErrorText("the model cannot be loaded", "no"), usage=True), 2),
        (ends(reason="worker-lost", error=ErrorText("the measuring process ended", "killed")), 4),
        (ends(runs.stable(1, 10.0), reason="worker-lost", error=ErrorText("ended", "killed")), 1),
    ],
)
def test_the_exit_code_says_how_it_ended(script: Script, code: int) -> None:
    assert do("sweep", script=script)[0] == code
    assert do("sweep", "--json", script=script)[0] == code


def test_a_missed_limit_is_said_once() -> None:
    _, out, _, _ = do("sweep", script=ends(runs.stable(1, 10.0), verdict=MISSED))
    assert out.lower().count("none of 5 sizes stays under 1 ms") == 1


def test_why_nothing_was_measured_goes_to_the_error_stream_with_the_remedy() -> None:
    script = ends(
        reason="failed", error=ErrorText("no such model", "'x.py' is no file."), remedy="Check the path."
    )
    _, out, err, _ = do("sweep", script=script)
    assert err == "batchpeak: no such model: 'x.py' is no file. Check the path.\n"
    assert len(store.run_files()) == 1
    assert "no such model" not in out


def test_what_was_refused_is_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _, _ = do(
        "sweep", script=ends(reason="failed", error=ErrorText("no such device", "no"), usage=True)
    )
    assert (code, out) == (2, "")
    assert store.run_files() == []


def test_a_bug_is_shown_whole_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    def script(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
        yield runs.started(plan)
        yield runs.stable(1, 10.0)
        yield runs.finished("failed")
        raise ZeroDivisionError("a bug")

    code, out, _, session = do("sweep", script=script)
    assert (code, session.closed) == (1, True)
    assert "ZeroDivisionError: a bug" in capsys.readouterr().err
    assert "Saved: " in out
    assert len(store.read(only_file())) == 3


def interrupted_by(*numbers: int) -> Script:
    """A sweep in whose middle signals come."""

    def script(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
        yield runs.started(plan)
        yield runs.ready()
        yield runs.stable(1, 200.0)
        for number in numbers:
            os.kill(os.getpid(), number)
        yield runs.stable(8, 1600.0)
        yield runs.finished()

    return script


@pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143), (1, 129)])
def test_a_signal_cancels_and_what_was_measured_is_printed_and_kept(number: int, code: int) -> None:
    found, out, _, session = do("sweep", script=interrupted_by(number))
    assert (found, session.cancelled, session.closed) == (code, True, True)
    assert "Cancelled after 3.0 s; what was measured is kept." in out
    record = store.record(only_file())
    assert sorted(record.points) == [1]
    assert record.finished is not None
    assert record.finished.reason == "cancelled"


def test_a_terminal_that_closes_hangs_up_twice_and_still_ends_in_order() -> None:
    code, out, _, _ = do("sweep", script=interrupted_by(1, 1, 15))
    assert code == 129
    assert "what was measured is kept" in out


def test_a_second_ctrl_c_leaves_at_once_and_gives_the_terminal_back() -> None:
    told: list[object] = []
    interrupts = Interrupts(leave=told.append)
    interrupts.on_first(lambda: told.append("cancel"))
    interrupts.on_leaving(lambda: told.append("terminal"))
    interrupts.handle(2)
    interrupts.handle(2)
    assert told == ["cancel", "terminal", 130]


def test_a_signal_before_the_session_exists_still_cancels_it() -> None:
    told: list[str] = []
    interrupts = Interrupts()
    interrupts.handle(15)
    interrupts.on_first(lambda: told.append("cancel"))
    assert told == ["cancel"]
    assert interrupts.exit_code == 143


class Breaks(Screen):
    """An output whose reader leaves, or whose disk fills, after the first write."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error
        self._writes = 0

    def write(self, text: str) -> int:
        self._writes += 1
        if self._writes > 1:
            raise self._error
        return super().write(text)


def test_when_the_reader_of_a_pipe_leaves_the_run_is_cancelled_quietly() -> None:
    code, _, err, session = do("sweep", stdout=Breaks(BrokenPipeError(errno.EPIPE, "Broken pipe")))
    assert (code, err, session.cancelled) == (141, "", True)
    assert store.record(only_file()).finished is not None


def test_when_the_outputs_disk_fills_the_run_goes_on_and_it_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, _, session = do("sweep", stdout=Breaks(OSError(errno.ENOSPC, "No space left on device")))
    assert (code, session.cancelled) == (1, False)
    assert "No space left on device" in capsys.readouterr().err
    assert len(store.record(only_file()).points) == 5


# Saved runs


def test_show_prints_the_run_again_with_its_marks_and_measures_nothing() -> None:
    do("sweep")
    code, out, _, session = do("show", "last")
    assert code == 0
    assert session.plans == []
    lines = out.splitlines()
    assert lines[0].startswith("fashion-cnn, input 1x28x28: cpu")
    marked = [line.split() for line in lines if line.lstrip().startswith(("p+k", "peak", "knee"))]
    assert [words[1] for words in marked] == ["32"]
    (missing,) = [line for line in lines if line.split()[:1] == ["128"]]
    assert missing.endswith("out of memory: tried to allocate 48 GB")


def test_show_judges_another_limit_from_the_raw_calls() -> None:
    do("sweep", script=ends(*runs.raw(1), runs.stable(1, 200.0), verdict=runs.verdict(1)))
    assert do("show", "last", "--limit", "1ms")[0] == 3
    code, out, _, _ = do("show", "last", "--limit", "20ms", "--percentile", "50", "--plain")
    assert code == 0
    assert "20 ms" in out


def test_show_as_json_is_the_file_with_the_verdict_of_today() -> None:
    do("sweep")
    _, out, _, _ = do("show", "last", "--json")
    kept = [line for line in only_file().read_text().splitlines() if '"verdict"' not in line[:20]]
    assert out.splitlines()[:-1] == kept
    assert isinstance(events.decode(out.splitlines()[-1]), events.Verdict)


def test_show_of_a_run_that_was_killed_says_that_it_has_no_end() -> None:
    do("sweep")
    path = only_file()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-4])[:-3])
    code, out, _, _ = do("show", "last")
    assert code == 0
    assert "The run has no end" in out
    assert "6,400" in out


def test_runs_lists_the_newest_first_with_the_best_size() -> None:
    assert "batchpeak sweep" in do("runs")[1]
    do("sweep")
    do("race", script=runs.race)
    _, out, _, _ = do("runs")
    header, *listed = out.splitlines()
    assert header.split() == ["id", "started", "kind", "model", "device", "best", "ended"]
    assert {"sweep", "race"} == {line.split()[3] for line in listed}
    assert any("32: 6,400 images/s" in line for line in listed)
    assert any("4.00×" in line for line in listed)
    _, out, _, _ = do("runs", "--json", "-n", "1")
    assert msgspec.json.decode(out.splitlines()[0])["model"] == "fashion-cnn"


def test_export_writes_to_the_output_or_to_a_file_that_is_not_replaced_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    do("sweep")
    _, out, _, _ = do("export", "last", "--format", "csv")
    assert out.startswith("run,model,device")
    target = tmp_path / "out.csv"
    assert do("export", "last", "--format", "csv", "-o", str(target))[0] == 0
    assert target.read_bytes().decode() == out
    assert do("export", "last", "--format", "md", "-o", str(target))[0] == 2
    assert "--output" in capsys.readouterr().err
    assert do("export", "last", "--format", "md", "-o", str(target), "--force")[0] == 0
    assert target.read_text().startswith("# Batch-size sweep")


def test_resume_takes_over_what_is_settled_and_plans_the_same_sizes() -> None:
    def killed(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
        yield from ends(
            *runs.raw(1),
            runs.stable(1, 200.0),
            *runs.raw(8, rounds=2),
            runs.stable(8, 1600.0, state="measuring"),
            reason="cancelled",
        )(plan, session)

    do("sweep", "-b", "1,8,32", "--threads", "2", script=killed)
    first = only_file()
    _, _, _, session = do("resume", "last")
    assert session.plans == [Plan(batch_sizes=(1, 8, 32), threads=2)]
    assert [(known.batch_size, len(known.blocks)) for known in session.prior] == [(1, 8)]
    assert session.resumes == first.stem[-8:]
    assert len(store.run_files()) == 2


def test_resume_of_a_complete_run_measures_nothing() -> None:
    do("sweep", "-b", "1,8,32,128,512")
    code, out, err, session = do("resume", "last")
    assert (code, session.plans) == (0, [])
    assert "Nothing is missing" in err
    assert "6,400" in out


def test_resume_on_another_machine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    script = ends(*runs.raw(1), runs.stable(1, 200.0), reason="cancelled")

    def elsewhere(plan: Plan, session: ScriptedSession) -> Iterator[AnyEvent]:
        for event in script(plan, session):
            other = {**runs.HOST, "cpu": "Another CPU"}
            yield (
                msgspec.structs.replace(event, host=other) if isinstance(event, events.RunStarted) else event
            )

    do("sweep", "-b", "1,8", script=elsewhere)
    code, _, _, session = do("resume", "last")
    assert (code, session.plans) == (2, [])
    assert "another processor: Another CPU then" in capsys.readouterr().err


def test_models_lists_and_searches_the_names() -> None:
    assert "fashion-cnn" in do("models")[1]
    assert "No model's name holds 'zzz'" in do("models", "zzz")[1]


def test_help_comes_without_torch_textual_rich_or_numpy() -> None:
    program = (
        "import sys; from tui.cli import main; code = main(['sweep', '--help']);"
        "print(code, [n for n in ('torch', 'textual', 'rich', 'numpy', 'psutil') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 []"


def test_a_headless_run_imports_neither_torch_nor_textual() -> None:
    program = (
        "import sys; from tests.unit.cli_runs import around, sweep; from tui.cli import main;"
        "main(['sweep', '--no-save'], around=around(sweep)[0]); main(['sweep', '--no-save', '--plain'], around=around(sweep)[0]);"
        "print([n for n in ('torch', 'textual', 'plotext') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_option_that_several_commands_have_is_told_alike_by_all() -> None:
    told: dict[str, set[str | None]] = {}
    for command in cli.commands.values():
        for one in command.params:
            if isinstance(one, click.Option) and "--budget" in one.opts:
                told.setdefault(command.name or "", set()).add(one.help)
    assert {"sweep", "peak", "race"} <= told.keys()
    assert len({tuple(texts) for texts in told.values()}) == 1
