"""Paths that a person types: whatever they hold, looking at them raises nothing."""

from __future__ import annotations

from pathlib import Path


def expanded(text: str) -> Path:
    """The path with `~` and `~name` replaced; a home that nobody knows stays as it was typed."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for a name that no file can have, and where nobody may look."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; False as above."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
