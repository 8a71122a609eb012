"""Create the sessions of forks, which share the beginning of their parent, and of side requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString
from uuid import UUID

from django.db.models import Max, Q
from psycopg.types.numeric import Int4
from uuid_utils.compat import uuid7

from compaction.continuation import Continuation
from compaction.edits import Op
from compaction.sizes.breakdown import TokenBreakdown
from compaction.triggers import requested
from sessions.models import AgentSession, Compaction, Edit, Preamble, Recap
from sessions.selectors.compactions.client_context import CLIENT
from sessions.selectors.convert import edit_values
from sessions.selectors.transcripts.rows import messages_load, visible_spans
from sessions.services.compactions.snapshots import snapshot_rebuild
from sessions.services.memory.update_state import update_states_fork
from sessions.services.push.preambles import preamble_of
from sessions.store.continuation_columns import continuation_columns
from sessions.store.edit_texts import text_pack
from sessions.store.postgres import execute

_INHERITED = (
    "project_id", "agent", "model", "format", "origin", "created_by_id", "tags", "metadata",
    "budget_tokens", "context_window", "policy", "calibration",
)  # fmt: skip

_COPY_MESSAGES: LiteralString = """
INSERT INTO agent_sessions_message (
    session_id, position, turn_index, role, tokens, flags, tool_name, body, blob_id, source_id, content_hash,
    omitted_from)
SELECT %(child)s, position, turn_index, role, tokens, flags, tool_name, body, blob_id, source_id,
       content_hash, CASE WHEN omitted_from IS NOT NULL THEN least(omitted_from, %(end)s) END
  FROM agent_sessions_message WHERE session_id = %(parent)s AND position < %(end)s
"""

_COPY_PINS: LiteralString = """
INSERT INTO agent_sessions_pin (session_id, position, user_id, api_key_id, at)
SELECT %(child)s, position, user_id, api_key_id, at
  FROM agent_sessions_pin WHERE session_id = %(parent)s AND position < %(end)s
"""

#: The last turn may be cut. Its response and usage remain in the parent.
_COPY_TURNS: LiteralString = """
INSERT INTO agent_sessions_turn (
    session_id, index, at, model, first_position, message_count, preamble_version, prompt_estimate,
    prompt_reported, prompt_served, component_tokens, uncached_tokens, cache_read_tokens, cache_write_tokens,
    output_tokens, output_reported, cost_microusd, billed, source, client_compaction)
SELECT %(child)s, index, at, model, first_position, least(message_count, %(end)s - first_position),
       preamble_version, prompt_estimate, prompt_reported, prompt_served, component_tokens, uncached_tokens,
       cache_read_tokens, cache_write_tokens, output_tokens, output_reported, cost_microusd, false,
       source, client_compaction
  FROM agent_sessions_turn WHERE session_id = %(parent)s AND first_position < %(end)s
"""

#: The working memory as of the last shared turn, with its history.
_COPY_MEMORY: LiteralString = """
INSERT INTO agent_sessions_memoryrevision (
    session_id, number, turn_index, author, user_id, reason, body, origins, tokens, created_at)
SELECT %(child)s, number, turn_index, author, user_id, reason, body, origins, tokens, created_at
  FROM agent_sessions_memoryrevision
 WHERE session_id = %(parent)s
   AND turn_index <= (SELECT max(index) FROM agent_sessions_turn WHERE session_id = %(child)s)
