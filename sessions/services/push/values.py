"""The values of a push: what came in, the session under the lock, what was made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from compaction.breakdown import TokenBreakdown
from compaction.continuation import Continuation
from compaction.messages import Message, Usage
from pricing.custom import CustomPrice
from sessions.store import bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedMessage:
    """One message: its bytes as pushed (secrets already out), and what the core reads in them."""

    data: bytes
    value: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPreamble:
    """System text and tools that came with a push, as JSON bytes, with their tokens."""

    system: bytes | None
    tools: bytes | None
    system_tokens: int
    tools_tokens: int

    @property
    def hash(self) -> bytes:
        return bodies.content_hash(b"%b\0%b" % (self.system or b"", self.tools or b""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A turn as it came in. `body_hash` tells a retry from another push under the same `idempotency_key`."""

    messages: Sequence[PushedMessage]
    model: str = ""
    usage: Usage | None = None
    cache_write_1h_tokens: int = 0
    preamble: NewPreamble | None = None
    expected_turn: int | None = None
    idempotency_key: str | None = None
    body_hash: bytes | None = None
    prices: Sequence[CustomPrice] = ()  #: the project's own


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """What a push needs to know of its session."""

    version: str  #: of the row, in the database
    id: UUID
    project_id: UUID
    format: str
    model: str
    turn_count: int
    message_count: int
    context: TokenBreakdown
    shown: TokenBreakdown
    seam: Continuation
    preamble_version: int
    preamble_hash: bytes | None
    calibration: float
    budget_tokens: int | None
    context_window: int | None
    policy: Mapping[str, Any]
    fired_tokens: int | None
    fired_turn: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What was stored. `shown` is the size of the prompt that the next fetch gets, by component."""

    session: SessionState
    turn: int
    first_position: int
    model: str
    cost_microusd: int | None  #: None: unpriced, or no usage was reported
    calibration: float  #: the provider's tokens for one of ours, the turn's own report included
    values: Sequence[Message]
    asked: TokenBreakdown  #: the prompt of the turn's own call, without compaction
    served: TokenBreakdown  #: the same as it was served
    shown: TokenBreakdown
    context: TokenBreakdown
    seam: Continuation
    preamble_version: int
