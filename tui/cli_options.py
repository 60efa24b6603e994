"""The options of the commands, and the plan that they make. Every refusal names the option and says what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from engine import plan as plans
from engine.errors import UsageError
from engine.paths import expanded, is_folder
from engine.plan import Kind, Plan

Command = TypeVar("Command", bound=Callable[..., Any])

COMPILE_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
MAX_THREADS = 4096
MAX_IMAGES = 1_000_000
_DEVICE = re.compile(r"^(cpu|mps|cuda(:\d{1,3})?|xpu(:\d{1,3})?)$", re.ASCII)


class Parsed(click.ParamType[Any]):
    """An option whose text is read by one of the plan's own parsers."""

    def __init__(self, name: str, parser: Callable[..., Any], **more: Any) -> None:
        self.name = name
        self._parser = parser
        self._more = more

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """Raises UsageError, with the option's own name."""
        if not isinstance(value, str):
            return value
        return self._parser(value, argument=max(param.opts, key=len) if param else self.name, **self._more)


def parse_device(text: str, *, argument: str = "--device") -> str:
    """A device's name; whether this machine has it is found out by torch."""
    if not _DEVICE.match(text):
        raise UsageError(
            f"{text!r} is not a device; expected cpu, cuda, cuda:0, mps or xpu.", argument=argument
        )
    return text


def parse_allocator(text: str, *, argument: str = "--allocator") -> str:
    """An allocator setting that will be heeded on this machine."""
    from engine.host import allocator_environment

    allocator_environment(text, argument=argument)
    return text if text in ("system", "keep") else str(expanded(text).resolve())


def parse_seed(text: str, *, argument: str = "--seed") -> int:
    """A whole number from 0 to 2**63 - 1."""
    if not re.match(r"^\d{1,19}$", text, re.ASCII) or int(text) >= 2**63:
        raise UsageError(f"{text!r} is not a whole number from 0.", argument=argument)
    return int(text)


def parse_folder(text: str, *, argument: str) -> str:
    """A folder that exists."""
    if not is_folder(expanded(text)):
        raise UsageError(f"{text!r} is not a folder.", argument=argument)
    return text


