"""Links between views of the same data, of which one is current."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link such as a tab, a sort order or a filter. `count` is the number of its items."""

    label: str
    address: str
    is_current: bool
    count: int | None = None
