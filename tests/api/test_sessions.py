"""Create, list and retrieve sessions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from accounts.models import Project
from sessions.models import AgentSession
from sessions.services.sessions.lifecycle import session_delete
from sessions.services.sessions.profiles import profile_write, profiles_refresh
from tests.api.client import Api, code
from tests.api.talk import answer, push, request, whole_turn
from tests.plugins.reused import reused
from tests.telemetry.events import SESSION, send
from tests.telemetry.events import call as telemetry_call

SESSIONS = "sessions/"

#: Bodies with one invalid field.
INVALID: list[dict[str, Any]] = [
    {"id": ""},
    {"id": "a/b"},
    {"id": "a\0b"},
    {"id": "a\nb"},
    {"id": "x" * 201},
    {"id": 5},
    {"id": None},
    {"id": ".."},
    {"id": "."},
    {"format": "cohere"},
    {"format": None},
    {"model": 5},
    {"model": "a\0b"},
    {"agent": ["x"]},
    {"tags": "x"},
    {"tags": [5]},
    {"tags": ["a\0b"]},
    {"tags": ["x"] * 51},
    {"metadata": []},
    {"metadata": {"a\0": 1}},
    {"metadata": {"a": ["\0"]}},
    {"budget": 5_000},
    {"budget": {}},
    {"budget": {"input_tokens": 0}},
    {"budget": {"input_tokens": 10**30}},
    {"policy": "best"},
    {"parent": ""},
    {"parent": None},
    {"parent": 5},
    {"parent": "x" * 201},
    {"parent": "a\0b"},
    {"system": 5},
    {"system": {"text": "x"}},
    {"tools": [1]},
    {"tools": {}},
    {"if_exists": "maybe"},
    {"colour": "red"},
]

pytestmark = pytest.mark.django_db


class TestMaking:
    @pytest.mark.parametrize("field", ["id", "model"])
    def test_an_identifier_with_a_secret_is_rejected(self, api: Api, field: str) -> None:
        secret = "ghp_" + "a1B2" * 9
        refused = api.post(SESSIONS, {field: f"run {secret}"})
        assert (refused.status_code, code(refused)) == (400, "secret_in_field")
        assert refused.json()["error"]["param"] == field
        assert secret not in refused.content.decode()
        assert not AgentSession.objects.exists()

    def test_no_field_is_required(self, api: Api) -> None:
        response = api.post(SESSIONS, {})
        made = response.json()
        assert response.status_code == 201
        assert (made["external_id"], made["format"], made["turns"]) == (made["id"], None, 0)
        assert made["prompt"]["budget"] == 100_000

    def test_all_fields_are_stored(self, api: Api) -> None:
        said = {
            "id": "run 7: ä/ß".replace("/", "|"),
            "model": "claude-sonnet-4-5",
            "format": "openai",
            "agent": "coder",
            "title": "Fix the build",
            "tags": ["ci", "nightly"],
            "metadata": {"ticket": 7, "deep": {"a": [1, None, "x"]}},
            "budget": {"input_tokens": 5_000},
            "policy": {"preset": "aggressive", "tail_messages": 6},
        }
        api.post(SESSIONS, said)
        result = api.get(f"sessions/{said['id']}/").json()
        kept = {name: result[name] for name in said if name not in {"id", "budget"}}
        assert kept == {name: value for name, value in said.items() if name not in {"id", "budget"}}
        assert (result["external_id"], result["prompt"]["budget"]) == (said["id"], 5_000)

    def test_the_budget_defaults_to_the_context_window(self, api: Api) -> None:
        made = api.post(SESSIONS, {"model": "claude-sonnet-4-5"}).json()
        assert made["prompt"]["budget"] == made["context_window"] - 16_000

    def test_the_budget_follows_the_model(self, api: Api) -> None:
        api.post(SESSIONS, {"id": "a", "model": "claude-sonnet-5-5"})
        windows = []
        for number, model in enumerate(("", "claude-haiku-4-5", "acme-1", "claude-sonnet-5-5")):
            pushed = push(api, whole_turn(number), session="a", model=model)
            windows.append(api.get("sessions/a/").json()["context_window"])
            assert pushed["prompt"]["budget"] == windows[-1] - 16_000
            assert api.get("sessions/a/prompt/").json()["budget"] == windows[-1] - 16_000
        assert windows == [1_000_000, 200_000, 200_000, 1_000_000]

    @pytest.mark.parametrize(("reported", "is_kept"), [(300, True), (190_000, False)])
    def test_a_call_of_a_smaller_model_with_another_prompt_does_not_change_the_budget(
        self, api: Api, reported: int, is_kept: bool
    ) -> None:
        large, small = "claude-sonnet-5-5", "claude-haiku-4-5"
        api.post(SESSIONS, {"id": "a", "model": large})
        for _ in range(2):
            push(api, [request("alpha beta " * 60_000), answer("Done.")], session="a")
        usage = {"input_tokens": reported, "output_tokens": 9}
        pushed = push(api, [request("Name this."), answer("A")], session="a", model=small, usage=usage)
        assert [each["trigger"] for each in pushed["fired"]] == ([] if is_kept else ["hard"])
        session = api.get("sessions/a/").json()
        assert (session["model"], session["context_window"]) == (
            (large, 1_000_000) if is_kept else (small, 200_000)
        )
        assert api.get("sessions/a/turns/").json()["data"][-1]["model"] == small

    def test_a_budget_above_the_context_window_is_accepted_and_shown(
        self, api: Api, project: Project, member_client: Client
    ) -> None:
        body = {"id": "a", "model": "claude-haiku-4-5", "budget": {"input_tokens": 900_000}}
        made = api.post(SESSIONS, body).json()
        assert (made["prompt"]["budget"], made["context_window"]) == (900_000, 200_000)
        push(api, [request()], session="a")
        page = member_client.get(f"/p/{project.slug}/sessions/{made['id']}/").content.decode()
        assert "The budget exceeds the documented context window" in page
        assert api.post(SESSIONS, {"model": "acme-1"}).json()["context_window"] is None

    def test_system_prompt_and_tools_are_counted_from_the_start(self, api: Api) -> None:
        made = api.post(SESSIONS, {"system": "Be brief. " * 50, "tools": [{"name": "x"}]}).json()
        assert made["prompt"]["tokens"] > 100
        served = api.get(f"sessions/{made['id']}/prompt/").json()
        assert served["system"] == "Be brief. " * 50
        assert served["tokens"] == made["prompt"]["tokens"]

    def test_an_existing_id_is_a_conflict_or_returns_the_session(self, api: Api) -> None:
        first = api.post(SESSIONS, {"id": "a"}).json()
        again = api.post(SESSIONS, {"id": "a", "agent": "other"})
        assert (again.status_code, code(again)) == (409, "session_exists")
        found = api.post(SESSIONS, {"id": "a", "if_exists": "return", "agent": "other"})
        assert (found.status_code, found.json()) == (200, first)
        assert AgentSession.objects.count() == 1

    def test_the_uuid_of_another_session_is_a_conflicting_id(self, api: Api) -> None:
        """Calls accept ids and external ids, so a session with such an external id could not be reached."""
        first = api.post(SESSIONS, {"id": "a"}).json()
        again = api.post(SESSIONS, {"id": first["id"]})
        assert (again.status_code, code(again)) == (409, "session_exists")
        found = api.post(SESSIONS, {"id": first["id"].upper(), "if_exists": "return"})
        assert (found.status_code, found.json()["id"]) == (200, first["id"])
        assert AgentSession.objects.count() == 1

    def test_the_same_id_may_be_used_in_another_project(self, api: Api, stranger_api: Api) -> None:
        for caller in (api, stranger_api):
            assert caller.post(SESSIONS, {"id": "a"}).status_code == 201
        call = {"usage": {"input_tokens": 9}, "request_id": "req_1", "response_id": "msg_1"}
        push(api, [request()], session="a", **call)
        assert stranger_api.get("sessions/a/").json()["turns"] == 0
        push(stranger_api, [request()], session="a", **call)
        assert stranger_api.get("sessions/a/").json()["billed_tokens"]["uncached"] == 9
        assigned = api.get("sessions/a/").json()["id"]
        made = stranger_api.post(SESSIONS, {"id": assigned, "if_exists": "return"})
        assert (made.status_code, made.json()["turns"]) == (201, 0)
        assert made.json()["id"] != assigned

    def test_an_external_id_may_be_a_uuid(self, api: Api) -> None:
        for name in (str(uuid4()), uuid4().hex, str(uuid4()).upper()):
            made = api.post(SESSIONS, {"id": name}).json()
            assert api.get(f"sessions/{name}/").json()["id"] == made["id"]
            push(api, [request()], session=name)
            assert api.get(f"sessions/{name}/prompt/").status_code == 200

    @pytest.mark.slow
    def test_a_sub_agent_names_its_parent_by_either_id(self, api: Api) -> None:
        parent = api.post(SESSIONS, {"id": "main"}).json()
        for name in ("main", parent["id"]):
            child = api.post(SESSIONS, {"parent": name}).json()
            assert child["parent"] == parent["id"]
            assert api.get(f"sessions/{child['id']}/").json()["parent"] == parent["id"]
            api.post(f"sessions/{child['id']}/turns/", {"messages": [request()]})
        below = api.post(SESSIONS, {"parent": child["id"]}).json()
        assert below["parent"] == child["id"]
        session_delete(session=AgentSession.objects.get(pk=child["id"]))
        assert api.get(f"sessions/{below['id']}/").json()["parent"] is None

    @pytest.mark.slow
    def test_a_parent_must_be_another_session_of_the_project(
        self, api: Api, stranger_api: Api, api_key: str, subtests: pytest.Subtests
    ) -> None:
        foreign = stranger_api.post(SESSIONS, {"id": "foreign"}).json()
        send(api_key, telemetry_call("req_1"))
        api.post(SESSIONS, {"id": "below", "parent": SESSION})
        for id, parent in (
            ("a", "missing"),
            ("a", "foreign"),
            ("a", foreign["id"]),
            ("a", "a"),
            (SESSION, SESSION),
            (SESSION, "below"),
        ):
            with subtests.test(f"{id} below {parent}"):
                response = api.post(SESSIONS, {"id": id, "parent": parent})
                assert (response.status_code, code(response)) == (400, "invalid_field")
                assert response.json()["error"]["param"] == "parent"
        stored = AgentSession.objects.values_list("external_id", flat=True)
        assert set(stored) == {"foreign", "below", SESSION}

    @pytest.mark.slow
    def test_invalid_fields_are_rejected_by_name(self, api: Api, subtests: pytest.Subtests) -> None:
        for body in INVALID:
            with subtests.test(str(body)):
                response = api.post(SESSIONS, body)
                assert response.status_code == 400, response.content
                assert next(iter(body)) in response.json()["error"]["param"]
                assert not AgentSession.objects.exists()

    def test_it_requires_the_push_scope(self, reader_api: Api) -> None:
        assert reader_api.post(SESSIONS, {}).status_code == 403
        assert reader_api.get(SESSIONS).status_code == 200


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_of_many_concurrent_creations_succeeds(api_key: str) -> None:
    def make(_: int) -> tuple[int, str]:
        try:
            response = Api(api_key).post(SESSIONS, {"id": "a", "if_exists": "return", "system": "Be brief."})
            return response.status_code, response.json()["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, range(16)))
    assert sorted(status for status, _ in made) == [200] * 15 + [201]
    assert len({id for _, id in made}) == 1


@reused
def names(api: Api) -> list[str]:
    """Create five sessions, newest last, and return their names."""
    for number in range(5):
        api.post(
            SESSIONS,
            {
                "id": f"run-{number}",
                "title": f"Task {number}",
                "agent": f"agent-{number % 2}",
                "model": f"model-{number % 2}",
                "tags": [f"tag-{number % 2}"],
                "metadata": {"number": str(number), "team": "a:b"},
            },
        )
    return [f"run-{number}" for number in range(5)]


class TestListing:
    def found(self, api: Api, query: str) -> list[str]:
        response = api.get(f"{SESSIONS}?{query}")
        assert response.status_code == 200, response.content
        return [row["external_id"] for row in response.json()["data"]]

    @pytest.mark.django_db(transaction=True)  # Postgres' clock does not advance within a transaction
    def test_the_most_recently_active_comes_first(self, api: Api, names: list[str]) -> None:
        assert self.found(api, "") == names[::-1]
        # A burst of pushes writes the time once per second.
        AgentSession.objects.update(last_active_at=F("last_active_at") - timedelta(seconds=2))
        push(api, [request(), answer()], session="run-1")
        assert self.found(api, "")[0] == "run-1"

    def test_pages_have_no_gaps_or_duplicates(self, api: Api, names: list[str]) -> None:
        seen, cursor = [], ""
        for _ in range(3):
            page = api.get(f"{SESSIONS}?limit=2&cursor={cursor}").json()
            seen += [row["external_id"] for row in page["data"]]
            cursor = page["next_cursor"]
        assert (seen, cursor) == (names[::-1], None)

    @pytest.mark.parametrize(
        ("query", "numbers"),
        [
            ("q=task%203", [3]),
            ("q=RUN-4", [4]),
            ("q=tag-1%20agent", [3, 1]),
            ("q=%25", []),
            ("q=_", []),
            ("agent=agent-1", [3, 1]),
            ("model=model-0", [4, 2, 0]),
            ("tag=tag-1", [3, 1]),
            ("metadata=number:2", [2]),
            ("metadata=team:a:b", [4, 3, 2, 1, 0]),
            ("metadata=number:9", []),
            ("active_to=2020-01-01T00:00:00Z", []),
            ("active_from=2020-01-01T00:00:00Z", [4, 3, 2, 1, 0]),
            ("active_from=9999-12-31T23:59:59Z", []),
            ("active_to=2026-01-01T00:00:00%2B23:59", []),
            ("min_peak_tokens=1", []),
            ("health=F", []),
            ("agent=agent-1&tag=tag-0", []),
        ],
    )
    def test_filters(self, api: Api, names: list[str], query: str, numbers: list[int]) -> None:
        assert self.found(api, query) == [names[number] for number in numbers]

    def test_health_is_a_filter(self, api: Api, names: list[str]) -> None:
        for name in ("run-1", "run-3"):
            for number in range(3):
                push(
                    api,
                    [request()],
                    name,
                    usage={"input_tokens": 100, "cache_read_input_tokens": 900 * number},
                )
        for session in AgentSession.objects.all():
            profile_write(session=session)
        assert self.found(api, "health=a,B") == ["run-3", "run-1"]  # the others reported no usage
        assert self.found(api, "health=D,F") == []

    @pytest.mark.parametrize(
        "query",
        [
            "limit=0",
            "limit=201",
            "limit=x",
            "limit=%D9%A3",
            "cursor=x",
            "cursor=W10",
            "cursor=WyJ4IiwieCJd",
            "active_from=yesterday",
            "active_from=2026-01-01",
            "active_from=2026-01-01T00:00:00",
            "active_from=2026-13-01T00:00:00Z",
            "active_from=0001-01-01T00:00:00%2B12:00",
            "metadata=x",
            "q=a%00b",
            "agent=%00",
            "metadata=a:%00",
            "min_peak_tokens=-1",
            "health=good",
        ],
    )
    def test_an_invalid_query_is_rejected(self, api: Api, query: str) -> None:
        response = api.get(f"{SESSIONS}?{query}")
        assert response.status_code == 400
        assert response.json()["error"]["param"] == query.partition("=")[0]

    def test_other_projects_are_not_listed(self, api: Api, stranger_api: Api, names: list[str]) -> None:
        assert self.found(stranger_api, "") == self.found(stranger_api, "q=run") == []


@pytest.mark.parametrize("name", ["nobody", "%00", "a%00b", "%ED%A0%80", "%FF", "..%2f..", "x" * 3_000])
def test_an_unknown_session_is_not_found(api: Api, name: str) -> None:
    for address in ("", "turns/", "prompt/", "memory/", "compactions/", "blobs/h_x/", "search/?q=x"):
        response = api.get(f"sessions/{name}/{address}")
        assert response.status_code == 404, (address, response.content)
    for address in ("turns/", "compact/", "tool_calls/", "compactions/1/revert/"):
        body = (
            {"messages": [request()]} if address == "turns/" else {"name": "x"} if "tool" in address else {}
        )
        assert api.post(f"sessions/{name}/{address}", body).status_code == 404


class TestTitle:
    @pytest.fixture
    def title_of(self, api: Api) -> Callable[..., str]:
        """Push messages to a new session, and return its title after the next refresh."""

        def title(*messages: Any, **fields: Any) -> str:
            session = api.post(SESSIONS, fields).json()["id"]
            push(api, list(messages), session)
            profiles_refresh()
            return str(api.get(f"{SESSIONS}{session}/").json()["title"])

        return title

    def test_it_is_the_first_request(self, title_of: Callable[..., str]) -> None:
        wanted = request(f"<reminder>{'Be brief. ' * 900}</reminder>\n# Fix the login of the shop\nIt fails.")
        later = request("Now do the same for the other site.")
        assert title_of(request("Hi"), answer("How can I help you?"), wanted, later) == (
            "Fix the login of the shop"
        )

    def test_a_request_without_spaces(self, title_of: Callable[..., str]) -> None:
        assert title_of(request("修复登录页面"), request("Now do the same again.")) == "修复登录页面"

    def test_it_is_the_first_message_if_the_opening_has_no_request(
        self, title_of: Callable[..., str]
    ) -> None:
        assert title_of(request("Hi"), answer("Hello.")) == ""
        assert title_of(request("Hi"), *[answer("Hello."), request("Go on")] * 10) == "Hi"

    def test_contents_of_gemini(self, title_of: Callable[..., str]) -> None:
        words = {"role": "user", "parts": [{"text": "Fix the login of the shop"}]}
        assert title_of(words, format="gemini") == "Fix the login of the shop"

    def test_a_title_that_was_set_stays(self, title_of: Callable[..., str]) -> None:
        assert title_of(request("Fix the login of the shop"), title="Nightly run") == "Nightly run"

    def test_a_removed_title_does_not_return(self, api: Api, session: dict[str, Any]) -> None:
        push(api, [request("Fix the login of the shop")])
        api.patch(f"{SESSIONS}s1/", {"title": ""})
        profiles_refresh()
        assert api.get(f"{SESSIONS}s1/").json()["title"] == ""
