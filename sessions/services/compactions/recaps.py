"""Store recaps, and replace the recap of a compaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compaction.adapters.tiktoken_counter import counter
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.eviction import SHOWS_RECAP
from compaction.messages import Message as MessageValue
from compaction.planning.memory_edits import memory_edits
from compaction.planning.pipeline import Plan, plan_of_edits
from compaction.policy import Policy
from compaction.recap import Recap as RecapValue
from compaction.recap.handles import handles_of
from compaction.recap.spans import Evicted
from compaction.sizes.tokens import MESSAGE_OVERHEAD
from sessions.models import Compaction, Edit, Message, Recap
from sessions.selectors.compactions.omissions import not_omitted
from sessions.selectors.compactions.recaps import recap_columns, recap_newest, recap_value, recaps_of
from sessions.selectors.convert import edit_value, message_value
from sessions.services.compactions.planning import Loaded, edits_in_force, plan_request


@dataclass(frozen=True, slots=True, kw_only=True)
class RecapOrigin:
    """The author of a plan's recap, its cost, and notes for the record."""

    author: Recap.Author = Recap.Author.EXTRACTOR
    model: str = ""
    cost_microusd: int | None = 0
    notes: Mapping[str, Any] = field(default_factory=dict)


#: The origin of a recap that no model wrote.
EXTRACTED = RecapOrigin()


def recap_parameters(
    recap: RecapValue | None, edits: Sequence[EditValue], origin: RecapOrigin
) -> dict[str, Any]:
    """Return the parameters of `EFFECTS` for the recap of a compaction with these edits, if it has one."""
    columns = recap_columns(recap, edits) if recap is not None else {}
    return {
        "recap_author": origin.author,
        "recap_model": origin.model,
        "recap_tokens": recap.tokens(counter()) if recap is not None else 0,
        "recap_lines": columns.get("lines"),
        "recap_body": columns.get("body"),
        "recap_edit": columns.get("edit_ordinal"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRecap:
    """A recap in the prompt: its edit, the messages that it summarizes, and the recap that it continues."""

    edit: EditValue
    evicted: Evicted
    previous: RecapValue | None


def recap_shown(compaction: Compaction) -> ShownRecap | None:
    """Return the compaction's recap, or None if the prompt no longer contains it."""
    edits = _recap_edits(compaction)
    shown = _edit_shown(compaction, edits)
    recap = recap_newest(compaction)
    if shown is None or recap is None:
        return None
    earlier = recaps_of(compaction.session_id).filter(compaction__number__lt=compaction.number)
    previous = earlier.select_related("compaction").first()
    return ShownRecap(
        edit=edit_value(shown),
        evicted=Evicted(
            messages=_summarized(compaction, edits, shown.position, previous),
            first=shown.position,
            last=max(edit.end for edit in edits),
            cap_tokens=max(recap.tokens, Policy.from_json(compaction.policy).recap_tokens_min),
            handles=handles_of(recap_value(recap)),
        ),
        previous=recap_value(previous) if previous is not None else None,
    )


def recap_is_shown(compaction: Compaction) -> bool:
    """Return whether the prompt contains the compaction's recap."""
    return _edit_shown(compaction, _recap_edits(compaction)) is not None


def _edit_shown(compaction: Compaction, edits: Sequence[Edit]) -> Edit | None:
    in_force = edits_in_force(compaction.session_id)
    return next((edit for edit in edits if edit.pk in in_force and edit.text), None)


def _recap_edits(compaction: Compaction) -> Sequence[Edit]:
    edits = Edit.objects.filter(compaction=compaction, strategy__in=SHOWS_RECAP, op=Op.EVICT)
    return list(edits.order_by("ordinal"))


def _summarized(
    compaction: Compaction, edits: Sequence[Edit], first: int, previous: Recap | None
) -> tuple[MessageValue, ...]:
    """Return the evicted messages from `first` on that the previous recap does not cover.

    These are not only the newest: an earlier compaction kept the request that was the latest then.
    """
    covered = _spans_until(previous.compaction) if previous else []
    rows = Message.objects.filter(not_omitted(compaction.snapshot_position + 1), session=compaction.session)
    span = rows.filter(position__gte=first, position__lte=max(edit.end for edit in edits))
    positions = [  # determined first, because the messages that earlier recaps replaced may be large
        position
        for position in span.values_list("position", flat=True)
        if any(edit.position <= position <= edit.end for edit in edits)
        and not any(start <= position <= end for start, end in covered)
    ]
    return tuple(
        message_value(row, compaction.session.format)
        for row in rows.filter(position__in=positions).select_related("blob").order_by("position")
    )


def _spans_until(compaction: Compaction) -> list[tuple[int, int]]:
    """Return the spans of messages that this compaction and earlier ones replaced."""
    edits = Edit.objects.filter(
        session=compaction.session_id,
        strategy__in=SHOWS_RECAP,
        op=Op.EVICT,
        compaction__state=Compaction.State.DONE,
        compaction__number__lte=compaction.number,
    )
    return list(edits.values_list("position", "end"))


def recap_plan(
    loaded: Loaded,
    *,
    edit: EditValue,
    recap: RecapValue,
    trigger: str,
    reason: str,
    policy: Policy | None = None,
) -> Plan:
    """Return the plan that shows `recap` instead of the recap of `edit`. The prompt may become longer."""
    text = recap.render()
    replacement = replace(
        edit,
        text=text,
        reason=reason,
        tokens_before=edit.tokens_after,
        tokens_after=MESSAGE_OVERHEAD + counter().count(text),
    )
    request = plan_request(loaded, trigger=trigger, policy=policy)
    return plan_of_edits(request, (replacement, *memory_edits(request)), recap=recap)
