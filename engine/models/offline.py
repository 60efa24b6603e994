"""Keeps the libraries of models from downloading anything: what is measured is on this machine."""

from __future__ import annotations

import os
import sys


def enter() -> None:
    """Tell the Hugging Face libraries to use what is on this machine, whether they were imported already or not."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    constants = sys.modules.get("huggingface_hub.constants")
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
