"""A person writes the recap anew. The version before stays in the compaction before, and can be had back."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record
from compaction.recap.parse import recap_parse
from compaction.triggers import edit
from redaction import redact
from sessions.models import AgentSession, Compaction, Recap
from sessions.selectors.recaps import recap_newest, recap_value
from sessions.selectors.redaction import redaction_for
from sessions.selectors.token_budgets import policy_of
from sessions.services.compactions.apply import (
    CompactionInProgress,
    Origin,
    compaction_apply,
    compaction_in_progress,
    compaction_open,
)
from sessions.services.compactions.planning import view_load
from sessions.services.compactions.recaps import recap_plan, recap_shown

TRIGGER = edit.TRIGGER.name


class NotEditable(Exception):
    """The compaction has no recap that the prompt shows."""


class EmptyRecap(ValueError):
    """The text tells nothing."""


class RecapTooLarge(ValueError):
    """With the text the prompt would no longer fit its budget."""


@transaction.atomic
def recap_edit(*, session: AgentSession, number: int, text: str, actor: Actor = SYSTEM) -> Compaction:
    """Shows `text` where the recap of compaction `number` stood; secrets are taken out of it.

    The change is a compaction of its own, of the trigger `edit`: prompts of earlier turns go on showing the
    old recap, and reverting it brings the old one back. Raises `NotEditable`, `EmptyRecap`, `RecapTooLarge`,
    `CompactionInProgress`.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    if compaction_in_progress(locked) is not None:
        raise CompactionInProgress(str(session.pk))
    edited = Compaction.objects.filter(session=locked, number=number, state=Compaction.State.DONE).first()
    standing = recap_shown(edited) if edited is not None else None
    before = recap_newest(edited) if edited is not None else None
    if edited is None or standing is None or before is None:
        raise NotEditable(f"the prompt shows no recap of compaction {number}")
    clean, _ = redact(text, redaction=redaction_for(locked.project_id))
    recap = recap_parse(clean, previous=recap_value(before), position=standing.edit.end)
    if not any(recap.sections().values()):
        raise EmptyRecap("the recap has no line")
    policy, loaded = policy_of(locked.policy), view_load(locked)
    reason = f"a person wrote the recap of compaction {number} anew"
    made = recap_plan(loaded, edit=standing.edit, recap=recap, policy=policy, trigger=TRIGGER, reason=reason)
    if not made.record.fits and made.record.tokens_saved < 0:
        raise RecapTooLarge(
            f"the prompt would take {made.record.tokens_after:,} tokens of {made.record.budget:,}"
        )
    compaction = compaction_open(
        session=locked, trigger=TRIGGER, state=Compaction.State.RUNNING, policy=policy, reason=reason
    )
    compaction_apply(
        compaction=compaction, loaded=loaded, made=made, origin=Origin(author=Recap.Author.PERSON)
    )
    version = Recap.objects.filter(compaction=edited).aggregate(newest=Max("version"))["newest"]
    Recap.objects.filter(compaction=compaction).update(version=version + 1)
    audit_record(
        action="recap.edited",
        project=Project.objects.get(pk=locked.project_id),
        actor=actor,
        target=locked.external_id,
        detail={"compaction": compaction.number, "replaces": number},
    )
    return compaction
