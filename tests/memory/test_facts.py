"""Shared facts: propose, decide, offer, import, prune."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuditEvent, Project
from accounts.services.api_keys import api_key_create
from sessions.models import SharedFact
from sessions.services.memory.fact_identity import text_digest
from sessions.services.memory.facts import UNDECIDED, fact_decide, facts_prune
from tests.api.client import Api, code
from tests.locking import blocking
from tests.memory.conftest import MEMORY
from tests.plugins.reused import reused

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("session")]

FACT = "always run pytest with -q"


@reused
def proposed(api: Api) -> dict[str, Any]:
    api.patch(f"{MEMORY}?author=model", {"decisions": [FACT], "task": "x", "blockers": ["y"]}, if_match="*")
    [fact] = api.post(f"{MEMORY}proposals/", {}).json()["data"]
    return dict(fact)


def decide(api: Api, fact: dict[str, Any], **data: Any) -> Any:
    return api.patch(f"memory/facts/{fact['id']}/", data)


def offers(api: Api, name: str) -> list[str]:
    return [fact["text"] for fact in api.get(f"sessions/{name}/memory/offers/").json()["data"]]


def test_concurrent_decisions_do_not_undo_each_other(proposed: dict[str, Any]) -> None:
    first, second = (SharedFact.objects.get(pk=proposed["id"]) for _ in range(2))
    fact_decide(fact=first, state="rejected")
    fact_decide(fact=second, text="run pytest -q")
    fact = SharedFact.objects.get(pk=proposed["id"])
    assert (fact.state, fact.text) == ("rejected", "run pytest -q")


def test_items_that_may_help_elsewhere_are_proposed(proposed: dict[str, Any]) -> None:
    assert (proposed["text"], proposed["state"], proposed["agent"]) == (FACT, "proposed", "coder")
    assert proposed["revision"] == 1


def test_a_single_item_can_be_proposed(api: Api) -> None:
    api.patch(MEMORY, {"blockers": ["the VPN is down"]}, if_match="*")
    items = [{"field": "blockers", "text": "the VPN is down"}]
    assert api.post(f"{MEMORY}proposals/", {"items": items}).json()["data"][0]["field"] == "blockers"
    missing = api.post(f"{MEMORY}proposals/", {"items": [{"field": "blockers", "text": "no"}]})
    assert code(missing) == "invalid_field"


def test_a_fact_is_shared_only_after_acceptance_and_import(api: Api, proposed: dict[str, Any]) -> None:
    api.post("sessions/", {"id": "s2", "agent": "coder"})
    assert offers(api, "s2") == []
    assert decide(api, proposed, state="accepted").json()["state"] == "accepted"
    assert offers(api, "s2") == [FACT]
    assert api.get("sessions/s2/memory/").json()["revision"] == 0
    taken = api.post("sessions/s2/memory/offers/", {"facts": [proposed["id"]]}).json()
    assert taken["memory"]["decisions"] == [FACT]
    assert taken["items"][0]["via"] == "shared"
    assert offers(api, "s2") == []


def test_a_fact_is_offered_to_the_sessions_of_its_agent(api: Api, proposed: dict[str, Any]) -> None:
    decide(api, proposed, state="accepted")
    api.post("sessions/", {"id": "s3", "agent": "other"})
    assert offers(api, "s3") == []
    refused = api.post("sessions/s3/memory/offers/", {"facts": [proposed["id"]]})
    assert code(refused) == "invalid_field"


def test_a_session_is_offered_facts_that_it_lacks(api: Api, proposed: dict[str, Any]) -> None:
    decide(api, proposed, state="accepted")
    again = {"agent": "coder", "if_exists": "return"}
    for name, count in (("s1", 0), ("s2", 1)):
        assert api.post("sessions/", {"id": name, **again}).json()["offers"] == count
        assert len(offers(api, name)) == count
    assert api.patch("sessions/s2/memory/", {"tried": [FACT]}, if_match="*").status_code == 200
    assert api.post("sessions/", {"id": "s2", **again}).json()["offers"] == len(offers(api, "s2")) == 1


def shared_from(api: Api, field: dict[str, Any], value: Any) -> None:
    """Accept the value of a custom field as a fact, and create the session `s2`, to which it is offered."""
    api.patch("memory/settings/", {"fields": [field]})
    api.patch(f"{MEMORY}?author=model", {field["name"]: value}, if_match="*")
    [fact] = api.post(f"{MEMORY}proposals/", {}).json()["data"]
    decide(api, fact, state="accepted")
    api.post("sessions/", {"id": "s2", "agent": "coder"})


@pytest.mark.slow
def test_facts_of_a_deleted_field_are_offered_once(api: Api) -> None:
    shared_from(api, {"name": "risks"}, ["the cache is shared"])
    api.patch("memory/settings/", {"fields": []})
    assert offers(api, "s2") == ["the cache is shared"]
    assert api.post("sessions/s2/memory/offers/", {}).status_code == 200
    assert api.get("sessions/s2/memory/").json()["memory"]["decisions"] == ["the cache is shared"]
    assert offers(api, "s2") == []


def test_a_fact_does_not_replace_what_a_person_wrote(api: Api) -> None:
    shared_from(api, {"name": "style", "single": True}, "use tabs")
    api.patch("sessions/s2/memory/?author=person", {"style": "use spaces"}, if_match="*")
    refused = api.post("sessions/s2/memory/offers/", {})
    assert (refused.status_code, code(refused)) == (409, "written_by_a_person")


def test_a_fact_can_be_reworded(api: Api, proposed: dict[str, Any]) -> None:
    assert decide(api, proposed, text="run pytest -q", state="accepted").json()["text"] == "run pytest -q"
    assert code(decide(api, proposed, text="")) == "invalid_field"
    until = "2031-05-06T07:08:09Z"
    changed = decide(api, proposed, text="log in with AKIAQWERTYUIOPASDFGH", expires_at=until).json()
    assert "AKIA" not in changed["text"]
    assert changed["expires_at"].startswith(until[:-1])


def test_a_decision_keeps_concurrent_observations(proposed: dict[str, Any]) -> None:
    fact = SharedFact.objects.get(pk=proposed["id"])
    SharedFact.objects.update(seen_in=2)
    fact_decide(fact=fact, state="accepted", text="run pytest -q")
    fact.refresh_from_db()
    assert (fact.seen_in, fact.state, fact.text) == (2, "accepted", "run pytest -q")
    assert fact.expires_at is not None
    assert bytes(fact.digest) == text_digest("run pytest -q")


def test_rejected_facts_are_not_proposed_again(api: Api, proposed: dict[str, Any]) -> None:
    decide(api, proposed, state="rejected")
    [again] = api.post(f"{MEMORY}proposals/", {}).json()["data"]
    assert (again["id"], again["state"]) == (proposed["id"], "rejected")


def test_proposing_a_fact_again_confirms_it(api: Api, proposed: dict[str, Any]) -> None:
    SharedFact.objects.update(confirmed_at=timezone.now() - timedelta(days=9))
    [again] = api.post(f"{MEMORY}proposals/", {}).json()["data"]
    assert again["confirmed_at"] > proposed["confirmed_at"]


def test_an_accepted_fact_expires_and_pruning_deletes_it(
    api: Api, project: Project, other_project: Project, proposed: dict[str, Any]
) -> None:
    assert decide(api, proposed, state="accepted").json()["expires_at"] is not None
    SharedFact.objects.update(expires_at=timezone.now() - timedelta(days=1))
    api.post("sessions/", {"id": "s2", "agent": "coder"})
    assert offers(api, "s2") == []
    assert facts_prune(project=other_project) == 0
    assert facts_prune(project=project) == 1
    assert facts_prune(project=project) == 0
    assert AuditEvent.objects.filter(action="memory.facts.pruned").count() == 1


def test_facts_are_listed_newest_first_page_by_page(api: Api) -> None:
    api.patch(MEMORY, {"decisions": [f"d{number}" for number in range(5)]}, if_match="*")
    api.post(f"{MEMORY}proposals/", {})
    first = api.get("memory/facts/?limit=3&state=proposed&agent=coder").json()
    rest = api.get(f"memory/facts/?limit=3&cursor={first['next_cursor']}").json()
    assert [fact["text"] for fact in (*first["data"], *rest["data"])] == ["d4", "d3", "d2", "d1", "d0"]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize("query", ["state=old", "limit=0", "cursor=xyz", "agent=a%00b"])
def test_an_invalid_query_is_rejected(api: Api, query: str) -> None:
    assert api.get(f"memory/facts/?{query}").status_code == 400


def test_another_project_cannot_decide(api: Api, proposed: dict[str, Any], other_project: Project) -> None:

    stranger = Api(api_key_create(project=other_project, name="x", scopes=["admin", "read"])[1])
    assert decide(stranger, proposed, state="accepted").status_code == 404
    assert stranger.get("memory/facts/").json()["data"] == []


@pytest.mark.django_db(transaction=True)
def test_a_fact_confirmed_during_pruning_is_kept(project: Project, proposed: dict[str, Any]) -> None:
    SharedFact.objects.update(confirmed_at=timezone.now() - UNDECIDED)
    with blocking(partial(facts_prune, project=project)) as jobs:
        SharedFact.objects.update(confirmed_at=timezone.now())
    assert jobs[0].result() == 0
    assert SharedFact.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_decision_on_a_pruned_fact_finds_nothing(api: Api, proposed: dict[str, Any]) -> None:
    with blocking(partial(decide, api, proposed, state="accepted")) as jobs:
        SharedFact.objects.all().delete()
    decided = jobs[0].result()
    assert (decided.status_code, code(decided)) == (404, "not_found")
    assert not AuditEvent.objects.filter(action="memory.fact.accepted").exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_rewording_to_the_same_text_succeeds_once(api: Api, proposed: dict[str, Any]) -> None:
    api.patch(MEMORY, {"decisions": ["another"]}, if_match="*")
    [other] = api.post(f"{MEMORY}proposals/", {}).json()["data"]
    with blocking(partial(decide, api, other, text="The same.")) as jobs:
        fact_decide(fact=SharedFact.objects.get(pk=proposed["id"]), text="the same")
    assert code(jobs[0].result()) == "invalid_field"
