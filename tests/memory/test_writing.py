"""Writing working memory: provenance, custom fields, items of users, the tool, concurrency."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from accounts.models import ApiKey, AuditEvent, Project
from accounts.services.api_keys import api_key_create
from sessions.models import MemoryRevision
from tests.api.client import Api, code
from tests.memory.conftest import MEMORY

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("session")]


def tool(api: Api, *operations: dict[str, str], reason: str = "") -> dict[str, Any]:
    arguments = {"operations": list(operations), "reason": reason}
    answer: dict[str, Any] = api.post(
        "sessions/s1/tool_calls/", {"name": "update_working_memory", "arguments": arguments}
    ).json()
    return answer


def items(api: Api) -> dict[str, dict[str, Any]]:
    return {item["text"]: item for item in api.get(MEMORY).json()["items"]}


class TestProvenance:
    def test_every_item_has_an_author_and_a_source(self, api: Api, push: Any) -> None:
        for text in ("one", "two", "three"):
            push({"role": "user", "content": text})
        api.patch(f"{MEMORY}?author=person", {"decisions": ["a"]}, if_match="*")
        api.patch(f"{MEMORY}?author=model&turn=1&message=1", {"decisions": ["a", "b"]}, if_match="*")
        tool(api, {"op": "add", "field": "tried", "item": "c"})
        data = items(api)
        assert (data["a"]["author"], data["a"]["turn"], data["a"]["message"]) == ("person", 2, None)
        assert (data["b"]["author"], data["b"]["turn"], data["b"]["message"]) == ("model", 1, 1)
        assert (data["c"]["author"], data["c"]["via"]) == ("model", "tool")

    def test_existing_items_keep_their_origin(self, api: Api) -> None:
        api.patch(f"{MEMORY}?author=model", {"decisions": ["a"]}, if_match="*")
        api.patch(f"{MEMORY}?author=harness", {"decisions": ["a", "b"]}, if_match="*")
        assert items(api)["a"]["author"] == "model"

    def test_a_future_turn_becomes_the_last_turn(self, api: Api) -> None:
        api.patch(f"{MEMORY}?turn=99", {"decisions": ["a"]}, if_match="*")
        assert items(api)["a"]["turn"] == 0

    @pytest.mark.parametrize("query", ["turn=x", "turn=-1", "message=1e3"])
    def test_an_invalid_position_is_rejected(self, api: Api, query: str) -> None:
        assert code(api.patch(f"{MEMORY}?{query}", {"task": "a"}, if_match="*")) == "invalid_field"


class TestItemsOfUsers:
    @pytest.fixture(autouse=True)
    def by_a_person(self, api: Api, session: Any) -> None:
        api.patch(f"{MEMORY}?author=person", {"task": "mine", "decisions": ["a", "b"]}, if_match="*")

    @pytest.mark.parametrize("patch", [{"decisions": ["a"]}, {"decisions": None}, {"task": "another"}])
    @pytest.mark.parametrize("author", ["model", "harness"])
    def test_programs_cannot_remove_them(self, api: Api, author: str, patch: Any) -> None:
        response = api.patch(f"{MEMORY}?author={author}", patch, if_match="*")
        assert (response.status_code, code(response)) == (409, "written_by_a_person")
        assert api.get(MEMORY).json()["revision"] == 1

    def test_programs_can_add_items(self, api: Api) -> None:
        assert api.patch(MEMORY, {"decisions": ["a", "b", "c"]}, if_match="*").status_code == 200

    def test_the_tool_reports_it(self, api: Api) -> None:
        answer = tool(api, {"op": "remove", "field": "decisions", "item": "a"})
        assert answer["is_error"]
        assert "'a' in decisions" in answer["content"]

    def test_users_can_change_everything(self, api: Api) -> None:
        assert api.patch(f"{MEMORY}?author=person", {"decisions": None}, if_match="*").status_code == 200


class TestCustomFields:
    def test_a_custom_field_is_written_shown_and_compared(self, api: Api) -> None:
        fields = [{"name": "risks", "max_items": 2}, {"name": "owner", "single": True}]
        assert api.patch("memory/settings/", {"fields": fields}).status_code == 200
        shown = api.patch(MEMORY, {"risks": ["data loss"], "owner": "Olga"}, if_match='"0"').json()
        assert shown["memory"]["risks"] == ["data loss"]
        assert shown["memory"]["owner"] == "Olga"
        assert [change["field"] for change in api.get(f"{MEMORY}diff/").json()["changes"]] == [
            "owner",
            "risks",
        ]
        assert not tool(api, {"op": "add", "field": "risks", "item": "cost"})["is_error"]
        refused = api.patch(MEMORY, {"risks": ["1", "2", "3"]}, if_match="*")
        assert (code(refused), refused.json()["error"]["param"]) == ("invalid_field", "risks")

    def test_an_api_key_as_model_name_is_rejected(self, api: Api) -> None:
        refused = api.patch("memory/settings/", {"model": "sk-ant-api03-" + "a1B2" * 23})
        assert (code(refused), refused.json()["error"]["param"]) == ("secret_in_field", "model")

    def test_the_audit_trail_names_the_key(self, api: Api) -> None:
        api.patch("memory/settings/", {"upkeep": True})
        assert AuditEvent.objects.get(action="project.changed").api_key == ApiKey.objects.get()

    def test_a_deleted_field_is_kept_but_read_only(self, api: Api) -> None:
        api.patch("memory/settings/", {"fields": [{"name": "risks"}]})
        api.patch(MEMORY, {"risks": ["data loss"]}, if_match="*")
        api.patch("memory/settings/", {"fields": []})
        assert api.get(MEMORY).json()["memory"]["risks"] == ["data loss"]
        assert code(api.patch(MEMORY, {"risks": []}, if_match="*")) == "unknown_field"

    @pytest.mark.parametrize(
        "fields",
        [
            [{"name": "task"}],
            [{"name": "Bad Name"}],
            [{"name": "a"}, {"name": "a"}],
            [{"name": f"f{n}"} for n in range(13)],
        ],
    )
    def test_invalid_fields_are_rejected(self, api: Api, fields: Any) -> None:
        assert code(api.patch("memory/settings/", {"fields": fields})) == "invalid_field"
        assert api.get("memory/settings/").json()["fields"] == []


class TestTool:
    def test_add_replace_resolve_and_remove(self, api: Api) -> None:
        tool(api, *({"op": "add", "field": "open_questions", "item": item} for item in "abc"))
        tool(
            api,
            {"op": "replace", "field": "open_questions", "item": "a", "with": "A?"},
            {"op": "resolve", "field": "open_questions", "item": "b"},
            {"op": "remove", "field": "open_questions", "item": "c"},
            reason="read the code",
        )
        assert api.get(MEMORY).json()["memory"]["open_questions"] == ["A?"]
        [step, _] = api.get(f"{MEMORY}timeline/").json()["data"]
        assert step["reason"] == "read the code"
        assert step["changes"][0]["resolved"] == ["b"]
        assert set(step["changes"][0]["removed"]) == {"a", "b", "c"}

    def test_an_invalid_operation_cancels_the_others(self, api: Api) -> None:
        answer = tool(
            api, {"op": "add", "field": "tried", "item": "a"}, {"op": "remove", "field": "tried", "item": "b"}
        )
        assert answer["is_error"]
        assert api.get(MEMORY).json()["revision"] == 0

    @pytest.mark.parametrize("format", ["anthropic", "openai"])
    def test_it_exists_in_both_formats(self, api: Api, format: str) -> None:
        names = [
            tool.get("name") or tool["function"]["name"]
            for tool in api.get(f"tools/?format={format}").json()["tools"]
        ]
        assert "update_working_memory" in names

    def test_a_large_memory_warns_the_model_too(self, api: Api) -> None:
        assert "800" in tool(api, {"op": "add", "field": "decisions", "item": "word " * 900})["content"]


class TestTimeline:
    def test_a_reworded_item_is_reported_as_a_pair(self, api: Api) -> None:
        api.patch(MEMORY, {"decisions": ["use a monotonic clock"]}, if_match="*")
        api.patch(MEMORY, {"decisions": ["use the monotonic clock", "and tests"]}, if_match="*")
        [change] = api.get(f"{MEMORY}timeline/?limit=1").json()["data"][0]["changes"]
        assert change["reworded"] == [["use a monotonic clock", "use the monotonic clock"]]

    def test_it_is_paginated(self, api: Api) -> None:
        for number in range(5):
            api.patch(MEMORY, {"next": f"step {number}"}, if_match="*")
        first = api.get(f"{MEMORY}timeline/?limit=3").json()
        rest = api.get(f"{MEMORY}timeline/?limit=3&cursor={first['next_cursor']}").json()
        assert [step["revision"] for step in (*first["data"], *rest["data"])] == [5, 4, 3, 2, 1]
        assert rest["next_cursor"] is None

    @pytest.mark.slow
    def test_the_churn_verdict_describes_each_field(self, api: Api) -> None:
        for number in range(13):
            patch = {"task": f"goal number {number}", "decisions": [f"d{n}" for n in range(number)]}
            api.patch(MEMORY, patch | ({"tried": ["x"]} if number == 0 else {}), if_match="*")
        churn = api.get(f"{MEMORY}diff/?from=0").json()["churn"]
        motions = {field["field"]: field["motion"] for field in churn["fields"]}
        assert (motions["task"], motions["decisions"]) == ("rewritten", "growing")
        assert (motions["tried"], motions["blockers"]) == ("still", "empty")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_patches_lose_nothing(project: Project) -> None:
    key = api_key_create(project=project, name="writers")[1]
    Api(key).post("sessions/", {"id": "s2"})

    def write(writer: int) -> list[int]:
        statuses, mine = [], f"of {writer}"
        try:
            while 200 not in statuses:
                shown = Api(key).get("sessions/s2/memory/")
                items = [*shown.json()["memory"]["decisions"], mine]
                response = Api(key).patch(
                    "sessions/s2/memory/", {"decisions": items}, if_match=shown.headers["ETag"]
                )
                statuses.append(response.status_code)
            return statuses
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = [status for written in pool.map(write, range(8)) for status in written]
    assert set(statuses) <= {200, 412}
    assert statuses.count(200) == MemoryRevision.objects.count() == 8
    decisions = Api(key).get("sessions/s2/memory/").json()["memory"]["decisions"]
    assert sorted(decisions) == [f"of {writer}" for writer in range(8)]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_concurrent_tool_calls_lose_nothing(project: Project) -> None:
    key = api_key_create(project=project, name="writers")[1]
    Api(key).post("sessions/", {"id": "s1"})

    def write(writer: int) -> bool:
        try:
            return bool(tool(Api(key), {"op": "add", "field": "tried", "item": f"of {writer}"})["is_error"])
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(write, range(8)))
    assert len(Api(key).get(MEMORY).json()["memory"]["tried"]) == 8
