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

    Only the new messages of a prompt that grew are validated, if no tool call is open before them. Regular
    messages are valid (`compaction.continuation`); others are rendered and validated.
    """

    def __init__(self, format: str, capabilities: Capabilities) -> None:
        self._format, self._capabilities = format, capabilities
        self._can_continue = False

    def is_valid(self, prompt: Sequence[Message], shared: int, *, grew: bool) -> bool:
        """Return whether the prompt is valid.

        Its first `shared` messages are those of the last prompt; `grew` is whether these are all of them.
        """
        messages = prompt[shared:] if grew and self._can_continue else prompt
        state = Continuation().after(messages, self._format)
        if state.regular and not state.open_calls:
            self._can_continue = True
            return True
        rendered = render(messages, format=self._format, capabilities=self._capabilities)
        valid = not validate(
            rendered.messages, self._format, system=rendered.system, capabilities=self._capabilities
        )
        self._can_continue = valid and bool(prompt) and prompt[-1].role is not Role.ASSISTANT
        return valid
