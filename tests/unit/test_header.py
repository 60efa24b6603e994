"""The header: everything that changes the figures is in it, in as few columns as there are."""

from __future__ import annotations

import msgspec
import pytest

from engine.plan import Plan
from engine.record import RunRecord
from tui.screens.header import conditions, header_text

FULL = Plan(
    model="net.py:build",
    threads=2,
    inter_op_threads=1,
    dtype="bfloat16",
    autocast=True,
    channels_last=True,
    compile="default",
    allocator="keep",
    fresh=True,
    transfer=True,
)


def line(plan: Plan, width: int) -> str:
    return header_text(plan, RunRecord(), width).plain


def test_there_is_room_for_what_stands_at_its_default() -> None:
    assert line(Plan(threads=2), 80) == "fashion-cnn   cpu, 2 threads, float32, system allocator"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"channels_last": True}, "channels-last"),
        ({"compile": "max-autotune"}, "compiled (max-autotune)"),
        ({"inter_op_threads": 3}, "3 inter-op"),
        ({"transfer": True}, "copy timed"),
        ({"allocator": "keep"}, "kept memory"),
        ({"allocator": "/usr/lib/libjemalloc.so"}, "allocator libjemalloc.so"),
        ({"fresh": True}, "a process per size"),
        ({"model_args": {"width": "64"}}, "width=64"),
        ({"weights": "/models/best.pt"}, "weights best.pt"),
        ({"image_dir": "/data/cats/"}, "images cats"),
        ({"dtype": "float16", "autocast": True}, "float16 autocast"),
    ],
)
def test_every_option_that_changes_figures_is_told(changed: dict[str, object], said: str) -> None:
    assert said in conditions(msgspec.structs.replace(Plan(), **changed), RunRecord())


def test_eighty_columns_hold_all_options_in_short_words() -> None:
    shown = line(FULL, 80)
    assert len(shown) <= 80
    for word in ("cpu", "2 thr", "bf16 amp", "ch-last", "comp", "1 io", "+copy", "kept", "fresh"):
        assert word in shown


def test_what_stands_at_its_default_goes_before_any_word_is_shortened() -> None:
    plan = Plan(threads=2, channels_last=True, fresh=True)
    assert line(plan, 70) == "fashion-cnn   cpu, 2 threads, channels-last, a process per size"


def test_a_long_argument_hides_no_option() -> None:
    plan = msgspec.structs.replace(FULL, model_args={"path": "x" * 300})
    assert "a process per size, path=" in line(plan, 200)
    assert "fresh, path=" in line(plan, 110)
