"""Exports of contextapp: one JSON object per line, with its `type` and the `session` to which it belongs.

`sessions/selectors/transcripts/export.py` writes them. Files can be concatenated: each begins with a line of
the type `contextapp-session`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compaction.dialects import DEFAULT
from compaction.messages import Usage
from importers.base import (
    ClientCompaction,
    Damage,
    ImportedComment,
    ImportedMessage,
    ImportedPreamble,
    ImportedSession,
    ImportedTurn,
    LogFile,
)
from importers.jsonlines import first_objects, objects, read_records
from importers.values import MAX_MICROUSD, count_of, id_of, mapping_of, time_of, tokens_of
from pricing.usage import MAX_TOKENS

#: The version of the format.
VERSION = 1

_SESSION = "contextapp-session"

#: Maximum number of messages of a session.
_MAX_POSITION = 2**31 - 1

#: Maximum duration of a call in milliseconds: one day.
_MAX_MS = 86_400_000


class ContextappImporter:
    """Reads sessions that contextapp exported."""

    name = "contextapp"
    label = "contextapp session export (JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        first = first_objects(log, 1)
        return bool(first) and first[0].get("type") == _SESSION

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        sessions: list[_Session] = []

        def take(record: Mapping[str, Any]) -> None:
            if record["type"] == _SESSION:
                sessions.append(_Session(record))
            elif sessions and sessions[-1].id == record["session"]:
                sessions[-1].take(record)
            else:
                raise ValueError(f"no line of the type {_SESSION} for its session precedes it")

        yield from read_records(log, objects(log), lambda record: take(record.value))
        for session in sessions:
            yield session.imported()


class _Session:
    """A session while its lines are read."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        version = facts.get("version")
        if version != VERSION:
            raise ValueError(f"version {version!r} of the format is not supported")
        if not isinstance(facts["session"], str) or not facts["session"]:
            raise ValueError("`session` is not the id of a session")
        self.id = facts["session"]
        self._facts = facts
        self._preambles: dict[int, ImportedPreamble] = {}  # by the turn from which they apply
        self._turns: dict[int, _Turn] = {}
        self._positions: set[int] = set()
        self._comments: list[ImportedComment] = []

    def take(self, record: Mapping[str, Any]) -> None:
        """Read a line. A turn whose own line is damaged keeps its messages."""
        match record["type"]:
            case "system":
                self._preambles[count_of(record.get("from_turn"), _MAX_POSITION) or 0] = _preamble(record)
            case "turn":
                self._turn(record["turn"]).facts = record
            case "message":
                self._turn(record["turn"]).messages.append(self._new_message(record))
            case "comment":
                self._comments.append(_comment(record, self._turns[record["turn"]].index))

    def imported(self) -> ImportedSession:
        facts, preambles = self._facts, self._preambles_by_turn()
        opening = preambles.pop(min(self._turns, default=0), ImportedPreamble())
        return ImportedSession(
            external_id=self.id,
            format=str(facts.get("format") or DEFAULT),
            agent=str(facts.get("agent") or ""),
            turns=self._imported_turns(preambles),
            model=str(facts.get("model") or ""),
            title=str(facts.get("title") or ""),
            parent_external_id=id_of(facts.get("parent")),
            started_at=time_of(facts.get("started_at")),
            context_window=count_of(facts.get("context_window"), MAX_TOKENS) or None,
            system=opening.system,
            tools=opening.tools,
            tags=_strings(facts.get("tags")),
            metadata=mapping_of(facts.get("metadata")),
            notes=str(facts.get("notes") or ""),
            comments=self._comments,
        )

    def _preambles_by_turn(self) -> dict[int, ImportedPreamble]:
        """Return the system prompts and tools by the first of their turns that could be read."""
        turns = sorted(self._turns) or [0]
        first = {number: bisect_left(turns, number) for number in sorted(self._preambles)}
        return {
            turns[index]: self._preambles[number] for number, index in first.items() if index < len(turns)
        }

    def _imported_turns(self, preambles: Mapping[int, ImportedPreamble]) -> list[ImportedTurn]:
        """Return the turns. `omitted_from` counts only the messages that could be read."""
        read = sorted(self._positions)
        turns = [(number, turn.imported()) for number, turn in self._turns.items()]
        return [
            replace(
                turn,
                preamble=preambles.get(number),
                messages=[
                    replace(message, omitted_from=bisect_left(read, message.omitted_from))
                    if message.omitted_from is not None
                    else message
                    for message in turn.messages
                ],
            )
            for number, turn in turns
        ]

    def _new_message(self, record: Mapping[str, Any]) -> ImportedMessage:
        position = count_of(record["position"], _MAX_POSITION)
        if position is None:
            raise ValueError("`position` is not a number of a message")
        if position in self._positions:
            raise ValueError(f"the message at position {position} appears twice")
        message = _message(record)
        self._positions.add(position)
        return message

    def _turn(self, number: int) -> _Turn:
        return self._turns.setdefault(int(number), _Turn(len(self._turns)))


