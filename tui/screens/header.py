"""The first line of a screen: the model, how it is run, and where. Pure texts, and the widget that shows them."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from engine.plan import Plan
from engine.record import RunRecord
from tui.terminal import Charset, safe_text


def conditions(plan: Plan, record: RunRecord) -> str:
    """All that changes the figures, in words: what stands at its default only where it is always of interest.

    What the worker reported wins over what was asked for.
    """
    ready = record.model
    device = ready.device if ready is not None and ready.device else plan.device
    threads = ready.threads if ready is not None and ready.threads else plan.threads
    parts = [device]
    if threads is not None:
        parts.append(f"{threads} thread{'s' if threads != 1 else ''}")
    parts.append(plan.dtype + (" autocast" if plan.autocast else ""))
    if plan.channels_last:
        parts.append("channels-last")
    if plan.compile is not None:
        parts.append(f"compiled ({plan.compile})")
    if plan.inter_op_threads is not None:
        parts.append(f"{plan.inter_op_threads} inter-op")
    if plan.transfer:
        parts.append("copy timed")
    parts += [f"{key}={value}" for key, value in plan.model_args.items()]
    if plan.weights is not None:
        parts.append(f"weights {plan.weights.rpartition('/')[2]}")
    if plan.image_dir is not None:
        parts.append(f"images {plan.image_dir.rstrip('/').rpartition('/')[2]}")
    known = {"system": "system allocator", "keep": "kept memory"}
    parts.append(known.get(plan.allocator, f"allocator {plan.allocator.rpartition('/')[2]}"))
    if plan.fresh:
        parts.append("a process per size")
    return ", ".join(parts)


def header_text(plan: Plan, record: RunRecord, width: int, charset: Charset = "unicode") -> Text:
    """Model left, conditions after it, the host at the right end; the host goes first when there is no room."""
    name = record.model.name if record.model is not None else plan.model
    model = safe_text(name, charset, max(12, width // 3))
    host = safe_text(str(record.started.host.get("hostname", "")) if record.started else "", charset, 24)
    how = safe_text(conditions(plan, record), charset)
    text = Text(no_wrap=True, overflow="ellipsis" if charset == "unicode" else "crop")
    text.append(model, "bold")
    text.append(f"   {how}")
    gap = width - cell_len(text.plain) - cell_len(host)
    if host and gap >= 2:
        text.append(" " * gap + host)
    return text


class Header(Widget):
    """Shows the header of the run that it was told last."""

    DEFAULT_CSS = "Header { height: 1; width: 100%; }"

    def __init__(self, plan: Plan, charset: Charset) -> None:
        super().__init__(id="header")
        self._plan = plan
        self._record = RunRecord()
        self._charset: Charset = charset

    def show(self, plan: Plan, record: RunRecord) -> None:
        self._plan, self._record = plan, record
        self.refresh()

    def render(self) -> Text:
        return header_text(self._plan, self._record, self.size.width, self._charset)
