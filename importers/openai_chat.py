"""Plain JSON and JSONL in OpenAI's chat format.

A log is one document or one value per line. A value is a list of messages, an object with `messages` (a
conversation, or a logged request with its `response`), or a single message. Consecutive single messages are
one conversation; a request that repeats and continues the preceding conversation is its next turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import Damage, ImportedSession, LogFile
from .calls import CallSeries, LoggedCall, logged_call, logged_request
from .chat import is_chat_message
from .jsonlines import first_value, read_records, values
from .values import title_of

_ID_KEYS = ("session_id", "conversation_id", "thread_id", "id")


class OpenAIChatImporter:
    """Reads plain chat JSON and JSONL."""

    name = "openai-chat"
    label = "OpenAI chat messages (JSON or JSONL)"
    format = "openai"
    series: type[CallSeries] = CallSeries

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        items = value if isinstance(value, list) else [value]
        return bool(items) and (is_chat_message(items[0]) or _is_conversation(items[0]))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        reading = _Reading(log, self)
        yield from read_records(log, values(log), lambda record: reading.take(record.value))
        yield from reading.sessions()


class _Conversation:
    """One conversation with its id and tools."""

    def __init__(self, facts: Mapping[str, Any], series: CallSeries) -> None:
        self.series = series
        self.id = next((str(facts[key]) for key in _ID_KEYS if facts.get(key)), "")
        request = logged_request(facts)
        self.system, self.tools = request.get("system"), request.get("tools")


class _Reading:
    def __init__(self, log: LogFile, importer: OpenAIChatImporter) -> None:
        self._log = log
        self._importer = importer
        self._conversations: list[_Conversation] = []
        self._loose: list[Mapping[str, Any]] = []

    def take(self, value: Any) -> None:
        """Read one value of the log, of any kind."""
        if is_chat_message(value):
            self._loose.append(value)
        elif isinstance(value, list) and value and is_chat_message(value[0]):
            self._add({}, LoggedCall(messages=value))
        elif isinstance(value, list):
            for item in value:
                self._add(item, logged_call(item))
        else:
            self._add(value, logged_call(value))

    def sessions(self) -> Iterator[ImportedSession]:
        """Yield the conversations, numbered from the second on: a log that grows keeps its names."""
        if self._loose:
            self._add({}, LoggedCall(messages=self._loose))
        for number, conversation in enumerate(self._conversations, start=1):
            name = f"{self._log.stem}-{number}" if number > 1 else self._log.stem
            session = self._session(conversation, conversation.id or name)
            if session.turns:
                yield session

    def _session(self, conversation: _Conversation, external_id: str) -> ImportedSession:
        series = conversation.series
        return ImportedSession(
            external_id=external_id,
            format=self._importer.format,
            agent="",
            turns=series.turns(),
            model=series.model,
            title=title_of(series.first_words),
            started_at=series.started_at,
            system=conversation.system,
            tools=conversation.tools,
        )

    def _add(self, facts: Mapping[str, Any], call: LoggedCall) -> None:
        latest = self._conversations[-1] if self._conversations else None
        if latest is None or not latest.series.extends(call.messages):
            latest = _Conversation(facts, self._importer.series())
            self._conversations.append(latest)
        latest.series.add(call)


def _is_conversation(value: Any) -> bool:
    messages = logged_request(value).get("messages")
    return isinstance(messages, list) and bool(messages) and all(is_chat_message(m) for m in messages)
