"""Automatic proposals from idle sessions: limited, once per fact, and never offered without review."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import AuditEvent, Project
from accounts.services.api_keys import api_key_create
from sessions.models import AgentSession, ProposalScan, SharedFact
from sessions.selectors.memory import facts as selectors
from sessions.services.memory import auto_proposals
from sessions.services.memory.auto_updates import memory_update
from sessions.services.memory.fact_identity import text_digest
from sessions.services.memory.fact_observations import idle_time
from sessions.tasks import memory_propose
from tests.api.client import Api, code
from tests.compaction.builders import call, result

pytestmark = pytest.mark.django_db

FACT = "always run pytest with -q"

Say = Callable[..., None]


@pytest.fixture
def say(api: Api) -> Say:
    """Let a model write these decisions to the memory of the named session."""

    def said(*decisions: str, name: str = "s1", agent: str = "coder", author: str = "model") -> None:
        api.post("sessions/", {"id": name, "format": "openai", "agent": agent, "if_exists": "return"})
        body = {"decisions": list(decisions), "task": "one task", "blockers": ["one blocker"]}
        answer = api.patch(f"sessions/{name}/memory/?author={author}", body, if_match="*")
        assert answer.status_code == 200, answer.content

    return said


def come_to_rest(*names: str) -> None:
    """Make these sessions (default: all) idle and run the scheduled task."""
    ago = timezone.now() - idle_time()
    sessions = AgentSession.objects.filter(external_id__in=names) if names else AgentSession.objects.all()
    sessions.update(last_active_at=ago)
    ProposalScan.objects.filter(session__in=sessions).update(scan_at=ago)
    memory_propose()


def facts(api: Api) -> dict[str, dict[str, Any]]:
    return {fact["text"]: fact for fact in api.get("memory/facts/?limit=200").json()["data"]}


def decide(api: Api, fact: str, **data: Any) -> None:
    assert api.patch(f"memory/facts/{facts(api)[fact]['id']}/", data).status_code == 200


def wait(project: Project, count: int) -> None:
    """Create undecided proposals in a project."""
    SharedFact.objects.bulk_create(
        SharedFact(project=project, text=f"old {n}", digest=b"%d" % n, proposed_digest=b"%d" % n)
        for n in range(count)
    )


class TestIdleSessions:
    def test_items_of_a_model_are_proposed_when_the_session_is_idle(self, api: Api, say: Say) -> None:
        say(FACT)
        memory_propose()
        assert facts(api) == {}
        come_to_rest()
        [fact] = facts(api).values()
        assert (fact["text"], fact["state"], fact["agent"], fact["seen_in"]) == (FACT, "proposed", "coder", 1)

    def test_a_new_turn_postpones_the_scan(self, api: Api, say: Say) -> None:
        say(FACT)
        ProposalScan.objects.update(scan_at=timezone.now())
        api.post("sessions/s1/turns/", {"messages": [{"role": "user", "content": "go on"}]})
        memory_propose()
        assert facts(api) == {}
        assert ProposalScan.objects.get().scan_at == AgentSession.objects.get().last_active_at + idle_time()

    @pytest.mark.slow
    def test_only_accepted_facts_are_offered(self, api: Api, say: Say) -> None:
        say(FACT)
        come_to_rest()
        made = api.post("sessions/", {"id": "new", "agent": "coder"}).json()
        assert api.get("sessions/new/memory/offers/").json()["data"] == []
        assert made["offers"] == 0
        decide(api, FACT, state="accepted")
        assert api.post("sessions/", {"id": "newer", "agent": "coder"}).json()["offers"] == 1
        again = api.post("sessions/", {"id": "newer", "agent": "coder", "if_exists": "return"}).json()
        assert again["offers"] == 1
        api.post("sessions/newer/memory/offers/", {})
        again = api.post("sessions/", {"id": "newer", "agent": "coder", "if_exists": "return"}).json()
        assert again["offers"] == 0

    @pytest.mark.slow
    def test_imported_facts_are_not_proposed(self, api: Api, say: Say) -> None:
        say(FACT)
        come_to_rest()
        decide(api, FACT, state="accepted")
        api.post("sessions/", {"id": "s2", "agent": "coder"})
        api.post("sessions/s2/memory/offers/", {})
        come_to_rest()
        assert facts(api)[FACT]["seen_in"] == 1

    def test_items_of_users_but_not_of_programs_are_proposed(self, api: Api, say: Say) -> None:
        say("a person's", name="a", author="person")
        say("a program's", name="b", author="harness")
        come_to_rest()
        assert set(facts(api)) == {"a person's"}

    def test_stale_items_are_not_proposed(self, api: Api, say: Say, push: Callable[..., None]) -> None:
        say("the test framework is pytest", "keep")
        observe(api, push, "python -m unittest")
        come_to_rest()
        assert set(facts(api)) == {"keep"}

    def test_an_item_that_cannot_be_stored_as_a_fact_does_not_stop_the_others(
        self, api: Api, say: Say
    ) -> None:
        say(FACT, "the separator is \0")
        come_to_rest()
        assert set(facts(api)) == {FACT}
        assert not ProposalScan.objects.exists()

    def test_a_project_can_disable_proposals(self, api: Api, say: Say, project: Project) -> None:
        assert api.patch("memory/settings/", {"proposals": False}).json()["proposals"] is False
        [event] = AuditEvent.objects.filter(project=project, action="project.changed")
        assert event.detail == {"memory_proposals": {"from": True, "to": False}}
        say(FACT)
        come_to_rest()
        assert facts(api) == {}
        assert not ProposalScan.objects.exists()

    @pytest.mark.slow
    def test_secrets_are_redacted_first(self, api: Api, say: Say) -> None:
        say("log in with ghp_" + "a1B2" * 9)
        come_to_rest()
        [text] = facts(api)
        assert "[redacted:" in text
        decide(api, text, text="log in with ghp_" + "c3D4" * 9)
        [text] = facts(api)
        assert "[redacted:" in text


class TestLimits:
    @pytest.mark.slow
    def test_the_limit_per_session_prefers_items_of_users(self, api: Api, say: Say) -> None:
        say("by hand", author="person")
        say("by hand", *(f"choice {n}" for n in range(auto_proposals.MAX_FACTS + 5)))
        come_to_rest()
        assert len(facts(api)) == auto_proposals.MAX_FACTS
        assert "by hand" in facts(api)
        say("by hand", *(f"another {n}" for n in range(5)))
        come_to_rest()
        assert len(facts(api)) == auto_proposals.MAX_FACTS

    @pytest.mark.slow
    def test_the_number_of_pending_proposals_is_limited(
        self, api: Api, say: Say, owner_client: Client, project: Project, other_project: Project
    ) -> None:
        page = reverse("memory", args=[project.slug])
        wait(project, selectors.MAX_PENDING - 2)
        wait(other_project, 2)
        assert "proposals are waiting for review" not in owner_client.get(page).text
        say("one", "two", "three")
        come_to_rest()
        assert {"one", "two", "three"} & set(facts(api)) == {"one", "two"}
        assert f"{selectors.MAX_PENDING} proposals are waiting for review" in owner_client.get(page).text
        say("one", "four", name="s2")
        come_to_rest()
        assert "four" not in facts(api)
        assert facts(api)["one"]["seen_in"] == 2
        [by_hand] = api.post("sessions/s2/memory/proposals/", {}).json()["data"][1:]
        assert by_hand["text"] == "four"
        for text in ("two", "four"):
            decide(api, text, state="rejected")
        say("five", "six", name="s3")
        come_to_rest()
        assert {"five", "six"} & set(facts(api)) == {"five"}

    @pytest.mark.slow
    def test_equivalent_texts_are_one_fact(self, api: Api, say: Say) -> None:
        say(FACT)
        say("  Always run  `pytest` with -q. ", name="s2")
        say("always run pytest", name="s3")
        come_to_rest()
        assert {text: fact["seen_in"] for text, fact in facts(api).items()} == {
            FACT: 2,
            "always run pytest": 1,
        }

    @pytest.mark.slow
    def test_repeated_scans_count_nothing_twice(self, api: Api, say: Say) -> None:
        say(FACT)
        come_to_rest()
        before = facts(api)
        memory_propose()
        say(FACT, "more")
        come_to_rest()
        assert facts(api)[FACT] == before[FACT]
        assert set(facts(api)) == {FACT, "more"}

    @pytest.mark.slow
    def test_rejected_facts_stay_rejected_even_if_reworded(self, api: Api, say: Say) -> None:
        say(FACT)
        come_to_rest()
        decide(api, FACT, text="use -q", state="rejected")
        say(FACT, name="s2")
        come_to_rest()
        say("Use -q!", name="s3")
        come_to_rest()
        assert {text: fact["state"] for text, fact in facts(api).items()} == {"use -q": "rejected"}
        assert facts(api)["use -q"]["seen_in"] == 3

    @pytest.mark.slow
    def test_a_pass_scans_a_limited_number_of_sessions(
        self, api: Api, say: Say, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(auto_proposals, "BATCH", 2)
        for n in range(3):
            say(f"fact {n}", name=f"s{n}")
        come_to_rest()
        assert len(facts(api)) == 2
        memory_propose()
        assert len(facts(api)) == 3

    @pytest.mark.slow
    def test_the_work_per_session_does_not_grow_with_the_project(self, say: Say) -> None:
        counts = []
        for start in (0, 10):
            for n in range(start, start + 9):
                say(f"fact {n}", "shared by all", name=f"s{n}")
            come_to_rest()
            say(f"fact {start + 9}", "shared by all", name=f"s{start + 9}")
            AgentSession.objects.update(last_active_at=timezone.now() - idle_time())
            ProposalScan.objects.update(scan_at=timezone.now() - idle_time())
            with CaptureQueriesContext(connection) as captured:
                memory_propose()
            counts.append(len(captured))
        assert counts[0] == counts[1] <= 16


class TestDoubts:
    @pytest.mark.slow
    def test_stale_or_removed_items_raise_doubts(self, api: Api, say: Say, push: Callable[..., None]) -> None:
        tests = "the test framework is pytest"
        say(tests, "no clock")
        come_to_rest()
        assert all(fact["doubts"] == [] for fact in facts(api).values())
        observe(api, push, "python -m unittest")
        api.patch("sessions/s1/memory/?author=person", {"decisions": [tests]}, if_match="*")
        [stale], [left] = (facts(api)[text]["doubts"] for text in (tests, "no clock"))
        assert stale["why"] == "stale: unittest has been in use since turn 0"
        assert left["why"].startswith("removed by a user in revision ")
        say(tests, "No clock")
        assert facts(api)["no clock"]["doubts"] == []

    @pytest.mark.slow
    def test_other_sessions_raise_no_doubts(self, api: Api, say: Say) -> None:
        say(FACT)
        say(FACT, name="s2")
        come_to_rest()
        say(name="s2")
        [doubt] = facts(api)[FACT]["doubts"]
        assert doubt["session"] == str(AgentSession.objects.get(external_id="s2").pk)
        assert "by the model" in doubt["why"]


@pytest.mark.slow
def test_facts_are_separated_by_project_and_agent(api: Api, say: Say, other_project: Project) -> None:
    stranger = Api(api_key_create(project=other_project, name="x", scopes=["push", "read", "admin"])[1])
    stranger.post("sessions/", {"id": "theirs", "agent": "coder"})
    stranger.patch("sessions/theirs/memory/?author=model", {"decisions": [FACT, "secret plan"]}, if_match="*")
    say(FACT)
    say(FACT, name="s2", agent="writer")
    come_to_rest()
    mine = api.get("memory/facts/").json()["data"]
    assert sorted((fact["agent"], fact["text"], fact["seen_in"]) for fact in mine) == [
        ("coder", FACT, 1),
        ("writer", FACT, 1),
    ]
    assert {text: fact["seen_in"] for text, fact in facts(stranger).items()} == {FACT: 1, "secret plan": 1}
    assert code(stranger.patch(f"memory/facts/{mine[0]['id']}/", {"state": "accepted"})) == "not_found"


@pytest.mark.slow
def test_an_accepted_fact_outlives_its_session(api: Api, say: Say) -> None:
    say(FACT, "another fact")
    come_to_rest()
    decide(api, FACT, state="accepted")
    assert api.delete("sessions/s1/").status_code == 204
    [fact] = facts(api).values()
    assert (fact["text"], fact["session"], fact["seen_in"], fact["doubts"]) == (FACT, None, 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("last", ["s1", "s2"])
def test_a_proposal_is_deleted_with_the_last_session_that_has_it(api: Api, say: Say, last: str) -> None:
    for name in ("s1", "s2"):
        say(FACT, name=name)
        come_to_rest(name)
    for name in sorted(["s1", "s2"], key=last.__eq__):
        assert facts(api)[FACT]["state"] == "proposed"
        assert api.delete(f"sessions/{name}/").status_code == 204
    assert facts(api) == {}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_passes_count_each_session_once(
    api: Api, say: Say, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [f"fact {n}" for n in range(30)]
    for turned in range(20):  # any two sets overlap, each pair at another place
        say(*(texts[(turned + n) % 30] for n in range(12)), name=f"session {turned}")
    ago = timezone.now() - idle_time()
    AgentSession.objects.update(last_active_at=ago)
    ProposalScan.objects.update(scan_at=ago)

    def passes() -> None:
        try:
            memory_propose()
        finally:
            connection.close()

    threads = [Thread(target=passes) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory_propose()  # sessions locked by another pass are left to the next one
    assert not ProposalScan.objects.exists()
    assert "proposals of session" not in caplog.text
    seen_in = {text: fact["seen_in"] for text, fact in facts(api).items()}
    assert seen_in == {
        text: sum(1 for turned in range(20) if (n - turned) % 30 < 12) for n, text in enumerate(texts)
    }


@pytest.mark.slow
@given(st.text(), st.sampled_from(["", " ", ".", "!", "\n", " . "]), st.booleans())
def test_case_white_space_and_final_punctuation_are_ignored(text: str, ending: str, upper: bool) -> None:
    folded = text.casefold()
    if folded.upper().casefold() == folded:
        assert text_digest(text) == text_digest(f" {folded.upper() if upper else folded}{ending}")


def test_a_different_word_is_a_different_fact() -> None:
    assert text_digest("use port 8000") != text_digest("use port 8001")


def test_the_scheduler_runs_the_task() -> None:
    assert memory_propose.name in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


def observe(api: Api, push: Callable[..., None], command: str) -> None:
    """Push a turn with a successful command and update the memory."""
    push(call("c", "bash", command=command), result("c", "OK"))
    memory_update(session_id=AgentSession.objects.get(external_id="s1").pk, forced=True)
