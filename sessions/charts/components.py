"""What a prompt was made of, turn by turn: tokens by component, as columns for the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: In the order in which they are stacked: what stays from turn to turn lies at the bottom.
COMPONENTS = ("system", "tools", "memory", "recap", "user", "assistant", "tool_outputs")


def component_columns(turns: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    """A column for each component that any of the turns has."""
    shown = [name for name in COMPONENTS if any(turn.get(name) for turn in turns)]
    return {name: [turn.get(name, 0) for turn in turns] for name in shown}
