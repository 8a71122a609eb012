"""Imports: a log becomes a session. Importing again adds nothing; a log that grew adds the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.models import Project
from compaction import formats
from compaction.messages import Message as MessageValue
from compaction.messages import Usage
from sessions import bodies, pricing
from sessions.convert import usage_fields
from sessions.counter import counter
from sessions.importers.base import ImportedMessage, ImportedSession, ImportedTurn
from sessions.ledger import Ledger
from sessions.models import AgentSession, Blob, Message, Preamble, Turn
from sessions.models.transcript import MessageFlag

_ROWS_PER_STATEMENT = 500


class ImportConflictError(Exception):
    """The log tells another story than what is stored under its id; the stored one stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    session: AgentSession
    created: bool
    turns_added: int
    messages_added: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewMessage:
    value: MessageValue
    imported: ImportedMessage
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewTurn:
    index: int
    imported: ImportedTurn
    messages: Sequence[_NewMessage]
    prompt: Ledger
    cost_microusd: int | None


@transaction.atomic
def session_import(*, project: Project, imported: ImportedSession, origin: str = "import") -> ImportResult:
    """Stores `imported`, or what is new in it.

    Raises `ImportConflictError` where the session was not imported, or its stored messages are not the
    log's. Only the last stored turn may differ: the client was still writing it, so it is stored anew.
    """
    session, created = _session_find_or_create(project=project, imported=imported, origin=origin)
    first_new = _first_new_turn(session, imported)
    if first_new == len(imported.turns):
        return ImportResult(session=session, created=created, turns_added=0, messages_added=0)
    known = _known_tokens(session)
    stored_turns, stored_messages = session.turn_count, session.message_count
    session.turns.filter(index__gte=first_new).delete()
    session.messages.filter(turn_index__gte=first_new).delete()
    turns, ledger = _turns(imported, known)
    elsewhere = _billed_elsewhere(session, imported)
    _write_preamble(session, imported, ledger)
    _write_turns(session, [turn for turn in turns if turn.index >= first_new], elsewhere)
    _update_counters(session, imported, turns, ledger, elsewhere)
    return ImportResult(
        session=session,
        created=created,
        turns_added=session.turn_count - stored_turns,
        messages_added=session.message_count - stored_messages,
    )


def _session_find_or_create(
    *, project: Project, imported: ImportedSession, origin: str
) -> tuple[AgentSession, bool]:
    started = imported.started_at or timezone.now()
    session, created = AgentSession.objects.select_for_update().get_or_create(
        project=project,
        external_id=imported.external_id,
        defaults={
            "format": imported.format,
            "origin": origin,
            "started_at": started,
            "last_active_at": started,
        },
    )
    if not created and session.origin == "api":
        raise ImportConflictError(f"session {imported.external_id} was pushed over the API, not imported")
    return session, created


def _first_new_turn(session: AgentSession, imported: ImportedSession) -> int:
    """The index of the first turn that is not stored as the log tells it."""
    stored = list(
        session.messages.order_by("position").values_list("turn_index", "source_id", "content_hash")
    )
    told = _told(imported)
    same = 0
    for (index, source_id, content_hash), row in zip(told, stored, strict=False):
        if (index, source_id, content_hash) != (row[0], row[1], bytes(row[2])):
            break
        same += 1
    if same == len(stored) and same == len(told):
        return len(imported.turns)
    first_new = told[same][0] if same < len(told) else len(imported.turns)
    if same < len(stored):
        first_new = min(first_new, stored[same][0])
        if first_new < session.turn_count - 1:
            raise ImportConflictError(
                f"session {imported.external_id} differs from what is stored from message {same} on"
            )
    return first_new


def _told(imported: ImportedSession) -> list[tuple[int, str, bytes]]:
    return [
        (index, message.source_id[:200], bodies.content_hash(bodies.json_bytes(message.body)))
        for index, turn in enumerate(imported.turns)
        for message in turn.messages
    ]


def _known_tokens(session: AgentSession) -> Mapping[tuple[int, bytes], int]:
    """What was counted before need not be counted again."""
    rows = session.messages.values_list("position", "content_hash", "tokens")
    return {(position, bytes(content_hash)): tokens for position, content_hash, tokens in rows}


