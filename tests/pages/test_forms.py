"""Every form of the pages, submitted by a real browser as a user would submit it.

Django's test client sends no `Origin` and does not check tokens, names of fields or buttons. The resolver
provides all URLs, so that no form is missed.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import resolve, reverse
from django.utils import timezone
from playwright.sync_api import Locator, Page, Response

from accounts.actors import Actor
from accounts.models import Project
from accounts.services.api_keys import api_key_create
from accounts.services.projects import project_create
from compaction.memory.origins import Author
from compaction.policy import get_policy
from compaction.replay.setting import Limit
from replay.models import ReplayRun
from replay.selectors.advice import MIN_SESSIONS
from replay.services import execution, runs
from sessions.models import AgentSession, SharedFact, WebhookEvent
from sessions.services.imports.jobs import import_job_create
from sessions.services.memory.facts import fact_decide
from sessions.services.memory.proposals import facts_propose
from sessions.services.memory.revisions import Writer, memory_patch
from tests.pages.test_scoping import PAGES, address_of, ids  # noqa: F401  # a fixture
from tests.pages.transcripts import make_session, reading_turn

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Fields = Mapping[str, Any]
PASSWORD, NEW_PASSWORD = "correct horse battery", "a long one for nora 7"
LOG = {"name": "log.json", "mimeType": "application/json", "buffer": b'[{"role": "user", "content": "hi"}]'}
OPEN_MENUS = "e => { while ((e = e.parentElement?.closest('details'))) e.open = true; }"

#: The URL names of the forms that delete or revoke what cannot be restored, and have no page that asks first.
CONFIRMED = {
    "sample_delete",
    "session_comment_delete",
    "session_unshare",
    "settings_budget_delete",
    "settings_invitation_revoke",
    "settings_key_revoke",
    "settings_member_remove",
    "settings_price_remove",
    "settings_webhook_delete",
}


class Visitor:
    """A user who submits forms.

    `submitted` has the URL names of the forms that the server accepted, `confirmed` those of the forms that
    asked first, and `logged` the URLs that the browser requested, which proxies log.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.submitted: set[str] = set()
        self.confirmed: set[str] = set()
        self.logged: list[str] = []
        page.on("request", lambda request: self.logged.append(request.url))

    def submit(self, path: str, button: str, fields: Fields | None = None, *, select: str = "") -> Response:
        """Open `path`, or stay on the page if it is "", fill in the form of a button, and click it.

        `select` is the name of checkboxes outside the form; the first is checked.
        """
        if path:
            self.page.goto(path, wait_until="domcontentloaded")
        forms = self.page.locator("form[method=post]")
        if fields:
            forms = forms.filter(has=self.page.locator(f"[name={next(iter(fields))}]"))
        control = forms.get_by_role("button", name=button, include_hidden=True).first
        control.evaluate(OPEN_MENUS)
        if select:
            self.page.locator(f"input[name={select}]").first.check()
        for name, value in (fields or {}).items():
            _fill(control.locator("xpath=ancestor::form").locator(f"[name={name}]:visible").first, value)
        is_posted = "POST".__eq__
        with self.page.expect_response(lambda response: is_posted(response.request.method)) as found:
            control.click()
            question = self.page.locator("[popover]:popover-open button[autofocus]")
            if is_confirmed := question.count() > 0:
                question.click()
        response: Response = found.value
        assert response.status < 400, f"{response.url}: {response.status}"
        name = resolve(urlsplit(response.url).path).url_name or ""
        self.submitted.add(name)
        if is_confirmed:
            self.confirmed.add(name)
        return response


def _fill(field: Locator, value: Any) -> None:
    if isinstance(value, dict):
        field.set_input_files(value)  # type: ignore[arg-type]
    elif field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)


def post_urls(client: Client, values: Mapping[str, object]) -> set[str]:
    """Return the names of the URLs of pages that accept forms."""
    allowed = {
        pattern.name: client.options(address_of(pattern, values)).get("Allow", "") for _, pattern in PAGES
    }
    return {name for name, methods in allowed.items() if "POST" in methods}


def finished_run(project: Project) -> ReplayRun:
    """Create a run whose results suffice for a recommendation."""
    sessions = [make_session(project, [reading_turn(0)], name=f"r-{n}") for n in range(MIN_SESSIONS)]
    limits = [Limit(ratio=1.0)]
    run = runs.run_create(
        project=project, sessions=sessions, policies=[get_policy("balanced")], limits=limits
    )
    while run.state in ReplayRun.OPEN:
        execution.run_step(run_id=run.pk)
        run.refresh_from_db()
    return run