class _Turn:
    """A turn while its lines are read, and its place among those that could be read."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.facts: Mapping[str, Any] = {}
        self.messages: list[ImportedMessage] = []

    def imported(self) -> ImportedTurn:
        facts = self.facts
        at, latency = time_of(facts.get("at")), mapping_of(facts.get("latency"))
        return ImportedTurn(
            messages=[replace(message, at=message.at or at) for message in self.messages],
            model=str(facts.get("model") or ""),
            usage=_usage(facts),
            response_id=id_of(facts.get("response_id")),
            request_id=id_of(facts.get("request_id")),
            at=at,
            client_compaction=_client_compaction(facts.get("client_compaction")),
            cost_microusd=count_of(facts.get("cost_microusd"), MAX_MICROUSD),
            output_reported=count_of(facts.get("output_reported"), MAX_TOKENS),
            prompt_served=count_of(facts.get("prompt_served"), MAX_TOKENS),
            is_usage_final=True,
            billed=facts.get("billed") is not False,
            first_token_ms=count_of(latency.get("time_to_first_token_ms"), _MAX_MS),
            duration_ms=count_of(latency.get("duration_ms"), _MAX_MS),
        )


def _preamble(record: Mapping[str, Any]) -> ImportedPreamble:
    """Return the system prompt and tools, whose types the providers must accept."""
    system, tools = record.get("system"), record.get("tools")
    if not (system is None or isinstance(system, str) or _is_list_of_objects(system)):
        raise TypeError("`system` is neither a string nor an array of content blocks")
    if not (tools is None or _is_list_of_objects(tools)):
        raise TypeError("`tools` is not an array of tool definitions")
    return ImportedPreamble(system=system, tools=tools)


def _message(record: Mapping[str, Any]) -> ImportedMessage:
    body = record["message"]
    if not isinstance(body, Mapping):
        raise TypeError("`message` is not an object")
    return ImportedMessage(
        body=body,
        source_id=str(record.get("source_id") or f"message-{record['position']}"),
        at=time_of(record.get("at")),
        is_meta=record.get("is_meta") is True,
        is_summary=record.get("is_summary") is True,
        is_pinned=record.get("pinned") is True,
        omitted_from=count_of(record.get("omitted_from"), _MAX_POSITION),
    )


def _comment(record: Mapping[str, Any], turn: int) -> ImportedComment:
    return ImportedComment(
        turn=turn,
        text=str(record["comment"]),
        author=str(record.get("author") or ""),
        at=time_of(record.get("at")),
    )


def _usage(facts: Mapping[str, Any]) -> Usage | None:
    usage = facts.get("usage")
    if not isinstance(usage, Mapping):
        return None
    return Usage(
        uncached_tokens=tokens_of(usage, "uncached"),
        cache_read_tokens=tokens_of(usage, "cache_read"),
        cache_write_tokens=tokens_of(usage, "cache_write"),
        output_tokens=tokens_of(usage, "output"),
        prompt=count_of(facts.get("prompt_reported"), MAX_TOKENS),
    )


def _client_compaction(value: Any) -> ClientCompaction | None:
    if not isinstance(value, Mapping):
        return None
    before = count_of(value.get("tokens_before"), MAX_TOKENS)
    return ClientCompaction(trigger=str(value.get("trigger") or ""), tokens_before=before)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