def _turns(
    imported: ImportedSession, known: Mapping[tuple[int, bytes], int]
) -> tuple[list[_NewTurn], Ledger]:
    ledger = Ledger().set(**_preamble_tokens(imported))
    turns: list[_NewTurn] = []
    position = 0
    for index, turn in enumerate(imported.turns):
        if turn.client_compaction is not None:
            ledger = ledger.restarted()
        messages = []
        for message in turn.messages:
            messages.append(_new_message(message, imported.format, position, index, known))
            position += 1
        values = [message.value for message in messages]
        cost = (
            pricing.price(turn.model or imported.model, turn.usage, turn.at).microusd if turn.usage else None
        )
        turns.append(
            _NewTurn(
                index=index,
                imported=turn,
                messages=messages,
                prompt=ledger.prompt_of(values),
                cost_microusd=cost,
            )
        )
        ledger = ledger.add(values)
    return turns, ledger


def _new_message(
    message: ImportedMessage,
    format: str,
    position: int,
    turn: int,
    known: Mapping[tuple[int, bytes], int],
) -> _NewMessage:
    data = bodies.json_bytes(message.body)
    counted = known.get((position, bodies.content_hash(data)))
    used = counter() if counted is None else None
    [value] = formats.parse(
        [dict(message.body)], format=format, start_position=position, turn=turn, counter=used
    )
    value = value if counted is None else replace(value, tokens=counted)
    return _NewMessage(value=value, imported=message, data=data)


def _preamble_tokens(imported: ImportedSession) -> dict[str, int]:
    """Tokens of what stands before the messages, where the log has it."""
    parts = {"system": imported.system, "tools": imported.tools}
    return {name: counter().count(_as_text(value)) for name, value in parts.items() if value}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else bodies.json_bytes(value).decode()


def _billed_elsewhere(session: AgentSession, imported: ImportedSession) -> set[str]:
    """Responses that another session of the project has: a fork copies its history for free."""
    ids = [turn.response_id for turn in imported.turns if turn.response_id]
    rows = Turn.objects.filter(session__project_id=session.project_id, response_id__in=ids, billed=True)
    found = rows.exclude(session_id=session.pk).values_list("response_id", flat=True)
    return {response_id for response_id in found if response_id}


def _write_preamble(session: AgentSession, imported: ImportedSession, ledger: Ledger) -> None:
    if not imported.system and not imported.tools:
        return
    Preamble.objects.get_or_create(
        session=session,
        version=1,
        defaults={
            "from_turn": 0,
            "system": bodies.pack(bodies.json_bytes(imported.system)) if imported.system else None,
            "tools": bodies.pack(bodies.json_bytes(imported.tools)) if imported.tools else None,
            "system_tokens": ledger.tokens.get("system", 0),
            "tools_tokens": ledger.tokens.get("tools", 0),
        },
    )
    session.preamble_version = 1


def _write_turns(session: AgentSession, turns: Sequence[_NewTurn], elsewhere: set[str]) -> None:
    blobs = _write_blobs(session.project_id, [message for turn in turns for message in turn.messages])
    Turn.objects.bulk_create(
        (_turn_row(session, turn, elsewhere) for turn in turns), batch_size=_ROWS_PER_STATEMENT
    )
    Message.objects.bulk_create(
        (_message_row(session, turn, message, blobs) for turn in turns for message in turn.messages),
        batch_size=_ROWS_PER_STATEMENT,
    )


def _write_blobs(project_id: Any, messages: Sequence[_NewMessage]) -> Mapping[bytes, Any]:
    """Stores the large bodies once per project; answers their ids by SHA-256."""
    large = {hashlib.sha256(m.data).digest(): m.data for m in messages if len(m.data) > bodies.BLOB_BYTES}
    Blob.objects.bulk_create(
        (
            Blob(project_id=project_id, sha256=sha256, size=len(data), data=bodies.pack(data))
            for sha256, data in sorted(large.items())  # in one order, so that two imports cannot deadlock
        ),
        ignore_conflicts=True,
        batch_size=_ROWS_PER_STATEMENT,
    )
    rows = Blob.objects.filter(project_id=project_id, sha256__in=list(large)).values_list("sha256", "id")
    return {bytes(sha256): id for sha256, id in rows}


def _turn_row(session: AgentSession, turn: _NewTurn, elsewhere: set[str]) -> Turn:
    imported = turn.imported
    compaction = imported.client_compaction
    return Turn(
        session=session,
        index=turn.index,
        at=_at(imported) or session.started_at,
        model=imported.model,
        first_position=turn.messages[0].value.position if turn.messages else 0,
        message_count=len(turn.messages),
        preamble_version=session.preamble_version,
        prompt_estimate=turn.prompt.total,
        components=turn.prompt.tokens,
        cost_microusd=turn.cost_microusd,
        response_id=imported.response_id,
        billed=imported.response_id not in elsewhere,
        client_compaction=compaction
        and {"trigger": compaction.trigger, "tokens_before": compaction.tokens_before},
        **usage_fields(imported.usage),
    )


