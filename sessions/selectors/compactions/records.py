"""Compactions of a session for its pages, the API and webhooks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from compaction.triggers import hard
from pricing.custom import rates_at
from sessions.models import AgentSession, Compaction, Edit, Message, Recap
from sessions.selectors.compactions.recaps import RecapLines, recap_lines, recap_newest
from sessions.selectors.custom_prices import custom_prices
from sessions.store import bodies

#: Compactions per page of the list.
SHOWN = 20
#: Edits shown on the page of a compaction. The API returns all of them.
EDITS_SHOWN = 200
#: Number of compactions that an export reads per query.
_EXPORT_PAGE = 500

_ERROR_CLASS = re.compile(r"\ASummary\w+: ")

#: How long after the last change a list is refreshed automatically.
_LIVE_PERIOD = timedelta(minutes=1)


def compaction_json(row: Compaction) -> dict[str, Any]:
    """Return the JSON of a compaction in the API and in webhooks."""
    return {
        "number": row.number,
        "state": row.state,
        "trigger": row.trigger,
        "engine": row.record.get("engine", "own"),
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


def compactions_jsonl(session: AgentSession) -> Iterator[bytes]:
    """Yield the session's compactions as JSON Lines, oldest first. Memory does not grow with their number."""
    number = 0
    while rows := list(session.compactions.filter(number__gt=number).order_by("number")[:_EXPORT_PAGE]):
        yield b"".join(bodies.json_bytes(_export_json(session, row)) + b"\n" for row in rows)
        number = rows[-1].number


def _export_json(session: AgentSession, row: Compaction) -> dict[str, Any]:
    return {"session": session.pk, "external_id": session.external_id, **compaction_json(row)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionList:
    """One page of compactions, newest first.

    `before` is the cursor of the next page. `is_open`: one of them is in progress. `is_live`: the list may
    change soon.
    """

    rows: Sequence[Compaction]
    before: int | None
    is_open: bool
    is_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecapVersion:
    """A recap with its lines."""

    row: Recap
    lines: RecapLines


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    """Whether a compaction has broken even: it saved more than its re-caching and its recap cost.

    `calls_needed` is the number of calls until break-even. `calls_run` is the number of calls with its edits
    so far: until the next compaction, the revert or the newest turn. `microusd` is the price of the removed
    tokens as cached input in these calls minus the costs, in micro-dollars; None without a known price.
    """

    calls_needed: int
    calls_run: int
    microusd: int | None

    @property
    def is_reached(self) -> bool:
        return self.calls_run >= self.calls_needed


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDetail:
    """Everything that the page of a compaction shows. `turns` maps the edits' positions to turns."""

    edits: Sequence[Edit]
    edit_count: int
    lost: Sequence[Edit]
    recap: RecapVersion | None
    payback: Payback | None
    turns: dict[int, int]
    previous: int | None
    next: int | None


def compactions_newest(*, session: AgentSession, before: int | None) -> CompactionList:
    """Return a page of compactions, newest first, or those `before` a number. One query."""
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
        is_open=is_open,
        is_live=before is None and (is_open or max(times) > timezone.now() - _LIVE_PERIOD),
    )


def compaction_detail(*, session: AgentSession, row: Compaction) -> CompactionDetail:
    """Return the details of one compaction. At most eight queries."""
    edits = Edit.objects.filter(compaction=row)
    shown = list(edits.order_by("ordinal").defer("text")[:EDITS_SHOWN])
    count = len(shown) if len(shown) < EDITS_SHOWN else edits.count()
    lost = edits.filter(referenced_turn__isnull=False).order_by("referenced_turn").defer("text")
    following = session.compactions.filter(number__gt=row.number).order_by("number")
    messages = Message.objects.filter(session=session, position__in={edit.position for edit in shown})
    return CompactionDetail(
        edits=shown,
        edit_count=count,
        lost=list(lost[:EDITS_SHOWN]),
        recap=recap_version(row),
        payback=_payback(session, row),
        turns=dict(messages.values_list("position", "turn_index")),
        previous=row.number - 1 or None,
        next=following.values_list("number", flat=True).first(),
    )


def recap_fallback(row: Compaction) -> str:
    """Return why a compaction's recap was written without a model, "" if a model wrote it or none exists."""
    record = row.record
    if "recap" not in record.get("strategies", ()) or record.get("summary_used"):
        return ""
    if reason := record.get("fallback"):
        return problem_of(reason)
    if row.trigger == hard.TRIGGER.name:
        return "the hard trigger compacts immediately and does not wait for a model"
    return "the prompt changed while the model was running" if "summary" in record else ""


def problem_of(fallback: str) -> str:
    """Return the problem of a failed summary from its record, which begins with the class of the error."""
    return _ERROR_CLASS.sub("", fallback)


def recap_version(row: Compaction) -> RecapVersion | None:
    """Return the newest version of the compaction's recap, or None."""
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
    turns = session.turns.filter(index__gt=row.turn_index, index__lte=end)
    if session.billed_tokens:  # otherwise, no call reports its usage
        turns = turns.filter(prompt_reported__isnull=False)
    run, per_call = turns.count(), _microusd_per_call(session, row)
    if per_call:
        needed += (row.cost_microusd or 0) / per_call
    return Payback(
        calls_needed=math.ceil(needed),
        calls_run=run,
        microusd=round((run - needed) * per_call) if per_call else None,
    )


def _microusd_per_call(session: AgentSession, row: Compaction) -> float:
    """Return the price of the removed tokens as cached input, or 0.0 if the model's price is unknown."""
    rates = rates_at(custom_prices(session.project), session.model, row.finished_at or row.created_at)
    if rates is None:
        return 0.0
    saved = float(row.record["tokens_saved"]) * float(row.record.get("calibration", 1))
    return saved * float(rates.cache_read) * 1_000_000
