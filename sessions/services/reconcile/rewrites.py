"""Histories that a client has rewritten: changed in place, or continued from an earlier point."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from uuid import UUID

from django.db import transaction

from compaction.edits import Op
from compaction.histories import Change
from compaction.identity import REASONING
from redaction import Redaction
from sessions.models import AgentSession, ClientHistory, Compaction, Edit
from sessions.selectors.compactions.client_context import CLIENT
from sessions.selectors.transcripts.rows import spans_of
from sessions.services.reconcile.branches import session_fork
from sessions.services.reconcile.client_edits import context_remove, messages_omit
from sessions.services.reconcile.matching import Matched, histories_of, history_match
from sessions.services.reconcile.reading import history_read
from sessions.services.reconcile.stored import hashes_write, history_save, positions
from sessions.services.reconcile.values import Sent


@transaction.atomic
def rewritten_history(
    root_id: UUID, body: bytes, *, name: str, sent: Sent, redaction: Redaction, field: str
) -> ClientHistory | None:
    """Return a history that a request extends, although its client has rewritten the recorded one.

    Applies the rewrite, as the recording of the call would do. Returns None if the client has omitted nothing
    and no compaction has shortened the prompt of such a history, or if the request has been forwarded:
    its recorded answer would look like a rewind. Raises `BadJson` or `InvalidHistory`.
    """
    root = AgentSession.objects.select_for_update(no_key=True).filter(pk=root_id, external_id=name).first()
    if root is None or sent.is_forwarded():
        return None
    histories = histories_of(root)
    reading = history_read(body, histories=histories, redaction=redaction, field=field)
    matched = history_match(histories, reading, sent)
    change, count = matched.comparison.change, matched.comparison.new
    if change not in _REWRITTEN or not (change in _OMITTING or _is_compacted(matched, count)):
        return None
    history = history_rewrite(matched, is_served=False).history
    history.count, history.digest = count, reading.digest_at(count) or b""
    history_save(history)
    return history


#: An extended one has been recorded in the meantime.
_REWRITTEN = (
    Change.DISCARDED, Change.DIVERGED, Change.EDITED, Change.EXTENDED, Change.OMITTED, Change.REPLACED,
    Change.REWRITTEN,
)  # fmt: skip

#: Those that change the prompt even if no compaction has shortened it.
_OMITTING = (Change.DISCARDED, Change.OMITTED, Change.REPLACED)


def _is_compacted(matched: Matched, count: int) -> bool:
    """Return whether a compaction has shortened the prompt of the first `count` messages of the history."""
    at = positions(matched.history, matched.session.message_count)[:count]
    rows = matched.session.compactions.filter(state=Compaction.State.DONE)
    return bool(at) and rows.filter(snapshot_position__lte=at[-1] + 1).exists()


def history_rewrite(matched: Matched, *, is_served: bool) -> Matched:
    """Change the stored history as the client has rewritten it, and return the match with the result.

    After a rewind, this is the history of a new fork, in which the edits before that point remain in force.
    Later prompts do not contain what the client has omitted: the reasoning, messages that it had added to a
    single request, or an answer that it discarded. `is_served` is that of `context_remove`.
    """
    comparison = matched.comparison
    match comparison.change:
        case Change.EDITED:
            _update_hashes(matched)
        case Change.OMITTED:
            _omit(matched, {index for index, stored in enumerate(matched.stored) if stored == REASONING})
        case Change.REPLACED | Change.DISCARDED:
            _omit(matched, range(comparison.common, comparison.kept))
        case Change.DIVERGED | Change.REWRITTEN:
            return _forked(matched, is_served=is_served)
    return matched


def _update_hashes(matched: Matched) -> None:
    """Store the new hashes of messages that the client changed in place."""
    at = positions(matched.history, matched.session.message_count)
    pairs = zip(at, matched.stored, matched.sent_hashes, strict=False)
    hashes_write(matched.session, {position: new for position, old, new in pairs if old != new})


def _omit(matched: Matched, omitted: Container[int]) -> None:
    """Leave the stored messages with these indices in the client's history out of later prompts."""
    session, history = matched.session, matched.history
    at = positions(history, session.message_count)
    placed = list(zip(range(len(matched.stored)), at, strict=True))
    messages_omit(
        session=session,
        positions=[position for index, position in placed if index in omitted],
        has_new=matched.comparison.new < len(matched.sent_hashes),
    )
    kept = [position for index, position in placed if index not in omitted]
    history.spans = spans_kept(kept, session.message_count)


def _forked(matched: Matched, *, is_served: bool) -> Matched:
    """Return the match in a new session that shares the messages before the divergence."""
    parent, history, common = matched.session, matched.history, matched.comparison.common
    at = positions(history, parent.message_count)
    end = at[common - 1] + 1 if common else 0
    child = session_fork(parent=parent, at=end, context_start=parent.context_start)
    if removed := _removed_later(parent, at[:common], end):
        context_remove(session=child, positions=removed, is_served=is_served)
    forked = ClientHistory(
        session=child,
        root=history.root,
        spans=spans_kept(at[:common], end),
        digest=b"",
        # The client's last system prompt and tools may be newer than those at the point of the fork.
        preamble_hash=history.preamble_hash if child.preamble_version == parent.preamble_version else b"",
    )
    return replace(matched, session=child, history=forked)


def _removed_later(parent: AgentSession, kept: Sequence[int], end: int) -> Sequence[int]:
    """Return the positions before `end` that the client removed at a later point of the parent.

    A fork has no copy of the compactions at later points. `kept` are the positions that the client still has.
    """
    removed = Edit.objects.filter(session=parent, strategy=CLIENT, op=Op.EVICT).filter(
        compaction__state=Compaction.State.DONE, compaction__snapshot_position__gt=end
    )
    spans = removed.values_list("position", "end")
    return sorted({at for first, last in spans for at in range(first, min(last + 1, end))} - {*kept})


def spans_kept(kept: Sequence[int], end: int) -> list[list[int | None]]:
    """Return the spans of the kept positions and of all messages from `end` on."""
    spans: list[list[int | None]] = [[*span] for span in spans_of(kept)]
    if spans and spans[-1][1] == end:
        spans[-1][1] = None
        return spans
    return [*spans, [end, None]]
