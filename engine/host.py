"""Machine facts: processor, the cores and memory this process may use, load, versions, devices, the allocator's settings."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from engine import __version__
from engine.asking import Asking
from engine.errors import DeviceError, UsageError
from engine.paths import expanded, is_file

MB = 1_000_000
"""Bytes in a MB, here and in every figure of memory."""

ALLOCATOR_VARIABLES = (
    "MALLOC_MMAP_MAX_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "MALLOC_TOP_PAD_",
    "GLIBC_TUNABLES",
    "MALLOC_CONF",
    "LD_PRELOAD",
    "DYLD_INSERT_LIBRARIES",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "THP_MEM_ALLOC_ENABLE",
)
"""Variables that change how memory is taken and given back, and with it the figures."""

_KEEP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(8 * 2**30)}
_UNLIMITED_V1 = 2**60
"""cgroup v1 writes a number near 2**63 for "no limit"."""


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the system's own counters are read; tests point it at a folder."""

    proc: Path = Path("/proc")
    cgroup: Path = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Usable:
    """Cores that this process may use: `cores` whole ones, at least 1; the bounds that were found, None for no bound."""

    cores: int
    by_affinity: int | None
    by_quota: float | None
    """A container's quota in cores, e.g. 1.5."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in all and free to take; a container's limit counts where it is the lower."""

    total: int
    available: int
    limited: bool
    """Whether a container's limit is below the machine's memory."""


class Device(msgspec.Struct, frozen=True):
    """A device that torch can use here: `name` as `--device` takes it."""

    name: str
    description: str = ""


def usable_cores(roots: Roots = Roots(), *, affinity: int | None = None) -> Usable:
    """The cores this process may use, from its affinity and from the quota of its control groups (v1 or v2).

    A quota that is not whole is rounded down, because a thread more than the quota is throttled.
    """
    if affinity is None and hasattr(os, "sched_getaffinity"):
        affinity = len(os.sched_getaffinity(0))
    quota = _quota(roots)
    bound = affinity or os.cpu_count() or 1
    if quota is not None:
        bound = min(bound, int(quota))
    return Usable(max(bound, 1), affinity, quota)


def memory(roots: Roots = Roots(), *, system: tuple[int, int] | None = None) -> Memory:
    """Memory that this process may take. `system` is the machine's own (total, available) in bytes; asked when None."""
    if system is None:
        import psutil

        whole = psutil.virtual_memory()
        system = (int(whole.total), int(whole.available))
    total, available = system
    limited = False
    for limit, used in _memory_limits(roots):
        limited = limited or limit < system[0]
        total = min(total, limit)
        available = min(available, max(limit - used, 0))
    return Memory(total, available, limited)


