"""The choice of the theme: moving over a name shows it at once, escape goes back to the one before."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.screens.dialog import Dialog
from tui.theming import Themes


class ThemePicker(Dialog[str]):
    """Answers the chosen theme's name, None when the one before stays."""

    HEADING = "Theme"
    KEYS = "enter keep   escape back"

    def __init__(self, themes: Themes, current: str) -> None:
        super().__init__(classes="aside")
        self._themes = themes
        self._before = current

    def body(self) -> Iterable[Widget]:
        options = [Option(Text(name), id=name) for name in self._themes.names]
        yield OptionList(*options, id="themes", markup=False, compact=True)
        yield Static(id="theme-words")

    def on_mount(self) -> None:
        options = self.query_one("#themes", OptionList)
        options.highlighted = self._themes.names.index(self._before)
        options.focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_id is not None:
            self.app.theme = event.option_id
            self.query_one("#theme-words", Static).update(Text(self._themes.get(event.option_id).description))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_close(self) -> None:
        self.app.theme = self._before
        self.dismiss(None)
