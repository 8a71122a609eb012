"""Let a user edit a recap. The previous version stays with its compaction and can be restored."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max

from accounts.actors import SYSTEM, Actor
from compaction.recap.parse import recap_parse
from compaction.triggers import requested
from redaction import redact
from sessions.models import AgentSession, Compaction, Recap
from sessions.selectors.compactions.recaps import recap_newest, recap_value
from sessions.selectors.redaction import redaction_for
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.lifecycle import compaction_open, require_none_in_progress
from sessions.services.compactions.planning import view_load
from sessions.services.compactions.recaps import RecapOrigin, ShownRecap, recap_plan, recap_shown
from sessions.services.sessions.audit import session_audit

TRIGGER = requested.EDIT.name


class NotEditable(Exception):
    """The prompt contains no recap of the compaction."""


class EmptyRecap(ValueError):
    """The text has no content."""


class RecapTooLarge(ValueError):
    """The prompt would exceed its budget with the text."""


@transaction.atomic
def recap_edit(*, session: AgentSession, number: int, text: str, actor: Actor = SYSTEM) -> Compaction:
    """Replace the recap of compaction `number` with `text`, after redacting secrets.

    The change is a separate compaction with the trigger `edit`: prompts of earlier turns keep the old recap,
    and reverting the change restores it. Raises `NotEditable`, `EmptyRecap`, `RecapTooLarge`,
    `CompactionInProgress`.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    require_none_in_progress(locked)
    edited, shown, before = _editable(locked, number)
    clean, _ = redact(text, redaction=redaction_for(locked.project_id))
    recap = recap_parse(clean, previous=recap_value(before), position=shown.edit.end)
    if not any(recap.sections().values()):
        raise EmptyRecap("the recap is empty")
    loaded = view_load(locked)
    reason = f"a user edited the recap of compaction {number}"
    plan = recap_plan(loaded, edit=shown.edit, recap=recap, trigger=TRIGGER, reason=reason)
    if not plan.record.fits and plan.record.tokens_saved < 0:
        raise RecapTooLarge(
            f"the prompt would have {plan.record.tokens_after:,} tokens; its budget is {plan.record.budget:,}"
        )
    compaction = compaction_open(session=locked, trigger=TRIGGER, reason=reason)
    compaction_apply(
        compaction=compaction, loaded=loaded, plan=plan, origin=RecapOrigin(author=Recap.Author.PERSON)
    )
    version = Recap.objects.filter(compaction=edited).aggregate(newest=Max("version"))["newest"]
    Recap.objects.filter(compaction=compaction).update(version=version + 1)
    session_audit(locked, "recap.edited", actor, compaction=compaction.number, replaces=number)
    return compaction


def _editable(session: AgentSession, number: int) -> tuple[Compaction, ShownRecap, Recap]:
    """Return the compaction, its recap in the prompt, and the newest version. Raises `NotEditable`."""
    edited = Compaction.objects.filter(session=session, number=number, state=Compaction.State.DONE).first()
    shown = recap_shown(edited) if edited is not None else None
    before = recap_newest(edited) if edited is not None else None
    if edited is None or shown is None or before is None:
        raise NotEditable(f"the prompt contains no recap of compaction {number}")
    return edited, shown, before
