"""The first line of a screen: the model, how it is run, and where. Pure texts, and the widget that shows them."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from engine.plan import Plan
from engine.record import RunRecord
from tui.terminal import Charset, safe_text

LONGEST_WORD = 24
"""Columns of a model's argument, or of a file's name, in the header; all of it is in the dialog and in the run file."""
_SHORT = (
    (" threads", " thr"),
    (" thread", " thr"),
    ("channels-last", "ch-last"),
    ("compiled (default)", "comp"),
    ("compiled (", "comp ("),
    ("bfloat16", "bf16"),
    ("float16", "fp16"),
    (" inter-op", " io"),
    ("copy timed", "+copy"),
    ("kept memory", "kept"),
    ("a process per size", "fresh"),
    (" autocast", " amp"),
)


def conditions(plan: Plan, record: RunRecord, *, defaults: bool = True) -> list[str]:
    """All that changes the figures, in words; what the worker reported wins over what was asked for.

    Without `defaults` what nobody changed is left out, but for the device and its threads.
    """
    ready = record.model
    device = ready.device if ready is not None and ready.device else plan.device
    threads = ready.threads if ready is not None and ready.threads else plan.threads
    parts = [device]
    if threads is not None:
        parts.append(f"{threads} thread{'s' if threads != 1 else ''}")
    if defaults or plan.dtype != "float32":
        parts.append(plan.dtype + (" autocast" if plan.autocast else ""))
    if plan.channels_last:
        parts.append("channels-last")
    if plan.compile is not None:
        parts.append(f"compiled ({plan.compile})")
    if plan.inter_op_threads is not None:
        parts.append(f"{plan.inter_op_threads} inter-op")
    if plan.transfer:
        parts.append("copy timed")
    known = {"system": "system allocator", "keep": "kept memory"}
    if defaults or plan.allocator != "system":
        parts.append(known.get(plan.allocator, f"allocator {_cut(plan.allocator.rpartition('/')[2])}"))
    if plan.fresh:
        parts.append("a process per size")
    parts += [_cut(f"{key}={value}") for key, value in plan.model_args.items()]
    if plan.weights is not None:
        parts.append(f"weights {_cut(plan.weights.rpartition('/')[2])}")
    if plan.image_dir is not None:
        parts.append(f"images {_cut(plan.image_dir.rstrip('/').rpartition('/')[2])}")
    return parts


def header_text(plan: Plan, record: RunRecord, width: int, charset: Charset = "unicode") -> Text:
    """Model left, conditions after it, the host at the right end.

    Where there is no room the host goes first, then what stands at its default, then long words give way to short ones.
    """
    name = record.model.name if record.model is not None else plan.model
    model = safe_text(name, charset, max(12, width // 3))
    host = safe_text(str(record.started.host.get("hostname", "")) if record.started else "", charset, 24)
    room = width - cell_len(model) - 3
    how = ""
    for defaults, short in ((True, False), (False, False), (False, True)):
        how = safe_text(", ".join(conditions(plan, record, defaults=defaults)), charset)
        if short:
            how = _shortened(how)
        if cell_len(how) <= room:
            break
    text = Text(no_wrap=True, overflow="ellipsis" if charset == "unicode" else "crop")
    text.append(model, "bold")
    text.append(f"   {how}")
    gap = width - cell_len(text.plain) - cell_len(host)
    if host and gap >= 2:
        text.append(" " * gap + host)
    return text


def _cut(word: str) -> str:
    return word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"


def _shortened(how: str) -> str:
    for long, short in _SHORT:
        how = how.replace(long, short)
    return how


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
