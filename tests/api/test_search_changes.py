"""Search results name the compactions that shortened or removed a message, as the past prompts show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEvent, Project
from importers.base import ClientCompaction
from sessions.models import AgentSession
from sessions.services.compactions.revert import compaction_reapply, compaction_revert
from sessions.services.search.indexing import search_index_run
from tests.api.client import Api
from tests.api.statements import statements
from tests.api.talk import answer, call, output, push, request, result, whole_turn
from tests.markup import one_line
from tests.pages.transcripts import make_session, message, reading_turn, turn

pytestmark = pytest.mark.django_db

JSON = dict[str, Any]


def hits(api: Api, query: str, path: str = "sessions/s1/search/", limit: int = 100) -> dict[int, JSON]:
    """Return the results by position."""
    response = api.get(f"{path}?{urlencode({'q': query, 'limit': limit})}")
    assert response.status_code == 200, response.content
    return {hit["position"]: hit for hit in response.json()["data"]}


def effects(hit: JSON) -> list[tuple[str, int | None, int]]:
    return [(change["effect"], change["compaction"], change["turn"]) for change in hit["changes"]]


def rules(api: Api, turn: int) -> dict[int, str]:
    """Return the rule of each message that the prompt after a turn shows."""
    found = api.get(f"sessions/s1/prompt/?manifest=1&at_turn={turn}").json()["manifest"]
    pushed = [entry for entry in found if entry["rule"] not in {"recap", "drop_oldest", "memory"}]
    return {entry["positions"]["first"]: entry["rule"] for entry in pushed}


@pytest.fixture
def worked(api: Api) -> AgentSession:
    """Thirty file reads with several compactions: they collapse outputs and later evict them into a recap."""
    api.post("sessions/", {"id": "s1", "format": "anthropic", "budget": {"input_tokens": 6_000}})
    for number in range(30):
        push(api, whole_turn(number))
    search_index_run()
    session = AgentSession.objects.get(external_id="s1")
    assert session.compaction_count > 3
    return session


@pytest.mark.slow
def test_the_changes_are_those_of_the_prompts_at_each_turn(api: Api, worked: AgentSession) -> None:
    shown = [rules(api, turn) for turn in range(worked.turn_count)]
    found = hits(api, "def handler request")
    assert {hit["in_prompt"] for hit in found.values()} >= {"shown", "evicted"}
    histories = set()
    for position, hit in found.items():
        expected: list[tuple[str, int]] = []
        for number in range(hit["turn"], worked.turn_count):
            rule = shown[number].get(position, "evicted")
            effect = {"verbatim": None, "evicted": "evicted"}.get(rule, "shortened")
            if effect and (not expected or expected[-1][0] != effect):
                expected.append((effect, number))
        assert [(effect, number) for effect, _, number in effects(hit)] == expected, position
        histories.add(tuple(effect for effect, _ in expected))
        for change in hit["changes"]:
            row = worked.compactions.get(number=change["compaction"])
            assert row.first_turn == change["turn"]
            assert row.edits.filter(strategy=change["strategy"], reason=change["reason"]).exists()
    assert {(), ("evicted",)} <= histories
    assert len({hit["changes"][-1]["compaction"] for hit in found.values() if hit["changes"]}) > 2


@pytest.mark.slow
def test_an_output_that_was_shortened_and_then_removed_has_both_changes(api: Api) -> None:
    policy = {"preset": "masking", "soft": 0, "hard": 0, "tail_share": 0.05}
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 100_000}, "policy": policy})
    push(api, [request("Read a.py."), call("t0", path="src/a.py"), result("t0", output(0, 300)), answer()])
    for number in range(1, 14):
        push(api, whole_turn(number, lines=10))
    compact(api)
    first = hits(api, "handler_0_7")[2]
    assert (first["in_prompt"], effects(first)) == ("shortened", [("shortened", 1, 13)])
    for _ in range(3):
        push(api, [request("word " * 5_000), answer()])
    api.patch("sessions/s1/", {"budget": {"input_tokens": 8_000}})
    compact(api)
    both = hits(api, "handler_0_7")[2]
    assert (both["in_prompt"], effects(both)) == ("evicted", [("shortened", 1, 13), ("evicted", 2, 16)])
    assert all(change["reason"] for change in both["changes"])
    # A message that contextapp has never changed.
    assert hits(api, "word")[max(hits(api, "word"))]["changes"] == []


@pytest.mark.slow
def test_a_reverted_compaction_changed_nothing_and_counts_again_if_it_is_reapplied(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 3_000}, "policy": {"soft": 0, "hard": 0}})
    for number in range(12):
        push(api, whole_turn(number))
    compact(api)
    session = AgentSession.objects.get()
    assert hits(api, "handler_0_7")[2]["changes"]
    compaction_revert(session=session, number=1)
    assert (hits(api, "handler_0_7")[2]["in_prompt"], hits(api, "handler_0_7")[2]["changes"]) == ("shown", [])
    compaction_reapply(session=session, number=1)
    assert AuditEvent.objects.filter(action="compaction.reapplied", detail={"compaction": 1}).exists()
    assert {number for _, number, _ in effects(hits(api, "handler_0_7")[2])} == {2}


def compact(api: Api) -> None:
    response = api.post("sessions/s1/compact/")
    assert (response.status_code, response.json()["state"]) == (200, "done"), response.content


def test_messages_that_the_client_drops_name_the_client(api: Api, session: JSON) -> None:
    history = [each for number in range(4) for each in whole_turn(number, lines=3)]
    api.post("sessions/s1/reconcile/", {"messages": history})
    api.post("sessions/s1/reconcile/", {"messages": [*history[8:], request("And now?")]})
    found = hits(api, "handler_0_1")[2]
    assert found["in_prompt"] == "evicted"
    assert found["changes"] == [
        {
            "effect": "evicted",
            "compaction": 1,
            "turn": 1,
            "strategy": "client",
            "reason": "removed by the client from its context",
        }
    ]


def test_messages_before_a_compaction_in_an_imported_log_name_its_turn(api: Api, project: Project) -> None:
    """The log of a client that compacts its own context has no compaction numbers."""
    make_session(project, [*(reading_turn(n, f"file {n}") for n in range(3)), *restarted(3), *restarted(5)])
    search_index_run(everywhere=True)
    found = hits(api, "file", "sessions/s-1/search/")
    assert [effects(found[position]) for position in (2, 4)] == [[("evicted", None, 2)]] * 2
    assert effects(found[7]) == [("evicted", None, 4)]
    assert {change["strategy"] for hit in found.values() for change in hit["changes"]} == {"client"}
    newest = found[max(found)]
    assert (newest["in_prompt"], newest["changes"]) == ("shown", [])


def restarted(number: int) -> list[Any]:
    """A turn that begins with a summary by the client, and another turn."""
    summary = message("user", f"Summary {number}.", f"s{number}", is_summary=True)
    mark = ClientCompaction(trigger="auto", tokens_before=9_000)
    return [
        turn(number, [summary, message("assistant", f"file {number}", f"a{number}")], compaction=mark),
        turn(number + 1, [message("user", f"file {number + 1}", f"u{number + 1}")]),
    ]


@pytest.mark.slow
def test_a_fork_names_the_compactions_that_it_inherited(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}})
    history: list[JSON] = []
    compactions = [0]
    while not compactions[-1] or compactions[-1] != compactions[-2]:  # the last turn compacted nothing
        history += whole_turn(len(compactions))
        answered = api.post("sessions/s1/reconcile/", {"messages": history}).json()
        compactions.append(answered["compactions"])
    forked = api.post(
        "sessions/s1/reconcile/", {"messages": [*history[:-1], request("Something else")]}
    ).json()
    search_index_run(everywhere=True)
    of_parent = hits(api, "handler_1_7")[2]
    of_fork = hits(api, "handler_1_7", f"sessions/{forked['reconciled']['session']}/search/")[2]
    assert of_fork["changes"] == of_parent["changes"] != []


def test_a_summary_by_the_provider_names_its_compaction(api: Api) -> None:
    policy = {"preset": "balanced", "engine": "provider"}
    api.post("sessions/", {"id": "s1", "model": "claude-opus-4-6", "format": "anthropic", "policy": policy})
    push(api, [request("Where is the xylophone?"), answer("In the attic.")])
    summary = {"type": "compaction", "content": "The user asks about instruments."}
    push(api, [request("And now?"), {"role": "assistant", "content": [summary, *answer()["content"]]}])
    [change] = hits(api, "xylophone")[0]["changes"]
    assert change["reason"] == "replaced by the provider's summary"
    assert (change["effect"], change["compaction"], change["strategy"]) == ("evicted", 1, "provider")


@pytest.mark.slow
def test_the_changes_take_one_statement(api: Api, worked: AgentSession) -> None:
    """Also for many hits in many sessions. Without hidden messages, there is none."""

    def counted(find: Callable[[], Any]) -> int:
        return len(statements(find))

    one = counted(lambda: hits(api, "handler_0_7", limit=1))
    assert counted(lambda: hits(api, "def handler request", limit=30)) == one
    unchanged = counted(lambda: hits(api, '"file 29 defines handlers"'))
    assert one == unchanged + 1
    few = counted(lambda: hits(api, "def handler request", "search/", 30))
    api.post("sessions/", {"id": "s2", "budget": {"input_tokens": 4_000}})
    for number in range(12):
        push(api, whole_turn(number), session="s2")
    search_index_run()
    assert counted(lambda: hits(api, "def handler request", "search/", 30)) == few


@pytest.mark.slow
def test_the_page_links_to_the_compaction(
    member_client: Client, project: Project, worked: AgentSession
) -> None:
    compaction = worked.edits.filter(op="evict", position__lte=2, end__gte=2).earliest("pk").compaction
    address = reverse("session_compaction", args=[project.slug, worked.pk, compaction.number])
    for query in (f"?q=handler_0_7&session={worked.pk}", "?q=handler_0_7"):
        text = one_line(member_client.get(reverse("search", args=[project.slug]) + query))
        link = f'<a href="{address}">compaction {compaction.number}</a>'
        assert f"Removed after turn {compaction.first_turn} by {link}" in text
