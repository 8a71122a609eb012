"""Reads of a session's compactions, for its pages, and what is told of one to programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from sessions.models import AgentSession, Compaction, Edit, Message, Recap
from sessions.selectors.recaps import RecapLines, recap_lines, recap_newest

#: As many as a page of the list shows.
SHOWN = 20
#: Edits that the page of a compaction shows; the API has all of them.
EDITS_SHOWN = 200

#: So long after the last change something new may still arrive.
_LIVELY = timedelta(minutes=1)


def compaction_json(row: Compaction) -> dict[str, Any]:
    """A compaction as the API and webhooks tell it."""
    return {
        "number": row.number,
        "state": row.state,
        "trigger": row.trigger,
        "reason": row.reason,
        "instructions": row.instructions,
        "turn": row.turn_index,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "record": row.record,
        "cost_microusd": row.cost_microusd,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionList:
    """Compactions, newest first; `before` is where older ones go on, `is_live` says whether it is worth
    looking again soon."""

    rows: Sequence[Compaction]
    before: int | None
    is_live: bool

    @property
    def is_open(self) -> bool:
        return any(row.state in Compaction.OPEN for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecapVersion:
    """A recap with what is known of its making."""

    row: Recap
    lines: RecapLines


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    """Whether a compaction has paid for what it made the cache read anew.

    `turns_needed` is after how many turns it does, `turns_run` how many prompts had its shape so far:
    until the next compaction, the revert, or the newest turn.
    """

    turns_needed: int
    turns_run: int

    @property
    def is_reached(self) -> bool:
        return self.turns_run >= self.turns_needed


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDetail:
    """One compaction with all that its page shows. `turns` are those of the edits' first messages."""

    row: Compaction
    edits: Sequence[Edit]
    edit_count: int
    lost: Sequence[Edit]
    recap: RecapVersion | None
    payback: Payback | None
    turns: dict[int, int]
    previous: int | None
    next: int | None


def compactions_newest(*, session: AgentSession, before: int | None = None) -> CompactionList:
    """One query. `before`: a page of older ones, which no longer change by themselves."""
    rows = session.compactions.order_by("-number")
    if before is not None:
        rows = rows.filter(number__lt=before)
    found = list(rows[: SHOWN + 1])
    page = found[:SHOWN]
    times = [session.last_active_at, *(row.finished_at or row.created_at for row in page[:1])]
    is_open = any(row.state in Compaction.OPEN for row in page)
    return CompactionList(
        rows=page,
        before=page[-1].number if len(found) > SHOWN else None,
        is_live=before is None and (is_open or max(times) > timezone.now() - _LIVELY),
    )


def compaction_get(*, session: AgentSession, number: int) -> Compaction | None:
    return session.compactions.filter(number=number).first() if number < 2**31 else None


def compaction_detail(*, session: AgentSession, row: Compaction) -> CompactionDetail:
    """Everything about one compaction, in eight queries at most."""
    edits = Edit.objects.filter(compaction=row)
    shown = list(edits.order_by("ordinal").defer("text")[:EDITS_SHOWN])
    count = len(shown) if len(shown) < EDITS_SHOWN else edits.count()
    lost = edits.filter(referenced_turn__isnull=False).order_by("referenced_turn").defer("text")
    following = session.compactions.filter(number__gt=row.number).order_by("number")
    places = Message.objects.filter(session=session, position__in={edit.position for edit in shown})
    return CompactionDetail(
        row=row,
        edits=shown,
        edit_count=count,
        lost=list(lost[:EDITS_SHOWN]),
        recap=recap_version(row),
        payback=_payback(session, row),
        turns=dict(places.values_list("position", "turn_index")),
        previous=row.number - 1 or None,
        next=following.values_list("number", flat=True).first(),
    )


def recap_version(row: Compaction) -> RecapVersion | None:
    """The newest recap of the compaction."""
    recap = recap_newest(row)
    return RecapVersion(row=recap, lines=recap_lines(recap)) if recap is not None else None


def _payback(session: AgentSession, row: Compaction) -> Payback | None:
    needed = row.record.get("break_even_turns")
    if needed is None or row.state not in Compaction.APPLIED:
        return None
    later = session.compactions.filter(number__gt=row.number, state=Compaction.State.DONE).order_by("number")
    end = later.values_list("turn_index", flat=True).first()
    if end is None:
        end = session.turn_count - 1
    if row.reverted_turn is not None:
        end = min(end, row.reverted_turn)
    return Payback(turns_needed=math.ceil(needed), turns_run=max(end - row.turn_index, 0))
