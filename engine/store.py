"""Run files: made before the worker starts, appended to as events come, found again, read, listed."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from engine import events
from engine.errors import StoreError
from engine.plan import Plan
from engine.record import RunRecord

SUFFIX = ".jsonl"
_PROBE_BYTES = 64 * 1024
_TAIL_BYTES = 256 * 1024
"""Read from the end of a file for its summary: holds the verdict and the last points of nearly every run."""
_HEAD_BYTES = 32 * 1024
_NOT_SAVED = "--no-save measures without saving, --save-dir DIR saves elsewhere."


def runs_directory() -> Path:
    """Where run files live: $XDG_STATE_HOME/batchpeak/runs, or the system's own place for state.

    Raises StoreError when there is no home folder to put it in.
    """
    import platformdirs

    path = platformdirs.user_state_path("batchpeak", appauthor=False) / "runs"
    homeless = not os.environ.get("XDG_STATE_HOME") and os.environ.get("HOME") == ""
    if homeless or not path.is_absolute() or "~" in path.parts:
        raise StoreError(
            "there is no home folder (HOME is not set).",
            title="the run cannot be saved",
            remedy=f"Set HOME or XDG_STATE_HOME; {_NOT_SAVED}",
        )
    return path


def prepare(directory: Path | None = None) -> Path:
    """Make the folder and prove, with a file that is removed again, that a run can be written there. Returns the folder.

    Raises StoreError when it cannot: no right to, a file in its place, no space.
    """
    folder = runs_directory() if directory is None else directory
    _make(folder)
    probe = folder / f".probe-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, bytes(_PROBE_BYTES))
            # File systems that allocate late tell of a full disk only here.
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    return folder


@dataclass(slots=True)
class RunWriter:
    """An open run file. `write` is what a session takes as its sink."""

    path: Path
    _descriptor: int | None
    _sync: Callable[[int], None] = os.fsync

    def write(self, event: events.AnyEvent) -> None:
        """Append the event; at settled points it is on the disk when this returns.

        Raises StoreError once when the file cannot be written further; later events are then let go without a word, so
        that measuring can go on. Raises ValueError for an event with a number that is not finite.
        """
        line = events.encode(event)
        if self._descriptor is None:
            return
        try:
            _write_all(self._descriptor, line)
            if _settles(event):
                self._sync(self._descriptor)
        except OSError as error:
            self.close()
            raise StoreError(
                f"{_reason(error)}: {self.path}. What was written before stays.",
                title="the run is no longer saved",
                remedy="Measuring goes on; free some space before the next run.",
            ) from error

    def close(self) -> None:
        """Close the file; events written later are let go."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with contextlib.suppress(OSError):  # the events were written and synced one by one
                os.close(descriptor)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def create(plan: Plan, run_id: str, started_at: str, directory: Path | None = None) -> RunWriter:
    """Open a new run file, readable by its owner only, in `directory` (made when it is missing) or the usual place.

    `started_at` is a time in ISO form. Raises StoreError when it cannot be made.
    """
    folder = prepare(directory)
    path = folder / f"{_compact(started_at)}-{_safe(plan.model)}-{_letters(run_id)}{SUFFIX}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_write(path, error) from error
    return RunWriter(path, descriptor)


def read(path: Path) -> list[events.AnyEvent]:
    """All events of a run file. A last line torn by a crash is left out.

    Raises StoreError for a file that is missing, of a newer schema, or no run file.
    """
    try:
        with path.open("rb") as file:
            found = list(events.decode_lines(file))
    except OSError as error:
        raise StoreError(f"{_reason(error)}: {path}.", title="the run cannot be read") from error
    except StoreError as error:
        raise StoreError(f"{path}: {error.message}", title=error.title, remedy=error.remedy) from error
    if not found or not isinstance(found[0], events.RunStarted):
        raise StoreError(
            f"{path} does not begin with the start of a run.",
            title="not a run file",
            remedy="`batchpeak runs` lists the saved runs.",
        )
    return found


def record(path: Path) -> RunRecord:
    """The run of a file, ready to be shown, exported or resumed."""
    return RunRecord.of(read(path))


