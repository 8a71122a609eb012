"""Validate the prompts of a replay. Checks only the new messages if possible."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.messages import Message, Role
from compaction.rendering import render
from compaction.validation import validate


class Validity:
    """Validates the prompts of one session in order.

    A prompt that validly continues a valid one is valid (`compaction.continuation`). Others are rendered and
    validated completely, as is every prompt after a compaction.
    """

    def __init__(self, format: str, capabilities: Capabilities) -> None:
        self._format, self._capabilities = format, capabilities
        self._continuation: Continuation | None = None

    def is_valid(self, prompt: Sequence[Message], shared: int, *, grew: bool) -> bool:
        """Return whether the prompt is valid.

        Its first `shared` messages are those of the last prompt; `grew` is whether these are all of them.
        """
        if self._continuation is not None and grew:
            self._continuation = self._continuation.after(prompt[shared:], self._format)
            if self._continuation.regular and not self._continuation.open_calls:
                return True
        rendered = render(prompt, format=self._format, capabilities=self._capabilities)
        valid = not validate(
            rendered.messages, self._format, system=rendered.system, capabilities=self._capabilities
        )
        self._continuation = Continuation() if valid and _ends_closed(prompt) else None
        return valid


def _ends_closed(prompt: Sequence[Message]) -> bool:
    """Whether no tool call is open at the end, so that appended messages start a new exchange."""
    return bool(prompt) and prompt[-1].role is not Role.ASSISTANT
