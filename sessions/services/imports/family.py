"""Link sub-agents with a parent that is imported after them, or at the same time."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from sessions.models import AgentSession
from sessions.selectors.lists.tree import names_with_ancestors

#: Key in the metadata of a sub-agent whose parent is not stored: the name of the parent.
_PARENT = "parent_external_id"


def parent_set(session: AgentSession, parent: AgentSession | None, *, name: str | None) -> None:
    """Set the parent of a session, or note its name if it is not stored. The caller saves the session."""
    is_circle = parent is not None and session.external_id in names_with_ancestors(session=parent)
    session.parent = None if is_circle else parent
    session.metadata = {key: value for key, value in session.metadata.items() if key != _PARENT}
    if name is not None and parent is None:
        session.metadata[_PARENT] = name


@transaction.atomic
def family_link(*, session_id: UUID) -> None:
    """Link a session with the sub-agents that were imported before it, and with its own parent."""
    session = AgentSession.objects.filter(pk=session_id).first()
    if session is None:
        return
    family = AgentSession.objects.filter(project=session.project_id)
    orphans = family.select_for_update().filter(parent=None)
    for child in orphans.filter(metadata__contains={_PARENT: session.external_id}):
        parent_set(child, session, name=None)
        child.save(update_fields=["parent", "metadata"])
    name = session.metadata.get(_PARENT)
    parent = family.filter(external_id=name).first() if isinstance(name, str) else None
    if parent is not None:
        for orphan in orphans.filter(pk=session_id):
            parent_set(orphan, parent, name=None)
            orphan.save(update_fields=["parent", "metadata"])
