"""Stop using summaries of the provider that it later rejects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from django.db import transaction

from compaction.messages import JSON
from compaction.policy import OWN, PROVIDER, Policy
from compaction.triggers import hard
from sessions.models import AgentSession, Compaction
from sessions.selectors.token_budgets import policy_of
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.revert import compaction_revert
from sessions.store.text import storable

#: Turns for which contextapp compacts a session after the provider has rejected a summary. Doubled each time.
PAUSE_TURNS = 50

#: Key of a compaction's record: the turn after which the provider rejected its summary.
_REJECTED = "rejected_after"


def rejection_of(response: bytes) -> str:
    """Return the message of an error that names the summary in a request, else "". At most 300 characters."""
    try:
        value = json.loads(response)
    except ValueError:
        return ""
    error: JSON = value.get("error") if isinstance(value, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    names_it = isinstance(message, str) and "compaction" in message.lower()
    return storable(str(message)[:300]) if names_it else ""


@transaction.atomic
def summary_reject(session_id: UUID, *, reason: str) -> None:
    """Revert the provider's summaries in the prompt, and let contextapp compact the session for some turns.

    An earlier summary would be in the prompt again without the last one, so all of them are reverted.
    """
    session = AgentSession.objects.select_for_update().get(pk=session_id)
    rows = session.compactions.filter(state=Compaction.State.DONE, facts__on_demand=True)
    rejected = list(rows.order_by("-number"))
    if not rejected:
        return
    for row in rejected:
        row = compaction_revert(session=session, number=row.number)
        row.reason = f"the provider rejected its summary: {reason}"
        row.record = {**row.record, _REJECTED: session.turn_count}
        row.save(update_fields=["reason", *Compaction.RECORD])
    session.refresh_from_db()
    session.policy = {**session.policy, "engine": OWN}
    session.save(update_fields=["policy"])
    session_compact(
        session=session,
        trigger=hard.TRIGGER.name,
        reason="the provider rejected its summary",
        supersede=True,
    )


def provider_resume(session: AgentSession) -> None:
    """Let the provider compact a session again, some turns after it rejected a summary.

    Does nothing if the policy has been changed in the meantime.
    """
    if session.policy.get("engine") != OWN:
        return
    rejected = session.compactions.filter(facts__has_key=_REJECTED).order_by("-number")
    turns = {row.record[_REJECTED] for row in rejected}
    if not turns or session.turn_count < max(turns) + PAUSE_TURNS * 2 ** (len(turns) - 1):
        return
    before = Policy.from_json(rejected[0].policy)
    now = replace(
        policy_of(session.policy),
        engine=PROVIDER,
        cache_write_price=before.cache_write_price,  # the model's, unless the policy sets others
        cache_read_price=before.cache_read_price,
    )
    if now == before:
        rows = AgentSession.objects.filter(pk=session.pk, policy=session.policy)
        rows.update(policy={**session.policy, "engine": PROVIDER})
