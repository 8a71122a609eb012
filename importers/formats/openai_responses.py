"""Plain JSON and JSONL of OpenAI's Responses API: items, and logged requests with their responses.

A log is one document or one value per line. A value is a list of items, such as the OpenAI Agents SDK returns
with `to_input_list()`, a request with `input` and, if logged, its `response`, or a single item. A request
that repeats and continues the preceding conversation is its next turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from compaction.prefixes import common_length
from importers.base import ClientCompaction, Damage, ImportedMessage, ImportedSession, LogFile
from importers.calls import logged_request
from importers.chat import chat_usage
from importers.jsonlines import Record, read_records, take_messages, values
from importers.turns import Answer, TurnBuilder
from importers.values import id_of, mapping_of, request_of, text_of, time_of, title_of

#: Values of a log that are read to recognize it: its first items may be messages.
_FIRST_VALUES = 20

_INPUT_ROLES = ("user", "system", "developer")
_ID_KEYS = ("session_id", "conversation_id", "thread_id")


class OpenAIResponsesImporter:
    """Reads plain JSON and JSONL of the Responses API."""

    name = "openai-responses"
    label = "OpenAI Responses items or requests (JSON or JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        records = islice(values(log), _FIRST_VALUES)
        first = [record.value for record in records if isinstance(record, Record)]
        if first and isinstance(first[0], list):
            first = first[0]
        if any(map(_is_typed, first)):
            return all(map(_is_item, first))
        request = logged_request(first[0]) if first else {}
        has_input = isinstance(request.get("input"), str) or _is_items(request.get("input"))
        return has_input and "model" in request

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        conversation = _Conversation(log)
        yield from read_records(log, values(log), conversation.take)
        yield from conversation.damages
        yield conversation.session(log)


class _Conversation:
    """One conversation while its values are read."""

    def __init__(self, log: LogFile) -> None:
        self._log = log
        self._turns = TurnBuilder()
        self._known: list[str] = []
        self.damages: list[Damage] = []
        self._facts: Mapping[str, Any] = {}
        self._answer: Answer | None = None  #: the response that may still get items
        self._first_words = self._model = ""
        self._count = 0

    def take(self, record: Record) -> None:
        """Read a list of items, a request, or one item."""
        value = record.value
        if isinstance(value, list):
            self._add(record, value, {})
        elif "input" in (request := logged_request(value)) and "call_id" not in value:
            self._facts = self._facts or value
            given = request["input"]
            items = [{"role": "user", "content": given}] if isinstance(given, str) else given
            self._model = str(request.get("model") or self._model)
            self._add(record, items, mapping_of(value.get("response")))
        else:
            self._take_item(value)

    def session(self, log: LogFile) -> ImportedSession:
        request, turns = logged_request(self._facts), self._turns.turns()
        return ImportedSession(
            external_id=next((str(self._facts[key]) for key in _ID_KEYS if self._facts.get(key)), log.stem),
            format="openai-responses",
            agent="",
            turns=turns,
            model=self._model,
            title=title_of(self._first_words),
            started_at=next((turn.at for turn in turns if turn.at), None),
            system=request.get("instructions"),
            tools=request.get("tools"),
        )

    def _add(self, record: Record, items: Sequence[Mapping[str, Any]], response: Mapping[str, Any]) -> None:
        """Add a request. One that drops or changes earlier items implies a compaction by the client."""
        marks = [_mark(item) for item in items]
        shared = common_length(self._known, marks)
        new = list(range(shared, len(items)))
        if shared < len(self._known):
            self._turns.compacted(ClientCompaction())
            self._answer = None
            known = set(self._known)
            new = [index for index in new if marks[index] not in known]
        self._take_items(record, [items[index] for index in new])
        self._answer = None
        output = response.get("output") or []
        self._known = marks + [_mark(item) for item in output]
        self._take_items(record, output)
        if self._answer and output:
            self._note_response(self._answer, response)

    def _note_response(self, answer: Answer, response: Mapping[str, Any]) -> None:
        answer.usage = chat_usage(response.get("usage"))
        answer.response_id = id_of(response.get("id"))
        answer.model = self._model = str(response.get("model") or self._model)
        answer.at = time_of(response.get("created_at"))
        self._answer = None

    def _take_items(self, record: Record, items: Sequence[Mapping[str, Any]]) -> None:
        damages = take_messages(self._log, items, lambda _, item: self._take_item(item))
        self.damages += (replace(damage, line=record.line) for damage in damages)

    def _take_item(self, item: Mapping[str, Any]) -> None:
        self._count += 1
        kind = str(item.get("type") or "message")
        if kind == "message" and item["role"] not in (*_INPUT_ROLES, "assistant"):
            raise ValueError(f"{item['role']!r} is not a role of items")
        body = {key: value for key, value in {"type": kind, **item}.items() if value is not None}
        message = ImportedMessage(body=body, source_id=f"item-{self._count}")
        if kind.endswith("_output"):
            self._answer = None
            self._turns.result(str(item.get("call_id") or ""), message)
        elif kind == "message" and item["role"] in _INPUT_ROLES:
            self._answer = None
            self._turns.add(message)
            if item["role"] == "user":
                self._first_words = request_of(self._first_words, text_of(item["content"]))
        else:
            self._take_answer(kind, message)

    def _take_answer(self, kind: str, message: ImportedMessage) -> None:
        if self._answer:
            self._answer.items.append(message)
        else:
            self._answer = Answer(body=dict(message.body), source_id=message.source_id, model=self._model)
            self._turns.answer(self._answer)
        if kind.endswith("_call"):
            self._turns.called(
                self._answer, [str(message.body.get("call_id") or message.body.get("id") or "")]
            )


def _is_items(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_item, value))


def _is_item(value: Any) -> bool:
    """Return whether this is an item of a request or a response."""
    item = mapping_of(value)
    if "role" in item:
        return isinstance(item.get("content"), str | list) and "tool_calls" not in item
    return _is_typed(value)


def _is_typed(value: Any) -> bool:
    """Return whether only the Responses API has this item."""
    item = mapping_of(value)
    kind = str(item.get("type"))
    return ("call_id" in item and kind.endswith(("_call", "_call_output"))) or (
        kind == "reasoning" and isinstance(item.get("summary"), list)
    )


def _mark(value: Any) -> str:
    """Return the identity of an item. Clients may leave out ids and states when they send it again."""
    item = mapping_of(value)
    kind = str(item.get("type") or "message")
    if kind == "message":
        text = text_of(item.get("content")).encode("utf-8", "replace")
        return f"{item.get('role')} {hashlib.sha256(text).hexdigest()}"
    return f"{kind} {item.get('call_id') or item.get('id')}"
