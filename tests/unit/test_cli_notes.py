"""What is said of sizes beside their figures: each thing once, for all its sizes."""

from __future__ import annotations

from engine import events
from engine.events import Confirmed, ErrorText, Point, Warned
from engine.plan import Plan
from engine.record import RunRecord
from tests.unit import cli_runs as runs
from tui import formats
from tui.headless_notes import confirmed_lines, failure_lines, note_lines, remark
from tui.headless_outputs import Printer


def record(*said: events.AnyEvent) -> RunRecord:
    return RunRecord.of([runs.started(Plan()), runs.ready(), *said])


def notes(*said: events.AnyEvent) -> list[str]:
    return note_lines(record(*said), "images/s")


def skipped(size: int, title: str) -> Point:
    error = ErrorText(title, "In many more words.")
    return Point(run=runs.RUN, t=1.0, batch_size=size, state="skipped", error=error)


def test_sizes_that_were_skipped_for_one_reason_share_a_line() -> None:
    many = [skipped(size, "skipped: the run's time was over") for size in range(100, 110)]
    found = failure_lines(
        record(runs.failed(8, "oom", "tried 2 GB"), skipped(32, "skipped: out of memory at 8"), *many)
    )
    assert found == [
        "8: oom, out of memory: tried 2 GB",
        "32: skipped, out of memory at 8",
        "10 sizes from 100 to 109: skipped, the run's time was over",
    ]


def test_a_reason_that_names_itself_is_not_named_twice() -> None:
    assert remark(runs.failed(8, "oom", "CUDA out of memory. Tried 2 GB")) == "CUDA out of memory. Tried 2 GB"


def test_a_size_that_processed_another_batch_than_asked_says_so() -> None:
    (note,) = notes(runs.stable(8, 100.0, effective_batch_size=1))
    assert note.startswith("Note: batch size 8: the model was given 8 and answered for 1")
    warned = Warned("batch-size", "the model was given 8 items and answered for 1", "See to it.")
    assert notes(runs.stable(8, 100.0, effective_batch_size=1, warnings=(warned,))) == [
        "Note: batch size 8: The model was given 8 items and answered for 1. See to it."
    ]


def test_a_confirmation_that_disagrees_shows_its_figure_and_reason() -> None:
    fresh = Confirmed(80.0, 79.0, 81.0, agrees=False, reason="3,000 page faults a call")
    (note,) = notes(runs.stable(8, 100.0, confirmed=fresh))
    assert note.endswith("in a fresh process 80.0 images/s (3,000 page faults a call): that figure counts")


def test_confirmations_that_agree_are_told_with_their_intervals() -> None:
    fresh = Confirmed(100.0, 99.0, 101.0)
    told = record(
        runs.stable(8, 100.0, confirmed=fresh), runs.stable(32, 100.0, confirmed=Confirmed(99.0, None, None))
    )
    assert note_lines(told, "images/s") == []
    assert confirmed_lines(told, "images/s") == [
        "Confirmed in a fresh process: 8 at 100.0 images/s ± 1.0 %.",
        "In a fresh process, too uncertain to confirm it: 32 at 99.0 images/s.",
    ]


def test_a_doubt_about_several_sizes_is_told_once_by_its_worst() -> None:
    def load(busy: float) -> Warned:
        return Warned(
            "other-load", f"other programs kept {busy} cores busy", "Stop them.", {"busy_cores": busy}
        )

    said = [
        runs.stable(size, 100.0, warnings=(load(busy),)) for size, busy in ((1, 0.6), (8, 1.9), (32, 0.7))
    ]
    assert notes(*said) == [
        "Note: batch size 8 (less so 1, 32): Other programs kept 1.9 cores busy. Stop them."
    ]
    same = [runs.stable(size, 100.0, warnings=(load(1.5),)) for size in (1, 8)]
    assert notes(*same) == ["Note: batch size 1, 8: Other programs kept 1.5 cores busy. Stop them."]


def test_what_is_said_of_the_whole_run_is_not_repeated_for_its_sizes() -> None:
    doubts = (
        Warned("other-load", "busy", "Stop them."),
        Warned("noisy", "± 9 %", "Stop them first."),
        Warned("outliers", "3 of 40 calls took up to 9 ms", "Stop them and measure again."),
    )
    of_run = events.Warning(run=runs.RUN, t=2.0, kind="other-load", text="Busy.", remedy="Stop them.")
    assert notes(runs.stable(8, 100.0, warnings=doubts), of_run) == [
        "Note: batch size 8: 3 of 40 calls took up to 9 ms."
    ]


def test_figures_of_another_run_are_told_for_all_their_sizes_at_once() -> None:
    assert notes(*(runs.stable(size, 1.0, kept_from="ab12") for size in (1, 8))) == [
        "Note: batch size 1, 8: taken over from run ab12"
    ]


def test_prose_on_a_terminal_is_broken_between_words_and_paths_stay_whole() -> None:
    stream = runs.Screen(tty=True)
    Printer(stream, "unicode", 40).prose(
        "Saved: /a/rather/long/path/that/does/not/fit/in/forty.jsonl (batchpeak show 1)"
    )
    assert stream.text.splitlines() == [
        "Saved:",
        "  /a/rather/long/path/that/does/not/fit/in/forty.jsonl",
        "  (batchpeak show 1)",
    ]
    pipe = runs.Screen()
    Printer(pipe, "unicode").prose("word " * 40)
    assert pipe.text.count("\n") == 1


def test_a_text_and_its_remedy_are_two_sentences() -> None:
    assert formats.sentences("other programs kept 2 cores busy", "Stop them") == (
        "Other programs kept 2 cores busy. Stop them."
    )
    assert formats.sentences("Is it?", "") == "Is it?"
    assert formats.sentences("", "") == ""