def find(reference: str, directory: Path | None = None) -> Path:
    """The file of a run named by its id, the unique beginning of its id, its path, or "last".

    Raises StoreError when there is none, or more than one.
    """
    wanted = reference.strip()
    if wanted and (os.sep in wanted or wanted.endswith(SUFFIX)):
        path = Path(wanted).expanduser()
        if path.is_file():
            return path
        raise StoreError(f"there is no file {_shown(wanted)}.", title="no such run", remedy=_LIST)
    files = run_files(directory)
    if not files:
        raise StoreError(
            "no run has been saved yet.", title="no such run", remedy="`batchpeak sweep` makes one."
        )
    if wanted == "last":
        return files[0]
    begins = [path for path in files if wanted and _id_of(path).startswith(wanted)]
    exact = [path for path in begins if _id_of(path) == wanted]
    if len(exact or begins) == 1:
        return (exact or begins)[0]
    if begins:
        some = ", ".join(_id_of(path) for path in begins[:5]) + (", ..." if len(begins) > 5 else "")
        raise StoreError(
            f"{_shown(wanted)} is the beginning of {len(begins)} runs: {some}.",
            title="more than one such run",
            remedy="Give more letters.",
        )
    raise StoreError(
        f"no saved run's id begins with {_shown(wanted)}; expected an id, its beginning, a path, or last.",
        title="no such run",
        remedy=_LIST,
    )


def delete(path: Path) -> None:
    """Remove a run file. Raises StoreError when it cannot be removed."""
    try:
        path.unlink()
    except OSError as error:
        raise StoreError(f"{_reason(error)}: {path}.", title="the run cannot be deleted") from error


def run_files(directory: Path | None = None) -> list[Path]:
    """The run files of a folder, newest first; none when there is no folder."""
    folder = runs_directory() if directory is None else directory
    try:
        with os.scandir(folder) as entries:
            found = [
                (entry.name[:16], entry.stat().st_mtime_ns, entry.name)
                for entry in entries
                if _NAME.match(entry.name) and entry.is_file()
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"{_reason(error)}: {folder}.", title="the runs cannot be listed") from error
    return [folder / name for _, _, name in sorted(found, reverse=True)]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a list of runs. `reason` is None for a run that has no end (still going, or killed)."""

    id: str
    path: Path
    kind: str = ""
    model: str = ""
    device: str = ""
    threads: int | None = None
    allocator: str = ""
    started_at: str = ""
    sizes: int = 0
    """Batch sizes with a throughput."""
    best_batch_size: int | None = None
    """The verdict's peak; without a verdict the size with the highest throughput."""
    best_throughput: float | None = None
    unit: str = ""
    speedup: float | None = None
    """Of a race."""
    reason: str | None = None
    problem: str = ""
    """Why the file cannot be read, "" when it can."""


def list_runs(directory: Path | None = None, *, most: int | None = None) -> list[RunSummary]:
    """Summaries of the saved runs, newest first. Reads the beginning and the end of each file only."""
    return [summarise(path) for path in run_files(directory)[:most]]


def summarise(path: Path) -> RunSummary:
    """The summary of one run file; a file that cannot be read has a `problem` and its id only."""
    bare = RunSummary(_id_of(path), path)
    try:
        with path.open("rb") as file:
            first = file.readline()
            started = events.decode(first) if first.endswith(b"\n") else None
            if not isinstance(started, events.RunStarted):
                return replace(bare, problem="it does not begin with the start of a run")
            summary = replace(
                bare,
                id=started.run,
                kind=started.kind,
                model=started.plan.model,
                device=started.plan.device,
                threads=started.plan.threads,
                allocator=started.plan.allocator,
                started_at=started.started_at,
            )
            start, size = len(first), os.fstat(file.fileno()).st_size
            # The model is told of near the beginning, the points' last figures near the end.
            lines = file.read(min(_HEAD_BYTES, max(size - _TAIL_BYTES - start, 0))).split(b"\n")
            file.seek(max(start, size - _TAIL_BYTES))
            ended = _ending(summary, [*lines[:-1], *file.read().split(b"\n")[:-1]])
            if ended.best_batch_size is None and size - _TAIL_BYTES > start:
                # A run that was killed among long blocks: its points lie further up.
                file.seek(start)
                ended = _ending(summary, [line.rstrip(b"\n") for line in file if line.startswith(_OF_NOTE)])
            return ended
    except StoreError as error:
        return replace(bare, problem=error.title)
    except OSError as error:
        return replace(bare, problem=_reason(error))