def test_a_browser_can_submit_every_form(
    page_as: Any,
    project: Project,
    owner: User,
    owner_client: Client,
    ids: Mapping[str, Any],  # noqa: F811
) -> None:
    Project.objects.filter(pk=project.pk).update(allows_sharing=True)
    session = AgentSession.objects.get(pk=ids["id"])
    memory_patch(session=session, changes={"decisions": ["a", "b"]}, writer=Writer(author=Author.PERSON))
    expired, offered = facts_propose(session=session)
    for fact in (expired, offered):
        fact_decide(fact=fact, state="accepted", actor=Actor(user=owner))
    SharedFact.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(days=1))
    other = make_session(project, [reading_turn(n) for n in range(3)], name="other", agent=session.agent)
    memory_patch(session=other, changes={"decisions": ["c", "d"]}, writer=Writer(author=Author.PERSON))
    facts_propose(session=other)
    job = import_job_create(project=project, name="a.json", file=io.BytesIO(b"{}"), is_dispatched=False)
    run = finished_run(project)
    api_key_create(project=project, name="CI")
    hook = project.webhooks.create(url="https://example.org/", secret="s", events=list(WebhookEvent))
    hook.deliveries.create(event="budget.reached", body=b"{}", state="failed", attempts=8, error="none")
    empty = project_create(name="Empty", slug="empty", owner=owner)

    visitor = Visitor(page_as(owner))
    submit = visitor.submit
    of_project = reverse("sessions", args=[project.slug]).removesuffix("sessions/")
    settings = f"{of_project}settings/"
    at, at_other = (reverse("session", args=[project.slug, each.pk]) for each in (session, other))
    price = {
        "model": "m",
        "first": "2026-01-01",
        **dict.fromkeys(("uncached", "cache_read", "cache_write", "output"), "1"),
    }

    submit(at, "Star this session")
    submit("", "Save", {"title": "New title", "tags": "a, b", "notes": "Read it."})
    submit("", "Pin message")
    submit(f"{at}turns/1/", "Comment", {"text": "Why?"})
    submit("", "Save", {"text": "Why not?"})
    submit("", "Delete comment")
    submit(f"{at}memory/", "Add item", {"field": "decisions", "item": "e", "reason": "asked"})
    submit("", "Propose all for sharing")
    submit("", "Update from")
    submit(f"{at_other}memory/", "Add to memory")
    submit(f"{at}compactions/", "Change policy", {"preset": "aggressive"})
    submit("", "Change budget", {"tokens": "50000"})
    submit(f"{at}compactions/1/revert/", "Revert compaction 1")
    submit("", "Apply again")
    submit(f"{at}compactions/2/recap/", "Save recap", {"text": "## Task\n- Read the files."})
    submit(f"{at}compactions/", "Compact now", {"instructions": "Keep the names."})
    submit(f"{at}share/", "Create link", {"days": "30"})
    submit("", "Revoke")
    submit(f"{at}replay/", "Start replay")
    submit(reverse("replay_run", args=[project.slug, ids["run"]]), "Cancel replay")
    submit(f"{of_project}replay/", "Start replay")
    submit(f"{of_project}replay/advice/?run={run.pk}&setting=0", "Use balanced")
    submit(reverse("imports_job", args=[project.slug, job.pk]), "Cancel import")
    submit(f"{of_project}imports/", "Import", {"file": LOG})

    submit(f"{of_project}memory/", "Accept", {"text": "One decision"})
    submit("", "Reject selected", select="fact")
    submit("", "Delete 1 expired")
    submit(f"{of_project}trends/", "Save preset", {"name": "Mine"})
    submit("", "delete preset Mine")
    submit(f"{of_project}sessions/?q=turns:>1", "Save view", {"name": "Long"})
    submit("", "delete view Long")
    submit("", "Add tag", {"tag": "seen"}, select="session")
    submit("", "Delete…", select="session")
    submit("", "Delete 1 session")
    submit("", "Got it")
    submit(reverse("sessions", args=[empty.slug]), "Load sample data")
    submit(reverse("sessions", args=[empty.slug]), "Remove sample data")

    submit(f"{of_project}connect/", "Create key")
    submit("", "Save settings", {"budget_tokens": "20000"})
    submit("", "Save key", {"provider": "openai", "secret": "sk-for-tests"})
    submit(settings, "Save project", {"name": "Alpha 2"})
    submit("", "Create project", {"name": "Gamma"})
    submit(f"{settings}keys/", "Create key", {"name": "Nightly", "rate_limit": "5"})
    submit("", "Revoke CI")
    submit(f"{settings}policy/", "Save policy", {"preset": "aggressive"})
    submit(f"{settings}budgets/", "Set budget", {"dollars": "1000.50"})
    submit("", "Remove")
    submit(f"{settings}prices/", "Save price", price)
    submit("", "Remove the price of m")
    submit(f"{settings}webhooks/", "Send test event")
    submit("", "Redeliver budget.reached")
    submit("", "Disable")
    submit("", "Delete")
    submit("", "Create webhook", {"url": "https://example.org/hook"})
    submit(f"{settings}memory/", "Save settings", {"own": "risks"})
    submit(f"{settings}redaction/", "Save patterns", {"patterns": r"ticket ACME-\d+"})
    submit(f"{settings}retention/", "Preview deletion", {"days": "1500"})
    submit("", "Delete sessions after 1,500 days")
    submit("", "Keep sessions forever")

    submit(f"{settings}members/", "Create invitation", {"email": "", "role": "member"})
    submit("", "Revoke the invitation")
    submit("", "Create invitation", {"email": "", "role": "member"})
    link = visitor.page.locator("pre.secret").inner_text()
    submit("", "Log out")
    new = {"username": "nora", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    submit(link, "Create account and join", new)
    submit(
        "/password/",
        "Change password",
        {"old_password": NEW_PASSWORD, "new_password1": PASSWORD, "new_password2": PASSWORD},
    )
    submit("", "Log out")
    submit("", "Log in", {"username": owner.username, "password": PASSWORD})
    submit(f"{settings}members/", "Change role")
    submit("", "Remove nora")
    assert post_urls(owner_client, ids) - visitor.submitted == set()
    assert CONFIRMED - visitor.confirmed == set()
    assert not [url for url in visitor.logged if "csrf" in url]
