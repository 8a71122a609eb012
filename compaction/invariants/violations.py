"""The input and the result of a validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.capabilities import Capabilities
from compaction.messages import JSON, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A provider rule that a prompt breaks. `position` is an index into the validated messages, from 0."""

    rule: str
    position: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A prompt to validate: its messages as JSON and parsed, and the capabilities of its model."""

    items: Sequence[JSON]
    messages: Sequence[Message]
    capabilities: Capabilities
    system: JSON = None
    tools: JSON = None
    edited: range = range(0)  #: indices of messages that existed when an earlier one was last edited
