"""The shapes of answers, as the API gives them. Answers may hold more than is named here."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Format = Literal["anthropic", "openai"]

#: A JSON object whose shape is the provider's matter.
JsonObject = dict[str, Any]


class NewSession(TypedDict, total=False):
    """What a session may be made with. `budget` is `{"input_tokens": n}`; `policy` a preset's name, or an
    object with `preset` and the settings that differ."""

    model: str
    format: Format
    agent: str
    title: str
    tags: list[str]
    metadata: JsonObject
    budget: dict[str, int]
    policy: str | JsonObject
    system: Any
    tools: list[JsonObject]


class Billed(TypedDict):
    """Tokens in four disjoint parts."""

    uncached: int
    cache_read: int
    cache_write: int
    output: int


class PromptSize(TypedDict):
    """Tokens of the prompt that the next fetch gets, of the whole transcript, and of the budget.

    `occupancy` is tokens / budget, calibrated by reported usage.
    """

    tokens: int
    raw_tokens: int
    budget: int
    occupancy: float


class SessionInfo(TypedDict):
    """A session with its counters. Costs are in micro-dollars."""

    id: str
    external_id: str
    title: str
    agent: str
    model: str
    format: Format
    tags: list[str]
    metadata: JsonObject
    created_at: str
    last_active_at: str
    turns: int
    messages: int
    compactions: int
    prompt: PromptSize
    last_prompt_tokens: int
    peak_prompt_tokens: int
    billed_tokens: Billed
    cost_microusd: int
    unpriced_turns: int


class Positions(TypedDict):
    """First and last number of a run of messages."""

    first: int
    last: int


class Fired(TypedDict):
    """A trigger that a push fired, and what came of it."""

    trigger: str
    compaction: int | None
    state: str
    reason: str


class Redacted(TypedDict):
    """Secrets of one kind that were taken out of a push."""

    kind: str
    count: int


class PushResult(TypedDict):
    """What a push did. `cost_microusd` is None where the model is unpriced or no usage came."""

    turn: int
    positions: Positions
    prompt: PromptSize
    cost_microusd: int | None
    fired: list[Fired]
    redacted: list[Redacted]


class Turn(TypedDict):
    """A stored turn with its messages as they were pushed."""

    turn: int
    at: str
    model: str
    positions: Positions | None
    messages: list[JsonObject]
    prompt_estimate: int
    prompt_reported: int | None
    prompt_served: int | None
    components: dict[str, int]
    usage: Billed | None
    cost_microusd: int | None


class ManifestEntry(TypedDict):
    """Where one message of a prompt comes from. `rule` is `verbatim`, or what made it look as it does."""

    positions: Positions
    role: str
    rule: str
    tokens_raw: int
    tokens: int


class ToolAnswer(TypedDict):
    """What one of the agent's own tools answered."""

    content: str
    is_error: bool


class CompactionRecord(TypedDict):
    """A compaction. `number` is None for a preview; `record` has every figure of the plan."""

    number: int | None
    state: str
    trigger: str
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


class Match(TypedDict):
    """A line of a content; `match` is false for a line of the context around one."""

    line: int
    text: str
    match: bool


class Content(TypedDict):
    """What stands behind a handle: a piece of it, or with `grep` the lines that match."""

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


class Hit(TypedDict):
    """A message that a search found."""

    position: int
    turn: int
    role: str
    tool: str
    snippet: str


class MemoryFields(TypedDict, total=False):
    """Working memory. `recent_edits` are diffs; `tried` says what did not work, and why."""

    task: str
    important_files: list[str]
    decisions: list[str]
    open_questions: list[str]
    next: str
    blockers: list[str]
    recent_edits: list[str]
    tried: list[str]


class MemoryItem(TypedDict):
    """Where an item of working memory comes from. `stale` says why it no longer holds."""

    field: str
    text: str
    author: str
    via: str
    turn: int
    message: int | None
    stale: str | None


class Fact(TypedDict):
    """Something worth knowing in other sessions of the agent. `seen_in` counts the sessions that had it."""

    id: str
    agent: str
    field: str
    text: str
    state: Literal["proposed", "accepted", "rejected"]
    session: str | None
    revision: int | None
    seen_in: int
    seen_at: str
    created_at: str
    confirmed_at: str
    expires_at: str | None
    doubts: list[JsonObject]


class Memory(TypedDict):
    """A revision of working memory. `warning` says where it is larger than is asked for."""

    revision: int
    memory: MemoryFields
    tokens: int
    turn: int | None
    author: str | None
    reason: str
    at: str | None
    warning: str | None
    items: list[MemoryItem]


class UsageRow(TypedDict):
    """Sums. Costs are in micro-dollars, without the unpriced turns; rows have the names of their groups."""

    turns: int
    unpriced_turns: int
    billed_tokens: Billed
    cost_microusd: int
    day: NotRequired[str]
    model: NotRequired[str]
    agent: NotRequired[str]
    tag: NotRequired[str]


class Usage(TypedDict):
    """Tokens and cost of a span of days."""

    time_zone: str
    group_by: list[str]
    total: UsageRow
    data: list[UsageRow]


class Violation(TypedDict):
    """A rule of a provider that a prompt breaks; `position` is the message's index."""

    rule: str
    position: int | None
    message: str
