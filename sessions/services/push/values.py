"""The values of a push: the request, the session before it, and the turn that it adds.

The larger ones are structs: creating or replacing a dataclass with as many fields takes 15 times longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from msgspec import Struct, field

from compaction.continuation import Continuation
from compaction.messages import Message, ToolCall, Usage
from compaction.provider_engine import ProviderReport
from compaction.provider_summary import is_compaction
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from compaction.sizes.meter import Spike
from compaction.view.components import TOOLS
from pricing.custom import CustomPrice
from redaction import Finding
from sessions.models import TurnSource
from sessions.services.calls.match import CallIdentity
from sessions.services.ingestion import IngestedMessage, NewPreamble


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The session that a push is for, and the API key that it was sent with.

    The key must be valid when the turn is stored. `key_id` is None if that was checked before: a call that
    the gateway has forwarded is recorded even if its key was revoked in the meantime.
    """

    key_id: UUID | None
    project_id: UUID
    session_id: UUID


class Latency(Struct, frozen=True, kw_only=True):
    """How long a model call took in milliseconds, as the client measured it; None if it did not."""

    first_token_ms: int | None = None
    duration_ms: int | None = None


class Push(Struct, frozen=True, kw_only=True):
    """The content of a push, ingested.

    `at` is when the model call ended, None for now. `body_hash` distinguishes a retry from a different push
    with the same `idempotency_key`. `request_id` and `response_id` identify the call for other sources that
    report it. `provider` is what the provider reports about its own compaction of the request. With
    `is_stateful`, the provider adds messages that it stores to the client's requests, so no compaction can
    shorten them. `prompt_estimate` is the size of the prompt to which `usage` belongs, in estimated tokens;
    None if it is the served prompt or the whole transcript. With `has_other_prompt`, the model did not see
    the prompt that the session would have served. With `is_repaired`, it saw one without thinking, because
    the provider had rejected the thinking in it.
    """

    messages: Sequence[IngestedMessage]
    redacted: Sequence[Finding] = ()
    at: datetime | None = None
    model: str = ""
    usage: Usage | None = None
    cache_write_1h_tokens: int = 0
    latency: Latency = field(default_factory=Latency)
    preamble: NewPreamble | None = None
    expected_turn: int | None = None
    idempotency_key: str | None = None
    body_hash: bytes | None = None
    prices: Sequence[CustomPrice] = ()  #: the project's custom prices
    source: TurnSource = TurnSource.PUSH
    request_id: str | None = None
    response_id: str | None = None
    is_placed: bool = False  #: the messages are known to follow the stored ones
    repeated: int = 0  #: messages that preceded these in the request and are stored already
    provider: ProviderReport | None = None
    is_stateful: bool = False
    prompt_estimate: int | None = None
    has_other_prompt: bool = False
    is_repaired: bool = False

    def identity(self) -> CallIdentity:
        """Return the identity of the push's model call, which ended about now."""
        return CallIdentity(
            at=timezone.now(),
            usage=self.usage,
            request_id=self.request_id or "",
            response_id=self.response_id or "",
        )

    @property
    def has_provider_compaction(self) -> bool:
        """Whether the provider compacted the prompt of the turn's call."""
        return self.provider is not None or any(is_compaction(message.value) for message in self.messages)


class SessionState(Struct, frozen=True, kw_only=True):
    """The state of a session before a push. `version` identifies the version of the session's row."""

    version: str
    id: UUID
    project_id: UUID
    format: str | None  #: None until it is detected
    model: str
    agent: str
    turn_count: int
    message_count: int
    push_position: int  #: what follows was recorded by a source other than pushes
    context: TokenBreakdown
    shown: TokenBreakdown
    continuation: Continuation
    preamble_version: int
    preamble_hash: bytes | None
    calibration: Calibration
    budget_tokens: int | None
    context_window: int | None
    policy: Mapping[str, Any]
    fired_tokens: int | None
    fired_turn: int | None
    plan_turn: int | None  #: see `compaction.planning.preparation`
    omitted_count: int
    has_reports: bool = False  #: telemetry has reported calls whose messages may be pushed later

    @property
    def has_recorded(self) -> bool:
        """Whether other sources have recorded messages that may be pushed later."""
        return self.push_position < self.message_count

    @property
    def has_shed_tools(self) -> bool:
        """Whether the prompt lacks the tool definitions, because they left no room for the messages."""
        return TOOLS in self.context.tokens and TOOLS not in self.shown.tokens


class NewTurn(Struct, frozen=True, kw_only=True):
    """The turn that a push adds, and the session's counters after it.

    `prompt` is the breakdown that the prompt of the turn's call would have without compaction, `served` that
    of the prompt as served, `shown` that of the prompt that the next fetch returns. `context` counts the
    whole transcript. `calibration` maps estimates to the provider's tokens. `spike` is set if the turn's tool
    outputs are far larger than usual. `plan_turn` is the boundary of the next hard compaction's plan.
    """

    session: SessionState
    index: int
    first_position: int
    format: str | None
    model: str
    session_model: str  #: that of the next call, as far as is known
    context_window: int | None  #: of the session's model
    cost_microusd: int | None  #: None if the model has no price or no usage was reported
    calibration: Calibration
    budget: int
    values: Sequence[Message]
    prompt: TokenBreakdown
    served: TokenBreakdown
    shown: TokenBreakdown
    context: TokenBreakdown
    continuation: Continuation
    preamble_version: int
    spike: Spike | None
    plan_turn: int | None
    source: TurnSource  #: what stores the turn
    is_stateful: bool = False
    has_other_prompt: bool = False
    is_repaired: bool = False
    push_position: int

    @property
    def changes_preamble(self) -> bool:
        return self.preamble_version != self.session.preamble_version

    @property
    def has_room_for_shed_tools(self) -> bool:
        """Whether the tool definitions had been removed, and now fit the budget."""
        if not self.session.has_shed_tools:
            return False
        total = self.shown.total + self.context.tokens.get(TOOLS, 0)
        return self.calibration.provider_at_most(total) <= self.budget

    @property
    def needs_shed_tools(self) -> bool:
        """Whether the turn has the session's first tool calls, and the tool definitions had been removed."""
        if not self.session.has_shed_tools or "tool_outputs" in self.session.context.tokens:
            return False
        return any(isinstance(part, ToolCall) for message in self.values for part in message.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The stored response to a push that is repeated with the same idempotency key."""

    answer: bytes