def _message_row(
    session: AgentSession, turn: _NewTurn, message: _NewMessage, blobs: Mapping[bytes, Any]
) -> Message:
    value, imported = message.value, message.imported
    blob_id = (
        blobs.get(hashlib.sha256(message.data).digest()) if len(message.data) > bodies.BLOB_BYTES else None
    )
    return Message(
        session=session,
        position=value.position,
        turn_index=turn.index,
        role=value.role,
        tokens=value.tokens,
        flags=_flags(message),
        tool_name=next((call.name for call in value.tool_calls), "")[:200],
        content_hash=bodies.content_hash(message.data),
        body=None if blob_id else bodies.pack(message.data),
        blob_id=blob_id,
        source_id=imported.source_id[:200],
    )


def _flags(message: _NewMessage) -> int:
    flags = 0
    if any(result.is_error for result in message.value.tool_results):
        flags |= MessageFlag.ERROR
    if message.imported.is_meta:
        flags |= MessageFlag.META
    if message.imported.is_summary:
        flags |= MessageFlag.CLIENT_SUMMARY
    return int(flags)


def _at(turn: ImportedTurn) -> Any:
    return turn.at or next((m.at for m in reversed(turn.messages) if m.at), None)


def _update_counters(
    session: AgentSession,
    imported: ImportedSession,
    turns: Sequence[_NewTurn],
    ledger: Ledger,
    elsewhere: set[str],
) -> None:
    """Sets every counter from the whole log, so that an import in pieces and one at once agree."""
    sizes = list(_prompt_sizes(turns))
    billed = [turn for turn in turns if turn.imported.response_id not in elsewhere]
    usage = _total(turn.imported.usage for turn in billed)
    session.parent = _parent(session, imported)
    session.title = imported.title[:300]
    session.agent, session.model = imported.agent[:100], imported.model[:200]
    session.tags = [tag[:100] for tag in imported.tags]
    session.metadata = dict(imported.metadata)
    session.context_window = imported.context_window or pricing.context_window(imported.model)
    session.last_active_at = max(
        (at for turn in turns if (at := _at(turn.imported))), default=session.started_at
    )
    session.turn_count = len(turns)
    session.message_count = sum(len(turn.messages) for turn in turns)
    session.context_start = next(
        (
            t.messages[0].value.position
            for t in reversed(turns)
            if t.imported.client_compaction and t.messages
        ),
        0,
    )
    session.context_components = dict(ledger.tokens)
    session.last_prompt_tokens = sizes[-1] if sizes else 0
    session.peak_prompt_tokens = max(sizes, default=0)
    session.uncached_tokens = usage.uncached_tokens
    session.cache_read_tokens = usage.cache_read_tokens
    session.cache_write_tokens = usage.cache_write_tokens
    session.output_tokens = usage.output_tokens
    session.cost_microusd = sum(turn.cost_microusd or 0 for turn in billed)
    session.unpriced_turns = sum(1 for turn in billed if turn.imported.usage and turn.cost_microusd is None)
    session.save()


def _prompt_sizes(turns: Sequence[_NewTurn]) -> Iterator[int]:
    """The prompt of each call: as reported, else as estimated. A last turn without an answer was no call."""
    for turn in turns:
        if turn.imported.usage:
            yield turn.imported.usage.prompt_tokens
        elif any(message.value.role == "assistant" for message in turn.messages):
            yield turn.prompt.total


def _total(usages: Iterator[Usage | None] | Any) -> Usage:
    known = [usage for usage in usages if usage is not None]
    return Usage(
        uncached_tokens=sum(u.uncached_tokens for u in known),
        cache_read_tokens=sum(u.cache_read_tokens for u in known),
        cache_write_tokens=sum(u.cache_write_tokens for u in known),
        output_tokens=sum(u.output_tokens for u in known),
    )


def _parent(session: AgentSession, imported: ImportedSession) -> AgentSession | None:
    if imported.parent_external_id is None:
        return None
    return AgentSession.objects.filter(
        project_id=session.project_id, external_id=imported.parent_external_id
    ).first()
