"""The live table: keeps its rows by batch size, changes only the cells that changed, and its cursor on its row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from tui.terminal import Charset
from tui.theming import Palette
from tui.widgets.result_rows import COLUMNS, Key, ResultRow, cells, heads, order

_KEYS: tuple[Key, ...] = tuple(column.key for column in COLUMNS)
_LARGEST_FIRST: frozenset[Key] = frozenset({"throughput"})
"""Columns where the most is the best: their first order is from the largest down."""


class ResultsTable(DataTable[Text], inherit_bindings=False):
    """Shows rows; `show` may be called as often as there is news.

    The row under the cursor is followed through sorting, new rows and rows that go.
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
        self._shown: dict[int, tuple[Text, ...]] = {}
        self._order: list[int] = []
        self._sort_key: Key = "batch"
        self._descending = False
        self.cells_written = 0
        """Cells added or changed so far: what an update costs."""

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
        """Show exactly these rows; cells that are as before are not touched."""
        self._make_columns()
        wanted = {row.batch_size: row for row in rows}
        if unit is not None and unit != self._unit:
            self._unit = unit
            self._write_heads()
        if wanted == self._rows:
            return
        kept = self.selected
        for size in [size for size in self._shown if size not in wanted]:
            self.remove_row(str(size))
            del self._shown[size]
        for size, row in wanted.items():
            if self._rows.get(size) != row or size not in self._shown:
                self._write(row)
        self._rows = wanted
        self._reorder(kept)

    def paint_with(self, palette: Palette) -> None:
        """Use another palette: the theme changed."""
        if palette != self._palette:
            self._palette = palette
            for row in self._rows.values():
                self._write(row)

    def sort_by(self, key: Key, *, descending: bool | None = None) -> None:
        """Order the rows by a column's values, those without one last."""
        self._sort_key = key
        self._descending = key in _LARGEST_FIRST if descending is None else descending
        self._write_heads()
        self._reorder(self.selected)

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

    def _write(self, row: ResultRow) -> None:
        texts = cells(row, self._palette, self._charset)
        before = self._shown.get(row.batch_size)
        name = str(row.batch_size)
        if before is None:
            self.add_row(*texts, height=1, key=name)
            self._shown[row.batch_size] = texts
            self.cells_written += len(texts)
            return
        now = []
        for key, old, new in zip(_KEYS, before, texts, strict=True):
            if old == new and old.style == new.style:
                now.append(old)
                continue
            self.update_cell(name, key, new)
            self.cells_written += 1
            now.append(new)
        self._shown[row.batch_size] = tuple(now)

    def _reorder(self, kept: int | None) -> None:
        """Bring the rows in order, and the cursor to the row it was on; sort() itself keeps only the row's number."""
        wanted = order(self._rows.values(), self._sort_key, descending=self._descending)
        if wanted != [int(row.key.value or 0) for row in self.ordered_rows]:
            rank = {str(size): place for place, size in enumerate(wanted)}
            sizes = {id(texts[0]): str(size) for size, texts in self._shown.items()}
            self.sort("batch", key=lambda cell: rank[sizes[id(cell)]])
        self._order = wanted
        if kept is not None and kept in self._rows:
            row = self.get_row_index(str(kept))
            if row != self.cursor_row:
                self.move_cursor(row=row)

    def _heads(self) -> tuple[Text, ...]:
        return heads(self._unit, self._charset, self._sort_key, descending=self._descending)

    def _write_heads(self) -> None:
        for column, head in zip(self.ordered_columns, self._heads(), strict=True):
            column.label = head
        # Heads are cached with the rows; this is the public way to have them drawn anew.
        self.notify_style_update()
