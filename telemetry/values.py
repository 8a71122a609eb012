"""What telemetry reports about a session: model calls, compactions by the client, and tool runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compaction.messages import Usage

#: What every id of a call contains that is composed of other fields, because the emitter reports none of the
#: provider. Ids of providers do not contain it.
COMPOSED = ":"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The session that a report belongs to, as its emitter identifies it.

    `session` is the ID of the session. `is_named` is false if the emitter names none, and `session` is
    derived from the trace; the content of the call then identifies the session, if it has any. `line` is
    empty for the main conversation, else the name of the sub-agent or of the purpose of a side request.
    `member` is the email address of the user. `labels` are the resource attributes that the operator set.
    """

    session: str
    is_named: bool = True
    line: str = ""
    agent: str = ""
    version: str = ""
    member: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The content of a call: its whole history, in a provider's dialect, and the answer of the model.

    An answer of the Responses API consists of several items. `previous_response` is the id of the response
    that the call continues, if the provider stores the history and the span reports it.
    """

    messages: Sequence[Mapping[str, Any]]
    answers: Sequence[Mapping[str, Any]] = ()
    previous_response: str = ""
    system: Any = None
    tools: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A model call. `id` identifies it in repeated exports; it is the provider's id of the request if known.

    `response_id` is the provider's, by which other sources can report the same call. `cost_microusd` is set
    only if the emitter reports a cost. Times are in milliseconds.
    """

    origin: Origin
    id: str
    at: datetime
    model: str
    usage: Usage
    response_id: str = ""
    cost_microusd: int | None = None
    first_token_ms: int | None = None
    duration_ms: int | None = None
    content: Conversation | None = None

    @property
    def ids(self) -> set[str]:
        """The ids that are known."""
        return {self.id, self.response_id} - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport:
    """A compaction by the client. Token counts are None if they are not reported."""

    origin: Origin
    at: datetime
    trigger: str = ""
    tokens_before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRunReport:
    """A run of a tool, identified by the ID of the model's tool call."""

    origin: Origin
    at: datetime
    call_id: str
    name: str
    duration_ms: int
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReport:
    """The text of a user's prompt, if the emitter is configured to send it."""

    origin: Origin
    at: datetime
    text: str


Report = ModelCall | CompactionReport | ToolRunReport | PromptReport
