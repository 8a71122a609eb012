"""Read the prompt of a session from the database, now or as of an earlier turn.

The current prompt takes two statements, whatever the length of the session: one for its state and its prompt
snapshot, one for the messages after the snapshot. `store.prompt_bytes` assembles the request from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet
from psycopg.types.numeric import Int4

from compaction.breakdown import TokenBreakdown
from compaction.capabilities import capabilities_of
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.view import Components, apply
from sessions.models import Compaction, Edit, Message, Preamble, Turn
from sessions.selectors.convert import edit_value, message_bytes, message_value
from sessions.selectors.token_budgets import budget_tokens
from sessions.store import bodies
from sessions.store.blobs import blob_get
from sessions.store.postgres import execute, raw_connection
from sessions.store.prompt_bytes import PromptMessages, messages_of_view, request_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a fetch knows of its session."""

    id: UUID
    format: str
    model: str
    turn_count: int
    message_count: int
    context: TokenBreakdown
    shown: TokenBreakdown
    snapshot_end: int
    regular: bool
    calibration: float
    own_budget: int | None
    context_window: int | None
    edits_revision: int
    compaction_count: int
    preamble_version: int
    system: bytes | None
    tools: bytes | None
    snapshot: bytes | None

    @property
    def budget(self) -> int:
        return budget_tokens(own=self.own_budget, context_window=self.context_window, model=self.model)

    @property
    def shown_tools(self) -> bytes | None:
        """The tools, where no edit shed them."""
        return self.tools if self.shown.tokens.get("tools") else None

    @property
    def etag(self) -> str:
        """Names the prompt: it changes with every push, compaction and revert, and with nothing else."""
        parts = (self.turn_count, self.edits_revision, self.compaction_count, self.preamble_version)
        return "-".join([self.id.hex[-12:], *map(str, parts)])


_STATE = """
SELECT s.id, s.format, s.model, s.turn_count, s.message_count, s.context_components, s.shown_components,
       s.snapshot_end, s.needs_repair, s.open_calls, s.calibration, s.budget_tokens, s.context_window,
       s.edits_revision, s.compaction_count, s.preamble_version, p.system, p.tools, b.data
  FROM agent_sessions_agentsession s
  JOIN accounts_apikey k
    ON k.id = %(key)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
  LEFT JOIN agent_sessions_preamble p ON p.session_id = s.id AND p.version = s.preamble_version
  LEFT JOIN agent_sessions_promptsnapshot b ON b.session_id = s.id
 WHERE s.id = %(session)s AND s.project_id = %(project)s
"""

_ROWS = """
SELECT m.position, m.role, m.tokens, coalesce(m.body, b.data), b.project_id, b.sha256
  FROM agent_sessions_message m
  LEFT JOIN agent_sessions_blob b ON b.id = m.blob_id
 WHERE m.session_id = %(session)s AND m.position >= %(first)s AND m.position < %(end)s
 ORDER BY m.position
"""


def prompt_state(*, key_id: UUID, project_id: UUID, session_id: UUID) -> State | None:
    """The state of a session; None where it is not in the project, or the key no longer lives."""
    asked = {"key": key_id, "project": project_id, "session": session_id}
    with connection.wrap_database_errors:
        row = execute(raw_connection(), _STATE, asked).fetchone()
    if row is None:
        return None
    return State(
        id=row[0],
        format=row[1],
        model=row[2],
        turn_count=row[3],
        message_count=row[4],
        context=TokenBreakdown(tokens=row[5]),
        shown=TokenBreakdown(tokens=row[6] or row[5]),
        snapshot_end=row[7],
        regular=not row[8] and not row[9],
        calibration=row[10],
        own_budget=row[11],
        context_window=row[12],
        edits_revision=row[13],
        compaction_count=row[14],
        preamble_version=row[15],
        system=bodies.unpack(row[16]) if row[16] is not None else None,
        tools=bodies.unpack(row[17]) if row[17] is not None else None,
        snapshot=row[18],
    )


def messages_now(state: State) -> PromptMessages:
    """Return the messages that the prompt shows now."""
    rows = _rows(state.id, state.snapshot_end, state.message_count)
    return PromptMessages.unpack(state.snapshot).append_rows(rows)


def _rows(session_id: UUID, first: int, end: int) -> Sequence[tuple[int, str, int, bytes]]:
    asked = {"session": session_id, "first": Int4(first), "end": Int4(end)}
    with connection.wrap_database_errors:
        rows = execute(raw_connection(), _ROWS, asked).fetchall()
    return [
        (at, role, tokens, bodies.unpack(blob_get(project_id, sha256) if data is None else data))
        for at, role, tokens, data, project_id, sha256 in rows
    ]


