"""A prompt that grows from call to call, like a stored prompt between two compactions."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.messages import Message
from compaction.view import Entry, View
from compaction.view.components import Components


class GrowingPrompt:
    """A view, and the messages that were appended to it.

    `messages` are those that the model sees, and `tokens` is the estimated size of the whole prompt.
    Appending takes time for the new messages only; the view of all of them is built when it is needed.
    """

    def __init__(self, view: View) -> None:
        self._base = view
        self._following: list[Message] = []
        self._beside = view.all_components.system
        self.messages = list(view.prompt_messages)
        self.tokens = view.tokens

    @property
    def has_edits(self) -> bool:
        return bool(self._base.edits)

    @property
    def view(self) -> View:
        """The view of the whole prompt. Its transcript omits messages that are no longer shown."""
        base = self._base
        if self._following or self._beside != base.all_components.system:
            shown = {entry.first for entry in base.entries}
            self._base = View(
                entries=(*base.entries, *map(_entry, self._following)),
                edits=base.edits,
                all_components=Components(system=self._beside),
                transcript=(*(m for m in base.transcript if m.position in shown), *self._following),
            )
            self._following = []
        return self._base

    def append(self, messages: Sequence[Message], *, beside: int) -> None:
        """Append pushed messages. `beside` are the tokens of the system prompt and tools."""
        self.messages += messages
        self._following += messages
        self.tokens += sum(message.tokens for message in messages) + beside - self._beside
        self._beside = beside


def _entry(message: Message) -> Entry:
    return Entry(message=message, first=message.position, last=message.position)