def parse_model_args(pairs: tuple[str, ...], *, argument: str = "--model-arg") -> dict[str, str]:
    """ "key=value" pairs; the key is a name, each given once."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"{pair!r} is not of the form key=value.", argument=argument)
        if key in found:
            raise UsageError(f"{key!r} is given twice.", argument=argument)
        found[key] = value
    return found


_count = Parsed("N", plans.parse_count, most=MAX_THREADS)


def model_argument(command: Command) -> Command:
    """MODEL, the built-in one when it is not given."""
    return click.argument("model", required=False, metavar="[MODEL]")(command)


def model_options(command: Command) -> Command:
    """How the model is loaded, fed and run."""
    return _apply(
        command,
        click.option(
            "--device", type=Parsed("DEVICE", parse_device), help="cpu, cuda, cuda:1, mps, xpu.  [cpu]"
        ),
        click.option("--threads", type=_count, help="Threads of one operation.  [all that may be used]"),
        click.option("--inter-op-threads", type=_count, help="Threads that run operations side by side."),
        click.option(
            "--allocator",
            type=Parsed("WHICH", parse_allocator),
            help="system, keep (freed memory is kept), or a library to preload.  [system]",
        ),
        click.option("--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), help="[float32]"),
        click.option("--autocast", is_flag=True, help="Keep the weights, run in --dtype by autocast."),
        click.option("--channels-last", is_flag=True, help="Channels-last memory format."),
        click.option(
            "--compile",
            "compile_mode",
            type=click.Choice(COMPILE_MODES),
            is_flag=False,
            flag_value="default",
            help="Compile the model; the mode may follow.",
        ),
        click.option("--transfer", is_flag=True, help="Time the copy of the inputs to the device as well."),
        click.option(
            "--input", metavar="SHAPE", help="Input without the batch, e.g. 3x224x224 or ids:128:int64."
        ),
        click.option(
            "--model-arg", metavar="KEY=VALUE", multiple=True, help="Argument of the model's factory."
        ),
        click.option("--weights", metavar="PATH", help="Weights to load into the model."),
        click.option("--trust", is_flag=True, help="Load a pickled model although that runs its code."),
        click.option("--seed", type=Parsed("N", parse_seed), help="Order of the rounds, random inputs.  [0]"),
    )


def measure_options(command: Command) -> Command:
    """How long and how closely sizes are measured."""
    return _apply(
        command,
        click.option(
            "--image-dir",
            "--images",
            type=Parsed("DIR", parse_folder),
            help="Feed the images of this folder.",
        ),
        click.option(
            "--precision",
            type=Parsed("P", plans.parse_precision),
            help="Half width at which a size is stable.  [2%]",
        ),
        budget_option,
        click.option(
            "--size-budget", type=Parsed("TIME", plans.parse_seconds), help="Ceiling for one size.  [10s]"
        ),
        click.option("--fresh", is_flag=True, help="Measure every size in a process of its own."),
        limit_option,
        percentile_option,
        click.option("--force", is_flag=True, help="Try sizes that are forecast not to fit in memory."),
        click.option(
            "--confirm/--no-confirm", default=True, help="Measure the winner again in a fresh process."
        ),
    )


budget_option = click.option(
    "--budget",
    type=Parsed("TIME", plans.parse_seconds),
    help="Ceiling for the run, confirmations apart.  [60s]",
)
limit_option = click.option(
    "--limit",
    type=Parsed("TIME", plans.parse_limit_ms),
    help="Latency that calls must stay under, e.g. 20ms.",
)
percentile_option = click.option(
    "--percentile",
    type=Parsed("N", plans.parse_percentile),
    help="Of the calls that must keep the limit.  [99]",
)


def output_options(command: Command) -> Command:
    """Where a run is told and kept."""
    return _apply(
        command,
        click.option("--json", "as_json", is_flag=True, help="Print the events, one JSON object a line."),
        click.option("--plain", is_flag=True, help="A sentence for each size, ASCII."),
        click.option("--save/--no-save", default=True, help="Keep the run in a file.  [save]"),
        click.option("--save-dir", metavar="DIR", help="Keep it in this folder."),
    )


def make_plan(kind: Kind, given: dict[str, Any]) -> Plan:
    """The plan of the options that were given; what was not given keeps the plan's own default.

    Raises UsageError for values that do not go together.
    """
    given = dict(given)
    renamed = {
        "limit": "limit_ms",
        "budget": "budget_s",
        "size_budget": "size_budget_s",
        "compile_mode": "compile",
        "max_size": "max_batch_size",
        "rounds": "min_rounds",
    }
    fields: dict[str, Any] = {}
    for name, value in given.items():
        field = renamed.get(name, name)
        if value is not None and field in Plan.__struct_fields__:
            fields[field] = value
    if "model_arg" in given:
        fields["model_args"] = parse_model_args(given["model_arg"])
    if isinstance(fields.get("batch_sizes"), plans.BatchList):
        fields["batch_sizes"] = fields["batch_sizes"].sizes
    plan = msgspec.structs.replace(Plan(kind=kind), **fields)
    check_plan(plan)
    return plan


def note_of(given: dict[str, Any]) -> str:
    """What was merged or reordered in the batch list, "" if nothing was."""
    batch_list = given.get("batch_sizes")
    return batch_list.note if isinstance(batch_list, plans.BatchList) else ""


def check_plan(plan: Plan) -> None:
    """Raises UsageError for values that do not go together, or that no file can hold."""
    for name, text in (
        ("MODEL", plan.model),
        ("--input", plan.input),
        ("--image-dir", plan.image_dir),
        ("--weights", plan.weights),
        *(("--model-arg", value) for value in plan.model_args.values()),
    ):
        if text is not None:
            _check_text(text, name)
    if not plan.model.strip():
        raise UsageError("it is empty; expected a model's name or file.", argument="MODEL")
    if plan.autocast and plan.dtype == "float32":
        raise UsageError("autocast needs --dtype bfloat16 or float16.", argument="--autocast")
    if plan.kind == "race" and plan.lane_batch_size >= plan.images:
        raise UsageError(
            f"{plan.lane_batch_size} is not below the {plan.images} images of a lane (--images).",
            argument="--batch-size",
        )


def _check_text(text: str, argument: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("it holds bytes that are not UTF-8.", argument=argument) from None
    if "\0" in text:
        raise UsageError("it holds a null character.", argument=argument)


def _apply(command: Command, *decorators: Callable[[Command], Command]) -> Command:
    # Decorators apply from the inside out; the help lists options in the order given here.
    for decorate in reversed(decorators):
        command = decorate(command)
    return command
