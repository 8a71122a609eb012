"""Count the tokens and the cost of tools, outside of pushes.

A worker counts the new messages of a session from where the last pass stopped. The input cost of a call is
divided in proportion to tokens: first between tool outputs and the rest of the prompt, as recorded with the
turn, then among the tools whose outputs are in the context.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import LiteralString
from uuid import UUID

from compaction.adapters.tiktoken_counter import counter
from compaction.messages import ToolCall
from compaction.tools.usage import ToolUse, tool_uses
from sessions.models import ToolFile, ToolOutputs, ToolRollup, ToolScan
from sessions.selectors.recent_activity import RECENT
from sessions.selectors.tools.counted_turns import counted_turns
from sessions.selectors.transcripts.rows import CALLS_BEFORE, StoredMessage, messages_load
from sessions.services.backlog import Backlog
from sessions.services.claims import release, revoke
from sessions.services.dispatch import TOOLS_COUNT, task_dispatch
from sessions.services.tools.sums import MAX_PATH, ClaimedScan, Sums
from sessions.services.tools.write import sums_write
from sessions.store.flags import MessageFlag
from sessions.store.postgres import rows_fetch

#: Seconds after which a worker stops counting a long session, so that other tasks can run.
SLICE_SECONDS = 5.0
#: Messages per batch.
_BATCH = 500

_SEEN: LiteralString = """
SELECT path, span FROM agent_sessions_toolfile
 WHERE session_id = %(session)s AND path = ANY(%(paths)s::text[])
"""


_BACKLOG = Backlog(
    "tool counts",
    ToolScan,
    initial={"position": "0", "context": "'{}'::jsonb", "charged_turn": "-1"},
    claimed=ClaimedScan,
    result="""
    r.session_id, r.attempts, r.position, r.context, r.charged_turn,
    s.project_id, s.format, s.model, s.forked_at
    """,
)


def tools_count(*, everywhere: bool = False) -> int:
    """Count the new messages of recently active sessions, or of all. Return the number of messages."""
    count = partial(_count, seconds=SLICE_SECONDS)
    return _BACKLOG.run(count, recent=None if everywhere else RECENT)


def session_tools_count(*, session_id: UUID, seconds: float = math.inf) -> int:
    """Count the new messages of a session. Return their number, or 0 if another worker is counting.

    After `seconds`, the remaining messages are left to another task, which is requested.
    """
    claimed = _BACKLOG.claim_one(session_id)
    return 0 if claimed is None else _count(claimed, seconds=seconds)


def session_tools_reset(*, session_id: UUID) -> None:
    """Discard the counts of a session. Call it in the transaction that changes its messages."""
    for model in (ToolOutputs, ToolRollup, ToolFile):
        model._default_manager.filter(session_id=session_id).delete()
    revoke(ToolScan.objects.filter(pk=session_id), position=0, context={}, charged_turn=-1)


def _count(claimed: ClaimedScan, *, seconds: float) -> int:
    """Count the new messages of a session like `session_tools_count` and release it. Return their number."""
    scan, is_last, until = claimed, False, time.monotonic() + seconds
    while not is_last:
        scan, is_last = _count_batch(scan)
        if not is_last and time.monotonic() >= until:
            release(ToolScan.objects.filter(pk=scan.session_id, attempts=scan.attempts))
            task_dispatch(TOOLS_COUNT, scan.session_id)
            break
    return scan.position - claimed.position


def _count_batch(scan: ClaimedScan) -> tuple[ClaimedScan, bool]:
    """Count the next messages. Return the state after them, and whether they are the last."""
    rows = messages_load(scan.session_id, [(max(scan.position - CALLS_BEFORE, 0), scan.position + _BATCH)])
    values = [row.value(scan.format) for row in rows]
    calls: dict[str, ToolCall] = {}
    known = [value for value in values if value.position < scan.position]
    list(tool_uses(known, calls, counter()))
    new = values[len(known) :]
    if not new:
        release(ToolScan.objects.filter(pk=scan.session_id, attempts=scan.attempts))
        return scan, True
    uses = _with_errors([*map(_storable, tool_uses(new, calls, counter()))], rows)
    turns = counted_turns(scan.session_id, first=new[0].turn, last=new[-1].turn)
    sums = Sums.of(scan, new, uses, turns, _seen_files(scan.session_id, uses))
    position, is_last = new[-1].position + 1, len(new) < _BATCH
    if not sums_write(scan, sums, position=position, is_last=is_last):
        return scan, True
    after = scan._replace(position=position, context=sums.context, charged_turn=sums.charged_turn)
    return after, is_last


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


def _seen_files(session_id: UUID, uses: Sequence[ToolUse]) -> set[tuple[str, str]]:
    """Return the files among those of the batch that the session has read before."""
    paths = {use.path[:MAX_PATH] for use in uses if use.path}
    return set(rows_fetch(_SEEN, {"session": session_id, "paths": list(paths)})) if paths else set()
