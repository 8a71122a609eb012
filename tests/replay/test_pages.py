"""Replay pages: starting a replay, its results and chart, a session's tab and the recommendation."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEvent, Project
from accounts.services.projects import project_update
from compaction.policy import PRESETS
from replay.models import ReplayRun
from replay.pages import curves
from replay.services import execution
from sessions.models import AgentSession
from sessions.pages.terms import preset_meaning
from tests.markup import one_line
from tests.pages.transcripts import make_session, message, turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

FORM = {"policies": ["off", "baseline", "balanced"], "ratios": ["1.0", "0.5"], "count": "5"}


@reused
def run(member_client: Client, session: AgentSession) -> ReplayRun:
    response = member_client.post("/p/alpha/replay/", FORM)
    assert response.status_code == 302, response.content.decode()
    found = ReplayRun.objects.get()
    assert response.url == f"/p/alpha/replay/{found.pk}/"
    while found.state in ReplayRun.OPEN:
        execution.run_step(run_id=found.pk)
        found.refresh_from_db()
    return found


def test_an_empty_list_of_replays(viewer_client: Client) -> None:
    page = viewer_client.get("/p/alpha/replay/").content.decode()
    assert "No replays yet" in page
    assert "Start a replay" not in page
    assert "Start one above" not in page


@pytest.mark.usefixtures("project")
def test_a_project_without_sessions_offers_no_replay(member_client: Client) -> None:
    page = member_client.get("/p/alpha/replay/").text
    assert "This project has no sessions to replay." in page
    assert "Start replay" not in page


@pytest.mark.usefixtures("session")
def test_the_form_describes_the_policies(member_client: Client) -> None:
    page = member_client.get("/p/alpha/replay/").content.decode()
    assert all(preset_meaning(name) in page for name in PRESETS)


@pytest.mark.slow
def test_a_run_shows_its_results_its_chart_and_the_first_loss(
    member_client: Client, run: ReplayRun, session: AgentSession
) -> None:
    page = one_line(member_client.get(f"/p/alpha/replay/{run.pk}/"))
    assert "6 of 6 results" in page
    assert "hx-trigger" not in page.split('id="run"')[1].split(">")[0]
    assert "A long one" in page
    assert "the prompt does not fit" in page
    assert "Found by search" in page
    assert f"/p/alpha/sessions/{session.pk}/?turn=" in page
    data = member_client.get(f"/p/alpha/replay/{run.pk}/sessions/{session.pk}/?budget=0.50").json()
    assert [policy["name"] for policy in data["policies"]] == ["off", "baseline", "balanced"]
    assert len(data["turns"]) == len(data["policies"][0]["prompts"]) == 30
    assert data["policies"][2]["compacted"]


def test_a_session_without_references_has_no_shares_of_them(member_client: Client, project: Project) -> None:
    talk = turn(0, [message("user", "Hello.", "u"), message("assistant", "Good morning.", "a")])
    session = make_session(project, [talk])
    form = {"policies": ["balanced"], "ratios": ["1.0"]}
    assert member_client.post(f"/p/alpha/sessions/{session.pk}/replay/", form).status_code == 302
    run = ReplayRun.objects.get()
    execution.run_step(run_id=run.pk)
    page = one_line(member_client.get(f"/p/alpha/replay/{run.pk}/"))
    assert "1 of 1 results" in page
    assert ">0%<" not in page


def test_a_long_curve_is_sampled(
    member_client: Client, run: ReplayRun, session: AgentSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "MAX_POINTS", 10)
    data = member_client.get(f"/p/alpha/replay/{run.pk}/sessions/{session.pk}/").json()
    assert len(data["turns"]) == 10


@pytest.mark.slow
def test_a_custom_policy_with_steps_and_rules_is_replayed(
    member_client: Client, session: AgentSession
) -> None:
    custom = {
        "use_custom": "on",
        "preset": "balanced",
        "target": "0.3",
        "step_recap": "off",
        "rule_pattern": ["Read*"],
        "rule_outputs": ["exempt"],
        "rule_clip_tokens": [""],
        "rule_is_read": [""],
    }
    assert member_client.post("/p/alpha/replay/", {**FORM, "policies": [], **custom}).status_code == 302
    run = ReplayRun.objects.get()
    [policy] = run.policies
    assert (policy["name"], policy["target"], policy["tools"][0]["pattern"]) == ("custom", 0.3, "Read*")
    assert set(PRESETS["balanced"].steps) - set(policy["steps"]) == {"recap"}
    while run.state in ReplayRun.OPEN:
        execution.run_step(run_id=run.pk)
        run.refresh_from_db()
    assert "custom" in one_line(member_client.get(f"/p/alpha/replay/{run.pk}/"))


@pytest.mark.usefixtures("session")
def test_the_custom_policy_starts_from_the_projects(member_client: Client, project: Project) -> None:
    project.default_policy = {"preset": "masking", "tools": [{"pattern": "db_*", "exempt": True}]}
    project.save()
    page = one_line(member_client.get("/p/alpha/replay/"))
    assert '<option value="masking" selected>' in page
    assert 'value="db_*"' in page


def test_an_invalid_custom_policy_starts_nothing(member_client: Client) -> None:
    response = member_client.post(
        "/p/alpha/replay/", {**FORM, "use_custom": "on", "preset": "off", "hard": "2"}
    )
    assert response.status_code == 422
    assert "The custom policy is not valid." in response.text
    assert "Must be between 0 and 1" in response.text
    assert not ReplayRun.objects.exists()


@pytest.mark.slow
def test_missing_costs_are_explained(member_client: Client, session: AgentSession) -> None:
    session.turns.update(model="nobody-knows-it")
    AgentSession.objects.filter(pk=session.pk).update(model="nobody-knows-it")
    member_client.post("/p/alpha/replay/", FORM)
    run = ReplayRun.objects.get()
    while run.state in ReplayRun.OPEN:
        execution.run_step(run_id=run.pk)
        run.refresh_from_db()
    page = member_client.get(f"/p/alpha/replay/{run.pk}/").content.decode()
    assert "Costs are missing" in page
    priced = member_client.get(f"/p/alpha/replay/{run.pk}/?prices=input=3").content.decode()
    assert "Costs are missing" not in priced


@pytest.mark.slow
def test_an_open_run_is_polled_and_can_be_cancelled_and_resumed(
    member_client: Client, session: AgentSession
) -> None:
    member_client.post("/p/alpha/replay/", FORM)
    run = ReplayRun.objects.get()
    fragment = member_client.get(f"/p/alpha/replay/{run.pk}/", headers={"hx-request": "true"})
    assert 'hx-trigger="every 2s"' in fragment.content.decode()
    assert "<html" not in fragment.content.decode()
    for change, state in (("cancel", "cancelled"), ("resume", "running")):
        member_client.post(f"/p/alpha/replay/{run.pk}/change/", {"change": change})
        run.refresh_from_db()
        assert run.state == state
    page = member_client.post(f"/p/alpha/replay/{run.pk}/change/", {"change": "confirm"}, follow=True)
    assert "The replay was not changed" in page.content.decode()
    assert member_client.post(f"/p/alpha/replay/{run.pk}/change/", {"change": "eat"}).status_code == 404


@pytest.mark.slow
def test_other_prices(member_client: Client, run: ReplayRun) -> None:
    page = member_client.get(f"/p/alpha/replay/{run.pk}/?prices=input=1000").content.decode()
    assert "$" in page
    page = member_client.get(f"/p/alpha/replay/{run.pk}/?prices=nobody-knows").content.decode()
    assert "no known price" in page


def test_the_replay_tab_of_a_session(member_client: Client, session: AgentSession, run: ReplayRun) -> None:
    address = f"/p/alpha/sessions/{session.pk}/replay/"
    page = member_client.get(address).content.decode()
    assert "Prompt size under each policy" in page
    response = member_client.post(address, {"policies": ["off"], "ratios": ["0.5"], "budget": "9000"})
    assert response.status_code == 302
    newest = ReplayRun.objects.order_by("-pk").first()
    assert newest.limits == [{"ratio": 0.5}, {"tokens": 9000}]
    assert newest.title == "A long one"


def test_a_run_without_a_title_is_named_after_its_settings(member_client: Client, run: ReplayRun) -> None:
    run.title, run.limits = "", [{"ratio": 0.5}, {"tokens": 9000}]
    run.save()
    policies = ", ".join(policy["name"] for policy in run.policies)
    assert f"{policies} at 0.5, 9,000" in member_client.get("/p/alpha/replay/").content.decode()


@pytest.mark.parametrize("wrong", [{"policies": []}, {"ratios": []}, {"count": "0"}, {"with_model": "on"}])
def test_invalid_settings_are_rejected(
    member_client: Client, session: AgentSession, wrong: dict[str, object]
) -> None:
    response = member_client.post("/p/alpha/replay/", FORM | wrong)
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    assert not ReplayRun.objects.exists()


@pytest.mark.slow
def test_a_recommendation_needs_enough_sessions(owner_client: Client, run: ReplayRun) -> None:
    page = owner_client.get("/p/alpha/replay/").content.decode()
    assert "No recommendation yet" in page
    assert "at least 5 sessions" in page
    assert "replay has 1" in page
    choice = {"run": str(run.pk), "setting": "4"}
    refused = owner_client.post("/p/alpha/replay/advice/", choice, follow=True).content.decode()
    assert "needs 4 more replayed sessions" in refused
    assert not AuditEvent.objects.filter(action="policy.advised").exists()


@pytest.fixture
def one_session_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replay.selectors.advice.MIN_SESSIONS", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("one_session_is_enough")
def test_adopting_a_recommended_policy_is_confirmed_and_audited(
    owner_client: Client, member_client: Client, project: Project, run: ReplayRun
) -> None:
    page = owner_client.get("/p/alpha/replay/").content.decode()
    assert "Recommended policy:" in page
    assert "1 session from" in page
    results = f"/p/alpha/replay/{run.pk}/"
    assert "Recommended policy: <b>" in owner_client.get(results).content.decode()
    assert "Recommended policy: <b>" not in owner_client.get(results, {"prices": "input=1"}).content.decode()
    choice = {"run": str(run.pk), "setting": "4"}
    for client, status in ((member_client, 403), (owner_client, 200)):
        assert client.get("/p/alpha/replay/advice/", choice).status_code == status
    asked = owner_client.get("/p/alpha/replay/advice/", choice).content.decode()
    assert "Use baseline for new sessions?" in asked
    assert "<code>target</code>" in asked
    assert not AuditEvent.objects.filter(action="policy.advised").exists()
    assert member_client.post("/p/alpha/replay/advice/", choice).status_code == 403
    assert owner_client.post("/p/alpha/replay/advice/", choice).status_code == 302
    project.refresh_from_db()
    assert project.default_policy == {"preset": "baseline"}
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"project.changed", "policy.advised"} <= actions
    evidence = AuditEvent.objects.get(action="policy.advised").detail
    assert evidence["replay"] == str(run.pk)
    assert evidence["sessions"] == 1


@pytest.mark.usefixtures("one_session_is_enough")
def test_trends_mark_policy_changes(
    owner_client: Client, run: ReplayRun, project: Project, other_project: Project
) -> None:
    project_update(project=project, changes={"name": "Renamed"})
    project_update(project=other_project, changes={"default_policy": {"preset": "aggressive"}})
    choice = {"run": str(run.pk), "setting": "4"}
    owner_client.post("/p/alpha/replay/advice/", choice)
    marks = owner_client.get("/p/alpha/trends/series/").json()["marks"]
    assert [mark["text"] for mark in marks] == ["Policy: balanced → baseline"]


@pytest.mark.slow
def test_rates_of_a_project_have_a_page_and_a_fragment(viewer_client: Client) -> None:
    page = viewer_client.get("/p/alpha/replay/rates/").content.decode()
    assert "No compacted sessions yet" in page
    fragment = viewer_client.get("/p/alpha/replay/rates/", headers={"hx-request": "true"})
    assert "<html" not in fragment.content.decode()
    assert "/p/alpha/replay/rates/" in viewer_client.get("/p/alpha/trends/").content.decode()


@pytest.mark.usefixtures("one_session_is_enough")
def test_an_adopted_preset_keeps_the_instructions_for_summaries(
    owner_client: Client, run: ReplayRun, project: Project
) -> None:
    kept = {"summary_instructions": "Keep every port."}
    project_update(project=project, changes={"default_policy": {"preset": "balanced", **kept}})
    owner_client.post("/p/alpha/replay/advice/", {"run": str(run.pk), "setting": "4"})
    project.refresh_from_db()
    assert project.default_policy == {"preset": "baseline", **kept}


@pytest.mark.parametrize("setting", ["3", "99", "x"])
def test_only_a_policy_with_prompts_that_fit_can_be_adopted(
    owner_client: Client, run: ReplayRun, setting: str
) -> None:
    choice = {"run": str(run.pk), "setting": setting}
    assert owner_client.post("/p/alpha/replay/advice/", choice).status_code == 404


@pytest.mark.slow
def test_pages_take_few_queries(member_client: Client, session: AgentSession, run: ReplayRun) -> None:
    for address in (
        "/p/alpha/replay/",
        f"/p/alpha/replay/{run.pk}/",
        f"/p/alpha/replay/{run.pk}/sessions/{session.pk}/",
        f"/p/alpha/sessions/{session.pk}/replay/",
    ):
        with CaptureQueriesContext(connection) as queries:
            member_client.get(address)
        assert len(queries) <= 13, (address, [query["sql"] for query in queries])


def test_a_session_without_model_calls_is_not_pending(member_client: Client, project: Project) -> None:
    silent = make_session(project, [turn(0, [message("user", "Is anybody there?", "u")])], name="silent")
    member_client.post(f"/p/alpha/sessions/{silent.pk}/replay/", FORM)
    found = ReplayRun.objects.get()
    while found.state in ReplayRun.OPEN:
        execution.run_step(run_id=found.pk)
        found.refresh_from_db()
    page = one_line(member_client.get(f"/p/alpha/replay/{found.pk}/"))
    assert "6 of 6 results" in page
    assert "pending" not in page
    assert "no model calls" in page
