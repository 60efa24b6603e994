"""Models that can be measured: from what a person names to a callable and its inputs.

`load` belongs in the measuring process. The parent process uses `engine.models.check` and `engine.models.catalogue`,
which import neither torch nor the user's code. The contract is in `engine.models.source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.plan import BUILT_IN_MODEL

if TYPE_CHECKING:
    from engine.models.source import LoadedModel
    from engine.plan import Plan

__all__ = ["load"]


def load(plan: Plan, device: str = "cpu") -> LoadedModel:
    """The plan's model in eval mode on the CPU, with its inputs; imports torch and runs the user's code.

    Raises ModelError for everything that the person can put right.
    """
    if plan.model == BUILT_IN_MODEL:
        from engine.models import builtin

        return builtin.load()
    raise ModelError(f"{plan.model}: no such model.")
