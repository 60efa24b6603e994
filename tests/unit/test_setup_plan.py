"""The setup dialog's fields and the plan: what is shown gives the same plan back, and each field changes its own."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engine.errors import UsageError
from engine.plan import Plan
from tui.screens.setup_plan import chosen_of, field_of, plan_of, spec_of_file, typed_of

FULL = Plan(
    model="net.py:build",
    threads=2,
    inter_op_threads=1,
    dtype="bfloat16",
    autocast=True,
    channels_last=True,
    compile="max-autotune",
    allocator="/lib/other.so",
    fresh=True,
    transfer=True,
    input="3x8x8",
    model_args={"width": "8", "sizes": "1, 2", "name": "it's"},
    weights="w\x1b[2J.pt",
    trust=True,
    precision=0.01,
    budget_s=90.0,
)


@pytest.mark.parametrize("plan", [Plan(), FULL])
def test_fields_that_nobody_touches_change_nothing(plan: Plan) -> None:
    assert plan_of(plan, typed_of(plan), chosen_of(plan)) == plan


@pytest.mark.parametrize(
    ("field", "typed", "changed"),
    [
        ("model", "timm:vit", {"model": "timm:vit"}),
        ("model-arg", "width=16 'name=a b'", {"model_args": {"width": "16", "name": "a b"}}),
        ("model-arg", "", {"model_args": {}}),
        ("weights", "cached", {"weights": "cached"}),
        ("weights", " ", {"weights": None}),
        ("inter-op-threads", "3", {"inter_op_threads": 3}),
        ("threads", "", {"threads": None}),
        ("input", "ids:128:int64", {"input": "ids:128:int64"}),
    ],
)
def test_what_is_typed_is_what_is_asked_for(field: str, typed: str, changed: dict[str, object]) -> None:
    found = plan_of(FULL, {**typed_of(FULL), field: typed}, chosen_of(FULL))
    assert found == msgspec.structs.replace(FULL, **changed)


@pytest.mark.parametrize(
    ("field", "word", "changed"),
    [
        ("trust", "no", {"trust": False}),
        ("autocast", "no", {"autocast": False}),
        ("transfer", "no", {"transfer": False}),
        ("compile", "off", {"compile": None}),
        ("layout", "contiguous", {"channels_last": False}),
        ("processes", "one", {"fresh": False}),
        ("allocator", "keep", {"allocator": "keep"}),
    ],
)
def test_what_is_chosen_is_what_is_asked_for(field: str, word: str, changed: dict[str, object]) -> None:
    found = plan_of(FULL, typed_of(FULL), {**chosen_of(FULL), field: word})
    assert found == msgspec.structs.replace(FULL, **changed)


@pytest.mark.parametrize(
    ("field", "typed", "named"),
    [
        ("model", "", "model"),
        ("model-arg", "width", "model-arg"),
        ("model-arg", "'a=1", "model-arg"),
        ("model-arg", "a=1 a=2", "model-arg"),
        ("image-dir", "/nowhere/at/all", "image-dir"),
        ("inter-op-threads", "0", "inter-op-threads"),
        ("precision", "60%", "precision"),
        ("budget", "soon", "budget"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(field: str, typed: str, named: str) -> None:
    with pytest.raises(UsageError) as error:
        plan_of(Plan(), {**typed_of(Plan()), field: typed}, chosen_of(Plan()))
    assert field_of(error.value) == named


def test_values_that_do_not_go_together_are_refused_as_on_the_command_line() -> None:
    with pytest.raises(UsageError) as error:
        plan_of(Plan(), typed_of(Plan()), {**chosen_of(Plan()), "autocast": "yes"})
    assert field_of(error.value) == "autocast"


def test_a_file_is_named_from_where_the_program_was_started() -> None:
    assert spec_of_file(Path("/home/me/nets/net.py"), Path("/home/me"), "build") == "nets/net.py:build"
    assert spec_of_file(Path("/data/net.onnx"), Path("/home/me")) == "/data/net.onnx"
