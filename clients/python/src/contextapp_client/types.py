"""Types of API responses. Responses may contain more fields than are listed here."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Format = Literal["anthropic", "openai", "openai-responses"]

#: A JSON object in the provider's format.
JsonObject = dict[str, Any]


class NewSession(TypedDict, total=False):
    """Settings of a new session.

    `format` is detected if omitted. `budget` is `{"input_tokens": n}`. `policy` is the name of a preset, or
    an object with `preset` and the settings that differ from it.
    """

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


class BilledTokens(TypedDict):
    """Billed tokens in four disjoint parts."""

    uncached: int
    cache_read: int
    cache_write: int
    output: int


class PromptSize(TypedDict):
    """Estimated tokens of the current prompt, of the prompt without compaction, and the budget.

    `occupancy` is the share of the budget in use: `tokens` as the provider counts them, divided by `budget`.
    """

    tokens: int
    raw_tokens: int
    budget: int
    occupancy: float


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
    calibration: Calibration
    last_prompt_tokens: int
    peak_prompt_tokens: int
    billed_tokens: BilledTokens
    cost_microusd: int
    unpriced_turns: int


class Positions(TypedDict):
    """The first and last position of consecutive messages, both inclusive."""

    first: int
    last: int


class TriggeredCompaction(TypedDict):
    """A compaction that a push triggered."""

    trigger: str
    compaction: int | None
    state: str
    reason: str


class Redacted(TypedDict):
    """Secrets of one kind that were redacted in a push."""

    kind: str
    count: int


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
    model: str
    positions: Positions | None
    messages: list[JsonObject]
    prompt_estimate: int
    prompt_reported: int | None
    prompt_served: int | None
    components: dict[str, int]
    usage: BilledTokens | None
    cost_microusd: int | None
    latency: Latency | None
    output_spike: int | None


class ManifestEntry(TypedDict):
    """The source of a message in a prompt. `rule` is `verbatim` or the strategy that produced it."""

    positions: Positions
    role: str
    rule: str
    tokens_raw: int
    tokens: int


class ToolResult(TypedDict):
    """The result of an agent tool, to be returned to the model."""

    content: str
    is_error: bool


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
    """A message found by a search."""

    position: int
    turn: int
    role: str
    tool: str
    snippet: str


class MemoryFields(TypedDict, total=False):
    """Working memory. `recent_edits` are diffs; `tried` lists failed attempts and why they failed."""

    task: str
    important_files: list[str]
    decisions: list[str]
    open_questions: list[str]
    next: str
    blockers: list[str]
    recent_edits: list[str]
    tried: list[str]


class MemoryItem(TypedDict):
    """An item of working memory with its origin. `stale` is the reason why it is no longer true, or None."""

    field: str
    text: str
    author: str
    via: str
    turn: int
    message: int | None
    stale: str | None


class Fact(TypedDict):
    """A fact shared between sessions. `seen_in` is the number of sessions whose memory contained it."""

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
    """A revision of working memory. `warning` is set if the memory is too large."""

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
    """Totals. Costs are in micro-dollars, without unpriced turns. Rows contain the values of their groups."""

    turns: int
    unpriced_turns: int
    billed_tokens: BilledTokens
    cost_microusd: int
    day: NotRequired[str]
    model: NotRequired[str]
    agent: NotRequired[str]
    tag: NotRequired[str]


class Usage(TypedDict):
    """Tokens and cost in a period."""

    time_zone: str
    group_by: list[str]
    total: UsageRow
    data: list[UsageRow]


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


class ImportProgress(TypedDict):
    """Sessions and messages of a log that are imported so far. The totals are 0 until it has been read."""

    sessions: int
    sessions_total: int
    messages: int
    messages_total: int


class ImportedSession(TypedDict):
    """What an import did with a session. `id` is None after a conflict."""

    id: str | None
    external_id: str
    state: Literal["partial", "new", "grown", "unchanged", "conflict"]
    turns: int
    messages: int
    reason: str | None
    redacted: list[Redacted]


class Import(TypedDict):
    """The import of a log, with its first 100 sessions."""

    id: str
    state: Literal["pending", "running", "done", "failed", "cancelled"]
    name: str
    format: str | None
    size: int
    progress: ImportProgress
    error: JsonObject | None
    created_at: str
    finished_at: str | None
    sessions: list[ImportedSession]
    damage_count: int
    damages: list[JsonObject]
