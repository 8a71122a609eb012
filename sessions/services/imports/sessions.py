"""Imports: a log becomes a session. Importing again adds nothing; a log that grew adds the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db import transaction
from django.utils import timezone

import pricing
from accounts.models import Project
from importers.base import ImportedSession
from sessions.models import AgentSession, Preamble, Turn
from sessions.selectors.redaction import redaction_of
from sessions.services.imports.prepare import PreparedMessage, PreparedSession, PreparedTurn, session_prepare
from sessions.services.imports.rows import NewTurn, turns_write
from sessions.services.imports.tally import Tally
from sessions.services.push.values import NewPreamble
from sessions.services.sessions.derived import derived_follow
from sessions.services.spending.rollups import rollups_forget
from sessions.store import bodies

#: So many turns at the end of a log may still change while its client writes: the blocks of a response
#: come line by line, and each result of parallel calls goes into one message behind it.
_UNFINISHED_TURNS = 2


class ImportConflictError(Exception):
    """The log tells another story than what is stored under its id; the stored one stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What an import did to one session. `changed`: anything was written but facts such as the title.
    `redacted` counts the secrets that were taken out of the log, by kind."""

    session: AgentSession
    created: bool
    changed: bool
    turns_added: int
    messages_added: int
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A stored message, as far as a log can be compared with it."""

    turn: int
    source_id: str | None
    sha256: bytes


def session_import(*, project: Project, imported: ImportedSession, origin: str = "import") -> ImportResult:
    """Stores what an importer read: `prepared_import` for callers that prepare in the same process."""
    prepared = session_prepare(imported, key=redaction_of(project))
    return prepared_import(project=project, prepared=prepared, origin=origin)


@transaction.atomic
def prepared_import(*, project: Project, prepared: PreparedSession, origin: str) -> ImportResult:
    """Stores the session, or what is new in it.

    The last turns of a log may still change, since its client was writing them: they are stored anew.
    Where one of our compactions has recorded edits nothing stored is changed any more: messages that are
    new become turns behind the stored ones. An older state of a log adds nothing.

    Raises `ImportConflictError` where the session was pushed over the API, was continued over it, or its
    stored messages are not the log's.
    """
    session, created = _session_find_or_create(project, prepared, origin)
    stored = [] if created else _stored(session)
    before = session.turn_count, session.message_count
    if session.compaction_count:
        changed = _append(session, prepared, stored)
    else:
        changed = _rewrite_end(session, prepared, stored)
    if changed and not created:
        session.imported_logs.all().delete()
        derived_follow(session=session)
    return ImportResult(
        session=session,
        created=created,
        changed=changed,
        turns_added=session.turn_count - before[0],
        messages_added=session.message_count - before[1],
        redacted=prepared.redacted,
    )


def _session_find_or_create(
    project: Project, prepared: PreparedSession, origin: str
) -> tuple[AgentSession, bool]:
    facts = prepared.facts
    started = facts.started_at or timezone.now()
    session, created = AgentSession.objects.select_for_update().get_or_create(
        project=project,
        external_id=facts.external_id,
        defaults={
            "format": facts.format,
            "origin": origin,
            "started_at": started,
            "last_active_at": started,
        },
    )
    if not created and session.origin == "api":
        raise ImportConflictError(f"session {facts.external_id} was pushed over the API, not imported")
    return session, created


def _stored(session: AgentSession) -> list[_Stored]:
    rows = session.messages.order_by("position").values_list(
        "turn_index", "source_id", "body", "blob__sha256"
    )
    return [
        _Stored(
            turn, source_id, bytes(large) if large else hashlib.sha256(bodies.unpack(body or b"")).digest()
        )
        for turn, source_id, body, large in rows
    ]


# -- No compaction of ours yet: the end may be stored anew --------------------------------------


def _rewrite_end(session: AgentSession, prepared: PreparedSession, stored: Sequence[_Stored]) -> bool:
    """Stores the log from where it differs, and sets every counter from the whole of it, so that an import
    in pieces and one at once agree. Answers whether turns were written."""
    told = [
        _Stored(index, message.source_id, message.sha256)
        for index, turn in enumerate(prepared.turns)
        for message in turn.messages
    ]
    same = _same(stored, told)
    if same == len(told) < len(stored):
        return False
    first = _first_unfinished(session, stored, told, same)
    if len(told) < len(stored):
        return False
    new_preamble = _write_preamble(session, prepared)
    elsewhere = _billed_elsewhere(session, prepared)
    tally = Tally.opening(prepared, at=session.started_at)
    turns, tally = _replayed(session, prepared.turns, tally, elsewhere)
    changed = new_preamble or same < len(told) or tally != Tally.of(session)
    if changed and stored:
        session.turns.filter(index__gte=first).delete()
        session.messages.filter(turn_index__gte=first).delete()
        session.edits_revision += 1  # what is served may differ at the same turn
        rollups_forget(session.pk)
    if changed:
        turns_write(session, turns[first:])
    _save(session, prepared, tally)
    return changed