def prompt_json(
    state: State, messages: PromptMessages, *, format: str, manifest: bool, turn: int
) -> dict[str, Any]:
    """The answer to a fetch."""
    fields = request_fields(
        messages,
        stored_format=state.format,
        format=format,
        system=state.system,
        tools=state.shown_tools,
        is_regular=state.regular,
        capabilities=capabilities_of(state.model),
    )
    size = round(state.shown.total * state.calibration)
    fits = size <= state.budget
    fields |= {
        "format": format,
        "turn": turn,
        "tokens": state.shown.total,
        "raw_tokens": state.context.total,
        "budget": state.budget,
        "occupancy": round(size / state.budget, 4),
        "fits": fits,
        "reason": None if fits else _why_not(state, size, turn),
        "compactions": state.compaction_count,
    }
    if manifest:
        fields["manifest"] = messages.manifest
    return fields


def _why_not(state: State, size: int, turn: int) -> str:
    """Why the prompt does not fit: what the turn's newest compaction said, else that none could act."""
    rows = Compaction.objects.filter(session_id=state.id, turn_index=turn).order_by("-number")
    said = (rows.values_list("record", flat=True).first() or {}).get("reason")
    return said or f"{size} tokens, the budget is {state.budget}, and no compaction made it shorter"


def prompt_at(state: State, *, turn: int) -> tuple[State, PromptMessages] | None:
    """State and messages as they were after turn `turn`; None where there is no such turn.

    Reads the history up to then: for people who look back, not for agents that go on.
    """
    row = Turn.objects.filter(session_id=state.id, index=turn).first()
    if row is None:
        return None
    end = row.first_position + row.message_count
    rows = list(
        Message.objects.filter(session_id=state.id, position__lt=end)
        .select_related("blob")
        .order_by("position")
    )
    values = [message_value(message, state.format) for message in rows]
    preamble = Preamble.objects.filter(session_id=state.id, version=row.preamble_version).first()
    components = components_of(preamble)
    batches = edits_at(session_id=state.id, turn=turn)
    view = apply([edit for batch in batches for edit in batch], values, components=components)
    raw = {message.position: message_bytes(message) for message in rows}
    messages, after = messages_of_view(view, raw, state.format)
    past = replace(
        state,
        model=row.model or state.model,
        turn_count=turn + 1,
        message_count=end,
        context=TokenBreakdown().set(system=components.system, tools=components.tools).add(values),
        shown=TokenBreakdown.of_view(view),
        regular=after.regular and not after.open_calls,
        compaction_count=_compactions_until(state, turn),
        preamble_version=row.preamble_version,
        system=bodies.unpack(preamble.system) if preamble and preamble.system else None,
        tools=bodies.unpack(preamble.tools) if preamble and preamble.tools else None,
    )
    return past, messages


def _compactions_until(state: State, turn: int) -> int:
    """How many compactions had changed the prompt by the end of a turn."""
    applied = Compaction.objects.filter(session_id=state.id, state__in=Compaction.APPLIED)
    return applied.filter(turn_index__lte=turn).count()


def components_of(preamble: Preamble | None) -> Components:
    if preamble is None:
        return Components()
    return Components(system=preamble.system_tokens, tools=preamble.tools_tokens)


def edits_at(*, session_id: UUID, turn: int) -> list[list[EditValue]]:
    """The edits that the prompt of `turn` shows, a batch for each compaction, in order."""
    rows = (
        edits_not_evicted(Edit.objects.filter(edits_in_force_after(turn), session_id=session_id))
        .order_by("compaction__number", "ordinal")
        .annotate(number=F("compaction__number"))
    )
    return [[edit_value(row) for row in batch] for _, batch in groupby(rows, key=attrgetter("number"))]


def edits_not_evicted(edits: QuerySet[Edit]) -> QuerySet[Edit]:
    """Edits of one session without those that the eviction which reaches furthest covers, of compactions
    before it: `in_force` would drop them anyway, and of a long session they are nearly all."""
    evictions = edits.filter(op=Op.EVICT).order_by("-end", "position", "-compaction__number")
    furthest = evictions.values_list("position", "end", "compaction__number").first()
    if furthest is None:
        return edits
    first, last, number = furthest
    return edits.exclude(~Q(op=Op.SHED), position__gte=first, end__lte=last, compaction__number__lt=number)


def edits_in_force_after(turn: int) -> Q:
    """The edits of the compactions that stood behind a turn, those that were reverted later included."""
    stood = Q(compaction__state=Compaction.State.DONE) | Q(
        compaction__state=Compaction.State.REVERTED, compaction__reverted_turn__gt=turn
    )
    return stood & Q(compaction__turn_index__lte=turn)
