"""The prompt for a request that a client is about to send: its own messages, with the edits in force.

The gateway splices it into the request. A message without edits stays the client's own bytes, so between two
compactions each request begins with the bytes of the one before.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import Max, Q
from django.db.models.functions import Greatest

from accounts.models import Project
from compaction.adapters.tiktoken_counter import counter
from compaction.dialects import get_dialect, parse_mixed
from compaction.on_demand import OnDemand
from compaction.provider_engine import ProviderParams, is_compacted_by_provider
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration
from compaction.triggers import TriggerState, evaluate
from redaction import Redaction
from sessions.models import AgentSession, ClientHistory, Compaction, Turn
from sessions.selectors.prompts.outlines import snapshot_read
from sessions.selectors.prompts.provider_engine import on_demand_due, session_provider_params
from sessions.selectors.token_budgets import policy_of, session_budget, session_calibration
from sessions.selectors.transcripts.rows import messages_load
from sessions.services.compactions.apply import PlanLimit, session_compact
from sessions.services.compactions.planning import edits_in_force
from sessions.services.prompts.served import session_prompt_record
from sessions.services.reconcile.matching import histories_unlocked, history_extended
from sessions.services.reconcile.reading import Reading, history_read
from sessions.services.reconcile.rewrites import rewritten_history
from sessions.services.reconcile.stored import span_positions
from sessions.services.reconcile.values import Sent
from sessions.store.bodies import json_bytes, json_value
from sessions.store.prompt_snapshots import Generated

#: The policy of a session that is only observed: nothing is compacted. `off` alone is a choice of users.
NEVER_COMPACTS: Mapping[str, Any] = {"preset": "off", "hard": 0}

#: Number of sessions whose edits are kept in memory.
_CACHED = 500

#: Maximum number of times the edits are read, because they may change while they are read.
_ATTEMPTS = 3


class Reason(StrEnum):
    """Why a request is forwarded without edits. The guide to the gateway explains them."""

    NEW = "new"
    HISTORY = "history"
    TIMEOUT = "timeout"
    STORE = "store"
    BUSY = "busy"
    SUBSCRIPTION = "subscription"
    ENCODING = "encoding"
    SERVER_STATE = "server-state"
    IRREGULAR = "irregular"
    INVALID = "invalid"
    UNREADABLE = "unreadable"
    ERROR = "error"


class NotServable(Exception):
    """The edits cannot be applied to the request."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class _Changed(Exception):
    """The edits of the session changed while they were read: the last call was recorded at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """The current edits of a session, in the form in which they apply to the client's next requests.

    `pieces` are the messages of the prompt up to the last compaction: the index of a message in the client's
    history, or the JSON of an edited or generated one. They replace the first `count` messages, and the first
    `edited` of these existed when the prompt was last edited. `shown` is the size of the prompt and `raw`
    that without edits, of the stored messages, in estimated tokens. `provider` are parameters for the
    provider if it compacts the session, `on_demand` if it should write a summary now. `version` identifies
    `pieces` among those of the session, and `compaction` is the number of its last compaction. `is_regular`
    is set if the stored messages are valid together and need no check.
    """

    session_id: UUID
    name: str
    format: str
    history: ClientHistory
    pieces: Sequence[int | bytes]
    count: int
    edited: int
    shown: int
    raw: int
    calibration: Calibration
    version: Hashable
    provider: ProviderParams | None
    on_demand: OnDemand | None
    message_count: int
    in_force: tuple[int, ...]
    is_regular: bool
    compaction: int

    @property
    def changes_nothing(self) -> bool:
        return list(self.pieces) == list(range(self.count))


def edits_for_request(
    root_id: UUID, body: bytes, *, name: str, sent: Sent, redaction: Redaction, field: str
) -> Edits:
    """Return the edits for a request whose history continues that of a session or a fork of it.

    `name` is the external id of the session with the id `root_id`, `sent` contains what the client declares,
    and `field` of the body contains the history. Compacts the session if the request would exceed the hard
    limit, and records that its prompt is served. After a rewind, forks the session if it was compacted before
    that point. Raises `NotServable`, `BadJson` or `InvalidHistory`.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _edits_for_request(root_id, body, name=name, sent=sent, redaction=redaction, field=field)
        except _Changed:
            continue
    raise NotServable(Reason.BUSY)


def _edits_for_request(
    root_id: UUID, body: bytes, *, name: str, sent: Sent, redaction: Redaction, field: str
) -> Edits:
    histories = histories_unlocked(root_id, name=name)
    reading = history_read(body, histories=histories, redaction=redaction, field=field)
    history = history_extended([each for each in histories if each.count], reading)
    if history is None:
        history = rewritten_history(root_id, body, name=name, sent=sent, redaction=redaction, field=field)
    if history is None:
        raise NotServable(Reason.HISTORY)
    session = history.session
    if session.policy == NEVER_COMPACTS:
        session.policy = Project.objects.values_list("default_policy", flat=True).get(pk=session.project_id)
        AgentSession.objects.filter(pk=session.pk).update(policy=session.policy)
    new = new_tokens(reading, history.count, session.format)
    calibration = session_calibration(session, model=sent.model)
    _compact_if_due(session, new, sent, calibration)
    edits = _edits(session, history, calibration)
    if not session_prompt_record(session):
        raise _Changed
    return edits


