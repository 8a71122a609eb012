"""Load and remove the sample data of a project.

A worker creates one session after the other, each in one transaction with its progress. A load whose worker
was killed continues where it stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.keys import key_generate
from accounts.models import ApiKey, Project
from accounts.services.audit import audit_record
from sessions.models import AgentSession, SampleLoad, SharedFact
from sessions.services.claims import claim, is_free, release, renewed, revoke, still_own
from sessions.services.commits import after_commit
from sessions.services.compactions.reference_scans import session_references_scan
from sessions.services.dispatch import SAMPLE_LOAD, task_dispatch
from sessions.services.samples.catalog import LOG_AGE, LOG_TITLE, STORIES, TOTAL, Story
from sessions.services.samples.claude_code import sample_log_import
from sessions.services.samples.play import session_backdate, story_play
from sessions.services.samples.signals import sample_loaded, sample_removing
from sessions.services.search.indexing import session_index
from sessions.services.sessions.derived import session_derive
from sessions.services.sessions.lifecycle import session_delete

log = logging.getLogger(__name__)

_LEASE = timedelta(seconds=30)
#: Attempts after which a load fails.
_MAX_ATTEMPTS = 3


@transaction.atomic
def sample_load(*, project: Project, actor: Actor = SYSTEM) -> SampleLoad:
    """Start loading the sample data, unless the project has it. Resumes a load that has failed."""
    load, is_new = SampleLoad.objects.get_or_create(
        project=project, defaults={"total": TOTAL, "created_by": actor.user}
    )
    if is_new:
        audit_record(action="sample.loaded", project=project, actor=actor, target=project.slug)
    failed = SampleLoad.objects.filter(pk=project.pk, state=SampleLoad.State.FAILED)
    if is_new or failed.update(state=SampleLoad.State.LOADING, attempts=0, lease_until=None):
        after_commit(task_dispatch, SAMPLE_LOAD, project.pk)
        load.refresh_from_db()
    return load


def sample_run(*, project_id: UUID) -> None:
    """Load the sample data. Does nothing if another worker is loading it, or if the load has ended."""
    rows = SampleLoad.objects.select_related("project", "created_by").filter(
        pk=project_id, state=SampleLoad.State.LOADING
    )
    load = claim(rows, lease=_LEASE)
    if load is None:
        return
    try:
        with renewed(still_own(load), lease=_LEASE):
            for number in range(load.done, TOTAL):
                if not _add(load, number):
                    return
        if release(still_own(load), state=SampleLoad.State.DONE):
            sample_loaded.send(
                SampleLoad, project=load.project, sessions=_sessions(load), user=load.created_by
            )
    except Exception:
        log.exception("sample of project %s", project_id)
        failed = {"state": SampleLoad.State.FAILED} if load.attempts >= _MAX_ATTEMPTS else {}
        release(still_own(load), pause=None if failed else _LEASE, **failed)


def samples_sweep() -> int:
    """Dispatch the loads that no worker has claimed. Returns their number."""
    rows = SampleLoad.objects.filter(is_free(), state=SampleLoad.State.LOADING)
    return sum(task_dispatch(SAMPLE_LOAD, id) for id in rows.values_list("pk", flat=True))


@transaction.atomic
def sample_remove(*, project: Project, actor: Actor) -> bool:
    """Delete the sample sessions and their derived data. Returns whether there were any."""
    load = SampleLoad.objects.select_for_update().filter(pk=project.pk).first()
    if load is None:
        return False
    revoke(SampleLoad.objects.filter(pk=project.pk))
    sample_removing.send(SampleLoad, project=project, sessions=load.sessions)
    SharedFact.objects.filter(
        session__in=load.sessions, project=project, state=SharedFact.State.PROPOSED
    ).delete()
    # Sub-agents first, because the deletion of a parent changes them.
    for session in AgentSession.objects.filter(pk__in=load.sessions).order_by("parent"):
        session_delete(session=session, actor=actor)
    load.delete()
    audit_record(action="sample.removed", project=project, actor=actor, target=project.slug)
    return True


def _sessions(load: SampleLoad) -> list[AgentSession]:
    by_id = AgentSession.objects.in_bulk(load.sessions)
    return [by_id[id] for id in load.sessions if id in by_id]


def _add(load: SampleLoad, number: int) -> bool:
    """Create the session with this number. Returns False if the load was removed or has another worker."""
    with transaction.atomic():
        if still_own(load).select_for_update(of=("self",)).first() is None:
            return False
        session = _session(load, number)
        load.sessions = [*load.sessions, session.pk]
        still_own(load).update(sessions=load.sessions)
    _derive(session)
    return True


def _session(load: SampleLoad, number: int) -> AgentSession:
    project = load.project
    if number == len(STORIES):
        return _imported(project, begin=_ago(LOG_AGE))
    story = STORIES[number]
    with _key(project, load.created_by) as key:
        return story_play(
            project=project,
            key=key,
            story=story,
            begin=_ago(story.age),
            parent_id=_parent_id(load, story),
        )


def _parent_id(load: SampleLoad, story: Story) -> UUID | None:
    keys = [each.key for each in STORIES]
    return load.sessions[keys.index(story.parent)] if story.parent else None


def _imported(project: Project, *, begin: datetime) -> AgentSession:
    session = sample_log_import(project=project, title=LOG_TITLE)
    times = session.turns.order_by("index").values_list("at", flat=True)
    session_backdate(session=session, times=[begin + (at - times[0]) for at in times])
    session.refresh_from_db()
    return session


@contextmanager
def _key(project: Project, user: User | None) -> Iterator[ApiKey]:
    """Yield an API key whose secret is not known. It is deleted before the transaction ends."""
    new = key_generate()
    key = ApiKey.objects.create(
        project=project, name="Sample", prefix=new.prefix, hash=new.hash, scopes=[], created_by=user
    )
    yield key
    key.delete()


def _derive(session: AgentSession) -> None:
    """Derive data immediately, because the scheduler would process recent sessions first."""
    while session_references_scan(session_id=session.pk):
        pass
    session_derive(session_id=session.pk)
    session_index(session_id=session.pk)


def _ago(hours: float) -> datetime:
    return timezone.now() - timedelta(hours=hours)
