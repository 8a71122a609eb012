"""Change the title, tags and notes of a session, and star it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record
from redaction import redact
from sessions.models import AgentSession, Star
from sessions.selectors.redaction import redaction_of

#: Characters of the notes on a session.
MAX_NOTES = 10_000


@transaction.atomic
def session_label(
    *,
    session: AgentSession,
    title: str | None = None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
    actor: Actor = SYSTEM,
) -> AgentSession:
    """Replace the title, tags or notes, without secrets, and record an audit event.

    Importing the session's log again keeps them.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    project = Project.objects.get(pk=locked.project_id)
    redaction = redaction_of(project)
    if title is not None:
        locked.title = redact(" ".join(title.split()), redaction=redaction)[0][:300]
    if tags is not None:
        clean = (redact(tag.strip(), redaction=redaction)[0][:100] for tag in tags)
        locked.tags = list(dict.fromkeys(filter(None, clean)))
    if notes is not None:
        locked.notes = redact(notes.strip(), redaction=redaction)[0][:MAX_NOTES]
    locked.keeps_labels = True
    locked.save(update_fields=["title", "tags", "notes", "keeps_labels"])
    given = {"title": title, "tags": tags, "notes": notes}
    audit_record(
        action="session.labeled",
        project=project,
        actor=actor,
        target=locked.external_id,
        # Not the new values: the audit log outlives the session, and its content is deleted with it.
        detail={"changed": [name for name, value in given.items() if value is not None]},
    )
    return locked


def session_star(*, session: AgentSession, user_id: int, starred: bool) -> None:
    """Star a session for a user, or remove the star. Others do not see it."""
    if starred:
        Star.objects.get_or_create(session=session, user_id=user_id)
    else:
        Star.objects.filter(session=session, user_id=user_id).delete()
