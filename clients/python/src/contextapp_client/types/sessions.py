"""Sessions, their turns and their tools."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from contextapp_client.types.common import BilledTokens, Format, JsonObject, Positions, PromptSize, Redacted


class NewSession(TypedDict, total=False):
    """Settings for a new session.

    `format` is detected if omitted. `budget` is `{"input_tokens": n}`. `policy` is the name of a preset, or
    an object with `preset` and the settings that differ from it. `parent` is the id of the session that
    starts this one as a sub-agent.
    """

    model: str
    format: Format
    agent: str
    title: str
    tags: list[str]
    metadata: JsonObject
    parent: str
    budget: dict[str, int]
    policy: str | JsonObject
    system: Any
    tools: list[JsonObject]


class Calibration(TypedDict):
    """How the provider counts: `factor` x estimated tokens + `overhead`.

    `reports` is the number of the session's turns from which it was learned.
    """

    factor: float
    overhead: int
    reports: int


class Reconciliation(TypedDict):
    """The outcome of a sync.

    `session` is the id of the session that has the history: the one that was synced, or a fork of it.
    `status` is `unchanged`, `appended`, `compacted` (the client had compacted its context), `forked` (the
    history continues from an earlier point) or `side` (a side request outside the conversation).
    """

    session: str
    status: str
    first_new: int
    turn: int | None
    redacted: list[JsonObject]


class SessionInfo(TypedDict):
    """A session with its counters. Costs are in micro-dollars (millionths of a dollar).

    `format` is None until it is detected.
    """

    id: str
    external_id: str
    title: str
    agent: str
    model: str
    format: Format | None
    tags: list[str]
    metadata: JsonObject
    created_at: str
    last_active_at: str
    turns: int
    messages: int
    compactions: int
    prompt: PromptSize
    context_window: int | None
    calibration: Calibration
    last_prompt_tokens: int
    peak_prompt_tokens: int
    billed_tokens: BilledTokens
    cost_microusd: int
    unpriced_turns: int


class TriggeredCompaction(TypedDict):
    """A compaction that a push triggered."""

    trigger: str
    compaction: int | None
    state: str
    reason: str


class OutputSpike(TypedDict):
    """Tool outputs of a turn that are far larger than the mean of the earlier turns, in estimated tokens.

    `position` is that of the message with the largest output. `tool` is empty if an earlier push made the
    call.
    """

    tokens: int
    mean: int
    position: int
    tool: str


class PushResult(TypedDict):
    """The result of a push. `cost_microusd` is None without usage or a known price."""

    turn: int
    positions: Positions
    prompt: PromptSize
    cost_microusd: int | None
    fired: list[TriggeredCompaction]
    output_spike: OutputSpike | None
    redacted: list[Redacted]


class Latency(TypedDict, total=False):
    """How long a model call took, in milliseconds. Both values are optional."""

    time_to_first_token_ms: int | None
    duration_ms: int | None


class Turn(TypedDict):
    """A stored turn with its messages as pushed."""

    turn: int
    at: str
    source: Literal["push", "gateway", "telemetry", "log"]
    model: str
    positions: Positions | None
    messages: list[JsonObject]
    prompt_estimate: int
    prompt_reported: int | None
    prompt_served: int | None
    components: dict[str, int]
    usage: BilledTokens | None
    output_reported: int | None
    cost_microusd: int | None
    billed: bool
    latency: Latency | None
    output_spike: int | None


class Comment(TypedDict):
    """A member's comment on a turn. `author` is None if the account was deleted."""

    id: int
    turn: int
    author: str | None
    text: str
    created_at: str
    edited_at: str | None


class ToolResult(TypedDict):
    """The result of an agent tool, to be returned to the model."""

    content: str
    is_error: bool


class Match(TypedDict):
    """A line of content. `match` is false for lines of context around a match."""

    line: int
    text: str
    match: bool


class Content(TypedDict):
    """Content retrieved by its handle: all or part of it, or with `grep` the matching lines."""

    handle: str
    position: int
    turn: int
    tool: str
    rule: str
    lines: int
    characters: int
    unit: NotRequired[str]
    offset: NotRequired[int]
    text: NotRequired[str]
    next_offset: NotRequired[int | None]
    matches: NotRequired[list[Match]]
    match_count: NotRequired[int]


class SearchResult(TypedDict):
    """A message found by a search. `session` is set if the search covers all sessions.

    `marks` are the start and end of each match in `snippet`, in characters.
    """

    session: NotRequired[FoundSession]
    position: int
    turn: int
    at: str
    role: str
    tool: str
    is_error: bool
    snippet: str
    marks: list[tuple[int, int]]
    score: float
    in_prompt: Literal["shown", "shortened", "evicted"]
    handle: str | None
    changes: list[JsonObject]


class FoundSession(TypedDict):
    """The session of a message found by a search of all sessions."""

    id: str
    external_id: str
    title: str