class _Glance(msgspec.Struct, tag_field="event"):
    """The few fields that a summary needs: decoding whole events would take seconds for a thousand files."""


class _Model(_Glance, tag="model-ready"):
    name: str = ""
    unit: str = ""
    threads: int | None = None
    device: str = ""


class _Point(_Glance, tag="point"):
    batch_size: int
    state: str
    throughput: float | None = None
    effective_batch_size: int | None = None


class _Verdict(_Glance, tag="verdict"):
    peak: int | None = None


class _Race(_Glance, tag="race-finished"):
    speedup: float


class _End(_Glance, tag="run-finished"):
    reason: str


_glance = msgspec.json.Decoder(_Model | _Point | _Verdict | _Race | _End)
_OF_NOTE = tuple(
    f'{{"event":"{kind}"'.encode()
    for kind in ("model-ready", "point", "verdict", "race-finished", "run-finished")
)


def _ending(summary: RunSummary, lines: list[bytes]) -> RunSummary:
    points: dict[int, _Point] = {}
    peak: int | None = None
    for line in lines:
        if not line.startswith(_OF_NOTE):
            continue
        try:
            glance = _glance.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StoreError("a line of it cannot be read.", title="a line of it cannot be read") from error
        match glance:
            case _Point() as point:
                points[point.batch_size] = point
            case _Verdict() as verdict:
                peak = verdict.peak
            case _Model(unit=unit, threads=threads, device=device):
                summary = replace(
                    summary,
                    unit=unit,
                    threads=threads if threads is not None else summary.threads,
                    device=device or summary.device,
                )
            case _Race(speedup=speedup):
                summary = replace(summary, speedup=speedup)
            case _End(reason=reason):
                summary = replace(summary, reason=reason)
    measured = [point for point in points.values() if point.throughput is not None]
    fair = [point for point in measured if point.effective_batch_size in (None, point.batch_size)]
    named = [point for point in measured if point.batch_size == peak]
    best = named[0] if named else max(fair, key=lambda point: point.throughput or 0.0, default=None)
    return replace(
        summary,
        sizes=len(measured),
        best_batch_size=best.batch_size if best else None,
        best_throughput=best.throughput if best else None,
    )


_LIST = "`batchpeak runs` lists the saved runs."
_NAME = re.compile(r"^\d{8}T\d{6}Z-.*-[A-Za-z0-9]+\.jsonl$", re.ASCII)


def _settles(event: events.AnyEvent) -> bool:
    if isinstance(event, events.Point):
        return event.state != "measuring"
    return isinstance(event, (events.Verdict, events.RunFinished, events.RaceFinished))


def _id_of(path: Path) -> str:
    return path.stem.rsplit("-", 1)[-1]


def _letters(run_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", run_id) or "run"


def _safe(model: str) -> str:
    """A model's name for a file name: its last part, letters, digits, dots and dashes only, at most 40 of them."""
    last = re.split(r"[\\/]", model)[-1]
    return re.sub(r"[^A-Za-z0-9.]+", "-", last).strip("-.")[:40].strip("-.") or "model"


def _compact(started_at: str) -> str:
    return datetime.fromisoformat(started_at).astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _make(folder: Path) -> None:
    try:
        if folder.is_dir():
            return
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _cannot_write(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{_reason(error)}: {path}.", title="the run cannot be saved", remedy=_NOT_SAVED)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _shown(text: str) -> str:
    clean = "".join(char if char.isprintable() else "?" for char in text)
    return f"'{clean if len(clean) <= 60 else clean[:59] + '…'}'"
