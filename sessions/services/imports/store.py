"""Store imported sessions. Importing a log again adds nothing; importing a longer one adds the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db import transaction

from accounts.models import Project
from compaction.prefixes import common_length
from importers.base import ImportedSession
from sessions.models import AgentSession
from sessions.selectors.redaction import redaction_of
from sessions.services.blobs import blobs_remove, messages_delete
from sessions.services.commits import after_commit
from sessions.services.compactions.snapshots import snapshot_rebuild, snapshot_rewrite
from sessions.services.imports.annotations import (
    annotations_import,
    annotations_of,
    annotations_restore,
)
from sessions.services.imports.enrich import is_recorded, session_enrich
from sessions.services.imports.family import family_link, parent_set
from sessions.services.imports.find import (
    ImportConflictError,
    parent_of,
    session_find_or_create,
)
from sessions.services.imports.pages import MessageKey, has_other_calls, pages_combine
from sessions.services.imports.preambles import preambles_replace
from sessions.services.imports.prepare import (
    PreparedSession,
    PreparedTurn,
    context_window_of,
    session_prepare,
)
from sessions.services.imports.reported import Joined, calls_join, reported_remove
from sessions.services.imports.rows import (
    PlacedTurn,
    billed_elsewhere,
    omissions_update,
    turns_place,
    turns_write,
)
from sessions.services.imports.tally import Tally, once_of
from sessions.services.imports.unnamed import calls_identify
from sessions.services.search.indexing import search_index_on_commit, search_index_truncate
from sessions.services.sessions.derived import derived_refresh_on_commit
from sessions.services.spending.rollups import rollups_invalidate
from sessions.services.tools.counting import session_tools_reset
from sessions.store import bodies

#: Turns at the end of a log that may still change while its client is writing: the blocks of a response
#: are written line by line, and the results of parallel calls are merged into one message.
_UNFINISHED_TURNS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """The result of importing one session.

    `changed` is false if at most facts such as the title were written. `redacted` counts the secrets found in
    the log, by kind.
    """

    session: AgentSession
    created: bool
    changed: bool
    turns_added: int
    messages_added: int
    redacted: Mapping[str, int] = field(default_factory=dict)


def session_import(*, project: Project, imported: ImportedSession, origin: str = "import") -> ImportResult:
    """Prepare and store what an importer read."""
    prepared = session_prepare(imported, redaction=redaction_of(project))
    return prepared_import(project=project, prepared=prepared, origin=origin)


@transaction.atomic
def prepared_import(*, project: Project, prepared: PreparedSession, origin: str) -> ImportResult:
    """Store a session, or the new part of it.

    The last turns of a log are replaced, because its client may still have been writing them. If the session
    has been compacted here, or its client omits messages, stored messages are no longer changed, and new
    messages are appended as separate turns. Importing an older state of a log adds nothing.

    Raises `ImportConflictError` if the session was pushed or continued over the API, or if its stored
    messages differ from the log.
    """
    turns, recorded = calls_identify(project.pk, prepared.turns)
    prepared = replace(prepared, turns=turns)
    session, created = session_find_or_create(project, prepared.facts, origin, recorded)
    before = session.turn_count, session.message_count
    changed = _store(session, prepared, is_new=created)
    if created:
        annotations_import(session, prepared.facts)
        family_link(session_id=session.pk)
        # Another worker may import its parent or a sub-agent at the same time.
        after_commit(family_link, session_id=session.pk)
    if changed:
        search_index_on_commit(session_id=session.pk)
    if changed and not created:
        session.imported_logs.all().delete()
        derived_refresh_on_commit(session=session)
    return ImportResult(
        session=session,
        created=created,
        changed=changed,
        turns_added=session.turn_count - before[0],
        messages_added=session.message_count - before[1],
        redacted=prepared.redacted,
    )


def _store(session: AgentSession, prepared: PreparedSession, *, is_new: bool) -> bool:
    """Store the new part of the log in the locked session. Return whether turns were written."""
    if not is_new and is_recorded(session):
        return session_enrich(session, prepared)
    facts = prepared.facts
    session.context_window = facts.context_window or context_window_of(facts.model, prepared.turns)
    parent_set(session, parent_of(session.project, facts), name=facts.parent_external_id)
    stored = [] if is_new else _stored(session)
    joined = calls_join(session, prepared.turns)
    turns, is_completed = pages_combine(session, joined.turns, stored)
    is_rest = _is_rest(turns, stored)
    if session.compaction_count or session.omitted_count or is_rest:
        prepared = replace(prepared, turns=turns)
        changed = _append(session, prepared, stored, joined, is_rest=is_rest)
    else:
        prepared = replace(prepared, turns=[*turns, *joined.remaining])
        changed = _rewrite_end(session, prepared, stored, joined.end)
    return changed or is_completed


def _is_rest(turns: Sequence[PreparedTurn], stored: Sequence[MessageKey]) -> bool:
    """Return whether the log lacks the beginning of the session, because the client compacted it."""
    if not stored or not turns or turns[0].client_compaction is None or not turns[0].messages:
        return False
    return stored[0].source_id != turns[0].messages[0].source_id


def _stored(session: AgentSession) -> list[MessageKey]:
    rows = session.messages.order_by("position").values_list(
        "turn_index", "source_id", "body", "blob__sha256"
    )
    return [
        MessageKey(
            turn, source_id, bytes(large) if large else hashlib.sha256(bodies.unpack(body or b"")).digest()
        )
        for turn, source_id, body, large in rows
    ]


# -- Without compactions and omissions: the end may be replaced ----------------------------------


def _rewrite_end(
    session: AgentSession, prepared: PreparedSession, stored: Sequence[MessageKey], end: int
) -> bool:
    """Replace the stored turns from the first difference on. Return whether turns were written.

    `end` is the number of turns without the calls at the end that telemetry reported. Every counter is
    computed from the whole log, so that importing a log in parts has the same result.
    """
    imported = [
        MessageKey(index, message.source_id, message.sha256)
        for index, turn in enumerate(prepared.turns)
        for message in turn.messages
    ]
    same = common_length(stored, imported)
    if same == len(imported) < len(stored):
        return False
    if stored and not same and has_other_calls(session, prepared.turns):
        raise ImportConflictError(
            f"session {session.external_id} has calls that are not in the log. If both are pages of one "
            "export, delete the session, join the pages to one file and import it"
        )
    first = _first_unfinished(session, stored, imported, same=same, end=end)
    if len(imported) < len(stored):
        return False
    elsewhere = billed_elsewhere(session, prepared.turns, kept=first)
    other_preamble = preambles_replace(session, prepared)
    if other_preamble is not None:
        first = min(first, other_preamble)  # the sizes of its prompts change
    tally = Tally.opening(prepared, session)
    turns, tally = turns_place(session, prepared.turns, tally, elsewhere)
    changed = other_preamble is not None or same < len(imported) or tally != Tally.of(session)
    if changed:
        _turns_replace(session, turns, first=first)
        omissions_update(session, prepared.turns[:first])
    _save(session, prepared, tally)
    return changed


def _turns_replace(session: AgentSession, turns: Sequence[PlacedTurn], *, first: int) -> None:
    """Replace the stored turns from index `first` on. Pins and comments are kept."""
    if not session.turn_count:
        turns_write(session, turns)
        return
    annotations = annotations_of(session, first=first)
    session.turns.filter(index__gte=first).delete()
    replaced = messages_delete(session.pk, first_turn=first)
    search_index_truncate(session_id=session.pk, position=turns[first].first_position)
    session.edits_revision += 1  # the prompt of a stored turn may change
    rollups_invalidate(session.pk)
    session_tools_reset(session_id=session.pk)
    turns_write(session, turns[first:])
    annotations_restore(session, annotations, first=first)
    blobs_remove(session.project_id, replaced)


def _first_unfinished(
    session: AgentSession,
    stored: Sequence[MessageKey],
    imported: Sequence[MessageKey],
    *,
    same: int,
    end: int,
) -> int:
    """Return the first turn that may be replaced. Raises `ImportConflictError` on an earlier difference."""
    first = max(end - _UNFINISHED_TURNS, 0)
    if any(message.source_id is None for message in stored):
        raise ImportConflictError(f"session {session.external_id} was continued over the API")
    if any(message.turn < first for message in (*stored[same : same + 1], *imported[same : same + 1])):
        raise ImportConflictError(
            f"session {session.external_id} differs from the stored session from message {same} on"
        )
    return first


# -- With compactions, omissions or a missing beginning: stored messages are not changed ---------


def _append(
    session: AgentSession,
    prepared: PreparedSession,
    stored: Sequence[MessageKey],
    joined: Joined,
    *,
    is_rest: bool,
) -> bool:
    """Append the messages whose source ids are not stored yet, as separate turns.

    `is_rest` if the log does not contain the beginning of the session.
    """
    known = {message.source_id for message in stored}
    turns = [new for turn in prepared.turns if (new := _unknown_part(turn, known)) is not None]
    if not turns:
        return False
    imported = {message.source_id for turn in prepared.turns for message in turn.messages}
    if not is_rest and not known <= imported:
        raise ImportConflictError(f"session {session.external_id} has messages that are not in the log")
    if joined.reported:
        reported_remove(session, joined)
    turns.extend(joined.remaining)
    elsewhere = billed_elsewhere(session, turns)
    omitted = omissions_update(session, prepared.turns)
    tally = replace(Tally.of(session), once=once_of(omitted))
    new_turns, tally = turns_place(session, turns, tally, elsewhere)
    turns_write(session, new_turns)
    _save(session, prepared, tally)
    return True


def _unknown_part(turn: PreparedTurn, known: set[str | None]) -> PreparedTurn | None:
    """Return the turn with only its unknown messages, or None if all are known.

    The session keeps its system prompt and tools, because edits may have removed the latter.
    """
    messages = [m for m in turn.messages if m.source_id not in known]
    if not messages:
        return None
    begins = messages[0] is turn.messages[0]
    mark = turn.client_compaction if begins else None
    return replace(turn, messages=messages, client_compaction=mark, preamble=None)


# -- Shared ---------------------------------------------------------------------------------------


def _save(session: AgentSession, prepared: PreparedSession, tally: Tally) -> None:
    facts = prepared.facts
    if not session.keeps_labels:
        session.title = facts.title[:300]
        session.tags = list(dict.fromkeys([*(tag[:100] for tag in facts.tags), *session.tags]))
    session.agent, session.model = facts.agent[:100], facts.model[:200]
    session.metadata = {**session.metadata, **facts.metadata}
    restarted = session.context_start != tally.context_start
    tally.apply_to(session)
    if not session.compaction_count:
        session.snapshot_end = session.context_start
    session.save()
    if session.compaction_count and restarted:
        snapshot_rebuild(session=session)
    elif session.omitted_count:
        snapshot_rewrite(session=session)
