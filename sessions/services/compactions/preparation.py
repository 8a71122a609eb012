"""Prepare the compaction that the next push may trigger, up to the plan boundary.

A prepared compaction contains every row that its push stores, so the push takes one statement. The push that
sets the boundary requests it, and a thread of the same process computes it and keeps it in memory. If it is
not ready, the push waits for it; if that takes too long, it computes the same compaction itself. A prepared
compaction is valid as long as the session's `plan_turn` is its boundary; any other change to the inputs of
the plan resets `plan_turn`. Only the working memory, the number of the compaction and the omitted messages
are compared when it is applied: the plan must not edit messages that the client has omitted since the
boundary.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, LiteralString
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection
from psycopg.types.numeric import Int4

from compaction.continuation import Continuation
from compaction.planning.preparation import leaves_room
from compaction.planning.record import Record
from compaction.policy import Policy
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from sessions.models import AgentSession
from sessions.selectors.token_budgets import policy_of
from sessions.services.compactions.lifecycle import newest_number
from sessions.services.compactions.planning import boundary_of, boundary_plan, view_load
from sessions.services.compactions.recaps import EXTRACTED, recap_parameters
from sessions.services.compactions.statements import edit_parameters
from sessions.store.postgres import rows_fetch
from sessions.store.prompt_bytes import messages_of_view

log = logging.getLogger(__name__)

#: Maximum number of prepared compactions per process, about 100 KB each.
_SIZE = 100

_CURRENT: LiteralString = "SELECT FROM agent_sessions_agentsession WHERE id = %s AND plan_turn = %s"

#: Seconds that a push waits for a compaction that is being prepared.
_WAIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCompaction:
    """A compaction of the messages up to the plan boundary, with the parameters of `EFFECTS` that store it.

    `end` is the position after the boundary, `number` that of the compaction, `memory` the revision of the
    working memory in it. `omitted_count` is that of the session at the boundary. `before` and `after` are the
    breakdown and the continuation state of the prompt up to the boundary, without and with the compaction.
    """

    turn: int
    end: int
    number: int
    memory: int | None
    omitted_count: int
    policy: Policy
    record: Record
    before: tuple[TokenBreakdown, Continuation]
    after: tuple[TokenBreakdown, Continuation]
    parameters: Mapping[str, Any]

    def applies(
        self, *, shown: TokenBreakdown, message_count: int, calibration: Calibration, budget: int
    ) -> bool:
        """Return whether the plan leaves room for the messages that followed the boundary.

        `shown` is the breakdown of the prompt with them.
        """
        return leaves_room(
            self.record,
            tokens=shown.total - self.before[0].total,
            messages=message_count - self.end,
            policy=self.policy,
            room=calibration.room(budget),
        )

    def has_edits_of(self, positions: Iterable[int]) -> bool:
        """Return whether the plan edits one of the messages."""
        spans = list(zip(self.parameters["position"], self.parameters["end"], strict=True))
        return any(first <= position <= end for position in positions for first, end in spans)

    def shown(self, before: TokenBreakdown) -> TokenBreakdown:
        """Return the breakdown of a prompt after the compaction, given that before it."""
        old, new = self.before[0].tokens, self.after[0].tokens
        changes = {name: new.get(name, 0) - old.get(name, 0) for name in {**old, **new}}
        return before.set(**{name: before.tokens.get(name, 0) + by for name, by in changes.items()})


def compaction_prepare(*, session: AgentSession, turn: int) -> PreparedCompaction | None:
    """Plan the next hard compaction of a session up to the boundary `turn`.

    Returns None if it has no effect, or if the session has another boundary by now.
    """
    boundary = boundary_of(session, turn) if session.plan_turn == turn else None
    if boundary is None:
        return None
    loaded = view_load(session, shortens=True, end=boundary.end)
    if loaded.shortening:
        return None
    request, plan = boundary_plan(loaded, boundary)
    if not plan.edits:
        return None
    messages, after = messages_of_view(plan.view, loaded.raw, session.format)
    recap = plan.recap if plan.recap is not loaded.previous else None
    _, before = messages_of_view(loaded.view, loaded.raw, session.format)
    return PreparedCompaction(
        turn=turn,
        end=boundary.end,
        number=newest_number(session) + 1,
        memory=request.memory_revision,
        omitted_count=session.omitted_count - loaded.omitted_since,
        policy=policy_of(session.policy, model=session.model),
        record=plan.record,
        before=(TokenBreakdown.of_view(loaded.view), before),
        after=(TokenBreakdown.of_view(plan.view), after),
        parameters={
            **edit_parameters(plan.edits, loaded.view, loaded.edits, messages, base=loaded.base),
            **recap_parameters(recap, plan.edits, EXTRACTED),
        },
    )


#: A compaction that is or will be prepared; None if that failed or has no effect.
_Pending = Future[PreparedCompaction | None]


class Preparations:
    """The compactions that this process prepares, in one thread. Without `start`, it prepares none.

    The thread begins with those that a push waits for.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = Lock()
        self._futures: OrderedDict[UUID, tuple[int, _Pending]] = OrderedDict()
        # Those that have not begun: the ones that a push waits for, and the others.
        self._urgent: OrderedDict[UUID, tuple[int, _Pending]] = OrderedDict()
        self._queue: OrderedDict[UUID, tuple[int, _Pending]] = OrderedDict()

    def start(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="prepare")

    def stop(self) -> None:
        """Discard all compactions, after finishing the one in progress."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None
        with self._lock:
            for session_id in list(self._futures):
                self._discard(session_id)

    def request(self, session_id: UUID, turn: int) -> None:
        """Prepare the compaction of a session up to a turn. Returns at once."""
        if self._pool is None:
            return
        with self._lock:
            self._discard(session_id)
            self._futures[session_id] = self._queue[session_id] = turn, Future()
            if len(self._futures) > _SIZE:
                self._discard(next(iter(self._futures)))
        self._pool.submit(self._prepare_next)

    def ready(self, session_id: UUID, turn: int) -> PreparedCompaction | None:
        """Return the compaction if it is ready."""
        boundary, future = self._futures.get(session_id, (None, None))
        if boundary != turn or future is None or not future.done() or future.cancelled():
            return None
        return future.result()

    def wait(self, session_id: UUID, turn: int) -> None:
        """Wait for the compaction if it is being prepared or waits for that."""
        future = self._expedited(session_id, turn)
        if future is None:
            return
        try:
            future.result(_WAIT)
        except (TimeoutError, CancelledError):
            log.warning("the compaction of session %s was not prepared in time", session_id)

    async def wait_async(self, session_id: UUID, turn: int) -> None:
        """Wait like `wait`, without blocking the event loop."""
        future = self._expedited(session_id, turn)
        if future is not None and not future.done():
            await asyncio.wait([asyncio.wrap_future(future)], timeout=_WAIT)

    def forget(self, session_id: UUID) -> None:
        """Discard the compaction of a session."""
        with self._lock:
            self._discard(session_id)

    def _discard(self, session_id: UUID) -> None:
        self._urgent.pop(session_id, None)
        self._queue.pop(session_id, None)
        _, future = self._futures.pop(session_id, (0, None))
        if future is not None:
            future.cancel()

    def _expedited(self, session_id: UUID, turn: int) -> _Pending | None:
        """Return the compaction, which is prepared before others that no push waits for."""
        with self._lock:
            found = self._futures.get(session_id)
            if found is None or found[0] != turn:
                return None
            if self._queue.pop(session_id, None) is not None:
                self._urgent[session_id] = found
            return found[1]

    def _prepare_next(self) -> None:
        with self._lock:
            queue = self._urgent or self._queue
            if not queue:
                return  # it was discarded
            session_id, (turn, future) = queue.popitem(last=False)
        if future.set_running_or_notify_cancel():
            future.set_result(_prepare_safely(session_id, turn))


preparations = Preparations()


def _prepare_safely(session_id: UUID, turn: int) -> PreparedCompaction | None:
    """Prepare a compaction in a thread. On failure, the push plans it and records the failure."""
    try:
        session = AgentSession.objects.filter(pk=session_id).first()
        if session is None:
            return None
        prepared = compaction_prepare(session=session, turn=turn)
        # The data may have changed after the session's row was read.
        is_current = bool(rows_fetch(_CURRENT, [session_id, Int4(turn)]))
        return prepared if is_current else None
    except (DatabaseError, InterfaceError):
        log.warning("the compaction of session %s was not prepared", session_id, exc_info=True)
    except Exception:
        log.exception("the compaction of session %s was not prepared", session_id)
    finally:
        connection.close()
    return None
