"""Count the tokens and the cost of tools, outside of pushes.

A worker counts the new messages of a session from where the last pass stopped. The input cost of a call is
divided in proportion to tokens: first between tool outputs and the rest of the prompt, as recorded with the
turn, then among the tools whose outputs are in the context.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.adapters.tiktoken_counter import counter
from compaction.messages import Message, ToolCall
from compaction.tool_usage import ToolUse, tool_uses
from sessions.models import AgentSession, ToolFile, ToolOutputs, ToolRollup, ToolScan, Turn
from sessions.selectors.recent_activity import RECENT, sessions_active_since
from sessions.selectors.stored_rows import StoredMessage, messages_load
from sessions.services.claims import claim, is_free, release, revoke, still_own
from sessions.services.tools.sums import Sums
from sessions.services.tools.write import sums_write
from sessions.store.flags import MessageFlag

log = logging.getLogger(__name__)

#: Messages per batch, and messages before it in which its calls are looked up.
_BATCH, _CALLS_BEFORE = 500, 16
#: Number of sessions per query, and seconds after which a pass ends.
_SESSIONS, _PASS_SECONDS = 50, 20.0
_LEASE = timedelta(seconds=60)
#: Time until the counting of a session is retried after a failure.
_PAUSE_AFTER_FAILURE = timedelta(minutes=10)


def tools_count(*, everywhere: bool = False) -> int:
    """Count the new messages of recently active sessions, or of all. Return the number of messages."""
    count, until = 0, time.monotonic() + _PASS_SECONDS
    while time.monotonic() < until:
        pending = _pending(everywhere)
        if not pending:
            break
        count += sum(map(_count_safely, pending))
    return count


def session_tools_count(*, session_id: UUID) -> int:
    """Count the new messages of a session. Return their number, or 0 if another worker is counting."""
    session = AgentSession.objects.filter(pk=session_id).first()
    if session is None:
        return 0
    ToolScan.objects.bulk_create([ToolScan(session_id=session_id)], ignore_conflicts=True)
    scan = claim(ToolScan.objects.filter(pk=session_id), lease=_LEASE)
    if scan is None:
        return 0
    begin = scan.position
    while _count_batch(session, scan):
        pass
    release(still_own(scan))
    return scan.position - begin


def session_tools_reset(*, session_id: UUID) -> None:
    """Discard the counts of a session. Call it in the transaction that changes its messages."""
    for model in (ToolOutputs, ToolRollup, ToolFile):
        model._default_manager.filter(session_id=session_id).delete()
    revoke(ToolScan.objects.filter(pk=session_id), position=0, context={}, charged_turn=-1)


def _pending(everywhere: bool) -> list[UUID]:
    begun = is_free("tool_scan__") & Q(tool_scan__position__lt=F("message_count"))
    rows = AgentSession.objects.filter(Q(tool_scan=None, message_count__gt=0) | begun)
    if not everywhere:
        rows = rows.filter(pk__in=sessions_active_since(timezone.now() - RECENT))
    return list(rows.order_by(F("last_active_at").desc()).values_list("pk", flat=True)[:_SESSIONS])


def _count_safely(session_id: UUID) -> int:
    try:
        return session_tools_count(session_id=session_id)
    except Exception:
        # A session that cannot be counted must not block the others.
        log.exception("could not count the tools of session %s", session_id)
        release(ToolScan.objects.filter(pk=session_id), pause=_PAUSE_AFTER_FAILURE)
        return 0


def _count_batch(session: AgentSession, scan: ToolScan) -> bool:
    """Count the next messages. Return whether there may be more."""
    rows = messages_load(session.pk, [(max(scan.position - _CALLS_BEFORE, 0), scan.position + _BATCH)])
    values = [row.value(session.format) for row in rows]
    calls: dict[str, ToolCall] = {}
    known = [value for value in values if value.position < scan.position]
    list(tool_uses(known, calls, counter()))
    new = values[len(known) :]
    if not new:
        return False
    uses = _with_errors([*map(_storable, tool_uses(new, calls, counter()))], rows)
    sums = Sums.of(session, scan, new, uses, _turns(session, new), _seen_files(session, uses))
    with transaction.atomic():
        if still_own(scan).select_for_update().first() is None:
            return False
        sums_write(session, sums)
        scan.position, scan.context, scan.charged_turn = new[-1].position + 1, sums.context, sums.charged_turn
        release(
            still_own(scan),
            pause=_LEASE,
            position=scan.position,
            context=scan.context,
            charged_turn=scan.charged_turn,
        )
    return len(new) == _BATCH


def _storable(use: ToolUse) -> ToolUse:
    """Return the use without NUL, which Postgres does not accept in text."""
    if not any("\0" in text for text in (use.tool, use.path, use.span)):
        return use
    tool, path, span = (text.replace("\0", "") for text in (use.tool, use.path, use.span))
    return replace(use, tool=tool, path=path, span=span)


def _with_errors(uses: Sequence[ToolUse], rows: Sequence[StoredMessage]) -> list[ToolUse]:
    """Return the uses with the errors that only the flag of a message with a single output records."""
    outputs = Counter(use.position for use in uses if use.is_output)
    flagged = {row.position for row in rows if row.flags & MessageFlag.ERROR and outputs[row.position] == 1}
    return [replace(use, is_error=True) if use.is_output and use.position in flagged else use for use in uses]


def _turns(session: AgentSession, messages: Sequence[Message]) -> Mapping[int, Turn]:
    found = session.turns.filter(index__gte=messages[0].turn, index__lte=messages[-1].turn)
    return {turn.index: turn for turn in found.defer("answer", "body_hash")}


def _seen_files(session: AgentSession, uses: Sequence[ToolUse]) -> set[tuple[str, str]]:
    """Return the files among those of the batch that the session has read before."""
    paths = {use.path[:400] for use in uses if use.path}
    return set(session.tool_files.filter(path__in=paths).values_list("path", "span")) if paths else set()