def cpu_model(roots: Roots = Roots()) -> str:
    """The processor's name as the system tells it, else its architecture."""
    wanted = ("model name", "cpu model", "hardware")
    for line in _lines(roots.proc / "cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip().lower() in wanted and value.strip():
            return " ".join(value.split())
    if sys.platform == "darwin":
        answer = _answer(["sysctl", "-n", "machdep.cpu.brand_string"])
        if answer:
            return answer
    return platform.processor() or platform.machine() or "unknown"


def torch_version() -> str | None:
    """The installed torch's version, read without importing it; None when it is not installed."""
    from importlib import metadata

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None


def host_facts(roots: Roots = Roots(), *, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The facts that a run file keeps of its machine; plain values only, sizes in MB, load as the mean of 1, 5, 15 min."""
    usable = usable_cores(roots)
    taken = memory(roots)
    return {
        "hostname": platform.node() or "unknown",
        "os": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu": cpu_model(roots),
        "logical_cores": os.cpu_count(),
        "usable_cores": usable.cores,
        "cores_by_affinity": usable.by_affinity,
        "cores_by_quota": usable.by_quota,
        "memory_mb": round(taken.total / MB),
        "memory_available_mb": round(taken.available / MB),
        "memory_limited": taken.limited,
        "load_average": load_average(),
        "python": platform.python_version(),
        "torch": torch_version(),
        "batchpeak": __version__,
        "allocator_environment": {name: environ[name] for name in ALLOCATOR_VARIABLES if environ.get(name)},
    }


def load_average() -> list[float] | None:
    """Processes running or waiting, mean of the last 1, 5 and 15 minutes; None where the system keeps no such count."""
    try:
        return [round(value, 2) for value in os.getloadavg()]
    except (OSError, AttributeError):
        return None


def allocator_environment(
    allocator: str,
    *,
    environ: Mapping[str, str] = os.environ,
    system: str = sys.platform,
    argument: str = "--allocator",
) -> dict[str, str]:
    """The variables that the measuring process is started with for an allocator setting.

    "system": none. "keep": glibc keeps freed memory. Else the path of a library that is preloaded before what is preloaded
    already. Raises UsageError for anything else, because a loader that ignores it would measure something else than asked.
    """
    if allocator == "system":
        return {}
    linux = system.startswith("linux")
    if allocator == "keep":
        if not linux:
            raise UsageError(
                "'keep' sets variables of glibc, which this system does not have.", argument=argument
            )
        return dict(_KEEP)
    variable = "LD_PRELOAD" if linux else "DYLD_INSERT_LIBRARIES"
    path = _library(allocator, argument)
    before = environ.get(variable, "")
    return {variable: f"{path}:{before}" if before else str(path)}


def devices(
    *, timeout_s: float = 60.0, python: str = sys.executable, asking: Asking | None = None
) -> list[Device]:
    """The devices torch can use, asked in a process of its own (importing torch takes seconds and much memory).

    Raises DeviceError when torch does not answer, or `asking` is stopped meanwhile.
    """
    try:
        done = (asking or Asking()).run([python, "-P", "-c", _ASK_DEVICES], timeout_s=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise DeviceError(f"torch did not answer within {timeout_s:g} s.", title="devices unknown") from error
    except subprocess.SubprocessError as error:
        raise DeviceError(f"torch was not asked: {error}.", title="devices unknown") from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        raise DeviceError(
            f"torch cannot be asked: {last[0] if last else 'no reason given'}", title="devices unknown"
        )
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=list[Device])


_ASK_DEVICES = """
import json, torch
found = [{"name": "cpu", "description": f"torch {torch.__version__}"}]
if torch.cuda.is_available():
    for index in range(torch.cuda.device_count()):
        found.append({"name": f"cuda:{index}", "description": torch.cuda.get_device_name(index)})
if getattr(torch.backends, "mps", None) and torch.backends.mps.is_available():
    found.append({"name": "mps", "description": "Metal"})
if getattr(torch, "xpu", None) and torch.xpu.is_available():
    for index in range(torch.xpu.device_count()):
        found.append({"name": f"xpu:{index}", "description": torch.xpu.get_device_name(index)})
print(json.dumps(found))
"""


def _library(text: str, argument: str) -> Path:
    expected = "expected system, keep, or the path of a shared library"
    path = expanded(text)
    if not is_file(path):
        raise UsageError(f"{text!r} is no such file; {expected}.", argument=argument)
    path = path.resolve()
    if any(mark in str(path) for mark in ": \t\n"):
        raise UsageError(
            f"{text!r} has a blank or a colon in its path, at which the loader would cut it.",
            argument="--allocator",
        )
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UsageError(f"{text!r} cannot be read: {error.strerror}.", argument=argument) from error
    if magic != b"\x7fELF" and magic not in _MACH_O:
        raise UsageError(f"{text!r} is not a shared library; {expected}.", argument=argument)
    return path


_MACH_O = frozenset(
    bytes.fromhex(magic) for magic in ("feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe", "bebafeca")
)


def _quota(roots: Roots) -> float | None:
    found = [quota for folder in _groups(roots, "cpu") if (quota := _quota_of(folder)) is not None]
    return min(found, default=None)


def _quota_of(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split()
    if len(words) == 2:
        return _ratio(words[0], words[1])
    return _ratio(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    """Cores from microseconds of quota in microseconds of period; "max", -1 and absent files mean no quota."""
    top, bottom = _whole(quota), _whole(period)
    return top / bottom if top is not None and bottom is not None and top > 0 and bottom > 0 else None


def _memory_limits(roots: Roots) -> Iterator[tuple[int, int]]:
    """(limit, used) in bytes of each control group above this process that has a limit. Cache that can be dropped is not used."""
    for folder in _groups(roots, "memory"):
        for limit_file, used_file, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            limit = _whole(_text(folder / limit_file))
            if limit is not None and 0 < limit < _UNLIMITED_V1:
                used = _whole(_text(folder / used_file)) or 0
                yield limit, max(used - _stat(folder / "memory.stat", cache), 0)


def _stat(path: Path, name: str) -> int:
    for line in _lines(path):
        key, _, value = line.partition(" ")
        if key == name:
            return _whole(value) or 0
    return 0


def _groups(roots: Roots, controller: str) -> list[Path]:
    """Folders of the control groups this process is in, itself first, then those above, v1 and v2.

    Inside a container the path that /proc tells may be the host's; then only the mounted top exists, and it is ours.
    """
    found: list[Path] = []
    for line in _lines(roots.proc / "self" / "cgroup"):
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if not controllers:
            mounts = [roots.cgroup, roots.cgroup / "unified"]
        elif controller in controllers.split(","):
            mounts = [roots.cgroup / controllers, roots.cgroup / controller]
        else:
            continue
        for mount in mounts:
            found.extend(_upwards(mount, path.strip().strip("/")))
    return list(dict.fromkeys(found))


def _upwards(mount: Path, inside: str) -> Iterable[Path]:
    parts = [part for part in inside.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        folder = mount.joinpath(*parts[:depth])
        if folder.is_dir():
            yield folder


def _whole(text: str) -> int | None:
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() else None


def _text(path: Path) -> str:
    """The file's text, "" when there is none to read: a counter that is not there sets no bound."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _answer(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2.0, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
