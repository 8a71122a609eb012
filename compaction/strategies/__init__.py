"""The strategies: a file each, and a line here. None knows another.

A strategy takes the view and the circumstances, and gives the view after its edits, and the edits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from compaction.context import Context
from compaction.edits import Edit
from compaction.strategies import (
    clear_thinking,
    clip,
    collapse,
    dedupe,
    drop_oldest,
    last_resort,
    offload,
    recap,
    recency,
    shed,
    supersede,
)
from compaction.view import View


class Strategy(Protocol):
    """What a strategy's module offers. `MEANING` tells people in a line what became of an output."""

    NAME: str
    MEANING: str

    def run(self, view: View, context: Context) -> tuple[View, tuple[Edit, ...]]: ...


_ALL: tuple[Strategy, ...] = (
    dedupe,
    supersede,
    collapse,
    clip,
    recency,
    clear_thinking,
    recap,
    offload,
    drop_oldest,
    shed,
    last_resort,
)

STRATEGIES: Mapping[str, Strategy] = {strategy.NAME: strategy for strategy in _ALL}
