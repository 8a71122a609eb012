"""What a check of a prompt reports, and what every check looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.capabilities import Capabilities
from compaction.messages import JSON, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken provider rule. `position` is the index in the list that was checked, from 0."""

    rule: str
    position: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A prompt under check: its JSON, the same as values, and the model that it is for."""

    format: str
    items: Sequence[JSON]
    messages: Sequence[Message]
    capabilities: Capabilities
    system: JSON = None
    tools: JSON = None
    edited: range = range(0)  #: indices of messages that were there when an earlier one was last edited

    @property
    def anthropic(self) -> bool:
        return self.format == "anthropic"
