"""Writes of sessions as a whole: make one, delete one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection, transaction

import pricing
from accounts.models import ApiKey, Project
from accounts.services import audit_record
from compaction.breakdown import TokenBreakdown
from sessions.models import AgentSession, Preamble
from sessions.selectors.lookups import as_uuid
from sessions.services.blobs import contents_remove
from sessions.services.push.values import NewPreamble
from sessions.store import bodies
from sessions.store.blobs import is_external


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """What a session is made of; everything but the format may be left open."""

    format: str
    external_id: str | None = None
    title: str = ""
    agent: str = ""
    model: str = ""
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    budget_tokens: int | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    preamble: NewPreamble | None = None
    created_by_id: int | None = None


@transaction.atomic
def session_create(*, project_id: UUID, new: NewSession) -> tuple[AgentSession, bool]:
    """The session and whether it was made now; the one that is there where its external id is taken.

    Calls take our ids as names too, so another session's id is taken as well.
    """
    if new.external_id and (uuid := as_uuid(new.external_id)) is not None:
        named = AgentSession.objects.filter(project_id=project_id, pk=uuid).first()
        if named is not None:
            return named, False
    session = AgentSession(
        project_id=project_id,
        format=new.format,
        title=new.title,
        agent=new.agent,
        model=new.model,
        tags=list(new.tags),
        metadata=dict(new.metadata),
        created_by_id=new.created_by_id,
        budget_tokens=new.budget_tokens,
        context_window=pricing.context_window(new.model),
        policy=_policy(project_id, new.policy),
    )
    session.external_id = new.external_id or str(session.pk)
    if new.preamble is not None:
        sizes = {"system": new.preamble.system_tokens, "tools": new.preamble.tools_tokens}
        session.context_components = session.shown_components = dict(TokenBreakdown().set(**sizes).tokens)
        session.preamble_version, session.preamble_hash = 1, new.preamble.hash
    # Two creators at once: the second one finds the first one's row.
    AgentSession.objects.bulk_create([session], ignore_conflicts=True)
    stored = AgentSession.objects.get(project_id=project_id, external_id=session.external_id)
    created = stored.pk == session.pk
    if created and new.preamble is not None:
        Preamble.objects.create(
            session=stored,
            version=1,
            from_turn=0,
            system=new.preamble.system and bodies.pack(new.preamble.system),
            tools=new.preamble.tools and bodies.pack(new.preamble.tools),
            system_tokens=new.preamble.system_tokens,
            tools_tokens=new.preamble.tools_tokens,
        )
    return stored, created


def _policy(project_id: UUID, own: Mapping[str, Any]) -> dict[str, Any]:
    """What the session asks for over what the project has as its default; a preset begins anew."""
    if "preset" in own:
        return dict(own)
    default = Project.objects.values_list("default_policy", flat=True).get(pk=project_id)
    return {**default, **own}


@transaction.atomic
def session_delete(*, session: AgentSession, api_key: ApiKey | None = None, user: Any = None) -> None:
    """Deletes the session with everything that only it used, and leaves an audit event.

    Does nothing where somebody else has deleted it in the meantime.
    """
    locked = AgentSession.objects.select_for_update().filter(pk=session.pk).first()
    if locked is None:
        return
    project = Project.objects.get(pk=locked.project_id)
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_MESSAGES, {"session": locked.pk})
        blobs = [row[0] for row in cursor.fetchall()]
        cursor.execute(_DELETE_BLOBS, {"blobs": blobs})
        digests = [bytes(row[0]) for row in cursor.fetchall()]
    if is_external():
        # A store that does not answer keeps what nobody names any more; the session is gone all the same.
        transaction.on_commit(partial(contents_remove, project.pk, digests), robust=True)
    audit_record(
        action="session.deleted",
        project=project,
        api_key=api_key,
        user=user,
        target=locked.external_id,
        detail={"id": str(locked.pk), "turns": locked.turn_count, "messages": locked.message_count},
    )
    locked.delete()


_DELETE_MESSAGES = """
WITH gone AS (DELETE FROM agent_sessions_message WHERE session_id = %(session)s RETURNING blob_id)
SELECT DISTINCT blob_id FROM gone WHERE blob_id IS NOT NULL
"""

# A push that brings the same content at this moment holds the blob's row by its ON CONFLICT DO UPDATE:
# SKIP LOCKED leaves such a blob alone.
_DELETE_BLOBS = """
DELETE FROM agent_sessions_blob WHERE id IN (
    SELECT b.id FROM agent_sessions_blob b
     WHERE b.id = ANY(%(blobs)s)
       AND NOT EXISTS (SELECT 1 FROM agent_sessions_message m WHERE m.blob_id = b.id)
       FOR UPDATE SKIP LOCKED)
RETURNING sha256
"""
