"""The live table: keeps its rows by batch size, draws only the lines that changed, and keeps its cursor on its row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import DataTable

from tui.terminal import Charset
from tui.theming import Palette
from tui.widgets.result_rows import COLUMNS, Key, ResultRow, cells, heads, order, sort_value

_KEYS: tuple[Key, ...] = tuple(column.key for column in COLUMNS)
_WIDTH = sum(column.width for column in COLUMNS)
_LARGEST_FIRST: frozenset[Key] = frozenset({"throughput"})
"""Columns where the most is the best: their first order is from the largest down."""


class _Blank:
    """Fills the cells of the DataTable below: nothing is to be seen of them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment("")


_AT_ONCE = 400
"""Lines added without a pause: 20 to 30 ms."""
_BLANKS = (_Blank(),) * len(COLUMNS)


class ResultsTable(DataTable[_Blank], inherit_bindings=False):
    """Shows rows; `show` may be called as often as there is news.

    The row under the cursor is followed through sorting, new rows and rows that go.

    Of DataTable it takes the heads, the cursor and the scrolling; the lines are drawn here, from the rows. A DataTable
    draws all of its cells anew when one has changed, and to change a cell costs the same whether or not it is on the
    screen: too long for 2,000 rows. Here a row costs something when it is seen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor_up", "up", id="table.up", show=False, tooltip="The row above"),
        Binding("down,j", "cursor_down", "down", id="table.down", show=False, tooltip="The row below"),
        Binding("pageup", "page_up", "page up", id="table.page-up", show=False, tooltip="A page of rows up"),
        Binding(
            "pagedown",
            "page_down",
            "page down",
            id="table.page-down",
            show=False,
            tooltip="A page of rows down",
        ),
        Binding("home,g", "scroll_top", "first row", id="table.first", show=False, tooltip="The first row"),
        Binding("end,G", "scroll_bottom", "last row", id="table.last", show=False, tooltip="The last row"),
    ]

    DEFAULT_CSS = """
    ResultsTable {
        background: $background;
        scrollbar-size-horizontal: 0;
        &:focus { background-tint: $foreground 0%; }
        & > .datatable--header, &:ansi > .datatable--header {
            background: $background;
            color: $bp-label;
            text-style: bold;
        }
        &:focus > .datatable--header { background-tint: $foreground 0%; }
        & > .datatable--hover { background: $background; }
    }
    """

    def __init__(
        self,
        palette: Palette,
        charset: Charset = "unicode",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(cursor_type="row", cell_padding=0, id=id, classes=classes)
        self._palette = palette
        self._charset: Charset = charset
        self._unit = "images/s"
        self._rows: dict[int, ResultRow] = {}
        self._texts: dict[int, tuple[Text, ...]] = {}
        self._order: list[int] = []
        self._sort_key: Key = "batch"
        self._descending = False
        self.cells_written = 0
        """Cells given a text or another one so far: what updates cost. Only cells on the screen are."""

    def on_mount(self) -> None:
        self._make_columns()

    @property
    def selected(self) -> int | None:
        """The batch size under the cursor; None while there are no rows."""
        return self._order[self.cursor_row] if 0 <= self.cursor_row < len(self._order) else None

    @property
    def order(self) -> tuple[int, ...]:
        """The batch sizes from the top row down."""
        return tuple(self._order)

    @property
    def sorted_by(self) -> tuple[Key, bool]:
        """The column that orders the rows, and whether from the largest down."""
        return self._sort_key, self._descending

    def show(self, rows: Iterable[ResultRow], unit: str | None = None) -> None:
        """Show exactly these rows; lines that are as before are not touched."""
        self._make_columns()
        wanted = {row.batch_size: row for row in rows}
        if unit is not None and unit != self._unit:
            self._unit = unit
            self._write_heads()
        before, self._rows = self._rows, wanted
        changed = [row for size, row in wanted.items() if before.get(size) != row]
        if not changed and len(before) == len(wanted):
            return
        if wanted.keys() != before.keys() or any(
            sort_value(row, self._sort_key) != sort_value(before[row.batch_size], self._sort_key)
            for row in changed
        ):
            self._reorder()
        self._rewrite(changed)

    def paint_with(self, palette: Palette) -> None:
        """Use another palette: the theme changed."""
        if palette != self._palette:
            self._palette = palette
            self._texts.clear()
            self.refresh()

    def sort_by(self, key: Key, *, descending: bool | None = None) -> None:
        """Order the rows by a column's values, those without one last."""
        self._sort_key = key
        self._descending = key in _LARGEST_FIRST if descending is None else descending
        self._write_heads()
        self._reorder()

    def sort_by_next_column(self) -> None:
        """Order by the column to the right of the one that orders now; after the last by the first."""
        self.sort_by(_KEYS[(_KEYS.index(self._sort_key) + 1) % len(_KEYS)])

    def reverse_order(self) -> None:
        """The same column, the other way round."""
        self.sort_by(self._sort_key, descending=not self._descending)

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        event.stop()
        key = _KEYS[event.column_index]
        if key == self._sort_key:
            self.reverse_order()
        else:
            self.sort_by(key)

    def _make_columns(self) -> None:
        """Once; not when the table is made, because Textual measures the heads with the running app's console."""
        if not self.columns:
            for column, head in zip(COLUMNS, self._heads(), strict=True):
                self.add_column(head, width=column.width, key=column.key)

    def render_line(self, y: int) -> Strip:
        """A line of the table: the heads, or a row as it is now."""
        index = y - self.header_height + self.scroll_offset.y
        if y < self.header_height or index >= len(self._order):
            return super().render_line(y)
        base = self.visual_style.rich_style
        cursor, over = Style.null(), Style.null()
        if index == self.cursor_row and self.show_cursor:
            cursor = self.get_component_rich_style("datatable--cursor")
            over = Style.from_color(cursor.color)  # the cursor's colours are readable on each other
        segments = []
        for column, text in enumerate(self._texts_of(self._order[index])):
            place = Style.from_meta({"row": index, "column": column})  # what a click is to find
            segments.append(Segment(text.plain, base + place + cursor + _style_of(text) + over))
        rest = max(0, self.size.width - _WIDTH)
        end = Style.from_meta({"row": index, "column": 0, "out_of_bounds": True})
        segments.append(Segment(" " * rest, base + cursor + end))
        left, width = self.scroll_offset.x, self.size.width
        return Strip(segments).crop(left, left + width).adjust_cell_length(width, base).simplify()

    def _texts_of(self, size: int) -> tuple[Text, ...]:
        """The cells of a row, made when they are first seen."""
        if size not in self._texts:
            self._texts[size] = cells(self._rows[size], self._palette, self._charset)
            self.cells_written += len(COLUMNS)
        return self._texts[size]

    def _rewrite(self, changed: Iterable[ResultRow]) -> None:
        """Draw the lines anew that these rows change; most rows differ in digits that are not shown."""
        first = self.scroll_offset.y
        seen = {
            size: line
            for line, size in enumerate(self._order[first : first + self.size.height], self.header_height)
        }
        for row in changed:
            size = row.batch_size
            before = self._texts.pop(size, None)
            if before is None or size not in seen:
                continue
            self._texts[size] = now = cells(row, self._palette, self._charset)
            different = sum(
                old != new or old.style != new.style for old, new in zip(before, now, strict=True)
            )
            if different:
                self.cells_written += different
                self.refresh(Region(0, seen[size], self.size.width, 1))

    def _reorder(self) -> None:
        """Bring the rows in order, and the cursor to the row it was on."""
        kept, number = self.selected, self.cursor_row
        before = self._order
        self._order = order(self._rows.values(), self._sort_key, descending=self._descending)
        if self._order == before:
            return
        self._texts = {size: texts for size, texts in self._texts.items() if size in self._rows}
        if len(self._order) < self.row_count:
            self.clear()  # to remove a row costs 2 ms when there are thousands
        if self._order:
            row = self._order.index(kept) if kept in self._rows else min(number, len(self._order) - 1)
            self._grow(row + 1)
            if row != self.cursor_row:
                self.move_cursor(row=row)
        self.refresh()

    def _grow(self, least: int = 0) -> None:
        """Add the lines that are missing: these at once, those of thousands of rows bit by bit between two frames."""
        missing = len(self._order) - self.row_count
        for _ in range(min(missing, max(_AT_ONCE, least - self.row_count))):
            self.add_row(*_BLANKS, height=1)
        if len(self._order) > self.row_count:
            self.call_after_refresh(self._grow)

    def _heads(self) -> tuple[Text, ...]:
        return heads(self._unit, self._charset, self._sort_key, descending=self._descending)

    def _write_heads(self) -> None:
        for column, head in zip(self.ordered_columns, self._heads(), strict=True):
            column.label = head
        # Heads are cached with the rows; this is the public way to have them drawn anew.
        self.notify_style_update()


def _style_of(text: Text) -> Style:
    return text.style if isinstance(text.style, Style) else Style.parse(text.style)
