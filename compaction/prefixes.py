"""The prefix that two versions of a prompt or a history share."""

from __future__ import annotations

from collections.abc import Sequence


def common_length(old: Sequence[object], new: Sequence[object]) -> int:
    """Return the number of items at the beginning that are equal in both."""
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        if before is not after and before != after:
            return index
    return min(len(old), len(new))
