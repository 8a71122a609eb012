"""Scan compacted sessions for references to content that their prompts no longer show.

Scans run on a schedule, not in the push. One scan reads at most `MESSAGES` messages and looks up each of
their identifiers in a table of bounded size; the rest follows in the next pass. A compaction is tracked when
the scan reaches the messages after it, so the result does not depend on when the scan runs.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import LiteralString, NamedTuple
from uuid import UUID

from compaction.referenced import Reference, ReferenceTracker
from sessions.models import Edit, ReferenceScan
from sessions.selectors.compactions.tracked_edits import AppliedCompaction, compactions_applied
from sessions.selectors.transcripts.scans import ScannedMessages
from sessions.services.claims import IS_FREE, release, revoke
from sessions.store import bodies
from sessions.store.postgres import execute, rows_fetch
from sessions.store.text import storable

log = logging.getLogger(__name__)

#: Maximum number of messages per scan.
MESSAGES = 200
#: Number of sessions that a pass claims at a time, and seconds after which a pass ends.
SESSIONS, PASS_SECONDS = 20, 5.0
#: Time after which an unfinished scan can be repeated.
LEASE = timedelta(seconds=120)
#: Seconds until the next scan of a session with new messages, and the longest pause for one without.
PAUSE, LONGEST_PAUSE = 10, 600

#: Claims free sessions, those that have waited longest first, or the session that is given.
_CLAIM: LiteralString = f"""
WITH free AS (
    SELECT r.session_id FROM agent_sessions_referencescan r
     WHERE {IS_FREE} AND (%(session)s::uuid IS NULL OR r.session_id = %(session)s)
     ORDER BY r.lease_until NULLS FIRST LIMIT %(sessions)s
       FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE agent_sessions_referencescan r
       SET attempts = r.attempts + 1, lease_until = statement_timestamp() + %(lease)s
      FROM free WHERE r.session_id = free.session_id
    RETURNING r.*
)
SELECT r.session_id, r.attempts, r.position, r.compaction, r.state, r.pause_seconds, s.format,
       s.message_count, r.reverted, c.reverted, c.next
  FROM claimed r
  JOIN agent_sessions_agentsession s ON s.id = r.session_id
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE state = 'reverted') AS reverted,
              min(snapshot_position) FILTER (WHERE state = 'done' AND number > r.compaction) AS next
         FROM agent_sessions_compaction WHERE session_id = r.session_id) c
"""  # noqa: S608  a constant is inserted

#: Stores the state of a scan, and releases the row unless a compaction has revoked the claim: then the
#: session stays free for the next pass. Stores nothing if another worker has stored a state since the claim.
_SAVE: LiteralString = """
UPDATE agent_sessions_referencescan
   SET position = %(position)s, compaction = %(compaction)s, state = %(state)b,
       pause_seconds = CASE attempts WHEN %(attempts)s THEN %(pause)s ELSE pause_seconds END,
       lease_until = CASE attempts WHEN %(attempts)s
                     THEN statement_timestamp() + make_interval(secs => %(pause)s) ELSE lease_until END
 WHERE session_id = %(session)s AND position = %(old_position)s AND compaction = %(old_compaction)s
   AND reverted = %(reverted)s
