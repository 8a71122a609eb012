"""Links between views of the same data, of which one is current."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A tab, a column to sort by, a filter, or the like. `count` is the number of its items."""

    label: str
    address: str
    is_current: bool
    count: int | None = None
