"""Select the segments to read for a query from the lists of segments that contain its terms."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

#: Digits of the sums that are compared.
_DIGITS, _ROUNDING = 6, 1e-6


def best_segments(lists: Sequence[tuple[float, Collection[int]]], limit: int) -> dict[int, float]:
    """Return the segments with the highest values, each the sum of the values of the lists that contain it.

    `lists` are pairs of a value and distinct numbers of segments. The result contains at least the `limit`
    best segments, if there are as many, and all that have the same value as the last of these.
    """
    ordered = sorted(lists, key=lambda each: -each[0])
    rest = sum(value for value, _ in ordered)
    totals: dict[int, float] = {}
    is_complete = False
    for value, segments in ordered:
        if not is_complete and len(totals) >= limit:
            least = heapq.nlargest(limit, totals.values())[-1]
            # Lists of common terms are long. No segment that occurs only in the remaining ones can be among
            # the best, nor can those that are too far behind.
            if least > rest + _ROUNDING:
                is_complete = True
                totals = {id: total for id, total in totals.items() if total + rest + _ROUNDING >= least}
        if is_complete:
            for id in totals.keys() & segments:
                totals[id] += value
        else:
            for id in segments:
                totals[id] = totals.get(id, 0.0) + value
        rest -= value
    # Equal sums of different values differ in their last digits.
    rounded = {id: round(total, _DIGITS) for id, total in totals.items()}
    if len(rounded) <= limit:
        return rounded
    least = heapq.nlargest(limit, rounded.values())[-1]
    return {id: total for id, total in rounded.items() if total >= least}
