"""Find or create the sessions that telemetry names, and label them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.models import Membership
from importers.values import title_of
from sessions.models import AgentSession
from sessions.models.session import TELEMETRY
from sessions.selectors.lookups import session_find
from sessions.services.reconcile.served import NEVER_COMPACTS
from sessions.services.sessions.lifecycle import NewSession, session_create
from sessions.services.telemetry.values import Destination
from telemetry.values import Origin

_MAX_TAGS = 20


def session_locked(
    destination: Destination, origin: Origin, *, model: str, found: AgentSession | None
) -> AgentSession:
    """Return the main session of a report, locked and labeled: `found`, or else the one that it names.

    Creates it if necessary.
    """
    found = found or session_find(project_id=destination.project_id, name=origin.session)
    if found is None:
        new = NewSession(
            external_id=origin.session,
            agent=origin.agent[:100],
            model=model,
            policy=NEVER_COMPACTS,
            created_by_id=_member(destination, origin),
            origin=TELEMETRY,
        )
        found, _ = session_create(project_id=destination.project_id, new=new)
    session = AgentSession.objects.select_for_update(no_key=True).get(pk=found.pk)
    _label(session, destination, origin)
    return session


def line_locked(root: AgentSession, origin: Origin, *, model: str) -> AgentSession:
    """Return the session of a sub-agent or side request of `root`, locked, or `root` itself."""
    if not origin.line:
        return root
    new = NewSession(
        external_id=f"{root.external_id[:130]}:{origin.line}",
        title=origin.line,
        agent=root.agent,
        model=model,
        tags=root.tags,
        metadata=root.metadata,
        policy=NEVER_COMPACTS,
        created_by_id=root.created_by_id,
        parent_id=root.pk,
        origin=TELEMETRY,
    )
    child, _ = session_create(project_id=root.project_id, new=new)
    return AgentSession.objects.select_for_update().get(pk=child.pk)


def title_set(session: AgentSession, prompt: str) -> None:
    """Use the first prompt of the user as the title, if the session has none."""
    if not session.title and not session.keeps_labels:
        session.title = title_of(prompt)[:300]
        session.save(update_fields=["title"])


def _label(session: AgentSession, destination: Destination, origin: Origin) -> None:
    """Add the member, the labels and the client's version, without changing what is set."""
    metadata: dict[str, Any] = {**origin.labels, **_facts(origin), **session.metadata}
    labels = (f"{key}:{value}"[:100] for key, value in origin.labels.items())
    tags = list(dict.fromkeys([*session.tags, *labels]))
    changes: dict[str, Any] = {}
    if metadata != session.metadata:
        changes["metadata"] = metadata
    if not session.keeps_labels and tags[:_MAX_TAGS] != session.tags:
        changes["tags"] = tags[:_MAX_TAGS]
    if origin.member and (member := _member(destination, origin)) != session.created_by_id and member:
        changes["created_by_id"] = member
    if not session.agent and origin.agent:
        changes["agent"] = origin.agent[:100]
    for name, value in changes.items():
        setattr(session, name, value)
    if changes:
        session.save(update_fields=list(changes))


def _facts(origin: Origin) -> Mapping[str, str]:
    facts = {"user.email": origin.member, "client_version": origin.version}
    return {name: value for name, value in facts.items() if value}


def _member(destination: Destination, origin: Origin) -> int | None:
    """Return the member with the email address that is reported, else, if none is, the key's creator."""
    if not origin.member:
        return destination.user_id
    rows = Membership.objects.filter(project_id=destination.project_id)
    found = rows.filter(user__email__iexact=origin.member) or rows.filter(
        user__username__iexact=origin.member
    )
    return next((membership.user_id for membership in found), None)
