"""Sessions with messages that a worker has not processed yet.

A worker that processes the messages of sessions in order, outside of pushes, keeps a row per session with the
`position` of the next message. A pass claims the rows of several sessions in one statement (`claims.py`
describes the protocol), and creates those that are missing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, LiteralString, Protocol, TypeVar
from uuid import UUID

from django.db import IntegrityError
from django.utils import timezone

from sessions.models import Claimable
from sessions.selectors.recent_activity import ACTIVE_SESSIONS, active_parameters
from sessions.services.claims import IS_FREE, release
from sessions.store.postgres import rows_fetch

log = logging.getLogger(__name__)

#: Time for which a session is claimed.
LEASE = timedelta(seconds=60)
#: Number of sessions that are claimed at a time, and seconds after which a pass ends.
_SESSIONS, _PASS_SECONDS = 20, 20.0
#: Time until a session is processed again after a failure.
_PAUSE_AFTER_FAILURE = timedelta(minutes=10)


class _HasSession(Protocol):
    @property
    def session_id(self) -> UUID: ...


Claimed = TypeVar("Claimed", bound=_HasSession)

_ONE: LiteralString = "s.id = %(session)s"
_ALL: LiteralString = "true"
_RECENT: LiteralString = f"s.id IN ({ACTIVE_SESSIONS})"

#: Rows are inserted in order of their ids, so that concurrent passes cannot block each other.
_CLAIM: LiteralString = """
WITH pending AS (
    SELECT s.id FROM agent_sessions_agentsession s
      LEFT JOIN {table} r ON r.session_id = s.id
     WHERE s.message_count > coalesce(r.position, 0) AND (r.session_id IS NULL OR {is_free}) AND {sessions}
       AND s.id <> ALL(%(done)s::uuid[])
     ORDER BY s.last_active_at DESC LIMIT %(limit)s
), claimed AS (
    INSERT INTO {table} AS r (session_id, attempts, lease_until, {columns})
    SELECT id, 1, statement_timestamp() + %(lease)s, {values} FROM pending ORDER BY id
        ON CONFLICT (session_id) DO UPDATE
       SET attempts = r.attempts + 1, lease_until = excluded.lease_until WHERE {is_free}
    RETURNING r.*
)
SELECT {result} FROM claimed r JOIN agent_sessions_agentsession s ON s.id = r.session_id
 ORDER BY s.last_active_at DESC
"""


#: A part of statements that write rows of a session: locks it first, as a deletion does. Otherwise, the
#: deletion would wait for these rows, and their foreign keys for the deletion.
KEPT_SESSION: LiteralString = """
kept AS (SELECT id FROM agent_sessions_agentsession WHERE id = %(session)s FOR KEY SHARE)
"""


class Backlog(Generic[Claimed]):
    """The sessions whose new messages one kind of worker has not processed.

    `name` is what it derives. `state` is the model of the rows, `initial` the values of new ones in SQL.
    `claimed` is a named tuple; `result` are its columns, of the row `r` and the session `s`.
    """

    def __init__(
        self,
        name: str,
        state: type[Claimable],
        *,
        initial: Mapping[LiteralString, LiteralString],
        claimed: Callable[..., Claimed],
        result: LiteralString,
    ) -> None:
        self._name, self._state, self._claimed = name, state, claimed
        self._one, self._all, self._recent = (
            _CLAIM.format(
                table=state._meta.db_table,
                is_free=IS_FREE,
                sessions=sessions,
                columns=", ".join(initial),
                values=", ".join(initial.values()),
                result=result,
            )
            for sessions in (_ONE, _ALL, _RECENT)
        )

    def run(self, process: Callable[[Claimed], int], *, recent: timedelta | None) -> int:
        """Process each session once, for a few seconds at most, the most recently active first.

        Messages that arrive afterwards wait for the next pass: processing few messages at a time takes much
        more work, and sessions that receive messages all the time would delay the others.

        `recent` selects those that were active within this time. Return the sum of the results.
        """
        count, until = 0, time.monotonic() + _PASS_SECONDS
        done: list[UUID] = []
        while time.monotonic() < until:
            claimed = self._claim(recent, done)
            if not claimed:
                break
            count += sum(self._process_safely(process, each) for each in claimed)
            done += [each.session_id for each in claimed]
        return count

    def _process_safely(self, process: Callable[[Claimed], int], claimed: Claimed) -> int:
        try:
            return process(claimed)
        except Exception:
            # A session that cannot be processed must not block the others.
            log.exception("could not update the %s of session %s", self._name, claimed.session_id)
            release(self._state._default_manager.filter(pk=claimed.session_id), pause=_PAUSE_AFTER_FAILURE)
            return 0

    def _claim(self, recent: timedelta | None, done: Sequence[UUID]) -> list[Claimed]:
        if recent is None:
            return self._fetch(self._all, limit=_SESSIONS, done=done)
        active = active_parameters(timezone.now() - recent)
        return self._fetch(self._recent, limit=_SESSIONS, done=done, **active)

    def claim_one(self, session_id: UUID) -> Claimed | None:
        """Claim one session. Returns None if it has no new messages, or if another worker has claimed it."""
        return next(iter(self._fetch(self._one, limit=1, done=[], session=session_id)), None)

    def _fetch(self, statement: LiteralString, **parameters: Any) -> list[Claimed]:
        try:
            rows = rows_fetch(statement, {"lease": LEASE, **parameters})
        except IntegrityError:
            return []  # one of the sessions has just been deleted; the next pass claims the others
        return [self._claimed(*row) for row in rows]
