"""Decide when a model reads new turns, and how many: several at once, but no more than it can process."""

from __future__ import annotations

from collections.abc import Sequence

#: Tokens of new messages after which the model is called while a session is active.
READ_TOKENS = 4_000

#: Maximum turns, and tokens of their messages, per extraction. A larger turn is read separately, in pieces.
TURNS_AT_ONCE, MAX_INPUT_TOKENS = 50, 60_000


def turns_to_extract(tokens: Sequence[int], *, is_idle: bool) -> int:
    """Return how many of the unread turns to read now, or 0 if there is too little new content.

    `tokens` are those of each unread turn's messages.
    """
    tokens = tokens[:TURNS_AT_ONCE]
    if not (is_idle or len(tokens) == TURNS_AT_ONCE or sum(tokens) >= READ_TOKENS):
        return 0
    room, count = MAX_INPUT_TOKENS, 0
    for size in tokens:
        room -= size
        if room < 0 and count:
            break
        count += 1
    return count
