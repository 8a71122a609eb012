"""A session as JSON Lines, which `importers/formats/contextapp.py` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import orjson

from importers.formats.contextapp import VERSION
from sessions.models import AgentSession, Comment, Preamble, Turn
from sessions.selectors.comments import session_comments
from sessions.selectors.convert import latency_json, usage_json
from sessions.selectors.transcripts.rows import StoredMessage, messages_load
from sessions.store import bodies
from sessions.store.flags import MessageFlag

#: Turns, messages and lines that are read or sent at once, which bounds the memory of an export.
_BATCH = 200

_NONE = (None, None)

#: The fields of a message line that are set only for some messages.
_MARKS = {
    "pinned": MessageFlag.PINNED,
    "is_meta": MessageFlag.META,
    "is_summary": MessageFlag.CLIENT_SUMMARY,
}


def session_jsonl(session: AgentSession) -> Iterator[bytes]:
    """Yield the session in chunks of lines: its facts, system prompts and tools, turns and comments.

    The line of a turn precedes those of its messages. Compactions are not exported: every message is there.
    """
    lines = _lines(session)
    name: dict[str, Any] = {"session": session.external_id}
    while batch := list(islice(lines, _BATCH)):
        yield b"".join(bodies.json_bytes({**name, **line}) + b"\n" for line in batch)


def _lines(session: AgentSession) -> Iterator[Mapping[str, Any]]:
    yield _session_line(session)
    yield from map(_system_line, session.preambles.order_by("version"))
    messages = _messages(session)
    message, source_id = next(messages, _NONE)
    for turn in _turns(session):
        yield _turn_line(turn)
        while message is not None and message.turn <= turn.index:
            yield _message_line(message, turn, source_id)
            message, source_id = next(messages, _NONE)
    yield from map(_comment_line, session_comments(session=session))


def _turns(session: AgentSession) -> Iterator[Turn]:
    """Yield the turns, without those that were pushed after the session was read."""
    for first in range(0, session.turn_count, _BATCH):
        end = min(first + _BATCH, session.turn_count)
        yield from session.turns.filter(index__gte=first, index__lt=end).order_by("index")


def _messages(session: AgentSession) -> Iterator[tuple[StoredMessage, str | None]]:
    """Yield the messages, each with its id in the log from which it was imported."""
    for first in range(0, session.message_count, _BATCH):
        end = first + _BATCH
        rows = session.messages.filter(position__gte=first, position__lt=end)
        source_ids = dict(rows.values_list("position", "source_id"))
        for message in messages_load(session.pk, [(first, end)]):
            yield message, source_ids.get(message.position)


def _session_line(session: AgentSession) -> Mapping[str, Any]:
    return {
        "type": "contextapp-session",
        "version": VERSION,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "format": session.format,
        "origin": session.origin,
        "parent": session.parent.external_id if session.parent is not None else None,
        "tags": session.tags,
        "notes": session.notes,
        "metadata": session.metadata,
        "context_window": session.context_window,
        "started_at": session.started_at,
    }


def _system_line(row: Preamble) -> Mapping[str, Any]:
    return {
        "type": "system",
        "from_turn": row.from_turn,
        "system": _fragment(row.system) if row.system else None,
        "tools": _fragment(row.tools) if row.tools else None,
    }


def _turn_line(turn: Turn) -> Mapping[str, Any]:
    return {
        "type": "turn",
        "turn": turn.index,
        "at": turn.at,
        "source": turn.source,
        "model": turn.model,
        "usage": usage_json(turn),
        "prompt_reported": turn.prompt_reported,
        "prompt_served": turn.prompt_served,
        "output_reported": turn.output_reported,
        "cost_microusd": turn.cost_microusd,
        "billed": turn.billed,
        "latency": latency_json(turn),
        "request_id": turn.request_id,
        "response_id": turn.response_id,
        "client_compaction": turn.client_compaction,
    }


def _message_line(message: StoredMessage, turn: Turn, source_id: str | None) -> Mapping[str, Any]:
    return {
        "type": "message",
        "turn": message.turn,
        "position": message.position,
        "at": turn.at,
        "tokens": message.tokens,
        **({"source_id": source_id} if source_id is not None else {}),
        **({"omitted_from": message.omitted_from} if message.omitted_from is not None else {}),
        **{name: True for name, flag in _MARKS.items() if message.flags & flag},
        "message": _fragment(message.data),
    }


def _comment_line(comment: Comment) -> Mapping[str, Any]:
    return {
        "type": "comment",
        "turn": comment.turn,
        "at": comment.created_at,
        "author": comment.author_username,
        "comment": comment.text,
    }


def _fragment(data: bytes) -> orjson.Fragment:
    """Return JSON that is inserted unchanged, on one line: JSON has line breaks only between tokens."""
    return orjson.Fragment(data.replace(b"\r", b" ").replace(b"\n", b" "))
