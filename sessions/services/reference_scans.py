"""Scan compacted sessions for references to content that their prompts no longer show.

Scans run on a schedule, not in the push. One scan reads at most `MESSAGES` messages and looks up each of
their identifiers in a table of bounded size; the rest follows in the next pass. A compaction is tracked when
the scan reaches the messages after it, so the result does not depend on when the scan runs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from compaction.components import COMPONENT_OPS
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.messages import Message as MessageValue
from compaction.messages import ToolCall, ToolResult
from compaction.referenced import Reference, ReferenceTracker, WatchedEdit, with_references
from compaction.tools import Kind, action_of
from compaction.view import View, apply, in_force
from sessions.models import AgentSession, Compaction, Edit, ReferenceScan
from sessions.selectors.convert import edit_values
from sessions.selectors.edits import edits_not_evicted
from sessions.selectors.stored_rows import Span, edits_load, messages_load, visible_spans
from sessions.services.claims import claim, is_free, oldest_first, release, revoke, still_own
from sessions.store import bodies

log = logging.getLogger(__name__)

#: Maximum number of messages per scan.
MESSAGES = 200
#: Number of removed messages that are read per edit: the newest ones. An eviction covers all those before it.
REMOVED = 400
#: Maximum distance between an output and its call. Outputs of parallel calls follow each other.
CALLS_BEFORE = 16
#: Number of sessions that a pass loads at a time, and seconds after which a pass ends.
SESSIONS, PASS_SECONDS = 20, 5.0
#: Time after which an unfinished scan can be repeated.
LEASE = timedelta(seconds=120)
#: Seconds until the next scan of a session with new messages, and the longest pause for one without.
PAUSE, LONGEST_PAUSE = 10, 600


def reference_scan_schedule(session_id: UUID) -> None:
    """Schedule a scan for the next pass, because a compaction was applied or reverted."""
    if not revoke(ReferenceScan.objects.filter(pk=session_id), pause_seconds=0):
        ReferenceScan.objects.bulk_create([ReferenceScan(session_id=session_id)], ignore_conflicts=True)


def reference_scans_run() -> int:
    """Scan the pending sessions for a few seconds at most. Returns the number of references found."""
    found, until = 0, time.monotonic() + PASS_SECONDS
    while time.monotonic() < until:
        pending = oldest_first(ReferenceScan.objects.filter(is_free()))
        ids = list(pending.values_list("pk", flat=True)[:SESSIONS])
        if not ids:
            break
        found += sum(map(_scan_safely, ids))
    return found


def _scan_safely(session_id: UUID) -> int:
    try:
        return session_references_scan(session_id=session_id)
    except Exception:
        # A session that cannot be scanned must not block the others.
        log.exception("could not scan session %s for references", session_id)
        release(ReferenceScan.objects.filter(pk=session_id), pause=timedelta(seconds=LONGEST_PAUSE))
        return 0


def session_references_scan(*, session_id: UUID) -> int:
    """Scan the next messages of a session. Returns the number of references found.

    Runs without a transaction, because reading takes time and compactions write to the same row.
    """
    rows = ReferenceScan.objects.select_related("session").filter(pk=session_id)
    row = claim(rows, lease=LEASE)
    if row is None:
        return 0
    scan = _Scan(row)
    found = scan.run()
    scan.save()
    return found


class _Values:
    """The messages of a session. A scan reads and parses each of them once, although it needs many of them as
    new messages, in the view after a compaction, and as the content that the next one removes.
    """

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._known: dict[int, MessageValue] = {}

    def load(self, spans: Iterable[Span]) -> list[MessageValue]:
        """Return the messages in these spans, in order. Spans must not overlap."""
        wanted = [at for first, end in spans for at in range(max(first, 0), end)]
        missing = [(at, at + 1) for at in wanted if at not in self._known]
        for row in messages_load(self._session.pk, _joined(missing)) if missing else ():
            self._known[row.position] = row.value(self._session.format)
        return [self._known[at] for at in wanted if at in self._known]


class _Scan:
    """One scan in progress."""

    def __init__(self, row: ReferenceScan) -> None:
        self._row, self._session = row, row.session
        self._start_over_if_reverted()
        self._tracker = _tracker_of(row)
        self._values = _Values(self._session)
        self._pending = list(
            Compaction.objects.filter(
                session=self._session, state=Compaction.State.DONE, number__gt=row.compaction
            ).order_by("number")
        )

    def run(self) -> int:
        """Process the next messages. Returns the number of references found."""
        found = 0
        for message in self._messages():
            self._add_compactions(message.position)
            for reference in self._tracker.add_message(message):
                found += _flag(reference)
            self._row.position = message.position + 1
        self._add_compactions(self._row.position)
        return found

    def save(self) -> None:
        """Store the state, and release the row until the next scan.

        The pause is zero if messages are left, and grows while there are no new ones. If a compaction revoked
        the claim meanwhile, the session stays free for the next pass.
        """
        row = self._row
        has_more, has_moved = row.position < self._session.message_count, row.position > self._first
        pause = (
            0 if has_more else PAUSE if has_moved else min(LONGEST_PAUSE, max(PAUSE, 2 * row.pause_seconds))
        )
        state = {
            "position": row.position,
            "compaction": row.compaction,
            "reverted": row.reverted,
            "state": bodies.pack(bodies.json_bytes(self._tracker.to_json())),
        }
        if not release(still_own(row), pause=timedelta(seconds=pause), pause_seconds=pause, **state):
            ReferenceScan.objects.filter(pk=row.pk).update(**state)

    def _messages(self) -> Iterator[MessageValue]:
        """Yield the messages after the last scan, or after the first compaction if this is the first scan."""
        if self._row.position == 0 and self._pending:
            self._row.position = self._pending[0].snapshot_position
        self._first = self._row.position
        yield from self._values.load([(self._first, self._first + MESSAGES)])

    def _add_compactions(self, position: int) -> None:
        """Track the compactions that precede the message at `position`."""
        while self._pending and self._pending[0].snapshot_position <= position:
            compaction = self._pending.pop(0)
            self._tracker.add_edits(_tracked_edits(compaction, self._values))
            self._row.compaction = compaction.number

    def _start_over_if_reverted(self) -> None:
        """Discard the findings if a compaction was reverted: the content that it hid is visible again."""
        reverted = Compaction.objects.filter(session=self._session, state=Compaction.State.REVERTED).count()
        if reverted == self._row.reverted:
            return
        Edit.objects.filter(session=self._session, referenced_turn__isnull=False).update(
            referenced_turn=None, referenced_text="", referenced_how=""
        )
        self._row.position = self._row.compaction = 0
        self._row.reverted, self._row.state = reverted, None


def _tracker_of(row: ReferenceScan) -> ReferenceTracker:
    if row.state is None:
        return ReferenceTracker()
    return ReferenceTracker.from_json(bodies.json_value(bodies.unpack(bytes(row.state))))


def _flag(reference: Reference) -> int:
    text = reference.name.replace("\0", "\ufffd")
    return Edit.objects.filter(pk=reference.key).update(
        referenced_turn=reference.turn, referenced_text=text, referenced_how=reference.how
    )


def _tracked_edits(compaction: Compaction, messages: _Values) -> list[WatchedEdit]:
    """Return the edits of a compaction with the identifiers and files that they hid."""
    rows = list(Edit.objects.filter(compaction=compaction).order_by("ordinal"))
    values = edit_values(rows)
    touched = messages.load(_touched(values))
    full = with_references(values, touched, _view_after(compaction, messages))
    effective = {id(edit) for edit in in_force(full)}
    tracked = []
    for row, value in zip(rows, full, strict=True):
        calls = _calls(value, touched)
        actions = map(action_of, calls)
        paths = {action.path for action in actions if action.kind is Kind.READ and action.path}
        if id(value) not in effective:
            # A later step of the same plan evicted this content with its handle, so that edit hides it.
            row, value = _cover(row, rows), replace(value, handle=None)
        tracked.append(WatchedEdit(key=row.pk, edit=value, paths=sorted(paths)))
    return tracked


def _cover(covered: Edit, rows: Sequence[Edit]) -> Edit:
    """Return the eviction of the same batch that covers the edit, or the edit itself if none does."""
    evictions = (row for row in rows if row.op == Op.EVICT and row.ordinal > covered.ordinal)
    return next((e for e in evictions if e.position <= covered.position and covered.end <= e.end), covered)


def _touched(edits: Sequence[EditValue]) -> list[Span]:
    """Return the messages that the edits change, and those before them, which contain the outputs' calls."""
    return _joined(
        (max(edit.position, edit.end + 1 - REMOVED) - CALLS_BEFORE, edit.end + 1)
        for edit in edits
        if edit.op not in COMPONENT_OPS
    )


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Return the union of spans, in order."""
    joined: list[Span] = []
    for first, end in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((first, end))
    return joined


def _view_after(compaction: Compaction, messages: _Values) -> View:
    """Return the session's view right after a compaction."""
    applied = Edit.objects.filter(
        session=compaction.session_id,
        compaction__state=Compaction.State.DONE,
        compaction__number__lte=compaction.number,
    )
    keys = edits_not_evicted(applied).values_list("pk", flat=True)
    edits = [edit for _, edit in edits_load(keys)]
    return apply(edits, messages.load(visible_spans(edits, end=compaction.snapshot_position)))


def _calls(edit: EditValue, touched: Sequence[MessageValue]) -> list[ToolCall]:
    """Return the calls in the hidden content; for an edited output, the call that produced it."""
    near = [m for m in touched if edit.position - CALLS_BEFORE <= m.position <= edit.end]
    calls = [part for message in near for part in message.parts if isinstance(part, ToolCall)]
    if edit.op is not Op.REPLACE:
        return [call for m in near if m.position >= edit.position for call in m.tool_calls]
    parts = next((m.parts for m in near if m.position == edit.position), ())
    part = parts[edit.part] if edit.part is not None and edit.part < len(parts) else None
    if isinstance(part, ToolCall):
        return [part]
    return [call for call in calls if isinstance(part, ToolResult) and call.call_id == part.call_id]
