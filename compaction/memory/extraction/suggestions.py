"""Suggestions of a model. Each is one change to one item."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from compaction.memory.origins import Key

#: Maximum number of suggestions in one reply; further ones are ignored.
MAX_SUGGESTIONS = 20

#: Maximum characters of an item, and of the reason why an item is stale. Longer ones are ignored.
MAX_ITEM, MAX_REASON = 300, 120


class Step(StrEnum):
    """The kinds of changes."""

    ADD = "add"
    REPLACE = "replace"
    RESOLVE = "resolve"  #: the item is done
    REMOVE = "remove"  #: the item was wrong or is no longer useful
    STALE = "stale"  #: no longer valid; the only change allowed for items of other authors


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One change. `text` is the new item, or the reason why the item of `key` is stale.

    For an addition, the item in `key` is "". `turn` and `position` identify the source message.
    """

    step: Step
    key: Key
    text: str
    turn: int
    position: int | None
