"""Find the session that a client's history continues: the named one or one of its forks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from compaction.histories import (
    Change,
    Comparison,
    compare,
    discards_answer,
    is_provider_summary,
    is_side_prompt,
    keeps_last_exchange,
    leading_system,
)
from compaction.identity import canonical, history_digest
from sessions.models import AgentSession, ClientHistory
from sessions.selectors.transcripts.rows import messages_load
from sessions.services.reconcile.new_turn import preamble_hash_of
from sessions.services.reconcile.reading import Reading
from sessions.services.reconcile.stored import is_current, stored_hashes
from sessions.services.reconcile.values import Sent
from sessions.store.bodies import json_value
from sessions.store.postgres import rows_fetch

#: Number of most recent forks that a history is compared with.
_FORKS = 20

#: Bytes at the beginning of a system message by which an agent is recognized. It may change the rest, for
#: example the date.
_SYSTEM_BEGINNING = 100

#: The histories of a session and its most recent forks. A plain query, because Django needs a millisecond to
#: build one, and this one is in each request.
_HISTORIES = """
SELECT * FROM agent_sessions_clienthistory WHERE root_id = %s ORDER BY updated_at DESC LIMIT %s
"""

_HISTORY_FIELDS = [field.attname for field in ClientHistory._meta.concrete_fields]
_SESSION_FIELDS = [field.attname for field in AgentSession._meta.concrete_fields]

#: The histories of a session and its most recent forks, each with its session.
_HISTORIES_WITH_SESSIONS = f"""
SELECT {", ".join(f"h.{field.column}" for field in ClientHistory._meta.concrete_fields)},
       {", ".join(f"s.{field.column}" for field in AgentSession._meta.concrete_fields)}
  FROM agent_sessions_clienthistory h
  JOIN agent_sessions_agentsession s ON s.id = h.session_id
  JOIN agent_sessions_agentsession r ON r.id = h.root_id
 WHERE h.root_id = %s AND r.external_id = %s
 ORDER BY h.session_id = h.root_id DESC, h.updated_at DESC LIMIT %s
"""  # noqa: S608 (names of columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The session that a history belongs to, and the comparison with its stored messages."""

    session: AgentSession
    history: ClientHistory
    comparison: Comparison
    sent_hashes: Sequence[bytes] = ()
    stored: Sequence[bytes] = ()


def histories_of(root: AgentSession) -> list[ClientHistory]:
    """Return the histories of a locked session and its forks, the most recent first."""
    found = list(ClientHistory.objects.raw(_HISTORIES, [root.pk, _FORKS]))
    forks = [history.pk for history in found if history.pk != root.pk]
    sessions = {**AgentSession.objects.in_bulk(forks), root.pk: root} if forks else {root.pk: root}
    found = [history for history in found if history.pk in sessions]  # a fork may have just been deleted
    for history in found:
        history.session = sessions[history.pk]
    if not any(history.pk == root.pk for history in found):
        found.append(_first_history(root))
    return found


def histories_unlocked(root_id: UUID, *, name: str) -> list[ClientHistory]:
    """Return the histories of a session that another process may change, each with its session as of then.

    Returns none if the session is deleted or has another name.
    """
    parameters = [root_id, name, _FORKS]
    found = []
    for row in rows_fetch(_HISTORIES_WITH_SESSIONS, parameters):
        history = ClientHistory.from_db("default", _HISTORY_FIELDS, row[: len(_HISTORY_FIELDS)])
        history.session = AgentSession.from_db("default", _SESSION_FIELDS, row[len(_HISTORY_FIELDS) :])
        found.append(history)
    return sorted(found, key=lambda history: history.updated_at, reverse=True)


def _first_history(root: AgentSession) -> ClientHistory:
    own = ClientHistory.objects.filter(pk=root.pk).first()
    if own is not None:
        own.session = root
        return own
    return ClientHistory(
        session=root, root=root, spans=[[root.context_start, None]], digest=history_digest(()), count=0
    )