"""


def reference_scan_schedule(session_id: UUID) -> None:
    """Schedule a scan for the next pass, because a compaction was applied or reverted."""
    if not revoke(ReferenceScan.objects.filter(pk=session_id), pause_seconds=0):
        ReferenceScan.objects.bulk_create([ReferenceScan(session_id=session_id)], ignore_conflicts=True)


def reference_scans_run() -> int:
    """Scan the pending sessions for a few seconds at most. Returns the number of references found."""
    found, until = 0, time.monotonic() + PASS_SECONDS
    while time.monotonic() < until:
        claimed = _claim()
        if not claimed:
            break
        found += sum(map(_scan_safely, claimed))
    return found


def session_references_scan(*, session_id: UUID) -> int:
    """Scan the next messages of a session. Returns the number of references found."""
    return sum(map(_scan, _claim(session_id)))


class _Claimed(NamedTuple):
    """A claimed scan, with the state of its session.

    `next` is the snapshot position of the next compaction to track, or None if all are tracked. `reverted` is
    the number of reverted compactions at the last scan, `reverted_now` the current one.
    """

    session_id: UUID
    attempts: int
    position: int
    compaction: int
    state: bytes | None
    pause_seconds: int
    format: str | None
    message_count: int
    reverted: int
    reverted_now: int
    next: int | None


def _claim(session_id: UUID | None = None) -> list[_Claimed]:
    parameters = {"session": session_id, "sessions": SESSIONS, "lease": LEASE}
    return list(map(_Claimed._make, rows_fetch(_CLAIM, parameters)))


def _scan_safely(claimed: _Claimed) -> int:
    try:
        return _scan(claimed)
    except Exception:
        # A session that cannot be scanned must not block the others.
        log.exception("could not scan session %s for references", claimed.session_id)
        rows = ReferenceScan.objects.filter(pk=claimed.session_id)
        release(rows, pause=timedelta(seconds=LONGEST_PAUSE))
        return 0


def _scan(claimed: _Claimed) -> int:
    """Scan the next messages of a session. Returns the number of references found.

    Runs without a transaction, because reading takes time and compactions write to the same row.
    """
    if claimed.reverted != claimed.reverted_now:
        _forget(claimed)
        return session_references_scan(session_id=claimed.session_id)
    scan = _Scan(claimed)
    found = scan.run()
    scan.save()
    return found


def _forget(claimed: _Claimed) -> None:
    """Discard the findings, because a compaction was reverted: the content that it hid is visible again."""
    Edit.objects.filter(session=claimed.session_id, referenced_turn__isnull=False).update(
        referenced_turn=None, referenced_text="", referenced_how=""
    )
    rows = ReferenceScan.objects.filter(pk=claimed.session_id)
    release(rows, position=0, compaction=0, reverted=claimed.reverted_now, state=None)


class _Scan:
    """One scan in progress."""

    def __init__(self, claimed: _Claimed) -> None:
        self._claimed = claimed
        # The first scan begins after the first compaction.
        self._first = self._position = claimed.position or claimed.next or 0
        self._compaction = claimed.compaction
        state = {} if claimed.state is None else bodies.json_value(bodies.unpack(claimed.state))
        self._tracker = ReferenceTracker.from_json(state) if state else ReferenceTracker()
        #: The keys of the edits in force after the last tracked compaction.
        self._shown: Sequence[int] = state.get("shown", ())

    def run(self) -> int:
        """Process the next messages. Returns the number of references found."""
        end = self._first + MESSAGES
        pending = self._pending(end)
        spans = [(self._first, end), *(span for each in pending for span in each.spans)]
        messages = ScannedMessages.load(self._claimed.session_id, self._claimed.format, spans)
        found = 0
        for position, message in messages.within([(self._first, end)]).items():
            self._add_compactions(pending, messages)
            found += sum(map(_flag, self._tracker.add_message(message)))
            self._position = position + 1
        self._add_compactions(pending, messages)
        return found

    def save(self) -> None:
        """Store the state, and release the row until the next scan.

        The pause is zero if messages are left, and grows while there are no new ones.
        """
        claimed, position = self._claimed, self._position
        if position < claimed.message_count:
            pause = 0
        else:
            longer = min(LONGEST_PAUSE, max(PAUSE, 2 * claimed.pause_seconds))
            pause = PAUSE if position > self._first else longer
        state = {**self._tracker.to_json(), "shown": self._shown}
        parameters = {
            "session": claimed.session_id,
            "attempts": claimed.attempts,
            "position": position,
            "old_position": claimed.position,
            "compaction": self._compaction,
            "old_compaction": claimed.compaction,
            "reverted": claimed.reverted,
            "state": bodies.pack(bodies.json_bytes(state)),
            "pause": pause,
        }
        execute(_SAVE, parameters)

    def _pending(self, end: int) -> deque[AppliedCompaction]:
        """Return the compactions up to the message `end` that are not tracked yet."""
        claimed = self._claimed
        if claimed.next is None or claimed.next > end:
            return deque()
        return deque(
            compactions_applied(claimed.session_id, after=claimed.compaction, end=end, shown=self._shown)
        )

    def _add_compactions(self, pending: deque[AppliedCompaction], messages: ScannedMessages) -> None:
        """Track the compactions that precede the next message."""
        while pending and pending[0].end <= self._position:
            compaction = pending.popleft()
            self._tracker.add_edits(compaction.tracked_edits(messages))
            self._compaction, self._shown = compaction.number, list(compaction.shown)


def _flag(reference: Reference) -> int:
    text = storable(reference.name)
    return Edit.objects.filter(pk=reference.key).update(
        referenced_turn=reference.turn, referenced_text=text, referenced_how=reference.how
    )
