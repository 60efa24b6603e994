"""The command line. Everything but the options is imported when a command runs: the help does not wait for it."""

from __future__ import annotations

import difflib
import errno
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from engine import __version__
from engine import plan as plans
from engine.errors import EXIT_DONE, EXIT_INTERNAL, EXIT_INTERRUPTED, BatchpeakError, UsageError
from engine.paths import expanded
from tui import cli_options as options
from tui.cli_options import Parsed, make_plan, note_of

EXIT_BROKEN_PIPE = 141
_OUTPUT_GONE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_batch_sizes = click.option(
    "-b",
    "--batch-sizes",
    type=Parsed("LIST", plans.parse_batch_sizes),
    help="1,8,32 or 1..1024 (doubling) or 64..256/32 (step).  [1,8,32,128,512]",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


_EXIT_CODES = """\b
Exit codes:
  0 done             3 no size meets the limit      130 interrupted (what was
  1 internal error   4 nothing could be measured,       measured is kept)
  2 bad usage or input   or nothing plausible
"""


@click.group(context_settings=_SETTINGS, epilog=_EXIT_CODES)
@click.version_option(__version__, prog_name="batchpeak")
def cli() -> None:
    """Find the batch size at which a PyTorch model serves the most images per second.

    `batchpeak [MODEL]` without a command opens the interface; without a terminal it measures a sweep.
    """


@cli.command()
@options.model_argument
@_batch_sizes
@options.model_options
@options.measure_options
@options.output_options
@click.pass_obj
def sweep(around: Any, /, **given: Any) -> int:
    """Measure a list of batch sizes."""
    return _measure("sweep", given, around)


@cli.command()
@options.model_argument
@click.option("--max", "max_size", type=Parsed("N", plans.parse_count, most=plans.MAX_BATCH_SIZE),
              help="Largest batch size to try.  [4096]")  # fmt: skip
@options.model_options
@options.measure_options
@options.output_options
@click.pass_obj
def peak(around: Any, /, **given: Any) -> int:
    """Search the batch size with the highest throughput; no list is needed."""
    return _measure("peak", given, around)


@cli.command()
@options.model_argument
@click.option("--images", type=Parsed("N", plans.parse_count, most=options.MAX_IMAGES),
              help="Images of each lane.  [256]")  # fmt: skip
@click.option("--batch-size", "lane_batch_size", type=Parsed("N", plans.parse_count, most=options.MAX_IMAGES),
              help="Images of a call in the first lane.  [1]")  # fmt: skip
@click.option("--rounds", type=Parsed("N", plans.parse_count, most=1000), help="Rounds at the least.  [2]")
@click.option(
    "--chunked", is_flag=True, help="If all images do not fit in a call: race the largest that fits."
)
@click.option("--image-dir", type=Parsed("DIR", options.parse_folder), help="Feed the images of this folder.")
@options.budget_option
@options.model_options
@options.output_options
@click.pass_obj
def race(around: Any, /, **given: Any) -> int:
    """Race many small calls against one call with all images."""
    return _measure("race", given, around)


@cli.command(hidden=True)
@options.model_argument
@_batch_sizes
@options.model_options
@options.measure_options
@options.output_options
@click.option(
    "--mouse/--no-mouse", default=True, help="Take the mouse, or leave it to the terminal's own selection."
)
@click.pass_obj
def interface(around: Any, /, mouse: bool, **given: Any) -> int:
    """Open the interface."""
    from tui.terminal import look

    terminal = look(os.environ, (sys.stdin, sys.stdout, sys.stderr), (80, 24))
    if given["as_json"] or not terminal.can_draw:
        if not given["as_json"] and terminal.why_not():
            there = _around(around)
            there.printer(errors=True).line(f"batchpeak: {terminal.why_not()} A sweep is measured instead.")
        return _measure("sweep", given, around)
    # The start makes tens of thousands of objects that all stay: looking for garbage among them takes a tenth of it.
    gc.disable()
    from tui.start import run

    plan = make_plan("sweep", given)
    _around(around).check(plan)
    return run(
        plan, save=given["save"], save_dir=_directory(given["save_dir"]), plain=given["plain"], mouse=mouse
    )


@cli.command()
@click.argument("run")
@options.limit_option
@options.percentile_option
@click.option("--plain", is_flag=True, help="A sentence for each size, ASCII.")
@_json
@click.option("--save-dir", metavar="DIR", help="Look in this folder.")
@click.pass_obj
def show(
    around: Any,
    run: str,
    limit: float | None,
    percentile: int | None,
    plain: bool,
    as_json: bool,
    save_dir: str | None,
) -> int:
    """Show a saved run: RUN is an id, its beginning, a path, or last. Nothing is measured."""
    from tui import headless_runs

    return headless_runs.show(
        run,
        style=_style(as_json, plain),
        limit_ms=limit,
        percentile=percentile,
        around=_around(around),
        directory=_directory(save_dir),
    )


@cli.command()
@click.option(
    "-n", "--most", type=Parsed("N", plans.parse_count, most=1_000_000), help="List the newest N only."
)
@_json
@click.option("--save-dir", metavar="DIR", help="Look in this folder.")
@click.pass_obj
def runs(around: Any, most: int | None, as_json: bool, save_dir: str | None) -> int:
    """List the saved runs, newest first."""
    from tui import headless_runs

    return headless_runs.list_runs(
        most=most, as_json=as_json, around=_around(around), directory=_directory(save_dir)
    )


@cli.command()
@click.argument("run")
@click.option("--format", "form", type=click.Choice(["csv", "json", "md"]), required=True)
@click.option("-o", "--output", metavar="FILE", help="Write to a file.")
@click.option("--force", is_flag=True, help="Replace the file.")
@click.option("--save-dir", metavar="DIR", help="Look for the run in this folder.")
@click.pass_obj
def export(around: Any, run: str, form: str, output: str | None, force: bool, save_dir: str | None) -> int:
    """Write a saved run as CSV, JSON or Markdown."""
    from tui import headless_runs

    return headless_runs.export_run(
        run,
        form,
        target=_directory(output),
        force=force,
        around=_around(around),
        directory=_directory(save_dir),
    )


@cli.command()
@click.argument("run")
@options.output_options
@click.pass_obj
def resume(around: Any, run: str, as_json: bool, plain: bool, save: bool, save_dir: str | None) -> int:
    """Measure what an interrupted run did not get to."""
    from tui import headless_runs
    from tui.headless import Keeping

    directory = _directory(save_dir)
    return headless_runs.resume(
        run,
        style=_style(as_json, plain),
        keeping=Keeping(save, directory),
        around=_around(around),
        directory=directory,
    )


@cli.command()
@click.argument("query", required=False, default="")
@click.pass_obj
def models(around: Any, query: str) -> int:
    """List the models that can be named, or search them."""
    from tui import headless_facts

    return headless_facts.models(query, around=_around(around))


@cli.command()
@_json
@click.pass_obj
def env(around: Any, as_json: bool) -> int:
    """Show the machine as a run would record it."""
    from tui import headless_facts

    return headless_facts.env(as_json=as_json, around=_around(around))


def main(arguments: Sequence[str] | None = None, *, around: Any = None) -> int:
    """Run the command line; returns the exit code. `around` (`tui.headless.Surroundings`) is passed in by tests."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    code = _run(given, around)
    try:
        sys.stdout.flush()
    except OSError as error:
        # A pipe without a reader, or a terminal that has hung up, which its signal tells of as well.
        _hush()
        return code or (EXIT_BROKEN_PIPE if isinstance(error, BrokenPipeError) else EXIT_INTERNAL)
    return code


def _run(given: list[str], around: Any) -> int:
    try:
        # Not `cli.main`: it turns a broken pipe into exit code 1.
        with cli.make_context("batchpeak", _with_command(given), obj=around) as context:
            return int(cli.invoke(context) or EXIT_DONE)
    except BatchpeakError as error:
        return _refuse(error)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the program's edge: a bug is shown whole, with the code that says so
        if isinstance(error, OSError) and error.errno in _OUTPUT_GONE:
            sys.stderr.write(f"batchpeak: the output could not be written: {error.strerror}.\n")
            return EXIT_INTERNAL
        import traceback

        traceback.print_exc()
        sys.stderr.write(
            "batchpeak: internal error. What was measured is kept. Please report the lines above.\n"
        )
        return EXIT_INTERNAL


def _with_command(arguments: list[str]) -> list[str]:
    """`batchpeak [MODEL]` is the interface. A word that is nearly a command is taken for a slip, not for a model."""
    if arguments and (arguments[0] in cli.commands or arguments[0] in ("-h", "--help", "--version")):
        return arguments
    if arguments and arguments[0].isalpha():
        near = difflib.get_close_matches(
            arguments[0], [name for name in cli.commands if name != "interface"], 1, 0.75
        )
        if near:
            raise UsageError(
                f"{arguments[0]!r} is neither a command nor a model.",
                argument="MODEL",
                remedy=f"Did you mean {near[0]}?",
            )
    return ["interface", *arguments]


def _measure(kind: plans.Kind, given: dict[str, Any], around: Any) -> int:
    from tui import headless

    plan = make_plan(kind, given)
    there = _around(around)
    note = note_of(given)
    if note:
        sizes = plans.format_batch_sizes(plan.batch_sizes)
        there.printer(errors=True).line(f"batchpeak: --batch-sizes: {note}; measuring {sizes}.")
    keeping = headless.Keeping(given["save"], _directory(given["save_dir"]))
    return headless.run(plan, style=_style(given["as_json"], given["plain"]), keeping=keeping, around=there)


def _style(as_json: bool, plain: bool) -> Any:
    if as_json and plain:
        raise UsageError("it does not go with --json.", argument="--plain")
    return "json" if as_json else "plain" if plain else "auto"


def _directory(text: str | None) -> Path | None:
    return None if text is None else expanded(text)


def _around(around: Any) -> Any:
    if around is not None:
        return around
    from tui.headless import Surroundings

    return Surroundings.real()


def _refuse(error: BatchpeakError) -> int:
    from tui.headless_outputs import Printer
    from tui.terminal import charset_for

    Printer(sys.stderr, charset_for(sys.stderr.encoding, os.environ)).line(f"batchpeak: {error}")
    return error.exit_code


def _open_streams() -> None:
    """A program that was started with a stream closed (`>&-`) has None there, on which every print would fail."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open to the end


def _hush() -> None:
    """Nobody reads the output any more; Python's own flush at the end must not complain about it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


if __name__ == "__main__":
    sys.exit(main())