"""


#: The title of a side session with one call. A second call shows that it is a conversation.
SIDE_TITLE = "Side request"


def session_fork(*, parent: AgentSession, at: int, context_start: int) -> AgentSession:
    """Return a new session with the first `at` messages of the locked `parent`.

    It has the pins of the shared messages, and the compactions and the working memory that the parent had at
    that point. The calls of the shared turns remain billed to the parent. Takes time in proportion to the
    shared messages.
    """
    child = _child_create(parent, forked_at=at, title=parent.title, context_start=min(context_start, at))
    _copy_preambles(parent, child, at)
    shared = {"child": child.pk, "parent": parent.pk, "end": Int4(at)}
    execute(_COPY_MESSAGES, shared)
    execute(_COPY_PINS, shared)
    execute(_COPY_TURNS, shared)
    execute(_COPY_MEMORY, {"child": child.pk, "parent": parent.pk})
    compacted = _copy_compactions(parent, child, at)
    _count(child, at)
    update_states_fork(parent=parent, child=child)
    if compacted:
        snapshot_rebuild(session=child)
        child.refresh_from_db()
    return child


def side_session_create(*, parent: AgentSession) -> AgentSession:
    """Return a new session for a side request outside the conversation of `parent`."""
    return _child_create(parent, title=SIDE_TITLE)


def _child_create(parent: AgentSession, **fields: Any) -> AgentSession:
    inherited: Mapping[str, Any] = {name: getattr(parent, name) for name in _INHERITED}
    pk: UUID = uuid7()
    return AgentSession.objects.create(pk=pk, external_id=str(pk), parent=parent, **inherited, **fields)


def _copy_preambles(parent: AgentSession, child: AgentSession, at: int) -> None:
    """Copy the versions of the system prompt and tools that the shared turns used. `_count` saves `child`."""
    turns = parent.turns.filter(first_position__lt=at).order_by("-index")
    version = turns.values_list("preamble_version", flat=True).first() or 0
    rows = list(parent.preambles.filter(version__lte=version).order_by("version"))
    child.preamble_version = version
    if rows:
        child.preamble_hash = preamble_of(rows[-1]).hash
    for row in rows:
        row.pk, row.session = None, child
    Preamble.objects.bulk_create(rows)


def _count(child: AgentSession, messages: int) -> None:
    """Set the counters of a fork from the messages that it shares, and save it."""
    removed = Edit.objects.filter(session=child, strategy=CLIENT, compaction__state=Compaction.State.DONE)
    context = visible_spans(edit_values(removed), start=child.context_start, end=messages)
    rows = messages_load(child.pk, context)
    values = [row.value(child.format) for row in rows if row.omitted_from is None]
    child.omitted_count = len(rows) - len(values)
    preamble = child.preambles.filter(version=child.preamble_version).first()
    sizes = {"system": preamble.system_tokens, "tools": preamble.tools_tokens} if preamble else {}
    counted = TokenBreakdown().set(**sizes).add(values)
    after = Continuation().after(values, child.format)
    child.context_components = child.shown_components = dict(counted.tokens)
    for name, value in continuation_columns(after).items():
        setattr(child, name, value)
    child.message_count, child.snapshot_end = messages, child.context_start
    child.push_position = messages
    reported = list(child.turns.order_by("index").values_list("prompt_reported", "prompt_served"))
    sizes_of_turns = [size or served or 0 for size, served in reported]
    child.turn_count = len(reported)
    child.last_prompt_tokens = sizes_of_turns[-1] if sizes_of_turns else 0
    child.peak_prompt_tokens = max(sizes_of_turns, default=0)
    child.save()


def _copy_compactions(parent: AgentSession, child: AgentSession, at: int) -> bool:
    """Copy the compactions applied before the fork, so that its prompt begins like the parent's.

    They include the removal of thinking from the last shared turn, which may be cut: no prompt had it.
    Takes a constant number of statements: a long session has many compactions.
    """
    last = child.turns.aggregate(index=Max("index"))["index"]
    is_shared = Q(snapshot_position__lte=at) | Q(trigger=requested.THINKING.name, turn_index=last)
    rows = parent.compactions.filter(is_shared, state=Compaction.State.DONE)
    copies = {row.pk: row for row in rows.order_by("number")}
    found = Edit.objects.filter(compaction__in=list(copies)).exclude(op=Op.STRIP, position__gte=at)
    edits = list(found.order_by("compaction__number", "ordinal"))
    recaps = list(Recap.objects.filter(compaction__in=list(copies)).order_by("compaction__number", "version"))
    for row in copies.values():
        row.pk, row.session, row.upgrades, row.cost_microusd = uuid7(), child, None, None
        row.awaits_upgrade, row.snapshot_position = False, min(row.snapshot_position, at)
    for edit, value in zip(edits, edit_values(edits), strict=True):
        edit.text, edit.bases = text_pack(value.text, None), None  # the parent may be deleted
        edit.pk, edit.session, edit.compaction = None, child, copies[edit.compaction_id]
    for recap in recaps:
        recap.pk, recap.compaction = None, copies[recap.compaction_id]
    Compaction.objects.bulk_create(copies.values())
    Edit.objects.bulk_create(edits)
    Recap.objects.bulk_create(recaps)
    child.compaction_count = len(copies)
    return bool(copies)
