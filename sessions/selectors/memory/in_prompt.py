"""Find the revision of a session's working memory that the model sees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from compaction.edits import Op
from compaction.view.components import MEMORY
from sessions.models import AgentSession, Compaction, Edit, PromptSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryInPrompt:
    """The revision of the working memory in the prompt, and the first turn whose prompt contains it.

    `fits` is False if the memory was left out because the prompt would exceed its budget with it.
    """

    revision: int
    turn: int
    fits: bool


def memory_in_prompt(*, session: AgentSession) -> MemoryInPrompt | None:
    """Return the working memory in the prompt, or None if no compaction has added it yet."""
    keys = PromptSnapshot.objects.filter(session=session).values_list("edits", flat=True).first() or ()
    recorded = Edit.objects.filter(pk__in=keys, op=Op.MEMORY, tokens_after__gt=0)
    edit = recorded.select_related("compaction").first()
    if edit is None:
        return None
    revision = edit.compaction.record.get("memory_revision")
    return MemoryInPrompt(
        revision=revision or 0,
        turn=_first_turn(edit.compaction, revision),
        fits=bool((session.shown_components or {}).get(MEMORY)),
    )


def _first_turn(newest: Compaction, revision: int | None) -> int:
    """Return the turn of the earliest compaction since which the prompt has contained this revision."""
    applied = Compaction.objects.filter(
        session=newest.session_id, state=Compaction.State.DONE, number__lte=newest.number
    )
    rows = applied.order_by("-number").values_list("facts__memory_revision", "turn_index")
    same = [turn for _, turn in takewhile(lambda row: row[0] == revision, rows)]
    return same[-1] if same else newest.turn_index
