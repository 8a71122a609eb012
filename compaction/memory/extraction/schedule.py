"""When a model is asked to read, and how much at once: not every turn by itself, and never more than fits."""

from __future__ import annotations

from collections.abc import Sequence

#: Tokens of new messages for which the model is asked while a session goes on.
READ_TOKENS = 4_000

#: Turns, and tokens of their messages, that one reading takes; a larger turn is read alone, in pieces.
TURNS_AT_ONCE, MAX_INPUT_TOKENS = 50, 60_000


def turns_to_extract(tokens: Sequence[int], *, rests: bool) -> int:
    """How many of the next unread turns are to be read now; 0: none yet. `tokens` are those of each turn's
    messages, `rests` whether the session has come to rest."""
    tokens = tokens[:TURNS_AT_ONCE]
    if not (rests or len(tokens) == TURNS_AT_ONCE or sum(tokens) >= READ_TOKENS):
        return 0
    room, count = MAX_INPUT_TOKENS, 0
    for size in tokens:
        room -= size
        if room < 0 and count:
            break
        count += 1
    return count
