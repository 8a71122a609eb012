"""Prompts and their compaction."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from contextapp_client.types.common import Format, JsonObject, Positions


class ManifestEntry(TypedDict):
    """The source of a message in a prompt. `rule` is `verbatim` or the strategy that produced it."""

    positions: Positions
    role: str
    rule: str
    tokens_raw: int
    tokens: int


class CompactionRecord(TypedDict):
    """A compaction. `number` is None for a preview; `record` contains statistics."""

    number: int | None
    state: str
    trigger: str
    engine: str
    reason: str
    instructions: str
    turn: int
    tokens_before: int | None
    tokens_after: int | None
    record: JsonObject
    cost_microusd: int | None
    created_at: str | None
    finished_at: str | None
    recap: NotRequired[str | None]
    edits: NotRequired[list[JsonObject]]


class MessageWindow(TypedDict, total=False):
    """A window by number of messages. Only `max_messages` is required."""

    max_messages: int
    preserve_system: bool
    min_keep_recent: int


class CompactedPrompt(TypedDict, total=False):
    """A compacted prompt. Pass `system`, `messages` and `tools`, as far as present, to the provider.

    `window` counts what the message window removed, `record` has the statistics of the compaction, and the
    positions of `edits` are indices of the messages that you sent.
    """

    system: Any
    messages: list[JsonObject]
    tools: list[JsonObject]
    format: Format
    tokens: int
    raw_tokens: int
    budget: int
    occupancy: float
    fits: bool
    reason: str | None
    window: dict[str, int] | None
    record: JsonObject
    recap: str | None
    edits: list[JsonObject]


class Violation(TypedDict):
    """A provider rule that a prompt violates. `position` is the index of the message."""

    rule: str
    position: int | None
    message: str
