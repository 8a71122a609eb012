"""Create, change and delete sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

import pricing
from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from compaction import dialects
from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import AgentSession, FactObservation, Preamble, SharedFact
from sessions.models.session import PUSHED, TELEMETRY
from sessions.selectors.lookups import as_uuid
from sessions.selectors.token_budgets import calibration_initial, session_budget
from sessions.services.blobs import blobs_remove, messages_delete
from sessions.services.ingestion import NewPreamble
from sessions.services.memory.fact_identity import facts_lock
from sessions.services.sessions.audit import session_audit
from sessions.services.webhooks.deliveries import deliveries_cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """The fields of a new session. Without a format, it is detected from the tools or messages."""

    format: str | None = None
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
    parent_id: UUID | None = None
    origin: str = PUSHED


@transaction.atomic
def session_create(*, project_id: UUID, new: NewSession) -> tuple[AgentSession, bool]:
    """Return the session and whether it was created. If the external id exists, return that session.

    A session of which only telemetry is known counts as created: it gets the fields and keeps its calls.

    The id of an existing session counts as its external id too, because calls accept either.
    """
    if new.external_id and (uuid := as_uuid(new.external_id)) is not None:
        named = AgentSession.objects.filter(project_id=project_id, pk=uuid).first()
        if named is not None:
            return named, False
    session = AgentSession(
        project_id=project_id,
        format=new.format or _detected_format(new.preamble),
        title=new.title,
        agent=new.agent,
        model=new.model,
        tags=list(new.tags),
        metadata=dict(new.metadata),
        created_by_id=new.created_by_id,
        parent_id=new.parent_id,
        origin=new.origin,
        budget_tokens=new.budget_tokens,
        context_window=pricing.context_window(new.model),
        policy=_policy(project_id, new.policy),
    )
    session.calibration = calibration_initial(
        project_id=project_id,
        model=new.model,
        agent=new.agent,
        budget=session_budget(session),
    ).to_json()
    session.external_id = new.external_id or str(session.pk)
    _set_preamble(session, new.preamble)
    # If two callers create it at once, the second one gets the first one's row.
    AgentSession.objects.bulk_create([session], ignore_conflicts=True)
    stored = AgentSession.objects.get(project_id=project_id, external_id=session.external_id)
    created = stored.pk == session.pk
    if not created and stored.origin == TELEMETRY != new.origin:
        locked = AgentSession.objects.select_for_update().get(pk=stored.pk)
        return _adopt(locked, new), True
    if created and new.preamble is not None:
        Preamble.objects.create(session=stored, version=1, from_turn=0, **new.preamble.columns)
    return stored, created


def _adopt(session: AgentSession, new: NewSession) -> AgentSession:
    """Set the fields of a session that telemetry created. Its labels and its member stay."""
    session.origin, session.policy = new.origin, _policy(session.project_id, new.policy)
    session.format = new.format or _detected_format(new.preamble)
    session.title, session.agent = new.title or session.title, new.agent or session.agent
    session.model, session.budget_tokens = new.model or session.model, new.budget_tokens
    session.context_window = pricing.context_window(session.model)
    session.tags = list(dict.fromkeys([*new.tags, *session.tags]))
    session.metadata = {**session.metadata, **new.metadata}
    session.parent_id = new.parent_id or session.parent_id
    session.created_by_id = session.created_by_id or new.created_by_id
    _set_preamble(session, new.preamble)
    session.save()
    if new.preamble is not None:
        Preamble.objects.create(session=session, version=1, from_turn=0, **new.preamble.columns)
    return session


def _set_preamble(session: AgentSession, preamble: NewPreamble | None) -> None:
    if preamble is None:
        return
    breakdown = TokenBreakdown().set(**preamble.components)
    session.context_components = session.shown_components = dict(breakdown.tokens)
    session.preamble_version, session.preamble_hash = 1, preamble.hash


def _detected_format(preamble: NewPreamble | None) -> str | None:
    return dialects.detect_session((), preamble.tool_definitions) if preamble is not None else None


def _policy(project_id: UUID, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session's policy over the project's default. A preset replaces the default entirely."""
    if "preset" in own:
        return dict(own)
    default = Project.objects.values_list("default_policy", flat=True).get(pk=project_id)
    return {**default, **own}


@transaction.atomic
def session_policy_change(*, session: AgentSession, policy: Mapping[str, Any], actor: Actor) -> AgentSession:
    """Replace the policy of a session, read as on creation, and record an audit event.

    It applies from the next compaction on: edits and the current prompt remain, and a compaction in progress
    keeps the policy with which it began.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    before, locked.policy = locked.policy, _policy(locked.project_id, policy)
    if locked.policy != before:
        locked.plan_turn = None
        locked.save(update_fields=["policy", "plan_turn"])
        changed = {"from": before, "to": locked.policy}
        session_audit(locked, "session.policy_changed", actor, id=str(locked.pk), default_policy=changed)
    return locked


@transaction.atomic
def session_budget_change(*, session: AgentSession, tokens: int | None, actor: Actor) -> AgentSession:
    """Replace the budget of a session, None for the default, and record an audit event.

    The current prompt remains: if it exceeds the new budget, the next push compacts it.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    before, locked.budget_tokens = locked.budget_tokens, tokens
    if locked.budget_tokens != before:
        locked.plan_turn = None
        locked.save(update_fields=["budget_tokens", "plan_turn"])
        changed = {"from": before, "to": tokens}
        session_audit(locked, "session.budget_changed", actor, id=str(locked.pk), budget=changed)
    return locked


@transaction.atomic
def session_delete(*, session: AgentSession, actor: Actor = SYSTEM) -> None:
    """Delete the session with all contents that only it uses, and record an audit event.

    Does nothing if the session has already been deleted.
    """
    rows = AgentSession.objects.select_for_update(no_key=True)
    if rows.filter(pk=session.pk).first() is None:
        return
    # Its children lose their parent. A writer of one of them may check at its commit that the parent exists,
    # which has to wait only for the stronger lock.
    list(rows.filter(parent=session.pk).order_by("pk").values_list("pk"))
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    blobs_remove(locked.project_id, messages_delete(locked.pk))
    counts = {"turns": locked.turn_count, "messages": locked.message_count}
    session_audit(locked, "session.deleted", actor, id=str(locked.pk), **counts)
    _delete_facts(locked)
    deliveries_cancel(session=locked)
    locked.delete()


def _delete_facts(session: AgentSession) -> None:
    """Delete the facts that no other session has, except those that a user has accepted.

    The others belong to the project.
    """
    facts_lock(project_id=session.project_id, agent=session.agent)
    facts = SharedFact.objects.filter(Q(session=session) | Q(observations__session=session))
    others = FactObservation.objects.filter(fact=OuterRef("pk")).exclude(session=session)
    facts.exclude(state=SharedFact.State.ACCEPTED).exclude(Exists(others)).delete()