def _same(stored: Sequence[_Stored], told: Sequence[_Stored]) -> int:
    """How many messages at the beginning are the same in both."""
    pairs = zip(stored, told, strict=False)
    shortest = min(len(stored), len(told))
    return next((index for index, (old, new) in enumerate(pairs) if old != new), shortest)


def _first_unfinished(
    session: AgentSession, stored: Sequence[_Stored], told: Sequence[_Stored], same: int
) -> int:
    """The turn from which the log is stored anew. Raises `ImportConflictError` where it differs before."""
    first = max(session.turn_count - _UNFINISHED_TURNS, 0)
    if any(message.source_id is None for message in stored):
        raise ImportConflictError(f"session {session.external_id} was continued over the API")
    if any(message.turn < first for message in (*stored[same : same + 1], *told[same : same + 1])):
        raise ImportConflictError(
            f"session {session.external_id} differs from what is stored from message {same} on"
        )
    return first


# -- With compactions: what is stored stays -----------------------------------------------------


def _append(session: AgentSession, prepared: PreparedSession, stored: Sequence[_Stored]) -> bool:
    """Stores the messages whose names are not stored yet as turns of their own, behind the others."""
    known = {message.source_id for message in stored}
    turns = [new for turn in prepared.turns if (new := _unknown_part(turn, known)) is not None]
    if not turns:
        return False
    told = {message.source_id for turn in prepared.turns for message in turn.messages}
    if not known <= told:
        raise ImportConflictError(f"session {session.external_id} has messages that the log does not have")
    elsewhere = _billed_elsewhere(session, prepared)
    new_turns, tally = _replayed(session, turns, Tally.of(session), elsewhere)
    turns_write(session, new_turns)
    _save(session, prepared, tally)
    return True


def _unknown_part(turn: PreparedTurn, known: set[str | None]) -> PreparedTurn | None:
    """The turn with those of its messages that are not known, None where it has none."""
    messages: list[PreparedMessage] = [m for m in turn.messages if m.source_id not in known]
    if not messages:
        return None
    begins = messages[0] is turn.messages[0]
    return replace(turn, messages=messages, client_compaction=turn.client_compaction if begins else None)


# -- Both ---------------------------------------------------------------------------------------


def _replayed(
    session: AgentSession, turns: Sequence[PreparedTurn], tally: Tally, elsewhere: set[str]
) -> tuple[list[NewTurn], Tally]:
    """The turns with their places, counted on from `tally`, and what it comes to behind them."""
    new = []
    for turn in turns:
        billed = turn.response_id not in elsewhere
        new.append(
            NewTurn(
                turn=turn,
                index=tally.turns,
                first_position=tally.messages,
                prompt=tally.prompt(turn),
                billed=billed,
            )
        )
        tally = tally.after(turn, format=session.format, billed=billed)
    return new, tally


def _billed_elsewhere(session: AgentSession, prepared: PreparedSession) -> set[str]:
    """Responses that another session of the project has: a fork copies its history for free."""
    ids = [turn.response_id for turn in prepared.turns if turn.response_id]
    if not ids:
        return set()
    rows = Turn.objects.filter(session__project_id=session.project_id, response_id__in=ids, billed=True)
    found = rows.exclude(session_id=session.pk).values_list("response_id", flat=True)
    return {response_id for response_id in found if response_id}


def _write_preamble(session: AgentSession, prepared: PreparedSession) -> bool:
    """Stores system text and tools; answers whether they are new."""
    if prepared.system is None and prepared.tools is None:
        return False
    preamble = NewPreamble(
        system=prepared.system,
        tools=prepared.tools,
        system_tokens=prepared.system_tokens,
        tools_tokens=prepared.tools_tokens,
    )
    if session.preamble_hash is not None and bytes(session.preamble_hash) == preamble.hash:
        return False
    Preamble.objects.update_or_create(
        session=session,
        version=1,
        defaults={
            "from_turn": 0,
            "system": preamble.system and bodies.pack(preamble.system),
            "tools": preamble.tools and bodies.pack(preamble.tools),
            "system_tokens": preamble.system_tokens,
            "tools_tokens": preamble.tools_tokens,
        },
    )
    session.preamble_version, session.preamble_hash = 1, preamble.hash
    return True


def _save(session: AgentSession, prepared: PreparedSession, tally: Tally) -> None:
    facts = prepared.facts
    session.parent = _parent(session, facts)
    session.title = facts.title[:300]
    session.agent, session.model = facts.agent[:100], facts.model[:200]
    session.tags = [tag[:100] for tag in facts.tags]
    session.metadata = dict(facts.metadata)
    session.context_window = facts.context_window or pricing.context_window(facts.model)
    tally.into(session)
    session.save()


def _parent(session: AgentSession, facts: ImportedSession) -> AgentSession | None:
    if facts.parent_external_id is None:
        return None
    return AgentSession.objects.filter(
        project_id=session.project_id, external_id=facts.parent_external_id
    ).first()
