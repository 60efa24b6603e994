"""What the fields of the setup dialog say, and the plan that they make. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import cast, get_args

import msgspec

from engine.errors import UsageError
from engine.plan import BUILT_IN_MODEL, Dtype, Plan, parse_count, parse_precision, parse_seconds
from tui.cli_options import COMPILE_MODES, MAX_THREADS, check_plan, parse_folder, parse_model_args
from tui.terminal import safe_text

LAYOUTS = ("contiguous", "channels-last")
COMPILES = ("off", *COMPILE_MODES)
ALLOCATORS = ("system", "keep")
PROCESSES = ("one", "one per size")
NO, YES = NO_YES = ("no", "yes")
DTYPES: tuple[str, ...] = get_args(Dtype)

TYPED = (
    "model", "model-arg", "weights", "input", "image-dir", "threads", "inter-op-threads", "precision", "budget",
)  # fmt: skip
"""Fields to type in, by the names of their options."""


def typed_of(plan: Plan) -> dict[str, str]:
    """What stands in the fields that are typed in."""
    return {
        "model": plan.model,
        "model-arg": shlex.join(f"{key}={value}" for key, value in plan.model_args.items()),
        "weights": plan.weights or "",
        "input": plan.input or "",
        "image-dir": plan.image_dir or "",
        "threads": "" if plan.threads is None else str(plan.threads),
        "inter-op-threads": "" if plan.inter_op_threads is None else str(plan.inter_op_threads),
        "precision": f"{plan.precision * 100:g}%",
        "budget": f"{plan.budget_s:g}s",
    }


def chosen_of(plan: Plan) -> dict[str, str]:
    """The word that is chosen in each of the other fields."""
    return {
        "trust": NO_YES[plan.trust],
        "device": plan.device,
        "dtype": plan.dtype,
        "autocast": NO_YES[plan.autocast],
        "layout": LAYOUTS[plan.channels_last],
        "compile": plan.compile or COMPILES[0],
        "transfer": NO_YES[plan.transfer],
        "allocator": plan.allocator,
        "processes": PROCESSES[plan.fresh],
    }


def plan_of(before: Plan, typed: Mapping[str, str], chosen: Mapping[str, str]) -> Plan:
    """The plan that the fields ask for. Raises UsageError whose argument is the field that cannot be used."""
    shown = typed_of(before)

    def text(name: str) -> str:
        return typed[name].strip()

    def given(name: str, was: str | None) -> str | None:
        # What is shown may not be what was given: characters that steer the terminal are shown as signs.
        same = text(name) == safe_text(shown[name]).strip()
        return was if same else text(name) or None

    def count(name: str) -> int | None:
        return parse_count(text(name), argument=name, most=MAX_THREADS) if text(name) else None

    if not text("model"):
        raise UsageError(f"name one, for example {BUILT_IN_MODEL}.", argument="model")
    images = given("image-dir", before.image_dir)
    if images is not None:
        parse_folder(images, argument="image-dir")
    plan = msgspec.structs.replace(
        before,
        model=given("model", before.model) or BUILT_IN_MODEL,
        model_args=_arguments(text("model-arg"), before),
        weights=given("weights", before.weights),
        trust=chosen["trust"] == YES,
        input=given("input", before.input),
        image_dir=images,
        device=chosen["device"],
        threads=count("threads"),
        inter_op_threads=count("inter-op-threads"),
        dtype=cast("Dtype", chosen["dtype"]),
        autocast=chosen["autocast"] == YES,
        channels_last=chosen["layout"] == LAYOUTS[1],
        compile=None if chosen["compile"] == COMPILES[0] else chosen["compile"],
        transfer=chosen["transfer"] == YES,
        allocator=chosen["allocator"],
        fresh=chosen["processes"] == PROCESSES[1],
        precision=parse_precision(text("precision"), argument="precision"),
        budget_s=parse_seconds(text("budget"), argument="budget"),
    )
    check_plan(plan)
    return plan


def field_of(error: UsageError) -> str:
    """The id of the field that an error of the command line's checks is about."""
    name = error.argument.removeprefix("--").lower()
    return {"images": "image-dir", "channels-last": "layout", "fresh": "processes"}.get(name, name)


def _arguments(text: str, before: Plan) -> dict[str, str]:
    if text == safe_text(typed_of(before)["model-arg"]).strip():
        return before.model_args
    try:
        pairs = shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"a quote is not closed ({error}).",
            argument="model-arg",
            remedy="Expected for example width=64 depth=2.",
        ) from None
    return parse_model_args(tuple(pairs), argument="model-arg")


def spec_of_file(file: Path, folder: Path, name: str = "") -> str:
    """How the file is named as a model: relative to the folder that the program was started in, where it lies in it."""
    try:
        path = file.relative_to(folder)
    except ValueError:
        path = file
    return f"{path}:{name}" if name else str(path)
