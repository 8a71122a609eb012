"""Looking at the messages of compacted sessions for what their prompts no longer show.

Off the path of pushes: the beat takes the sessions that are due. A check costs a bounded amount: at most
`MESSAGES` messages, each looked up in a table of bounded size; what is left is due at once. Compactions are
taken in as the messages reach them, so it does not matter how late a check comes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.messages import Message as MessageValue
from compaction.messages import ToolCall, ToolResult
from compaction.referenced import Reference, ReferenceTracker, WatchedEdit, with_references
from compaction.tools import Kind, action_of
from compaction.view import COMPONENT_OPS, View, apply, in_force
from sessions.models import AgentSession, Compaction, Edit, Message, ReferenceWatch
from sessions.selectors.convert import edit_value, message_value
from sessions.selectors.edits import edits_not_evicted
from sessions.selectors.stored_rows import Span, edits_load, messages_load, visible_spans
from sessions.store import bodies

log = logging.getLogger(__name__)

#: Messages that one check looks at.
MESSAGES = 200
#: How far before an output its call is looked for: parallel ones stand in a row behind it.
CALLS_BEFORE = 16
#: Sessions that one pass of the beat takes at a time, and the seconds after which it leaves the others.
SESSIONS, PASS_SECONDS = 20, 5.0
#: Seconds after which a check that did not come to its end is begun anew.
CLAIM = 120
#: Seconds after which a session with new messages is looked at again, and the longest pause of one without.
PAUSE, LONGEST_PAUSE = 10, 600


def watch_begin(session_id: UUID) -> None:
    """A compaction of the session was applied or reverted: the next pass looks at it. One small statement."""
    ReferenceWatch.objects.bulk_create(
        [ReferenceWatch(session_id=session_id)],
        update_conflicts=True,
        unique_fields=["session"],
        update_fields=["due_at", "pause_seconds"],
    )


def watches_check() -> int:
    """Looks at the sessions that are due, for a few seconds at most; how many references were found."""
    found, until = 0, time.monotonic() + PASS_SECONDS
    while time.monotonic() < until:
        due = ReferenceWatch.objects.filter(due_at__lte=timezone.now()).order_by("due_at")
        ids = list(due.values_list("pk", flat=True)[:SESSIONS])
        if not ids:
            break
        found += sum(map(_check_safely, ids))
    return found


def _check_safely(session_id: UUID) -> int:
    try:
        return session_check(session_id=session_id)
    except Exception:
        # One session that cannot be looked at must not hold up the others.
        log.exception("references of session %s", session_id)
        later = timezone.now() + timedelta(seconds=LONGEST_PAUSE)
        ReferenceWatch.objects.filter(pk=session_id).update(due_at=later)
        return 0


def session_check(*, session_id: UUID) -> int:
    """Looks at the next messages of a session; how many references were found. Of two at once one acts.

    Without a transaction around it: reading takes a while, and a compaction writes the watch too.
    """
    now = timezone.now()
    claimed = now + timedelta(seconds=CLAIM)
    due = ReferenceWatch.objects.filter(pk=session_id, due_at__lte=now)
    if due.update(due_at=claimed) != 1:
        return 0
    row = ReferenceWatch.objects.select_related("session").get(pk=session_id)
    check = _Check(row)
    found = check.run()
    check.save(claimed)
    return found


class _Check:
    """One check while it goes."""

    def __init__(self, row: ReferenceWatch) -> None:
        self._row, self._session = row, row.session
        self._begin_anew_if_reverted()
        self._watch = _watch_of(row)
        self._waiting = list(
            Compaction.objects.filter(
                session=self._session, state=Compaction.State.DONE, number__gt=row.compaction
            ).order_by("number")
        )

    def run(self) -> int:
        found = 0
        for message in self._messages():
            self._take_in(message.position)
            for reference in self._watch.seen(message):
                found += _flag(reference)
            self._row.position = message.position + 1
        self._take_in(self._row.position)
        return found

    def save(self, claimed: datetime) -> None:
        """Keeps the state, and when to look again: at once, soon, or after a pause that grows.

        Where a compaction came meanwhile the session is due already, and stays so.
        """
        row = self._row
        more, moved = row.position < self._session.message_count, row.position > self._first
        pause = 0 if more else PAUSE if moved else min(LONGEST_PAUSE, max(PAUSE, 2 * row.pause_seconds))
        state = {
            "position": row.position,
            "compaction": row.compaction,
            "reverted": row.reverted,
            "state": bodies.pack(bodies.json_bytes(self._watch.to_json())),
        }
        again = {"pause_seconds": pause, "due_at": timezone.now() + timedelta(seconds=pause)}
        mine = ReferenceWatch.objects.filter(pk=row.pk)
        if mine.filter(due_at=claimed).update(**state, **again) != 1:
            mine.update(**state)

    def _messages(self) -> Iterator[MessageValue]:
        """The messages from the first that a compaction was behind on, or where the last check stopped."""
        if self._row.position == 0 and self._waiting:
            self._row.position = self._waiting[0].snapshot_position
        self._first = self._row.position
        rows = Message.objects.filter(session=self._session, position__gte=self._row.position)
        for row in rows.select_related("blob").order_by("position")[:MESSAGES]:
            yield message_value(row, self._session.format)

    def _take_in(self, position: int) -> None:
        """The compactions that the message at `position` comes behind."""
        while self._waiting and self._waiting[0].snapshot_position <= position:
            compaction = self._waiting.pop(0)
            self._watch.compacted(_watched(self._session, compaction))
            self._row.compaction = compaction.number

    def _begin_anew_if_reverted(self) -> None:
        """What a reverted compaction had hidden is shown again: what was found since is found anew."""
        reverted = Compaction.objects.filter(session=self._session, state=Compaction.State.REVERTED).count()
        if reverted == self._row.reverted:
            return
        Edit.objects.filter(session=self._session, referenced_turn__isnull=False).update(
            referenced_turn=None, referenced_text="", referenced_how=""
        )
        self._row.position = self._row.compaction = 0
        self._row.reverted, self._row.state = reverted, None


def _watch_of(row: ReferenceWatch) -> ReferenceTracker:
    if row.state is None:
        return ReferenceTracker()
    return ReferenceTracker.from_json(bodies.json_value(bodies.unpack(bytes(row.state))))


def _flag(reference: Reference) -> int:
    text = reference.name.replace("\0", "\ufffd")
    return Edit.objects.filter(pk=reference.key).update(
        referenced_turn=reference.turn, referenced_text=text, referenced_how=reference.how
    )


def _watched(session: AgentSession, compaction: Compaction) -> list[WatchedEdit]:
    """The edits of a compaction with what they hid."""
    rows = list(Edit.objects.filter(compaction=compaction).order_by("ordinal"))
    values = [edit_value(row) for row in rows]
    touched = _touched(session, values)
    full = with_references(values, touched, _view_behind(session, compaction))
    standing = {id(edit) for edit in in_force(full)}
    watched = []
    for row, value in zip(rows, full, strict=True):
        calls = _calls(value, touched)
        actions = map(action_of, calls)
        paths = {action.path for action in actions if action.kind is Kind.READ and action.path}
        if id(value) not in standing:
            # A later step of the same plan evicted over it: that is what hides the content, handle and all.
            row, value = _cover(row, rows), replace(value, handle=None)
        watched.append(WatchedEdit(key=row.pk, edit=value, paths=sorted(paths)))
    return watched


def _cover(covered: Edit, rows: Sequence[Edit]) -> Edit:
    """The eviction of the same batch that covers the edit; itself where a later one of its part did."""
    spans = (row for row in rows if row.op == Op.EVICT and row.ordinal > covered.ordinal)
    return next((r for r in spans if r.position <= covered.position and covered.end <= r.end), covered)


def _touched(session: AgentSession, edits: Sequence[EditValue]) -> list[MessageValue]:
    """The messages that the edits touch, and those before, which hold the calls of outputs."""
    spans: list[Span] = []
    for first, end in sorted(
        (e.position - CALLS_BEFORE, e.end + 1) for e in edits if e.op not in COMPONENT_OPS
    ):
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((first, end))
    return [row.value(session.format) for row in messages_load(session.pk, spans)]


def _view_behind(session: AgentSession, compaction: Compaction) -> View:
    """What the session showed right behind a compaction."""
    applied = Edit.objects.filter(
        session=session, compaction__state=Compaction.State.DONE, compaction__number__lte=compaction.number
    )
    keys = edits_not_evicted(applied).values_list("pk", flat=True)
    edits = [edit for _, edit in edits_load(keys)]
    shown = visible_spans(edits, end=compaction.snapshot_position)
    return apply(edits, [row.value(session.format) for row in messages_load(session.pk, shown)])


def _calls(edit: EditValue, touched: Sequence[MessageValue]) -> list[ToolCall]:
    """The calls in what the edit hid; of a changed output the call that it answers."""
    near = [m for m in touched if edit.position - CALLS_BEFORE <= m.position <= edit.end]
    calls = [part for message in near for part in message.parts if isinstance(part, ToolCall)]
    if edit.op is not Op.REPLACE:
        return [call for m in near if m.position >= edit.position for call in m.tool_calls]
    parts = next((m.parts for m in near if m.position == edit.position), ())
    part = parts[edit.part] if edit.part is not None and edit.part < len(parts) else None
    if isinstance(part, ToolCall):
        return [part]
    return [call for call in calls if isinstance(part, ToolResult) and call.call_id == part.call_id]
