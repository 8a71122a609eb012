"""A series of logged requests, each with the whole conversation so far, as one session.

A request repeats what was said before it. So the turn of a request is what its messages add to the
conversation that is already known: the earlier requests and the answers to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from compaction.messages import Usage

from .base import ClientCompaction, ImportedMessage, ImportedTurn
from .chat import call_ids, chat_body
from .turns import Answer, TurnBuilder
from .values import text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One logged request: its messages and, where it is known, the answer with its figures."""

    messages: Sequence[Mapping[str, Any]]
    answer: Mapping[str, Any] | None = None
    model: str = ""
    usage: Usage | None = None
    response_id: str | None = None
    cost_microusd: int | None = None
    at: datetime | None = None


class CallSeries:
    """One conversation, told by the requests that were made for it, in order."""

    def __init__(self) -> None:
        self._turns = TurnBuilder()
        self._known: list[str] = []
        self._count = 0
        self.model = ""
        self.started_at: datetime | None = None
        self.first_words = ""

    def extends(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a request with these messages goes on where this conversation stands."""
        return len(messages) >= len(self._known) > 0 and self._shared(_marks(messages)) == len(self._known)

    def opens_like(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the messages begin with this conversation's task: all up to the first user message."""
        opening = _marks(_opening(messages))
        return bool(opening) and self._known[: len(opening)] == opening

    def restarts(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the messages are the bare task again, though it has been answered already."""
        return len(messages) == len(_opening(messages)) < len(self._known)

    def add(self, call: Call) -> None:
        """The next request. One that drops or changes what was sent before tells of a compaction.

        Raises KeyError, TypeError or ValueError where its messages are not of the chat form.
        """
        bodies = [chat_body(message) for message in call.messages]
        answer = chat_body(call.answer) if call.answer else None
        marks = _marks(bodies)
        shared = self._shared(marks)
        new = list(range(shared, len(marks)))
        if shared < len(self._known):
            self._turns.compacted(ClientCompaction())
            known = set(self._known)
            new = [index for index in new if marks[index] not in known]
        for index in new:
            self._take(bodies[index], call)
        self._known = marks
        self.model = call.model or self.model
        self.started_at = self.started_at or call.at
        if answer:
            self._answer(answer, call)

    def turns(self) -> tuple[ImportedTurn, ...]:
        return self._turns.turns()

    def _shared(self, marks: Sequence[str]) -> int:
        """How many messages at the start are those that are known."""
        pairs = zip(self._known, marks, strict=False)
        shortest = min(len(self._known), len(marks))
        return next((index for index, (old, new) in enumerate(pairs) if old != new), shortest)

    def _take(self, body: dict[str, Any], call: Call) -> None:
        """A message of a request. An answer among them is one whose own request was not logged."""
        source_id = self._next_id()
        if body["role"] == "assistant":
            self._turns.answer(Answer(body=body, source_id=source_id, model=call.model), call_ids(body))
            return
        message = ImportedMessage(body=body, source_id=source_id, at=call.at)
        if body["role"] == "tool":
            self._turns.result(str(body.get("tool_call_id") or ""), message)
            return
        self._turns.add(message)
        if body["role"] == "user":
            self.first_words = self.first_words or text_of(body["content"])

    def _answer(self, body: dict[str, Any], call: Call) -> None:
        answer = Answer(
            body=body,
            source_id=self._next_id(),
            at=call.at,
            model=call.model,
            usage=call.usage,
            response_id=call.response_id,
            cost_microusd=call.cost_microusd,
        )
        self._turns.answer(answer, call_ids(body))
        self._known.append(_mark(body))

    def _next_id(self) -> str:
        """By number: a hash of the words would be one of the secrets in them."""
        self._count += 1
        return f"message-{self._count}"


def conversation_id(messages: Iterable[Mapping[str, Any]]) -> str:
    """Eight characters that stand for a conversation's opening, for logs that give it no id."""
    return hashlib.sha256("".join(_marks(_opening(messages))).encode()).hexdigest()[:8]


def _opening(messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    opening: list[Mapping[str, Any]] = []
    for message in messages:
        opening.append(message)
        if message.get("role") == "user":
            break
    return opening


def _marks(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    return [_mark(message) for message in messages]


def _mark(message: Mapping[str, Any]) -> str:
    """The message's identity: clients send an answer back with its content in another shape."""
    words = text_of(message.get("content"))
    told = [message.get("role"), words, message.get("tool_call_id"), _calls(message)]
    return hashlib.sha256(orjson.dumps(told)).hexdigest()[:16]


def _calls(message: Mapping[str, Any]) -> list[Any]:
    return [
        (call.get("id"), (call.get("function") or call).get("name"))
        for call in message.get("tool_calls") or []
    ]
