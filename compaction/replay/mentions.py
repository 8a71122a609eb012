"""The identifiers that a prompt mentions, updated from one prompt to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compaction.identifiers.texts import message_references
from compaction.messages import Message
from compaction.prefixes import common_length


class PromptMentions:
    """The prompt of the last call: its messages and their identifiers.

    `known` are the identifiers of pushed messages, so that each is scanned only once per session.
    """

    def __init__(self, messages: Sequence[Message], known: Sequence[frozenset[str]]) -> None:
        self.messages: list[Message] = []
        self._mentioned: Counter[str] = Counter()
        self._known = dict(zip(map(id, messages), known, strict=True))
        self._generated: dict[int, tuple[Message, frozenset[str]]] = {}

    def show(self, messages: Sequence[Message], *, has_grown: bool = False) -> int:
        """Set the next prompt. Return the number of leading messages that it shares with the last one.

        `has_grown` states that it begins with the last one, so that only the new messages are read.
        """
        shared = len(self.messages) if has_grown else common_length(self.messages, messages)
        old, new = self.messages[shared:], messages[shared:]
        moved = set(map(id, old)).intersection(map(id, new))
        for message in old:
            if id(message) not in moved:
                self._mentioned.subtract(self._references(message))
        for message in new:
            if id(message) not in moved:
                self._mentioned.update(self._references(message))
        self.messages[shared:] = new
        return shared

    def __contains__(self, name: str) -> bool:
        return self._mentioned[name] > 0

    def _references(self, message: Message) -> frozenset[str]:
        known = self._known.get(id(message))
        if known is not None:
            return known
        if id(message) not in self._generated:  # the message is stored as well, so that its id is not reused
            self._generated[id(message)] = (message, message_references(message))
        return self._generated[id(message)][1]
