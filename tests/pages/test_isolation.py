"""What happens in one project changes nothing that the members and keys of another project see."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client

from accounts.actors import Actor
from accounts.models import Project
from accounts.services.api_keys import api_key_create
from accounts.services.projects import project_update
from compaction.memory.origins import Author
from compaction.policy import get_policy
from compaction.replay.setting import Limit
from replay.services.execution import run_step
from replay.services.runs import run_create
from sessions.models import AgentSession, Compaction, MemoryExtraction, SharedFact
from sessions.services.compactions.reference_scans import reference_scans_run
from sessions.services.imports.jobs import import_job_create
from sessions.services.memory.facts import facts_decide
from sessions.services.memory.revisions import Writer, memory_patch
from sessions.services.search.indexing import search_index_run
from sessions.services.sessions.comments import comment_create
from sessions.services.sessions.profiles import profiles_refresh
from sessions.services.sessions.saved_views import view_save
from sessions.services.sessions.sharing import link_create
from sessions.services.spending.cost_budgets import budget_set, cost_budgets_check
from sessions.services.spending.rollups import rollups_fill
from sessions.services.tools.counting import tools_count
from sessions.services.webhooks.subscriptions import webhook_create, webhook_test
from tests.api import test_scoping as calls
from tests.api.client import Api
from tests.api.talk import request
from tests.pages.served import compacted_session
from tests.pages.test_scoping import PAGES, WITHOUT_PROJECT, address_of
from tests.pages.transcripts import START, make_session

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

#: Parameters of all pages, and of some calls: what to search for, and the day of all turns.
DAY = str(START.date())
SEARCH, PERIOD, ALWAYS = {"q": "file"}, {"first": DAY, "last": DAY}, {"days": "all"}
OF_CALLS = {"search": SEARCH, "search-project": SEARCH, "usage": {"from": DAY}}
#: Values that differ between two responses with the same content.
CHANGING = re.compile(r'<time.*?</time>|nonce="[^"]*"|\bsince=\S+|\b[A-Za-z0-9]{64}\b', re.DOTALL)


def fill(project: Project, user: User) -> dict[str, Any]:
    """Create one of everything in a project, and return the parameters of its URLs."""
    actor, of_project = Actor(user=user), {"project": project, "actor": Actor(user=user)}
    session = compacted_session(project)
    name = project.slug
    other = make_session(project, name="other", title=name, agent=name, model=name, tags=[name], parent="s-1")
    AgentSession.objects.filter(pk=other.pk).update(metadata={name: "a"}, created_by=user)
    Compaction.objects.filter(session=session).update(finished_at=START + timedelta(minutes=4))
    tokens = dict.fromkeys(("uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"), 9)
    extracted = {"model": "m", "first_turn": 0, "end_turn": 1, "state": "done", "requests": 1}
    MemoryExtraction.objects.create(session=session, cost_microusd=7, **extracted, **tokens)
    MemoryExtraction.objects.filter(session=session).update(at=START)
    memory_patch(session=session, changes={"task": "x"}, writer=Writer(author=Author.PERSON))
    fact, _ = (
        SharedFact.objects.create(
            project=project,
            agent=session.agent,
            session=other,
            field="next",
            text=f"{text} in {name}",
            digest=text.encode(),
        )
        for text in ("use a queue", "use a timer")
    )
    facts_decide(ids=[fact.pk], state=SharedFact.State.ACCEPTED, **of_project)
    comment_create(session=session, turn=1, text="Why?", author_id=user.pk)
    view_save(project=project, user=user, name=name, query="q=x")
    project_update(changes={"allows_sharing": True, "default_policy": {"preset": "masking"}}, **of_project)
    link_create(session=session, days=7, actor=actor)
    api = Api(api_key_create(name=name, **of_project)[1])
    tools = [{"name": name, "input_schema": {"type": "object"}}]
    events = ["budget.reached", "compaction.finished"]
    hook = webhook_create(url="https://93.184.215.14/", events=events, **of_project)
    delivery = webhook_test(webhook=hook, actor=actor)
    for scope in ({}, {"scope": "agent", "scope_value": session.agent}):
        budget_set(period="month", limit_microusd=1, **scope, **of_project)
    policies = [get_policy("off"), get_policy("balanced")]
    run = run_create(sessions=[session], policies=policies, limits=[Limit(ratio=0.5)], **of_project)
    while run.state in run.OPEN:
        run_step(run_id=run.pk)
        run.refresh_from_db()
    job = import_job_create(project=project, name=name, file=io.BytesIO(b"{}"))
    work()
    api.post("sessions/", {"id": "live", "agent": name, "tools": tools, "model": "claude-sonnet-4-5"})
    usage = {"input_tokens": 900, "output_tokens": 9}
    assert api.post("sessions/live/turns/", {"messages": [request()], "usage": usage}).status_code == 201
    cost_budgets_check(now=START + timedelta(hours=1))
    handle = next((edit.handle for edit in session.edits.all() if edit.handle), "h_none")
    return {
        "slug": project.slug,
        "id": session.pk,
        "session_id": session.pk,
        "handle": handle,
        "position": 0,
        "part": 0,
        "index": 0,
        "turn": 1,
        "ordinal": 0,
        "number": 1,
        "member": 1,
        "run": run.pk,
        "replay_id": run.pk,
        "job": job.pk,
        "import_id": job.pk,
        "fact": fact.pk,
        "fact_id": fact.pk,
        "webhook_id": hook.pk,
        "delivery_id": delivery.pk,
        "token": "x" * 43,
        "period": "month",
        "format": "md",
        "name": "quickstart",
    }


def work() -> None:
    """Do what workers do later."""
    for task in (rollups_fill, tools_count, search_index_run, profiles_refresh):
        task(everywhere=True)
    reference_scans_run()


def seen(client: Client, api: Api, ids: dict[str, Any]) -> dict[str, str]:
    """Return what each page and each call of the API with `GET` shows."""
    found = {}
    for param in calls.CALLS:
        method, pattern = param.values
        if method == "GET":
            address = calls.address_of(pattern, ids).removeprefix("/api/v1/")
            found[param.id] = api.get(f"{address}?{urlencode(OF_CALLS.get(pattern.name, {}))}")
    for route, pattern in PAGES:
        if pattern.name not in WITHOUT_PROJECT:
            query = ALWAYS if "tools" in route else SEARCH | PERIOD
            found[route] = client.get(address_of(pattern, ids), query)
    return {route: _content(response) for route, response in found.items() if response.status_code == 200}


def _content(response: Any) -> str:
    content = b"".join(response) if response.streaming else response.content
    return CHANGING.sub("", content.decode(errors="replace"))


def test_nothing_of_another_project_is_seen(
    project: Project,
    other_project: Project,
    owner: User,
    stranger: User,
    stranger_client: Client,
    subtests: pytest.Subtests,
) -> None:
    api = Api(api_key_create(project=other_project, name="all", scopes=["push", "read", "admin"])[1])
    ids = fill(other_project, stranger)
    work()
    before = seen(stranger_client, api, ids)
    assert len(before) > 90
    fill(project, owner)
    after = seen(stranger_client, api, ids)
    figures = AgentSession.objects.values("external_id", "turn_count", "output_tokens", "cost_microusd")
    assert figures.distinct().count() == 3, "each project has the same sessions, with the same calls"
    assert (
        not AgentSession.objects.exclude(parent__project=F("project")).filter(parent__isnull=False).exists()
    )
    for route, content in before.items():
        with subtests.test(route):
            assert after[route] == content
