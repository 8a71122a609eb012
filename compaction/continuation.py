"""Continuation state: whether pushed messages validly continue the preceding ones.

It is updated on each push without reading earlier messages, so that a prompt can be served from the stored
bytes. The check is conservative: a regular conversation is valid, an irregular one must be rendered. It does
not cover rules about the prompt as a whole, such as repeated ids (A3) and cache breakpoints (A12).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compaction.dialects import DIALECTS, get_dialect
from compaction.dialects.base import Dialect
from compaction.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """The tool calls without results, and whether every message so far was regular."""

    open_calls: tuple[str, ...] = ()
    regular: bool = True

    def after(self, messages: Iterable[Message], format: str | None) -> Continuation:
        """Return the state after `messages`, pushed to a session in the dialect `format`.

        A message in another dialect is irregular, because its bytes cannot be served in the session's
        dialect. None means that the dialect is not detected yet: only messages that are valid in every
        dialect are regular, except in those that share no messages with others.
        """
        state = self
        for message in messages:
            dialect = get_dialect(message.format or format)
            if format is None:
                sound = all(_is_sound_in(each, message) for each in DIALECTS.values() if not each.is_distinct)
            else:
                sound = dialect.name == format and _is_sound(message, dialect)
            state = state._after_one(message, dialect, sound)
        return state

    def detected(self, format: str | None) -> Continuation:
        """Return the state when the dialect of a session with messages is detected to be `format`."""
        if format is None or not get_dialect(format).is_distinct:
            return self
        return Continuation(open_calls=self.open_calls, regular=False)

    def _after_one(self, message: Message, dialect: Dialect, is_sound: bool) -> Continuation:
        open_calls, follows = dialect.next_calls(self.open_calls, message)
        return Continuation(open_calls=open_calls, regular=self.regular and is_sound and follows)


def _is_sound(message: Message, dialect: Dialect) -> bool:
    """Return whether a message of the dialect can be served unchanged."""
    return not message.patched and not any(map(dialect.needs_repair, message.parts))


def _is_sound_in(dialect: Dialect, message: Message) -> bool:
    """Return whether the message could also be served unchanged in this dialect."""
    if not dialect.recognizes(message.source):
        return False
    read = dialect.parse_message(message.source, position=message.position, turn=message.turn)
    return _is_sound(read, dialect)
