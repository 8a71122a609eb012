"""Ranked search over a session and over a project."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
import zstandard
from celery import current_app

from accounts.models import Project
from search.segments import block_find
from sessions.models import AgentSession, SearchBlock, SearchSegment
from sessions.services.search import indexing
from sessions.services.search.indexing import (
    search_index_rebuild,
    search_index_run,
    search_index_truncate,
    session_index,
)
from sessions.tasks import search_index
from tests.api.client import Api, code
from tests.api.talk import answer, call, output, prompt, push, request, result, whole_turn
from tests.locking import waiting_for
from tests.pages.transcripts import make_session, message, turn


def found(api: Api, query: str, path: str = "search/", **more: Any) -> list[dict[str, Any]]:
    response = api.get(f"{path}?{urlencode({'q': query, **more})}")
    assert response.status_code == 200, response.content
    hits: list[dict[str, Any]] = response.json()["data"]
    return hits


def session_with(api: Api, name: str, *texts: str, **fields: Any) -> None:
    assert api.post("sessions/", {"id": name, "format": "anthropic", **fields}).status_code == 201
    for text in texts:
        push(api, [request(text), answer("Noted.")], session=name)


class TestProject:
    def test_a_session_is_found_by_what_was_said_in_it(self, api: Api) -> None:
        session_with(api, "first", "The database pool is exhausted.", title="A title")
        session_with(api, "second", "Paint the fence.")
        search_index_run()
        hit = found(api, "Why was the database pool exhausted?")[0]
        assert hit["session"]["external_id"] == "first"
        assert hit["session"]["title"] == "A title"
        assert (hit["position"], hit["turn"], hit["role"], hit["in_prompt"]) == (0, 0, "user", "shown")
        marked = {hit["snippet"][start:end] for start, end in hit["marks"]}
        assert marked == {"database", "pool", "exhausted"}

    @pytest.mark.slow
    def test_new_messages_are_found_with_the_old_ones(self, api: Api) -> None:
        session_with(api, "s1", "alpha one")
        for number in range(12):
            push(api, [request(f"alpha {number}"), answer(f"beta {number}")])
            search_index_run()
        assert {hit["position"] for hit in found(api, "alpha", limit=50)} == set(range(0, 26, 2))
        assert len(found(api, "beta", limit=50)) == 12
        assert SearchSegment.objects.count() < 6

    @pytest.mark.slow
    @pytest.mark.django_db(transaction=True)
    def test_messages_that_arrive_during_a_pass_wait_for_the_next(self, api: Api) -> None:
        session_with(api, "s1", "alpha")
        with waiting_for(SearchSegment._meta.db_table, search_index_run):
            push(api, [request("alpha")])
        assert len(found(api, "alpha")) == 1
        search_index_run()
        assert len(found(api, "alpha")) == 2

    @pytest.mark.slow
    def test_a_pass_processes_more_sessions_than_it_claims_at_a_time(self, api: Api) -> None:
        for number in range(25):
            session_with(api, f"s{number}", "alpha")
        search_index_run()
        assert len(found(api, "alpha", limit=50)) == 25

    @pytest.mark.slow
    def test_conditions_select_messages_and_sessions(self, api: Api) -> None:
        session_with(api, "s1", "alpha", agent="reader", tags=["nightly"])
        session_with(api, "s2", "alpha", agent="writer")
        failed = {"type": "tool_result", "tool_use_id": "t1", "content": "alpha failed", "is_error": True}
        push(api, [request("go"), call("t1", "run_tests", path="src/db/pool.py")], session="s2")
        push(api, [{"role": "user", "content": [failed]}, answer("I see.")], session="s2")
        search_index_run()
        for query, expected in {
            "alpha agent:reader": {("s1", 0)},
            "alpha tag:nightly": {("s1", 0)},
            "alpha agent:writer role:user": {("s2", 0)},
            "alpha role:tool": {("s2", 4)},
            "alpha tool:run_tests": {("s2", 4)},
            "tool:run_tests": {("s2", 3), ("s2", 4)},
            "error:yes": {("s2", 4)},
            "alpha error:no agent:writer": {("s2", 0)},
            "file:pool.py": {("s2", 3)},
            "file:db/pool.py": {("s2", 3)},
            "file:other.py": set(),
            "alpha -failed agent:writer": {("s2", 0)},
            'alpha -"alpha failed" agent:writer': {("s2", 0)},
            '"alpha failed"': {("s2", 4)},
            "alpha cost:>5": set(),
            "alpha active:2020-01-01..2020-02-01": set(),
        }.items():
            hits = found(api, query)
            assert {(hit["session"]["external_id"], hit["position"]) for hit in hits} == expected, query

    @pytest.mark.slow
    def test_another_project_is_never_found(self, api: Api, stranger_api: Api) -> None:
        session_with(api, "s1", *["xylophone secret"] * 3)
        session_with(stranger_api, "s1", "their own text")
        search_index_run()
        for query in ("xylophone", '"xylophone secret"', "xylo role:user", "secret error:no", "role:user"):
            hits = found(stranger_api, query)
            assert "xylophone" not in str(hits), query
        cursor = api.get("search/?q=xylophone&limit=1").json()["next_cursor"]
        assert stranger_api.get(f"search/?q=xylophone&limit=1&cursor={cursor}").json()["data"] == []
        assert stranger_api.get("sessions/s1/search/?q=xylophone").json()["data"] == []

    def test_secrets_are_not_in_the_index(self, api: Api) -> None:
        secret = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
        session_with(api, "s1", f"export GITHUB_TOKEN={secret}")
        search_index_run()
        blocks = [bytes(block.data) for block in SearchBlock.objects.all()]
        assert any(block_find(block, b"github_token") for block in blocks)
        plain = b"".join(map(zstandard.ZstdDecompressor().decompress, blocks)).lower()
        assert b"github_token" in plain
        assert secret[4:20].lower().encode() not in plain
        assert found(api, secret) == []

    @pytest.mark.slow
    def test_a_deleted_session_is_not_found(self, admin_api: Api) -> None:
        session_with(admin_api, "s1", "alpha")
        session_with(admin_api, "s2", "alpha")
        search_index_run()
        assert admin_api.delete("sessions/s1/").status_code == 204
        assert [hit["session"]["external_id"] for hit in found(admin_api, "alpha")] == ["s2"]
        assert SearchSegment.objects.count() == 1
        blocks = SearchBlock.objects.exclude(segment__in=SearchSegment.objects.all())
        assert not blocks.exists()

    @pytest.mark.slow
    def test_pages_follow_each_other(self, api: Api) -> None:
        session_with(api, "s1", *["alpha " + "other words " * number for number in range(12)])
        search_index_run()
        first = api.get("search/?q=alpha&limit=5").json()
        rest = api.get(f"search/?q=alpha&limit=50&cursor={first['next_cursor']}").json()
        assert [hit["position"] for hit in first["data"] + rest["data"]] == list(range(0, 24, 2))
        assert rest["next_cursor"] is None
        other = api.get(f"search/?q=beta&cursor={first['next_cursor']}")
        assert (other.status_code, code(other)) == (400, "invalid_cursor")

    @pytest.mark.parametrize(
        "query", ["", "?q=", "?q=%20", "?q=%22%22", "?q=role:x", "?q=error:x", "?q=x&limit=0"]
    )
    def test_an_invalid_query_is_rejected(self, api: Api, query: str) -> None:
        assert api.get(f"search/{query}").status_code == 400

    @pytest.mark.parametrize(
        "query", ['"', "'", "\\", "\0", 'a"b"c', "😀", "(", "x" * 3_000, "the", "-x", "key:value"]
    )
    def test_any_text_is_a_valid_query(self, api: Api, query: str) -> None:
        session_with(api, "s1", "alpha")
        search_index_run()
        assert api.get(f"search/?{urlencode({'q': query})}").status_code in {200, 400}


class TestImports:
    def test_a_longer_log_replaces_the_end_in_the_index(self, project: Project, api: Api) -> None:
        turns = [turn(n, [message("user", f"alpha {n}", f"u{n}")]) for n in range(5)]
        make_session(project, turns)
        search_index_run(everywhere=True)
        changed = turn(4, [message("user", "omega", "u4"), message("assistant", "alpha new", "a4")])
        make_session(project, [*turns[:4], changed])
        search_index_run(everywhere=True)
        assert {hit["position"] for hit in found(api, "alpha")} == {0, 1, 2, 3, 5}
        assert [hit["position"] for hit in found(api, "omega")] == [4]

    def test_a_rebuilt_index_finds_the_same(self, project: Project, api: Api) -> None:
        session = make_session(project, [turn(n, [message("user", f"alpha {n}", f"u{n}")]) for n in range(5)])
        search_index_run(everywhere=True)
        before = found(api, "alpha 3")
        assert search_index_rebuild(session_id=session.pk) == 5
        assert found(api, "alpha 3") == before


class TestSession:
    def test_it_finds_what_was_just_pushed(self, api: Api) -> None:
        session_with(api, "s1", "alpha one")
        search_index_run()
        push(api, [request("alpha two"), answer("beta")])
        assert {hit["position"] for hit in found(api, "alpha", "sessions/s1/search/")} == {0, 2}

    @pytest.mark.slow
    def test_a_hit_reports_whether_the_prompt_shows_it(self, api: Api) -> None:
        api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}, "policy": "masking"})
        for number in range(12):
            push(api, whole_turn(number, lines=60))
        served = str(prompt(api)["messages"])
        hits = found(api, "handler_0_41", "sessions/s1/search/") + found(
            api, "file_11.py", "sessions/s1/search/"
        )
        by_position = {hit["position"]: hit for hit in hits}
        assert [by_position[at]["in_prompt"] for at in (2, 14, 45)] == ["evicted", "shortened", "shown"]
        assert "handler_0_41" not in served
        hidden = api.get(f"sessions/s1/blobs/{by_position[14]['handle']}/")
        assert "handler_3_41" in hidden.json()["text"]

    def test_the_handle_of_a_hit_retrieves_the_output_that_matches(self, api: Api) -> None:
        api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 1_500}, "policy": "masking"})
        calls = [call(f"toolu_{number}")["content"][0] for number in range(3)]
        outputs = [result(f"toolu_{number}", output(number, 60))["content"][0] for number in range(3)]
        together = [{"role": "assistant", "content": calls}, {"role": "user", "content": outputs}]
        push(api, [request("Read three files."), *together, answer("All read.")])
        for number in range(3):
            [hit] = found(api, f"handler_{number}_41", "sessions/s1/search/", limit=1)
            assert hit["in_prompt"] != "shown"
            hidden = api.get(f"sessions/s1/blobs/{hit['handle']}/").json()["text"]
            assert f"handler_{number}_41" in hidden

    def test_a_hit_in_an_output_that_is_still_shown_has_no_handle(self, api: Api) -> None:
        api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 1_500}, "policy": "masking"})
        calls = [call(f"toolu_{number}")["content"][0] for number in range(2)]
        short, long = result("toolu_0", "handler_short"), result("toolu_1", output(1, 150))
        outputs = [short["content"][0], long["content"][0]]
        together = [{"role": "assistant", "content": calls}, {"role": "user", "content": outputs}]
        push(api, [request("Read both files."), *together, answer("Both read.")])
        for words, is_shown in (("handler_short", True), ("handler_1_99", False)):
            [hit] = found(api, words, "sessions/s1/search/", limit=1)
            assert hit["in_prompt"] == "shortened"
            assert (hit["handle"] is None) is is_shown

    @pytest.mark.slow
    def test_the_newest_mention_of_an_identifier_is_near_the_top(self, api: Api) -> None:
        session_with(api, "s1", *[f"max_pool_size is {number} now" for number in range(150)])
        search_index_run()
        hits = found(api, "max_pool_size", "sessions/s1/search/", limit=5)
        assert 298 in {hit["position"] for hit in hits}

    def test_a_tool_output_has_the_role_and_the_tool_of_its_call(self, api: Api) -> None:
        session_with(api, "s1")
        push(api, [request("go"), call("t1", "grep", pattern="x"), result("t1", "alpha"), answer()])
        [hit] = found(api, "alpha", "sessions/s1/search/")
        assert (hit["role"], hit["tool"]) == ("tool", "grep")


def test_a_session_that_cannot_be_indexed_does_not_hold_up_others(api: Api) -> None:
    session_with(api, "bad", "alpha")
    session_with(api, "good", "alpha")
    AgentSession.objects.get(external_id="bad").messages.update(body=b"damaged")
    search_index_run()
    assert [hit["session"]["external_id"] for hit in found(api, "alpha")] == ["good"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_messages_that_are_replaced_meanwhile_are_not_indexed(api: Api) -> None:
    session_with(api, "s1", "alpha")
    search_index_run()
    push(api, [request("beta"), answer("Noted.")])
    id = AgentSession.objects.get(external_id="s1").pk
    # The segments are read after the messages.
    with waiting_for(SearchSegment._meta.db_table, lambda: session_index(session_id=id)) as indexed:
        search_index_truncate(session_id=id, position=0)
    assert indexed.result() == 0
    assert not SearchSegment.objects.exists()
    assert session_index(session_id=id) == 4


@pytest.mark.slow
@pytest.mark.parametrize("begins", ["task", "pass"])
def test_a_long_session_is_indexed_by_several_tasks(
    project: Project, api: Api, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    session = make_session(project, [turn(n, [message("user", f"alpha {n}", f"u{n}")]) for n in range(600)])
    assert 0 < session_index(session_id=session.pk, seconds=0) < 300
    monkeypatch.setattr(indexing, "SLICE_SECONDS", 0)
    monkeypatch.setitem(current_app.conf, "task_always_eager", True)
    if begins == "task":
        search_index(str(session.pk))  # runs the tasks that it requests
    else:
        search_index_run(everywhere=True)
    assert [hit["position"] for hit in found(api, "599", limit=1)] == [599]
    assert session_index(session_id=session.pk) == 0


def test_messages_without_words_are_indexed_once(api: Api) -> None:
    session_with(api, "s1")
    for _ in range(2):
        push(api, [request("..."), answer("!")])
        assert search_index_run() == 2
    assert search_index_run() == 0
