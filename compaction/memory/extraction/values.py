"""What a model that reads suggests, one change of one item at a time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from compaction.memory.origins import Key

#: Suggestions of one answer; more are not looked at.
MAX_SUGGESTIONS = 20

#: Characters of an item, and of the reason why another one is stale. Longer ones are not taken.
MAX_ITEM, MAX_REASON = 300, 120


class Step(StrEnum):
    ADD = "add"
    REPLACE = "replace"
    RESOLVE = "resolve"  #: it is settled
    REMOVE = "remove"  #: it was wrong, or is no longer of use
    STALE = "stale"  #: it no longer holds: the one thing that may be said of others' items


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`text` is the new item, or the reason why the item of `key` is stale. For an addition the item in
    `key` is "". `turn` and `position` name where the model has it from."""

    step: Step
    key: Key
    text: str
    turn: int
    position: int | None
