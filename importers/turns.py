"""From messages in the order of a log to turns: each the new input and the model's answer.

Logs write tool results when they arrive: between the lines of one response, or after a word that the user
typed meanwhile. A provider wants them right behind the calls, so that is where `TurnBuilder` puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compaction.messages import Usage

from .base import ClientCompaction, ImportedMessage, ImportedTurn

Messages = Sequence[ImportedMessage]


@dataclass(slots=True, kw_only=True)
class Answer:
    """One response of the model while its log is being read; `body` may still grow."""

    body: dict[str, Any]
    source_id: str
    at: datetime | None = None
    model: str = ""
    usage: Usage | None = None
    response_id: str | None = None
    cost_microusd: int | None = None
    cache_write_1h_tokens: int = 0
    results: list[ImportedMessage] = field(default_factory=list)

    def message(self) -> ImportedMessage:
        return ImportedMessage(body=self.body, source_id=self.source_id, at=self.at)


class TurnBuilder:
    """Collects a session's messages in the order of the log, then gives its turns.

    `join_results` makes of one response's tool results the messages that the provider wants: all in one
    user message at Anthropic, one message each at OpenAI.
    """

    def __init__(self, join_results: Callable[[Messages], Messages] = tuple) -> None:
        self._join_results = join_results
        self._entries: list[ImportedMessage | Answer | ClientCompaction] = []
        self._answer_of_call: dict[str, Answer] = {}

    def add(self, message: ImportedMessage) -> None:
        """Input of the next model call."""
        self._entries.append(message)

    def answer(self, answer: Answer, calls: Iterable[str] = ()) -> None:
        """A response of the model; `calls` are the ids of its tool calls."""
        self._entries.append(answer)
        self.called(answer, calls)

    def called(self, answer: Answer, calls: Iterable[str]) -> None:
        """More calls of a response that is already there."""
        for call in calls:
            self._answer_of_call[call] = answer  # some models use an id again: the latest is meant

    def result(self, call: str, message: ImportedMessage) -> None:
        """A tool's result. One whose call the log does not have stays where it stands."""
        answer = self._answer_of_call.get(call)
        if answer:
            answer.results.append(message)
        else:
            self.add(message)

    def compacted(self, marker: ClientCompaction) -> None:
        """The client compacted its context here."""
        self._entries.append(marker)

    def turns(self) -> tuple[ImportedTurn, ...]:
        """All turns. Input after the last answer makes a last turn without usage, and so does what stood
        before a compaction unanswered: only the client's summariser read it."""
        turns: list[ImportedTurn] = []
        pending: list[ImportedMessage] = []
        marker: ClientCompaction | None = None
        for entry in self._entries:
            if isinstance(entry, ClientCompaction):
                if pending:
                    turns.append(_turn(pending, marker, None))
                pending, marker = [], entry
            elif isinstance(entry, ImportedMessage):
                pending.append(entry)
            else:
                turns.append(_turn([*pending, entry.message()], marker, entry))
                pending, marker = [*self._join_results(entry.results)] if entry.results else [], None
        if pending:
            turns.append(_turn(pending, marker, None))
        return tuple(turns)


def _turn(
    messages: list[ImportedMessage], marker: ClientCompaction | None, answer: Answer | None
) -> ImportedTurn:
    if answer is None:
        return ImportedTurn(messages=tuple(messages), client_compaction=marker, at=messages[-1].at)
    return ImportedTurn(
        messages=tuple(messages),
        client_compaction=marker,
        at=answer.at,
        model=answer.model,
        usage=answer.usage,
        response_id=answer.response_id,
        cost_microusd=answer.cost_microusd,
        cache_write_1h_tokens=answer.cache_write_1h_tokens,
    )
