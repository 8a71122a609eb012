"""Write the prompt snapshot: the outline of the prompt after the last compaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

from django.db.models import F
from psycopg.types.numeric import Int4, Int8

from compaction.edits import Edit as EditValue
from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import AgentSession, Compaction, Edit
from sessions.selectors.transcripts.rows import edits_load, without_covered
from sessions.services.compactions.planning import Loaded, view_load
from sessions.services.compactions.reference_scans import reference_scan_schedule
from sessions.store.continuation_columns import continuation_columns
from sessions.store.postgres import execute
from sessions.store.prompt_bytes import messages_of_view
from sessions.store.prompt_snapshots import PromptOutline

#: Not written by Django, which would put the whole prompt into the statement in hexadecimal.
_WRITE_SNAPSHOT: LiteralString = """
INSERT INTO agent_sessions_promptsnapshot (session_id, compaction_number, data, text_edit, edits)
VALUES (%(session)s, %(number)s, %(data)b, %(text_edit)s, %(edits)s::bigint[])
    ON CONFLICT (session_id) DO UPDATE
   SET compaction_number = excluded.compaction_number, data = excluded.data,
       text_edit = excluded.text_edit, edits = excluded.edits
"""


def _snapshot_write(loaded: Loaded, edits: Mapping[int, EditValue], **changes: Any) -> None:
    """Write the prompt snapshot of a view and the keys of its edits, with the session's counters.

    `changes` are further columns of the session.
    """
    session = loaded.session
    messages, after = messages_of_view(loaded.view, loaded.raw, session.format)
    # The longest text is the recap, or the marker of an offloaded output.
    longest = max(edits, key=lambda key: len(edits[key].text), default=None)
    data = PromptOutline.of(messages).pack(edits[longest].text if longest is not None else None)
    snapshot = {
        "session": session.pk,
        "number": Int4(session.compaction_count),
        "data": data,
        "text_edit": Int8(longest) if longest is not None else None,
        "edits": list(map(Int8, edits)),
    }
    execute(_WRITE_SNAPSHOT, snapshot)
    AgentSession.objects.filter(pk=session.pk).update(
        snapshot_end=session.message_count,
        shown_components=dict(TokenBreakdown.of_view(loaded.view).tokens),
        **continuation_columns(after),
        **changes,
    )


def snapshot_rebuild(*, session: AgentSession) -> None:
    """Rebuild the prompt snapshot from all stored messages and edits. The caller has locked the session.

    This restores the messages and edits that a reverted compaction covered.
    """
    edits = edits_applied(session=session)
    loaded = view_load(session, edits=edits)
    _snapshot_write(loaded, edits, edits_revision=F("edits_revision") + 1, plan_turn=None)
    reference_scan_schedule(session.pk)


def snapshot_rewrite(*, session: AgentSession) -> None:
    """Rewrite the prompt snapshot and its counters after messages were omitted, with the edits in force.

    The caller has locked the session. The edits remain the same, so a compaction in progress is still
    applied.
    """
    loaded = view_load(session)
    _snapshot_write(loaded, dict(loaded.edits))


def edits_applied(*, session: AgentSession, without: int | None = None) -> Mapping[int, EditValue]:
    """Return the edits in force by key, computed from all applied compactions but number `without`."""
    rows = Edit.objects.filter(session=session, compaction__state=Compaction.State.DONE)
    rows = rows.exclude(compaction__number=without) if without is not None else rows
    return without_covered(edits_load(rows.values_list("pk", flat=True)))