def history_match(histories: Sequence[ClientHistory], reading: Reading, sent: Sent) -> Matched:
    """Return the session that the history continues, preferably one that it extends.

    A history that the client's last request extends is found by its digest, without reading any message. A
    summary that the provider wrote continues the conversation, not the side request that returned it.
    """
    if any(map(is_provider_summary, reading.values[:1])):
        histories = [
            each
            for each in histories
            if each.pk == each.root_id or each.session.forked_at is not None or each is reading.base
        ]
    best = history_extended(histories, reading)
    if best is not None:
        found = Comparison(change=Change.EXTENDED, common=best.count, new=best.count)
        return Matched(session=best.session, history=best, comparison=_checked(found, reading, sent))
    compared = (_compared(history, reading, sent) for history in histories)
    return max(
        # Only the messages from `first` on can be appended: those before are stored with the base.
        (each for each in compared if each.comparison.new >= reading.first or each.history is reading.base),
        key=lambda matched: (
            _ORDER[matched.comparison.change],
            matched.comparison.common,
            # A history that shares nothing with any session becomes a child of the one that the client names.
            not matched.comparison.common and matched.history.pk == matched.history.root_id,
        ),
    )


def history_extended(histories: Iterable[ClientHistory], reading: Reading) -> ClientHistory | None:
    """Return the longest history that the request extends, compared by digest, or None."""
    extended = [
        history
        for history in histories
        if is_current(history, history.session.message_count)
        and reading.digest_at(history.count) == bytes(history.digest)
    ]
    return max(extended, key=lambda history: history.count, default=None)


#: If a history matches several sessions, the one with the highest value is used.
_ORDER = {
    Change.EXTENDED: 4,
    Change.EDITED: 3,
    Change.OMITTED: 3,
    Change.REPLACED: 3,
    Change.TRIMMED: 2,
    Change.REWRITTEN: 2,
    Change.COMPACTED: 1,
    Change.DISCARDED: 1,
    Change.DIVERGED: 1,
    Change.SIDE: 1,
}


def _compared(history: ClientHistory, reading: Reading, sent: Sent) -> Matched:
    stored, stored_answers = stored_hashes(history, reading)
    before = stored if reading.base is history else None
    if before is None and reading.base is not None:
        before = stored_hashes(reading.base, reading).hashes
    hashes = [*(before or ())[: reading.first], *reading.hashes]
    comparison = compare(
        stored,
        hashes,
        reading.values,
        answers=len(sent.answers),
        is_compacted=sent.is_compacted,
    )
    common, end = comparison.common, reading.count - len(sent.answers)
    first = max(common, reading.first)
    asked = reading.values[first - reading.first : end - reading.first]
    if comparison.change is Change.DIVERGED and discards_answer(
        stored, common, asked, stored_answers=stored_answers, key=reading.redaction.key
    ):
        comparison = replace(comparison, change=Change.DISCARDED, kept=len(stored))
    elif (
        comparison.change in {Change.DIVERGED, Change.SIDE}
        and keeps_last_exchange(stored, hashes[first:end], common, asked, stored_answers=stored_answers)
        and bytes(history.preamble_hash) == (preamble_hash_of(reading) or b"")
        and has_system_of(history.session, reading, size=_SYSTEM_BEGINNING)
    ):
        comparison = replace(comparison, change=Change.REWRITTEN)
    return Matched(
        session=history.session,
        history=history,
        comparison=_checked(comparison, reading, sent),
        sent_hashes=hashes,
        stored=stored,
    )


def has_system_of(session: AgentSession, reading: Reading, *, size: int | None = None) -> bool:
    """Return whether a request has the system messages of a session, or the first bytes of each.

    Their hashes ignore the text.
    """
    if reading.first:
        return True  # as in the history with whose bytes the request begins
    sent = reading.values[: leading_system(reading.values)]
    rows = messages_load(session.pk, [(0, len(sent) + 1)])
    stored = [json_value(row.data) for row in rows]
    return [canonical(each)[:size] for each in stored[: leading_system(stored)]] == [
        canonical(each)[:size] for each in sent
    ]


def is_side_request(reading: Reading, sent: Sent) -> bool:
    """Return whether the client or its last message indicates a request outside the conversation."""
    questions = reading.values[-1 - len(sent.answers) :][:1]
    return sent.is_side or any(map(is_side_prompt, questions))


def _checked(comparison: Comparison, reading: Reading, sent: Sent) -> Comparison:
    """Return the comparison, or that of a side request if it is one."""
    if is_side_request(reading, sent):
        return Comparison(change=Change.SIDE, common=comparison.common, new=comparison.common)
    return comparison
