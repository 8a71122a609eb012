"""Group the messages of a log into turns: the new input, then the model's answer.

Logs contain tool results in the order of their arrival: between the lines of a response, or after a message
that the user typed in the meantime. Providers require them directly after the calls, so `TurnBuilder` moves
them there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compaction.messages import Usage
from importers.base import ClientCompaction, ImportedMessage, ImportedTurn

Messages = Sequence[ImportedMessage]


@dataclass(slots=True, kw_only=True)
class Answer:
    """One response of the model while its log is being read; `body` may still grow.

    In formats whose responses consist of several items, `items` are those after the first. `is_summary` marks
    an answer that is the client's summary of the earlier conversation.
    """

    body: dict[str, Any]
    source_id: str
    at: datetime | None = None
    model: str = ""
    usage: Usage | None = None
    response_id: str | None = None
    request_id: str | None = None
    cost_microusd: int | None = None
    cache_write_1h_tokens: int = 0
    first_token_ms: int | None = None
    duration_ms: int | None = None
    results: list[ImportedMessage] = field(default_factory=list)
    items: list[ImportedMessage] = field(default_factory=list)
    is_summary: bool = False

    def messages(self) -> list[ImportedMessage]:
        first = ImportedMessage(
            body=self.body, source_id=self.source_id, at=self.at, is_summary=self.is_summary
        )
        return [first, *self.items]


class TurnBuilder:
    """Collects the messages of a session in the order of the log, and returns its turns.

    `join_results` converts the tool results of one response to messages: a single user message for Anthropic,
    one message each for OpenAI.
    """

    def __init__(self, join_results: Callable[[Messages], Messages] = tuple) -> None:
        self._join_results = join_results
        self._entries: list[ImportedMessage | Answer | ClientCompaction] = []
        self._answer_of_call: dict[str, Answer] = {}

    def add(self, message: ImportedMessage) -> None:
        """Add input of the next model call."""
        self._entries.append(message)

    def add_chat(self, message: ImportedMessage) -> None:
        """Add input in OpenAI's chat format, whose tool results contain the id of their call."""
        if message.body["role"] == "tool":
            self.result(str(message.body.get("tool_call_id") or ""), message)
        else:
            self.add(message)

    def answer(self, answer: Answer, calls: Iterable[str] = ()) -> None:
        """Add a response of the model; `calls` are the ids of its tool calls."""
        self._entries.append(answer)
        self.called(answer, calls)

    def called(self, answer: Answer, calls: Iterable[str]) -> None:
        """Add tool calls to a response that was added before."""
        for call in calls:
            self._answer_of_call[call] = answer  # some models reuse ids: the latest call applies

    def result(self, call: str, message: ImportedMessage) -> None:
        """Add a tool result. It keeps its place if the log does not contain its call."""
        answer = self._answer_of_call.get(call)
        if answer:
            answer.results.append(message)
        else:
            self.add(message)

    def compacted(self, marker: ClientCompaction) -> None:
        """Add a compaction by the client."""
        self._entries.append(marker)

    def turns(self) -> tuple[ImportedTurn, ...]:
        """Return all turns.

        Input after the last answer becomes a turn without usage, and so does unanswered input before a
        compaction, which only the client's summarizer read.
        """
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
                turns.append(_turn([*pending, *entry.messages()], marker, entry))
                pending, marker = [*self._join_results(entry.results)] if entry.results else [], None
        if pending:
            turns.append(_turn(pending, marker, None))
        return tuple(turns)


def in_one_message(results: Messages) -> Messages:
    """Merge all results of one response into one user message, results first (provider rules A1, A2)."""
    if len(results) == 1:
        return results
    blocks = [block for result in results for block in result.body["content"]]
    blocks.sort(key=lambda block: block.get("type") != "tool_result")
    body = {"role": "user", "content": blocks}
    return [ImportedMessage(body=body, source_id=results[0].source_id, at=results[0].at)]


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
        request_id=answer.request_id,
        cost_microusd=answer.cost_microusd,
        cache_write_1h_tokens=answer.cache_write_1h_tokens,
        first_token_ms=answer.first_token_ms,
        duration_ms=answer.duration_ms,
    )
