"""The values of a reconciliation: the request and the result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from redaction import Finding, Redaction
from sessions.models import ClientHistory
from sessions.models.transcript import REPORTED
from sessions.services.calls.match import CallIdentity
from sessions.services.push.values import Push

#: The field of a request that names the response that its messages follow.
PREVIOUS_RESPONSE = "previous_response_id"


class InvalidHistory(ValueError):
    """The history is not a list, or a message fits no dialect. `index` is its index in the client's list."""

    def __init__(self, index: int | None, message: str) -> None:
        super().__init__(message)
        self.index = index


class UnknownResponse(LookupError):
    """The session has no response with the id that a request continues."""


class Status(StrEnum):
    """The outcome of a reconciliation."""

    UNCHANGED = "unchanged"  #: the history was stored already
    APPENDED = "appended"  #: new messages were appended
    COMPACTED = "compacted"  #: the client had compacted its context; its new context was appended
    FORKED = "forked"  #: the history continues an earlier point, in a forked session
    SIDE = "side"  #: a side request outside the conversation, stored in a separate session


class PromptSource(NamedTuple):
    """The session whose prompt the model saw, and the number of its last compaction at that time."""

    session_id: UUID
    compaction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The fields of a request other than its messages.

    `push` is the turn to store, without messages: it describes the call of the last response in the history.
    `answers` are the messages of that response, if the history does not contain it. `is_compacted` and
    `is_side` are set if the client declares it. `model` is the model of a request that waits for its edits.
    `caller` is the partition in which a session that the client does not name is found, None over the API;
    `is_named` is set if the client names it. `prompt_source` is set if contextapp's edits determined the
    prompt that the model saw. `is_forwarded` returns whether a request that waited for its edits was
    forwarded without them; `on_compaction` is called before the session is compacted for it.
    """

    push: Push = field(default_factory=lambda: Push(messages=()))
    answers: Sequence[Mapping[str, Any]] = ()
    is_compacted: bool = False
    is_side: bool = False
    model: str = ""
    caller: bytes | None = None
    is_named: bool = False
    prompt_source: PromptSource | None = None
    is_forwarded: Callable[[], bool] = lambda: False
    on_compaction: Callable[[], object] = lambda: None

    @property
    def is_served(self) -> bool:
        """Whether contextapp serves the client's prompts. Others send their own to the provider."""
        return self.push.source not in REPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """What a request continues that the provider stores: a response, or the end of a conversation.

    If the response is not stored, the request continues the last one that is, unless it `must_be_stored`.
    """

    response_id: str = ""
    conversation: str = ""
    must_be_stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request with a client's complete history.

    `body` is a JSON object with `messages` and, if the client sent them, `system` and `tools`. `read` returns
    the other fields; it may raise any error. A request with a stored `idempotency_key` changes nothing. It
    must have the same body, unless it reports a call. `call` identifies the model call, if other sources may
    report it too. `continued` is set if the provider stores the messages before those of the body.
    """

    body: bytes
    redaction: Redaction
    read: Callable[[Mapping[str, Any]], Sent]
    idempotency_key: str | None = None
    call: CallIdentity | None = None
    continued: Continued | None = None

    @property
    def body_hash(self) -> bytes:
        return hashlib.sha256(self.body).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The result: the session that now contains the history, and `first`, the index of the first new message.

    `turn` is the stored turn, or None if there were no new messages. `history` is the stored history, if it
    is that of the session that the client names.
    """

    status: Status
    session_id: UUID
    first: int
    turn: int | None = None
    redacted: Sequence[Finding] = field(default_factory=tuple)
    history: ClientHistory | None = None
