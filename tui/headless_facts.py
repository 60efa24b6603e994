"""The commands that measure nothing and read no run: env and models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine import host
from engine.errors import EXIT_DONE, DeviceError
from tui import formats, headless


def env(
    *, as_json: bool, around: headless.Surroundings, devices: Callable[[], list[host.Device]] = host.devices
) -> int:
    """Print what a run file would keep of this machine, and the devices that torch can use."""
    facts = host.host_facts()
    unknown = ""
    found: list[host.Device] = []
    try:
        found = devices()
    except DeviceError as error:
        unknown = error.message
    if as_json:
        import msgspec

        content = {**facts, "devices": found, "devices_unknown": unknown or None}
        around.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
        around.stdout.flush()
        return EXIT_DONE
    printer = around.printer()
    for name, value in _told(facts):
        printer.line(f"{name:<16}{value}")
    for device in found:
        printer.line(
            f"{'device':<16}{device.name}" + (f" ({device.description})" if device.description else "")
        )
    if unknown:
        printer.line(f"{'devices':<16}unknown: {unknown}")
    return EXIT_DONE


def models(query: str, *, around: headless.Surroundings) -> int:
    """Print the models that can be named; with a query those whose name holds it."""
    from engine.models import catalogue

    found = catalogue.search(query)
    printer = around.printer()
    for entry in found.entries:
        printer.line(str(entry))
    if not found.entries:
        printer.line(f"No model's name holds {query!r}. `batchpeak models` lists the kinds of names.")
    for note in found.notes:
        around.printer(errors=True).line(note)
    return EXIT_DONE


def _told(facts: dict[str, Any]) -> list[tuple[str, str]]:
    usable = f"{facts['usable_cores']} of {facts['logical_cores']}"
    bounds = [
        f"affinity {facts['cores_by_affinity']}" if facts["cores_by_affinity"] is not None else "",
        f"quota {facts['cores_by_quota']:g}" if facts["cores_by_quota"] is not None else "",
    ]
    memory = f"{formats.size_mb(facts['memory_mb'])}, {formats.size_mb(facts['memory_available_mb'])} free"
    load = facts["load_average"]
    variables = facts["allocator_environment"]
    return [
        ("host", str(facts["hostname"])),
        ("system", f"{facts['os']}, {facts['architecture']}"),
        ("processor", str(facts["cpu"])),
        ("usable cores", f"{usable} ({', '.join(filter(None, bounds)) or 'no bound'})"),
        ("memory", memory + (" (a container's limit)" if facts["memory_limited"] else "")),
        ("load", ", ".join(f"{value:.2f}" for value in load) + " (1, 5, 15 min)" if load else "unknown"),
        (
            "allocator",
            ", ".join(f"{name}={value}" for name, value in variables.items()) or "system, no variables set",
        ),
        ("python", str(facts["python"])),
        ("torch", str(facts["torch"] or "not installed")),
        ("batchpeak", str(facts["batchpeak"])),
    ]
