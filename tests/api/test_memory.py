"""Working memory over the API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from sessions.models import MemoryRevision
from tests.api.client import Api, code

MEMORY = "sessions/s1/memory/"


@pytest.mark.usefixtures("session")
class TestReading:
    def test_an_unwritten_memory_is_empty_revision_0(self, api: Api) -> None:
        response = api.get(MEMORY)
        shown = response.json()
        assert response.headers["ETag"] == '"0"'
        assert (shown["revision"], shown["tokens"], shown["author"], shown["warning"]) == (0, 0, None, None)
        assert shown["memory"]["task"] == ""
        assert shown["memory"]["decisions"] == []

    def test_an_unchanged_memory_returns_304(self, api: Api) -> None:
        assert api.get(MEMORY, if_none_match='"0"').status_code == 304
        assert api.get(MEMORY, if_none_match='W/"0"').status_code == 304

    def test_it_belongs_to_its_project(self, stranger_api: Api) -> None:
        for address in (MEMORY, f"{MEMORY}revisions/", f"{MEMORY}revisions/1/", f"{MEMORY}diff/"):
            assert stranger_api.get(address).status_code == 404
        assert stranger_api.patch(MEMORY, {"task": "x"}, if_match="*").status_code == 404


@pytest.mark.usefixtures("session")
class TestPatching:
    def test_a_patch_replaces_and_clears_only_given_fields(self, api: Api) -> None:
        first = api.patch(MEMORY, {"task": "Fix the build", "tried": ["clean: same error"]}, if_match='"0"')
        second = api.patch(MEMORY, {"tried": None, "next": "read the log"}, if_match=first.headers["ETag"])
        assert second.status_code == 200
        memory = second.json()["memory"]
        assert (memory["task"], memory["tried"], memory["next"]) == ("Fix the build", [], "read the log")
        assert second.headers["ETag"] == '"2"'
        assert api.get(MEMORY).json() == second.json()

    def test_author_turn_and_reason_are_recorded(self, api: Api) -> None:
        for text in ("one", "two"):
            api.post("sessions/s1/turns/", {"messages": [{"role": "user", "content": text}]})
        shown = api.patch(f"{MEMORY}?author=model&reason=I+learnt", {"task": "t"}, if_match='"0"').json()
        assert (shown["turn"], shown["author"], shown["reason"]) == (1, "model", "I learnt")

    def test_if_match_is_required(self, api: Api) -> None:
        response = api.patch(MEMORY, {"task": "t"})
        assert (response.status_code, code(response)) == (428, "precondition_required")

    @pytest.mark.parametrize("etag", ['"1"', '"99999999999999"', '"abc"', "nonsense", '"0", "1"'])
    def test_an_outdated_revision_is_rejected(self, api: Api, etag: str) -> None:
        response = api.patch(MEMORY, {"task": "t"}, if_match=etag)
        assert (response.status_code, code(response)) == (412, "precondition_failed")
        assert api.get(MEMORY).json()["revision"] == 0

    @pytest.mark.parametrize("etag", ['W/"0"', '"0-gzip"', '"0-zstd"'])
    def test_a_proxy_may_compress_what_was_read(self, api: Api, etag: str) -> None:
        """nginx and Caddy then change the `ETag`."""
        assert api.patch(MEMORY, {"task": "t"}, if_match=etag).status_code == 200
        assert api.patch(MEMORY, {"task": "u"}, if_match=etag).status_code == 412

    def test_a_star_matches_any_revision(self, api: Api) -> None:
        assert api.patch(MEMORY, {"task": "t"}, if_match="*").status_code == 200

    def test_a_patch_without_effect_creates_no_revision(self, api: Api) -> None:
        api.patch(MEMORY, {"task": "t"}, if_match='"0"')
        assert api.patch(MEMORY, {"task": "t"}, if_match='"1"').json()["revision"] == 1
        assert api.patch(MEMORY, {}, if_match='"1"').json()["revision"] == 1

    @pytest.mark.parametrize(
        ("patch", "expected", "param"),
        [
            ({"goal": "x"}, "unknown_field", "goal"),
            ({"task": 1}, "invalid_field", "task"),
            ({"decisions": "one"}, "invalid_field", "decisions"),
            ({"decisions": [1]}, "invalid_field", "decisions"),
            ({"important_files": [f"f{i}" for i in range(8)]}, "invalid_field", "important_files"),
        ],
    )
    def test_an_invalid_field_is_named(self, api: Api, patch: Any, expected: str, param: str) -> None:
        response = api.patch(MEMORY, patch, if_match='"0"')
        assert response.status_code == 400
        assert (code(response), response.json()["error"]["param"]) == (expected, param)

    def test_a_large_memory_is_stored_with_a_warning(self, api: Api) -> None:
        shown = api.patch(MEMORY, {"decisions": ["word " * 1_000]}, if_match='"0"').json()
        assert 800 < shown["tokens"] < 1_500
        assert "800" in shown["warning"]
        assert "decisions (" in shown["warning"]

    def test_a_memory_over_the_limit_is_rejected_with_its_largest_fields(self, api: Api) -> None:
        patch = {"task": "word " * 300, "tried": ["word " * 2_000]}
        response = api.patch(MEMORY, patch, if_match='"0"')
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (422, "memory_too_large", "tried")
        assert "tried (" in error["message"]
        assert "task (" in error["message"]
        assert api.get(MEMORY).json()["revision"] == 0

    def test_secrets_are_never_stored(self, api: Api) -> None:
        secret = "ghp_" + "a1B2" * 9
        address = f"{MEMORY}?reason=found+{secret}"
        shown = api.patch(address, {"decisions": [f"use {secret}"]}, if_match='"0"').json()
        assert secret not in str(shown)
        assert "[redacted:" in shown["memory"]["decisions"][0]
        assert "[redacted:" in shown["reason"]

    def test_nul_is_stored_in_fields_but_rejected_in_the_reason(self, api: Api) -> None:
        assert api.patch(MEMORY, {"task": "a\0b"}, if_match='"0"').json()["memory"]["task"] == "a\0b"
        assert code(api.patch(f"{MEMORY}?reason=a%00b", {"task": "c"}, if_match='"1"')) == "invalid_field"

    def test_a_read_only_key_cannot_write(self, reader_api: Api) -> None:
        assert code(reader_api.patch(MEMORY, {"task": "t"}, if_match='"0"')) == "missing_scope"


@pytest.mark.usefixtures("session")
class TestHistory:
    @pytest.fixture(autouse=True)
    def three_revisions(self, api: Api, session: Any) -> None:
        for patch in ({"decisions": ["a"]}, {"decisions": ["a", "b"]}, {"decisions": ["b"], "next": "c"}):
            api.patch(MEMORY, patch, if_match="*")

    def test_revisions_are_listed_newest_first_in_pages(self, api: Api) -> None:
        first = api.get(f"{MEMORY}revisions/?limit=2").json()
        assert [row["revision"] for row in first["data"]] == [3, 2]
        rest = api.get(f"{MEMORY}revisions/?limit=2&cursor={first['next_cursor']}").json()
        assert [row["revision"] for row in rest["data"]] == [1]
        assert rest["next_cursor"] is None

    def test_one_revision_is_returned(self, api: Api) -> None:
        assert api.get(f"{MEMORY}revisions/2/").json()["memory"]["decisions"] == ["a", "b"]
        assert api.get(f"{MEMORY}revisions/4/").status_code == 404
        assert api.get(f"{MEMORY}revisions/{10**30}/").status_code == 404

    def test_a_diff_lists_added_and_removed_items(self, api: Api) -> None:
        shown = api.get(f"{MEMORY}diff/?from=1&to=3").json()
        assert (shown["from"], shown["to"]) == (1, 3)
        assert shown["changes"] == [
            {"field": "decisions", "added": ["b"], "removed": ["a"]},
            {"field": "next", "added": ["c"], "removed": []},
        ]
        assert shown["churn"]["verdict"] == "additive"

    def test_a_diff_defaults_to_the_last_change(self, api: Api) -> None:
        shown = api.get(f"{MEMORY}diff/").json()
        assert (shown["from"], shown["to"]) == (2, 3)

    def test_a_diff_from_0_contains_everything(self, api: Api) -> None:
        assert api.get(f"{MEMORY}diff/?from=0&to=1").json()["changes"][0]["added"] == ["a"]

    def test_a_diff_with_an_unknown_revision_is_not_found(self, api: Api) -> None:
        assert api.get(f"{MEMORY}diff/?from=1&to=9").status_code == 404
        assert code(api.get(f"{MEMORY}diff/?from=-1")) == "invalid_field"


@pytest.mark.django_db(transaction=True)
def test_one_of_many_concurrent_writers_wins_each_revision(project: Project) -> None:
    key = api_key_create(project=project, name="writers")[1]
    Api(key).post("sessions/", {"id": "s1"})

    def write(writer: int) -> int:
        try:
            return Api(key).patch(MEMORY, {"task": f"of {writer}"}, if_match='"0"').status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(write, range(8)))
    assert sorted(statuses) == [200] + [412] * 7
    assert MemoryRevision.objects.count() == 1