def new_tokens(reading: Reading, first: int, format: str | None) -> TokenBreakdown:
    """Return the estimated tokens of the messages from index `first` on."""
    values = reading.values[first - reading.first :]
    return TokenBreakdown().add(parse_mixed(values, default=format, counter=counter()))


def _compact_if_due(session: AgentSession, new: TokenBreakdown, sent: Sent, calibration: Calibration) -> None:
    """Compact the session if its prompt with the new messages reaches the hard limit.

    `calibration` is that of the request's model.
    """
    budget = session_budget(session, model=sent.model)
    stored = sum(session.shown_components.values())
    policy = policy_of(session.policy)
    state = TriggerState(
        tokens=calibration.provider(stored + new.total),
        budget=budget,
        compacted_tokens=session.fired_tokens,
        turns_since_compaction=session.turn_count - (session.fired_turn or 0),
        has_provider_engine=is_compacted_by_provider(policy, session.format),
    )
    trigger = evaluate(state, policy)
    if trigger is None or trigger.is_background:
        return
    taken = calibration.provider(stored + new.total) - calibration.provider(stored)
    last = session.compactions.order_by("-number").first()
    if last is not None and last.state == last.State.SKIPPED and last.turn_index == session.turn_count - 1:
        return  # nothing was stored since: the messages that are too long are not recorded yet
    sent.on_compaction()
    # The budget and the calibration of the session stay the same: the recorded call changes them.
    room = PlanLimit(budget=max(budget - taken, budget // 2), calibration=calibration)
    session_compact(session=session, trigger=trigger.name, supersede=True, limit=room)
    session.refresh_from_db()


def _edits(session: AgentSession, history: ClientHistory, calibration: Calibration) -> Edits:
    spans = tuple((first, end) for first, end in history.spans)
    snapshot = _snapshot(session.pk, session.edits_revision, session.snapshot_end, spans)
    params = session_provider_params(session)
    on_demand = on_demand_due(session, params)
    return Edits(
        session_id=session.pk,
        name=session.external_id,
        format=get_dialect(session.format).name,
        history=history,
        pieces=snapshot.pieces,
        count=snapshot.count,
        edited=snapshot.edited,
        shown=sum(session.shown_components.values()),
        raw=sum(session.context_components.values()),
        calibration=calibration,
        version=(session.edits_revision, spans),
        provider=params,
        on_demand=on_demand,
        message_count=session.message_count,
        is_regular=not session.needs_repair,
        compaction=snapshot.compaction,
        in_force=tuple(edits_in_force(session.pk)) if on_demand is not None else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """The fields of `Edits` that do not change between two edits."""

    pieces: Sequence[int | bytes]
    count: int
    edited: int
    compaction: int


@lru_cache(maxsize=_CACHED)
def _snapshot(
    session_id: UUID, revision: int, end: int, spans: Sequence[tuple[int, int | None]]
) -> _Snapshot:
    """Return the messages of a session's snapshot, as they apply to the client's history.

    `revision` and `end` are those of the session, `spans` those of the history. Raises `_Changed` if the
    session's revision has changed.
    """
    outline, edited_to = snapshot_read(session_id), _edited_to(session_id, end)
    applied = Compaction.objects.filter(session_id=session_id, state__in=Compaction.APPLIED)
    compaction = applied.aggregate(newest=Max("number"))["newest"] or 0
    if not AgentSession.objects.filter(pk=session_id, edits_revision=revision).exists():
        raise _Changed
    if outline is None:
        return _Snapshot(pieces=(), count=0, edited=0, compaction=compaction)
    index_of = {position: index for index, position in enumerate(span_positions(spans, end))}
    shown = [position for span in outline.spans for position in range(*span)]
    others = [(position, position + 1) for position in shown if position not in index_of]
    rows = messages_load(session_id, others) if others else ()
    pieces: dict[int, int | bytes] = {
        row.position: without_breakpoints(row.data) for row in rows if row.omitted_from is None
    }
    pieces |= index_of
    found: list[int | bytes] = []
    for each in outline.entries:
        if isinstance(each, Generated):
            found.append(without_breakpoints(each.data))
        else:
            found += (pieces[position] for position in range(*each) if position in pieces)
    count, edited = (sum(position < limit for position in index_of) for limit in (end, edited_to))
    return _Snapshot(pieces=tuple(found), count=count, edited=edited, compaction=compaction)


def _edited_to(session_id: UUID, end: int) -> int:
    """Return the first message after the last change of the prompt by edits, or by their removal.

    A snapshot may end later: a compaction by the provider, for example, edits nothing.
    """
    states = Compaction.State
    changed = Q(state=states.DONE, edits__isnull=False) | Q(state=states.REVERTED)
    rows = Compaction.objects.filter(changed, session_id=session_id)
    turn = rows.aggregate(turn=Max(Greatest("first_turn", "reverted_turn")))["turn"]
    following = Turn.objects.filter(session_id=session_id, index=-1 if turn is None else turn + 1)
    return min(following.values_list("first_position", flat=True).first() or end, end)


def without_breakpoints(element: bytes) -> bytes:
    """Return a message without the cache breakpoint that its client once set: at most four are allowed."""
    if b'"cache_control"' not in element:
        return element
    return json_bytes(_without_breakpoints(json_value(element)))


def _without_breakpoints(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_breakpoints(each) for k, each in value.items() if k != "cache_control"}
    return [_without_breakpoints(each) for each in value] if isinstance(value, list) else value
