"""Writing a recap anew over the span that it stands for: the old version stays in the compaction before."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction.adapters.tiktoken_counter import counter
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.eviction import SHOWS_RECAP
from compaction.pipeline import Plan
from compaction.policy import Policy
from compaction.recap import Recap as RecapValue
from compaction.recap.spans import Evicted
from compaction.record import Change, PlanState, record_of
from compaction.tokens import MESSAGE_OVERHEAD
from sessions.models import Compaction, Edit, Message
from sessions.selectors.convert import edit_value, message_value
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.selectors.recaps import recap_newest, recap_value, recaps_of
from sessions.services.compactions.planning import Loaded, edits_in_force, plan_request


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRecap:
    """A recap that the prompt shows: its edit, and what it was made of."""

    edit: EditValue
    evicted: Evicted
    previous: RecapValue | None


def recap_shown(compaction: Compaction) -> ShownRecap | None:
    """The compaction's recap with the messages that it has taken up; None where it no longer shows."""
    edits = Edit.objects.filter(compaction=compaction, strategy__in=SHOWS_RECAP, op=Op.EVICT).order_by(
        "ordinal"
    )
    in_force = edits_in_force(compaction.session_id)
    shown = next((edit for edit in edits if edit.pk in in_force and edit.text), None)
    own = recap_newest(compaction)
    if shown is None or own is None:
        return None
    earlier = recaps_of(compaction.session_id).filter(compaction__number__lt=compaction.number)
    before = earlier.select_related("compaction").first()
    first, last = shown.position, max(edit.end for edit in edits)
    taken = -1
    if before is not None:
        ends = Edit.objects.filter(compaction=before.compaction, strategy__in=SHOWS_RECAP, op=Op.EVICT)
        taken = max(ends.values_list("end", flat=True), default=-1)
    session = compaction.session
    rows = Message.objects.filter(session=session, position__gt=max(first - 1, taken), position__lte=last)
    spans = [(edit.position, edit.end) for edit in edits]
    return ShownRecap(
        edit=edit_value(shown),
        evicted=Evicted(
            messages=tuple(
                message_value(row, session.format)
                for row in rows.select_related("blob").order_by("position")
                if any(start <= row.position <= end for start, end in spans)
            ),
            first=first,
            last=last,
            cap_tokens=max(own.tokens, Policy.from_json(compaction.policy).recap_tokens_min),
        ),
        previous=recap_value(before) if before is not None else None,
    )


def recap_plan(
    loaded: Loaded, *, edit: EditValue, recap: RecapValue, policy: Policy, trigger: str, reason: str
) -> Plan:
    """The plan that shows `recap` where `edit` showed another one. It need not be shorter."""
    memory = memory_notes(memory_latest(session_id=loaded.session.pk)).render()
    text = "\n\n".join(filter(None, (recap.render(), memory)))
    made = replace(
        edit,
        text=text,
        reason=reason,
        tokens_before=edit.tokens_after,
        tokens_after=MESSAGE_OVERHEAD + counter().count(text),
    )
    request = plan_request(loaded, trigger=trigger, policy=policy)
    view = loaded.view.with_edits((made,))
    change = Change(after=view, edits=(made,), state=PlanState.DONE, trigger=trigger, goal=view.tokens)
    return Plan(edits=(made,), view=view, record=record_of(request, change), recap=recap)
