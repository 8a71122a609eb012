"""Memory extraction end to end: pushed turns, a worker task, a provider."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

import pricing
from accounts.models import AuditEvent, Project
from compaction.memory.extraction.schedule import READ_TOKENS, TURNS_AT_ONCE
from sessions.models import (
    AgentSession,
    MemoryExtraction,
    MemoryExtractionState,
    MemoryRevision,
    MemoryUpdateState,
)
from sessions.selectors import summarizers
from sessions.services.dispatch import MEMORY_UPDATE
from sessions.services.memory.extraction import extractions_sweep
from sessions.store import bodies
from sessions.tasks import memory_observe, memory_upkeep
from tests.api.client import Api
from tests.background.world import eventually
from tests.compaction.builders import assistant, call, result, user
from tests.memory.conftest import MEMORY
from tests.pages.transcripts import make_session, message, turn
from tests.plugins.reused import reused
from tests.provider import behaviours as it
from tests.provider.behaviours import operation as op
from tests.provider.behaviours import operations
from tests.provider.meanwhile import meanwhile
from tests.provider.server import FakeProvider

pytestmark = [pytest.mark.django_db, pytest.mark.slow]  # Anthropic's SDK takes seconds to load

MODEL = "claude-haiku-4-5"
FAILS = "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed"
#: More content than fits into one request.
LONG = "The pool evicts by a queue. " * (READ_TOKENS // 5)
SECRET = "AKIA" + "QWERTYUIOPASDFGH"

Push = Callable[..., None]


NOTHING = operations()


@pytest.fixture
def provider(settings: Any) -> Iterator[FakeProvider]:
    """The provider of the workers. It suggests nothing by default."""
    with FakeProvider(otherwise=NOTHING) as provider:
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
        settings.CONTEXTAPP_ANTHROPIC_BASE_URL = provider.url
        settings.CONTEXTAPP_SUMMARIZER_BACKOFF = 0.01
        summarizers.reader.cache_clear()
        yield provider
        summarizers.reader.cache_clear()


@reused
def stored(session: dict[str, Any]) -> UUID:
    return UUID(session["id"])


@reused
def model_on(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(memory_upkeep=True, memory_model=MODEL)


@pytest.fixture
def work(stored: UUID) -> Callable[[], None]:
    """Run the task of a worker."""
    return lambda: memory_upkeep(str(stored))


def rest(stored: UUID) -> None:
    """Make the session idle."""
    AgentSession.objects.filter(pk=stored).update(last_active_at=timezone.now() - timedelta(hours=1))


def later(stored: UUID) -> None:
    """End the pause after a claim."""
    MemoryExtractionState.objects.filter(session_id=stored).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )


def memory(api: Api) -> dict[str, Any]:
    shown: dict[str, Any] = api.get(MEMORY).json()["memory"]
    return shown


def states() -> list[str]:
    """Return the state of each extraction, oldest first."""
    return list(MemoryExtraction.objects.order_by("at").values_list("state", flat=True))


class TestSchedule:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"memory_upkeep": True},
            {"memory_model": MODEL},
            {"memory_upkeep": True, "memory_model": MODEL, "summarizer_model": "off"},
        ],
        ids=["by default", "upkeep alone", "a model alone", "nothing may leave the server"],
    )
    def test_extraction_runs_only_if_the_project_enables_it(
        self, provider: FakeProvider, project: Project, push: Push, stored: UUID, work: Any, changes: Any
    ) -> None:
        Project.objects.filter(pk=project.pk).update(**changes)
        push(user(LONG))
        rest(stored)
        work()
        assert extractions_sweep() == 0
        assert provider.requests == []
        assert not MemoryExtraction.objects.exists()

    @pytest.mark.usefixtures("model_on")
    def test_extraction_needs_an_api_key(
        self, provider: FakeProvider, push: Push, work: Any, settings: Any
    ) -> None:
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = ""
        push(user(LONG))
        work()
        assert provider.requests == []

    @pytest.mark.usefixtures("model_on")
    def test_extraction_runs_after_enough_new_content(
        self, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        push(user("Mend the pool"))
        work()
        assert provider.requests == []
        push(assistant(LONG))
        work()
        work()
        [request] = provider.requests
        assert request.body["model"] == MODEL
        assert "#0 t0 user: Mend the pool" in request.body["messages"][0]["content"]
        assert "#1 t1 assistant:" in request.body["messages"][0]["content"]

    @pytest.mark.usefixtures("model_on")
    def test_extraction_runs_when_the_session_is_idle(
        self, provider: FakeProvider, push: Push, stored: UUID, work: Any, dispatched: Any
    ) -> None:
        task = (MEMORY_UPDATE, str(stored))
        push(user("Mend the pool"))
        eventually(lambda: task in dispatched)  # a thread dispatches
        work()
        assert extractions_sweep() == 0
        rest(stored)
        assert extractions_sweep() == 1
        assert dispatched[-1] == task
        work()
        assert len(provider.requests) == 1
        assert extractions_sweep() == 0

    @pytest.mark.usefixtures("model_on")
    def test_it_reads_only_new_turns(self, api: Api, provider: FakeProvider, push: Push, work: Any) -> None:
        counts = []
        for name in ("first", "second", "third", "fourth"):
            push(user(f"the {name} of them"), assistant(LONG))
            with CaptureQueriesContext(connection) as captured:
                work()
            counts.append(len(captured))
        content = provider.requests[-1].body["messages"][0]["content"]
        assert "the fourth of them" in content
        assert "the third of them" not in content
        assert counts[1] == counts[2] == counts[3] <= 60

    @pytest.mark.usefixtures("model_on")
    def test_a_long_session_is_read_in_separate_tasks(
        self, provider: FakeProvider, project: Project, dispatched: list[tuple[str, str]]
    ) -> None:
        steps = [turn(n, [message("user", f"step {n}", f"u{n}")]) for n in range(120)]
        long = make_session(project, steps).pk
        AgentSession.objects.filter(pk=long).update(last_active_at=timezone.now())
        task = (MEMORY_UPDATE, str(long))
        memory_upkeep(str(long))
        assert MemoryExtractionState.objects.get().turn == TURNS_AT_ONCE
        assert dispatched.count(task) == 1
        memory_upkeep(str(long))
        memory_upkeep(str(long))
        assert len(provider.requests) == 2
        assert dispatched.count(task) == 1
        rest(long)
        memory_observe(str(long))
        assert MemoryExtractionState.objects.get().turn == 120

    @pytest.mark.usefixtures("model_on")
    def test_a_turn_larger_than_a_request_is_split(
        self, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        """The request for the second piece includes the items from the first."""
        provider.script(operations(op("add", "we evict by a queue")))
        push(*(user(f"{number} " + LONG) for number in range(40)))
        work()
        assert len(provider.requests) >= 2
        assert "yours: we evict by a queue" in provider.requests[1].body["messages"][0]["content"]
        assert MemoryExtraction.objects.get().requests == len(provider.requests)


@pytest.mark.usefixtures("model_on")
class TestWrites:
    def test_items_have_sources_and_join_automatic_items(
        self, api: Api, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        provider.script(
            operations(
                op("add", "a queue and no timer", message=3),
                op("add", "evict by a queue", field="next", message=3),
            )
        )
        push(user("Mend it"), call("c", "bash", command="pytest"), result("c", FAILS), assistant(LONG))
        work()
        shown = api.get(MEMORY).json()
        assert shown["memory"]["decisions"] == ["a queue and no timer"]
        assert len(shown["memory"]["blockers"]) == 1
        assert (shown["author"], shown["reason"]) == ("model", "read turns 0 to 0: decisions, next")
        [item] = [item for item in shown["items"] if item["field"] == "decisions"]
        assert (item["author"], item["via"], item["turn"], item["message"]) == ("model", "reading", 0, 3)
        [step, before] = api.get(f"{MEMORY}timeline/").json()["data"]
        assert before["author"] == "harness"
        assert step["revision"] == 2

    def test_items_of_users_are_never_overwritten(
        self, api: Api, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        api.patch(f"{MEMORY}?author=person", {"decisions": ["a timer"], "next": "mine"}, if_match="*")
        provider.script(
            operations(
                *(op(step, "a queue", item="i1") for step in ("replace", "remove", "resolve")),
                op("add", "evict by a queue", field="next"),
                op("stale", "a queue is used", item="i1"),
            )
        )
        push(assistant(LONG))
        work()
        assert "i1 decisions, by the person: a timer" in provider.requests[0].body["messages"][0]["content"]
        shown = api.get(MEMORY).json()
        assert (shown["memory"]["decisions"], shown["memory"]["next"]) == (["a timer"], "mine")
        [item] = [item for item in shown["items"] if item["field"] == "decisions"]
        assert (item["author"], item["stale"]) == ("person", "a queue is used")

    def test_items_that_a_user_removed_are_not_added_again(
        self, api: Api, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        provider.otherwise = operations(op("add", "We evict by a queue"))
        push(assistant(LONG))
        work()
        assert memory(api)["decisions"] == ["We evict by a queue"]
        api.patch(f"{MEMORY}?author=person", {"decisions": []}, if_match="*")
        for _ in range(2):
            push(assistant(LONG))
            work()
            assert memory(api)["decisions"] == []
        assert "We evict by a queue" in provider.requests[-1].body["messages"][0]["content"]
        assert MemoryExtraction.objects.filter(state="done").count() == 3

    def test_secrets_in_a_reply_are_neither_stored_nor_logged(
        self, api: Api, provider: FakeProvider, push: Push, work: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="sessions")
        provider.script(
            operations(op("add", f"the key is {SECRET}"), op("add", "a queue")),
            it.says(f"the key is {SECRET}"),
            it.says(json.dumps({"operations": SECRET})),
        )
        for _ in range(2):
            push(assistant(LONG))
            work()
        stored = [
            *(bodies.json_bytes([row.body, row.origins]) for row in MemoryRevision.objects.all()),
            *(row.reason.encode() for row in MemoryExtraction.objects.all()),
            *(row.last_error.encode() for row in MemoryExtractionState.objects.all()),
        ]
        assert stored
        assert not any(SECRET.encode() in one for one in stored)
        assert SECRET not in caplog.text
        assert memory(api)["decisions"] == ["a queue"]

    def test_custom_fields_are_written_too(
        self, api: Api, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        fields = [{"name": "risks", "description": "what may go wrong"}]
        assert api.patch("memory/settings/", {"fields": fields}).status_code == 200
        provider.script(operations(op("add", "the clock is mocked", field="risks")))
        push(assistant(LONG))
        work()
        assert "- risks: what may go wrong, a list" in provider.requests[0].body["system"]
        assert memory(api)["risks"] == ["the clock is mocked"]

    def test_concurrent_writes_are_kept(
        self, api: Api, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        def write() -> None:
            api.patch(f"{MEMORY}?author=person", {"decisions": ["mine"]}, if_match="*")

        provider.script(meanwhile(write, operations(op("add", "a queue"))))
        push(assistant(LONG))
        work()
        assert memory(api)["decisions"] == ["mine", "a queue"]


@pytest.mark.usefixtures("model_on")
class TestCosts:
    def test_each_extraction_is_stored_with_its_tokens_and_cost(
        self, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        push(assistant(LONG))
        work()
        row = MemoryExtraction.objects.get()
        assert (row.state, row.model, row.first_turn, row.end_turn, row.requests) == ("done", MODEL, 0, 1, 1)
        assert row.uncached_tokens > 1_000
        rates = pricing.rates(MODEL, row.at.replace(minute=0, second=0, microsecond=0))[0]
        expected = (rates.uncached * row.uncached_tokens + rates.output * row.output_tokens) * 1_000_000
        assert row.cost_microusd == round(expected) > 0

    def test_unused_calls_are_counted_too(self, provider: FakeProvider, push: Push, work: Any) -> None:
        provider.script(it.says("no JSON"), it.says("no JSON either"))
        push(assistant(LONG))
        work()
        row = MemoryExtraction.objects.get()
        assert (row.state, row.requests) == ("failed", 2)
        assert row.cost_microusd

    def test_a_model_without_a_price_is_unpriced(
        self, provider: FakeProvider, project: Project, push: Push, work: Any, viewer_client: Client
    ) -> None:
        Project.objects.update(memory_model="a-model-of-our-own")
        push(assistant(LONG))
        work()
        assert MemoryExtraction.objects.get().cost_microusd is None
        assert viewer_client.get(reverse("trends", args=[project.slug])).status_code == 200


@pytest.mark.usefixtures("model_on")
class TestFailures:
    def test_an_unavailable_provider_is_retried_later(
        self, api: Api, provider: FakeProvider, push: Push, stored: UUID, work: Any
    ) -> None:
        provider.otherwise = it.overloaded()
        push(user("Mend it"), assistant(LONG))
        work()
        tries = len(provider.requests)
        row = MemoryExtractionState.objects.get()
        assert (row.turn, row.attempts) == (0, 1)
        assert "529" in row.last_error
        assert row.lease_until is not None
        assert row.lease_until > timezone.now() + timedelta(minutes=5)
        push(call("c", "bash", command="pytest"), result("c", FAILS))
        work()
        rest(stored)
        assert extractions_sweep() == 0
        assert len(provider.requests) == tries
        assert len(memory(api)["blockers"]) == 1, "what tools show goes on"
        later(stored)
        provider.otherwise = operations(op("add", "a queue"))
        assert extractions_sweep() == 1
        work()
        content = provider.requests[-1].body["messages"][0]["content"]
        assert "Mend it" in content
        assert "#3 t1" in content
        row.refresh_from_db()
        assert (row.turn, row.attempts, row.lease_until, row.last_error) == (2, 0, None, "")

    def test_the_pause_grows_with_each_attempt(
        self, provider: FakeProvider, push: Push, stored: UUID, work: Any
    ) -> None:
        provider.otherwise = it.error(500)
        push(assistant(LONG))
        pauses = []
        for _ in range(5):
            work()
            row = MemoryExtractionState.objects.get()
            assert row.lease_until is not None
            pauses.append(round((row.lease_until - timezone.now()) / timedelta(minutes=10)))
            later(stored)
        assert pauses == [1, 2, 4, 6, 6]

    def test_refused_turns_are_skipped_immediately(
        self, api: Api, provider: FakeProvider, push: Push, work: Any
    ) -> None:
        provider.script(it.refusal(), operations(op("add", "a queue")))
        push(assistant(LONG))
        work()
        row = MemoryExtractionState.objects.get()
        assert (row.turn, row.lease_until, row.last_error) == (1, None, "the model declined to answer")
        push(assistant(LONG))
        work()
        assert memory(api)["decisions"] == ["a queue"]
        assert list(MemoryExtraction.objects.order_by("at").values_list("state", flat=True)) == [
            "given_up",
            "done",
        ]

    @pytest.mark.parametrize("behaviour", [it.says("no JSON"), it.says("{", stop_reason="max_tokens")])
    def test_unusable_replies_are_retried_twice(
        self, provider: FakeProvider, push: Push, stored: UUID, work: Any, behaviour: it.Behaviour
    ) -> None:
        provider.otherwise = behaviour
        push(assistant(LONG))
        for _ in range(5):
            work()
            later(stored)
        assert len(provider.requests) == 6
        assert states() == ["failed", "failed", "given_up"]

    def test_an_internal_error_is_not_quoted_and_pauses(
        self, provider: FakeProvider, push: Push, stored: UUID, work: Any
    ) -> None:
        def damage() -> None:
            MemoryUpdateState.objects.filter(session_id=stored).update(data=[SECRET])

        provider.script(meanwhile(damage, operations(op("add", "a queue"))))
        push(assistant(LONG))
        work()
        row = MemoryExtractionState.objects.get()
        assert row.last_error == "internal error; see the server log"
        assert row.lease_until is not None

    def test_another_worker_continues_after_the_lease_of_one_that_is_slow_or_dead(
        self, api: Api, provider: FakeProvider, push: Push, stored: UUID, work: Any
    ) -> None:
        """A slow worker stores only its cost."""
        requests = []

        def wait() -> None:
            work()
            requests.append(len(provider.requests))
            later(stored)
            work()
            requests.append(len(provider.requests))

        provider.script(meanwhile(wait, operations(op("add", "a timer"))), operations(op("add", "a queue")))
        push(assistant(LONG))
        work()
        assert requests == [1, 2]
        assert memory(api)["decisions"] == ["a queue"]
        assert MemoryExtractionState.objects.get().turn == 1
        assert states() == ["done", "superseded"]
        assert all(row.cost_microusd for row in MemoryExtraction.objects.all())

    def test_a_session_deleted_during_extraction_is_not_an_error(
        self, provider: FakeProvider, push: Push, stored: UUID, work: Any
    ) -> None:
        provider.script(meanwhile(AgentSession.objects.filter(pk=stored).delete, NOTHING))
        push(assistant(LONG))
        work()
        assert not MemoryExtraction.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("model_on")
def test_concurrent_workers_pay_once(api: Api, provider: FakeProvider, push: Push, stored: UUID) -> None:
    requested = []

    def answer(request: dict[str, Any]) -> it.Answer:
        requested.append(request)
        provider.wait(0.5)
        return operations(op("add", "a queue"))(request)

    provider.otherwise = answer
    push(assistant(LONG))

    def worker(_: int) -> None:
        memory_upkeep(str(stored))
        connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(worker, range(8)))
    eventually(lambda: MemoryExtraction.objects.count() == 1)
    assert len(requested) == 1
    assert memory(api)["decisions"] == ["a queue"]


class TestSettingsAndState:
    def test_the_api_sets_the_model_and_explains_why_it_is_unavailable(
        self, api: Api, project: Project, settings: Any
    ) -> None:
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = ""
        shown = api.get("memory/settings/").json()
        assert (shown["model"], shown["model_missing"]) == ("", None)
        named = api.patch("memory/settings/", {"model": MODEL}).json()
        assert (named["model"], named["model_missing"]) == (MODEL, "automatic updates are off")
        enabled = api.patch("memory/settings/", {"upkeep": True}).json()
        assert enabled["model_missing"] == "the server has no Anthropic API key"
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
        assert api.get("memory/settings/").json()["model_missing"] is None
        for wrong in ("two words", "x" * 201, None, "nul\0"):
            refused = api.patch("memory/settings/", {"model": wrong})
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "model")
        assert api.patch("memory/settings/", {"model": ""}).json()["model"] == ""
        event = AuditEvent.objects.filter(project=project, detail__has_key="memory_model").latest("pk")
        assert event.detail["memory_model"] == {"from": MODEL, "to": ""}

    def test_the_page_sets_the_model_and_explains_why_it_is_unavailable(
        self, owner_client: Client, project: Project, settings: Any
    ) -> None:
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = ""
        page = reverse("settings_memory", args=[project.slug])
        refused = owner_client.post(page, {"upkeep": "on", "model": "two words"})
        assert refused.status_code == 422
        assert "Model names cannot contain spaces." in refused.content.decode()
        shown = owner_client.post(page, {"upkeep": "on", "model": MODEL}, follow=True).content.decode()
        assert f"{MODEL} is unavailable: the server has no Anthropic API key." in shown
        project.refresh_from_db()
        assert project.memory_model == MODEL
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
        assert "is unavailable" not in owner_client.get(page).content.decode()

    def test_the_tab_and_the_api_show_the_progress(
        self,
        api: Api,
        provider: FakeProvider,
        project: Project,
        push: Push,
        stored: UUID,
        work: Any,
        owner_client: Client,
    ) -> None:
        url = reverse("session_memory", args=[project.slug, stored])

        def state_and_page() -> tuple[dict[str, Any], str]:
            state: dict[str, Any] = api.get(f"{MEMORY}upkeep/").json()["reading"]
            return state, " ".join(owner_client.get(url).content.decode().split())

        push(assistant(LONG))
        state, page = state_and_page()
        assert (state["missing"], state["turn"], state["readings"]) == ("no model is set", 0, 0)
        assert MODEL not in page
        Project.objects.filter(pk=project.pk).update(memory_model=MODEL)
        assert f"{MODEL} is unavailable: automatic updates are off." in state_and_page()[1]
        Project.objects.filter(pk=project.pk).update(memory_upkeep=True)
        provider.script(*[it.overloaded()] * 3)
        work()
        state, page = state_and_page()
        assert "529" in state["told"]
        assert state["next_try_at"] is not None
        assert f"{MODEL} failed at turn 0: " in page
        later(stored)
        during: list[str] = []
        provider.script(meanwhile(lambda: during.append(state_and_page()[1]), NOTHING))
        work()
        assert f"{MODEL} is extracting from turn 0 onward." in during[0]
        state, page = state_and_page()
        assert (state["turn"], state["told"], state["next_try_at"]) == (1, None, None)
        assert state["readings"] == 2
        assert (
            state["cost_microusd"]
            == sum(row.cost_microusd or 0 for row in MemoryExtraction.objects.all())
            > 0
        )
        assert f"{MODEL} extracted from 1 of 1 turns, most recently " in page
        provider.script(it.refusal())
        push(assistant(LONG))
        work()
        assert "The last attempt failed: the model declined to answer." in state_and_page()[1]
