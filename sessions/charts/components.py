"""Tokens per prompt component and turn, as columns for the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compaction.breakdown import PROMPT_ORDER


def component_columns(turns: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    """Return one column for each component that occurs in any turn."""
    shown = [name for name in PROMPT_ORDER if any(turn.get(name) for turn in turns)]
    return {name: [turn.get(name, 0) for turn in turns] for name in shown}
