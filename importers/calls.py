"""Read a series of logged requests, each with the complete conversation so far, as one session.

A request repeats the preceding conversation. Its turn consists of the messages that it adds to the earlier
requests and their answers.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import compress, count
from typing import Any

import orjson

from compaction.messages import Usage
from compaction.prefixes import common_length
from importers.base import ClientCompaction, ImportedMessage, ImportedTurn
from importers.chat import call_ids, chat_body, chat_usage
from importers.turns import Answer, TurnBuilder
from importers.values import id_of, mapping_of, microusd_of, request_of, text_of, time_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCall:
    """One logged request: its messages and, if logged, the answer with usage and cost."""

    messages: Sequence[Mapping[str, Any]]
    answer: Mapping[str, Any] | None = None
    model: str = ""
    usage: Usage | None = None
    response_id: str | None = None
    cost_microusd: int | None = None
    at: datetime | None = None
    first_token_ms: int | None = None
    duration_ms: int | None = None


def logged_request(value: Any) -> Mapping[str, Any]:
    """Return the request in a record, which is the record itself if it contains none."""
    record = mapping_of(value)
    return mapping_of(record.get("request") or record.get("body")) or record


def logged_call(record: Mapping[str, Any]) -> LoggedCall:
    """Return the call of a record: a conversation, or a request and its response in any common form."""
    request = logged_request(record)
    response = mapping_of(record.get("response"))
    choices: Sequence[Any] = response.get("choices") or record.get("choices") or [{}]
    return LoggedCall(
        messages=request["messages"],
        answer=response if response.get("type") == "message" else choices[0].get("message"),
        model=str(response.get("model") or request.get("model") or record.get("model") or ""),
        usage=chat_usage(response.get("usage") or record.get("usage")),
        response_id=id_of(response.get("id")),
        cost_microusd=microusd_of(record.get("cost")),
        at=time_of(record.get("timestamp") or response.get("created") or record.get("created")),
    )


class CallSeries:
    """One conversation, read from its requests in order.

    A subclass reads a format other than OpenAI's chat format.
    """

    def __init__(self) -> None:
        self._turns = self.builder()
        self._known: list[str] = []
        self._previous: Sequence[Mapping[str, Any]] = ()  #: the messages of the last request
        # A hash of the text would identify a message too, but could reveal the secrets in it.
        self._ids = map("message-{}".format, count(1))
        self.model = ""
        self.started_at: datetime | None = None
        self.first_words = ""

    def extends(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether a request with these messages continues this conversation."""
        known = self._known
        return len(messages) >= len(known) > 0 and common_length(known, _marks(messages)) == len(known)

    def restarts(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether the messages are only the task, even though it has already been answered."""
        return len(messages) == len(_opening(messages)) < len(self._known)

    def add(self, call: LoggedCall) -> None:
        """Add the next request. A request that drops or changes earlier messages implies a compaction.

        Raises KeyError, TypeError or ValueError if its messages are not in the chat format.
        """
        # A log may share messages between requests, so that reading them all again would take quadratic time.
        changes = map(operator.is_not, self._previous, call.messages)
        same = next(compress(count(), changes), min(len(self._previous), len(call.messages)))
        bodies = {index: self.body(call.messages[index]) for index in range(same, len(call.messages))}
        answer = self.body(call.answer) if call.answer else None
        added = _marks(bodies.values())
        marks = [*self._known[:same], *added]
        shared = same + common_length(self._known[same:], added)
        new = list(range(shared, len(marks)))
        if shared < len(self._known):
            self._turns.compacted(ClientCompaction())
            known = set(self._known)
            new = [index for index in new if marks[index] not in known]
        for index in new:
            self._take(bodies[index], call)
        self._known, self._previous = marks, call.messages
        self.model = call.model or self.model
        self.started_at = self.started_at or call.at
        if answer:
            self._answer(answer, call)

    def turns(self) -> tuple[ImportedTurn, ...]:
        return self._turns.turns()

    # -- The format ------------------------------------------------------------------------------

    def builder(self) -> TurnBuilder:
        return TurnBuilder()

    def body(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message for a request. Raises KeyError, TypeError or ValueError if it is not one."""
        return chat_body(message)

    def calls(self, body: Mapping[str, Any]) -> Sequence[str]:
        """Return the ids of an answer's tool calls."""
        return call_ids(body)

    def checked(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message for a request. Raises one of `MALFORMED` if `add` could not read it."""
        body = self.body(message)
        self.calls(body)
        _mark(body)
        return body

    def add_input(self, message: ImportedMessage) -> None:
        self._turns.add_chat(message)

    # --------------------------------------------------------------------------------------------

    def _take(self, body: dict[str, Any], call: LoggedCall) -> None:
        """Add a message of a request. An answer in a request is one whose request was not logged."""
        source_id = next(self._ids)
        if body["role"] == "assistant":
            self._turns.answer(Answer(body=body, source_id=source_id, model=call.model), self.calls(body))
            return
        self.add_input(ImportedMessage(body=body, source_id=source_id, at=call.at))
        if body["role"] == "user":
            self.first_words = request_of(self.first_words, text_of(body["content"]))

    def _answer(self, body: dict[str, Any], call: LoggedCall) -> None:
        answer = Answer(
            body=body,
            source_id=next(self._ids),
            at=call.at,
            model=call.model,
            usage=call.usage,
            response_id=call.response_id,
            cost_microusd=call.cost_microusd,
            first_token_ms=call.first_token_ms,
            duration_ms=call.duration_ms,
        )
        self._turns.answer(answer, self.calls(body))
        self._known.append(_mark(body))


def conversation_id(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return an id of eight characters, derived from the conversation's opening."""
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
    """Return the identity of a message. Clients may restructure answers when they resend them."""
    text = text_of(message.get("content"))
    identity = [message.get("role"), text, message.get("tool_call_id"), _calls(message), *_blocks(message)]
    return hashlib.sha256(orjson.dumps(identity)).hexdigest()[:16]


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    """Return the ids of the tool calls and results that are blocks of an Anthropic message."""
    content = message.get("content")
    parts = map(mapping_of, content) if isinstance(content, list) else ()
    keys = {"tool_use": "id", "tool_result": "tool_use_id"}
    return [part.get(keys[kind]) for part in parts if (kind := str(part.get("type"))) in keys]


def _calls(message: Mapping[str, Any]) -> list[Any]:
    return [
        (call.get("id"), (call.get("function") or call).get("name"))
        for call in message.get("tool_calls") or []
    ]
