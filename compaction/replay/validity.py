"""Whether each prompt of a replay is valid for its provider, by what is new in it where that will do."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.messages import Message, Role
from compaction.rendering import render
from compaction.validation import validate


class Validity:
    """Judges the prompts of one session in their order.

    A prompt that goes on regularly where a valid one ended is valid (`invariants.continuation`); any other
    is rendered and validated whole, as every prompt behind a compaction is.
    """

    def __init__(self, format: str, capabilities: Capabilities) -> None:
        self._format, self._capabilities = format, capabilities
        self._seam: Continuation | None = None

    def holds(self, prompt: Sequence[Message], shared: int, *, grew: bool) -> bool:
        """`shared` messages at its beginning are those of the last prompt, which `grew` where that is all."""
        if self._seam is not None and grew:
            self._seam = self._seam.after(prompt[shared:], self._format)
            if self._seam.regular and not self._seam.open_calls:
                return True
        rendered = render(prompt, format=self._format, capabilities=self._capabilities)
        valid = not validate(
            rendered.messages, self._format, system=rendered.system, capabilities=self._capabilities
        )
        self._seam = Continuation() if valid and _ends_closed(prompt) else None
        return valid


def _ends_closed(prompt: Sequence[Message]) -> bool:
    """Whether no call waits for its answer at the end, so that what is appended begins anew."""
    return bool(prompt) and prompt[-1].role is not Role.ASSISTANT
