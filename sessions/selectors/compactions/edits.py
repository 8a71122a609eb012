"""Select the edits that are in force in a prompt after a turn."""

from __future__ import annotations

from itertools import groupby
from uuid import UUID

from django.db.models import F, Q, QuerySet

from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.view.components import COMPONENT_OPS
from sessions.models import Compaction, Edit
from sessions.selectors.convert import edit_values


def edits_at(*, session_id: UUID, turn: int) -> list[list[EditValue]]:
    """Return the edits that apply to the prompt after `turn`, in order and grouped by compaction."""
    rows = (
        edits_not_evicted(Edit.objects.filter(edits_in_force_after(turn), session_id=session_id))
        .order_by("compaction__number", "ordinal")
        .annotate(number=F("compaction__number"))
    )
    values = zip(rows, edit_values(rows), strict=True)
    return [[value for _, value in batch] for _, batch in groupby(values, key=lambda pair: pair[0].number)]


def edits_not_evicted(edits: QuerySet[Edit]) -> QuerySet[Edit]:
    """Exclude edits of earlier compactions that the largest eviction covers.

    `in_force` would drop them anyway, but in a long session nearly all edits are covered. `edits` are those
    of one session.
    """
    evictions = edits.filter(op=Op.EVICT).order_by("-end", "position", "-compaction__number")
    furthest = evictions.values_list("position", "end", "compaction__number").first()
    if furthest is None:
        return edits
    first, last, number = furthest
    covered = Q(position__gte=first, end__lte=last, compaction__number__lt=number)
    return edits.exclude(covered & ~Q(op__in=COMPONENT_OPS))


def edits_in_force_after(turn: int) -> Q:
    """Return the filter for edits that were in force after `turn`, including those reverted later."""
    in_force = Q(compaction__state=Compaction.State.DONE) | Q(
        compaction__state=Compaction.State.REVERTED, compaction__reverted_turn__gt=turn
    )
    return in_force & Q(compaction__first_turn__lte=turn)
