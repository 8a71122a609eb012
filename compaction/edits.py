"""Edits: the recorded changes of what is shown. A prompt is `apply(edits, messages)` (see `view.py`).

Edits say *what* stands in the prompt, with the text itself, so that applying them asks for no policy,
no counter and no strategy: a prompt of the past comes out byte for byte under later versions too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Op(StrEnum):
    """What an edit does."""

    REPLACE = "replace"  #: one part of one message shows `text` instead of its content
    STRIP = "strip"  #: one part of one message is left out (thinking)
    EVICT = "evict"  #: messages `position`..`end` go; a message of ours with `text`, if any, stands for them
    SHED = "shed"  #: a component that is not a message (`text`: memory, tools) is left out
    RESTORE = "restore"  #: a component that was shed is shown again


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of what is shown.

    `position` and `end` are message positions, both inclusive; `part` is the index of the part within
    its message, for REPLACE and STRIP. `handle` brings the whole content back. `reason` is one factual
    line for people. `references` are the identifiers that the prompt no longer shows by this edit, at
    most `MAX_REFERENCES`, most likely needed first. Token figures are of the touched content.

    A later EVICT whose span covers earlier edits replaces them, an earlier EVICT included; a later
    REPLACE of the same part replaces the earlier one.
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


#: Identifiers kept with one edit: enough for what a later message may name, small enough to store.
MAX_REFERENCES = 64
