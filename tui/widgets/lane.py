"""One lane of the race: its name, a bar of what is done, the counts, and a remark; live and in the replay."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget

from tui.terminal import Charset
from tui.theming import Palette
from tui.widgets.bars import bar
from tui.widgets.cells import narrow


def lane_text(
    name: str,
    done: int,
    total: int,
    words: str,
    width: int,
    palette: Palette,
    charset: Charset = "unicode",
) -> Text:
    """The lane as two lines of `width` columns: name and remark, then the bar with its counts.

    A total of 0 or less is one that is not known yet: the bar is empty and no count is given.
    """
    width = max(width, 0)
    done = min(max(done, 0), max(total, 0))
    finished = total > 0 and done == total
    text = Text(no_wrap=True, end="")
    words = narrow(words, charset=charset, limit=width)
    room = max(0, width - len(words) - 1)
    text.append(narrow(name, charset=charset, limit=room).ljust(width - len(words)), "bold")
    text.append(words, palette.label)
    text.append("\n")
    count = f" {done:,} of {total:,}" if total > 0 else ""
    columns = width - len(f" {total:,} of {total:,}") if total > 0 else width
    if columns < 4:
        return text.append(count.strip()[:width].ljust(width), palette.label)
    ends = ("[", "]") if charset == "ascii" else ("", "")
    columns -= len(ends[0] + ends[1])
    filled = bar(done / total if total > 0 else 0.0, columns, charset)
    text.append(ends[0], palette.axis)
    text.append(filled, palette.stable if finished else palette.throughput)
    text.append(("." if charset == "ascii" else "░") * (columns - len(filled)), palette.dim)
    text.append(ends[1], palette.axis)
    return text.append(count.rjust(width - len(text.plain.rpartition("\n")[2])), palette.label)


class LanePicture(Widget):
    """Shows a lane; drawn only when what it shows changed, so that a bar at rest costs nothing."""

    DEFAULT_CSS = """
    LanePicture { height: 2; }
    """

    def __init__(
        self,
        palette: Palette,
        charset: Charset = "unicode",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._palette = palette
        self._charset: Charset = charset
        self._lane = ("", 0, 0, "")
        self._drawn = Text()

    def show(self, name: str, done: int, total: int, words: str) -> None:
        """Show how many of how many images are done, with a remark such as "round 2" or "41.8 ms"."""
        if (name, done, total, words) != self._lane:
            self._lane = (name, done, total, words)
            self._draw_if_different()

    def paint_with(self, palette: Palette) -> None:
        """Use another palette: the theme changed."""
        if palette != self._palette:
            self._palette = palette
            self._draw_if_different()

    def picture(self) -> Text:
        """The lane at the widget's width."""
        return lane_text(*self._lane, self.content_size.width, self._palette, self._charset)

    def render(self) -> Text:
        self._drawn = self.picture()
        return self._drawn

    def _draw_if_different(self) -> None:
        now = self.picture()
        if now != self._drawn or now.spans != self._drawn.spans:
            self.refresh()
