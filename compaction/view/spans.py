"""Spans of positions, for checks whether one of them contains others."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Spans:
    """Spans in order, without those within another one. A check takes logarithmic time.

    A session may have hundreds of evictions, if its client omits messages at each call.
    """

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def cover(self, first: int, last: int) -> bool:
        """Return whether one of the spans contains `first` to `last`."""
        index = bisect_right(self._firsts, first) - 1
        return index >= 0 and last <= self._lasts[index]

    def add(self, first: int, last: int) -> None:
        """Add a span that the others do not cover."""
        within = slice(bisect_left(self._firsts, first), bisect_right(self._lasts, last))
        self._firsts[within], self._lasts[within] = [first], [last]
