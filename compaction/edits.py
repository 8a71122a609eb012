"""Edits: recorded changes to the prompt. A prompt is `apply(edits, messages)` (see `compaction.view`).

An edit contains its replacement text. Applying it needs no policy, counter or strategy, so later versions
rebuild a past prompt byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Op(StrEnum):
    """The operation of an edit."""

    REPLACE = "replace"  #: one part of one message shows `text` instead of its content
    STRIP = "strip"  #: one part of one message is removed (thinking)
    EVICT = "evict"  #: messages `position`..`end` are removed; one with `text`, if any, replaces them
    SHED = "shed"  #: a component that is not a message (`text` names it: memory, tools) is removed
    RESTORE = "restore"  #: a component that was shed is shown again
    MEMORY = "memory"  #: `text` is the working memory, shown before message `position`; "" removes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change to the prompt.

    `position` and `end` are message positions, both inclusive; `part` is the index of the part within its
    message, for REPLACE and STRIP. `handle` retrieves the original content. `reason` is a one-line
    explanation for users. `references` are the identifiers that the edit removed from the prompt, those most
    likely to be needed first, at most `MAX_REFERENCES`. Token figures are those of the changed content.

    A later EVICT replaces all earlier edits within its span, including an earlier EVICT; a later REPLACE of
    the same part replaces the earlier one, and a later MEMORY the earlier one.
    """

    strategy: str
    op: Op
    position: int
    end: int
    part: int | None = None
    text: str = ""
    handle: str | None = None
    reason: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    references: tuple[str, ...] = ()


#: Maximum number of identifiers stored with one edit: enough to recognize later references.
MAX_REFERENCES = 64


#: Returns the handle of a part of the message at a position.
MakeHandle = Callable[[int, int], str]


def default_handle(position: int, part: int) -> str:
    """Return a predictable handle, for use without a store. Handles of a store cannot be guessed."""
    return "h_" + hashlib.sha256(f"{position}.{part}".encode()).hexdigest()[:10]
