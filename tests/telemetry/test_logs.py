"""Events of Claude Code and Codex become turns with usage and without messages."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from accounts.models import Membership, Project, Role
from accounts.services.api_keys import api_key_create
from accounts.services.projects import project_create
from sessions.models import AgentSession, ToolRun, Turn
from tests.api.client import Api
from tests.telemetry.events import SESSION, at, call, codex_call, event, figures, send

pytestmark = pytest.mark.django_db


def main_session() -> AgentSession:
    return AgentSession.objects.get(external_id=SESSION)


class TestClaudeCode:
    def test_a_call_becomes_a_turn_without_messages(self, api_key: str) -> None:
        send(api_key, call("req_a"))
        session = main_session()
        [turn] = session.turns.all()
        assert figures([turn]) == [(12, 4_000, 300, 57, 5_360)]
        assert (turn.prompt_reported, turn.message_count, turn.duration_ms) == (4_312, 0, 108)
        assert (turn.at, turn.model) == (at(0), "claude-sonnet-4-5")
        assert (session.agent, session.turn_count, session.message_count) == ("claude-code", 1, 0)
        assert (session.cost_microusd, session.cache_read_tokens) == (5_360, 4_000)
        assert (session.last_prompt_tokens, session.last_active_at) == (4_312, at(0))

    def test_repeated_exports_add_nothing(self, api_key: str) -> None:
        send(api_key, call("req_a"), call("req_b", 1))
        send(api_key, call("req_b", 1), call("req_c", 2))
        assert [turn.request_id for turn in main_session().turns.order_by("index")] == [
            "req_a", "req_b", "req_c",
        ]  # fmt: skip
        assert main_session().cost_microusd == 3 * 5_360

    def test_calls_without_request_id_are_identified_by_their_place(self, api_key: str) -> None:
        for _ in range(2):
            send(api_key, call("", 1), call("", 2))
        assert main_session().turn_count == 2

    def test_a_call_that_is_reported_late_is_not_the_last_one(self, api_key: str) -> None:
        send(api_key, call("req_b", 60, input_tokens=9_000, model="claude-opus-4-5"))
        send(api_key, call("req_a", 0, input_tokens=10, model="claude-haiku-4-5"))
        session = main_session()
        assert (session.last_prompt_tokens, session.model) == (9_000 + 4_300, "claude-opus-4-5")

    @pytest.mark.parametrize(
        "stamp", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
    )
    def test_an_absurd_time_is_ignored(self, api_key: str, stamp: str) -> None:
        send(api_key, call("req_a"), call("req_b", **{"event.timestamp": stamp}))
        assert {turn.at.year for turn in main_session().turns.all()} == {at(0).year}

    def test_a_model_without_a_reported_cost_is_priced_by_the_table(self, api_key: str) -> None:
        send(api_key, call("req_a", cost_usd_micros=0))
        assert main_session().cost_microusd == 12 * 3 + 4_000 * 0.3 + 300 * 3.75 + 57 * 15

    def test_sub_agents_and_side_requests_are_separate_sessions(self, api_key: str) -> None:
        send(
            api_key,
            call("req_a"),
            call("req_b", 1, query_source="agent:builtin:Explore", **{"agent.name": "Explore"}),
            call("req_c", 2, query_source="generate_session_title"),
            call("req_d", 3),
        )
        assert main_session().turn_count == 2
        children = AgentSession.objects.filter(parent=main_session()).order_by("started_at")
        assert [(each.title, each.turn_count) for each in children] == [
            ("Explore", 1),
            ("generate_session_title", 1),
        ]

    def test_a_compaction_marks_the_next_call(self, api_key: str) -> None:
        compaction = event("compaction", 5, trigger="auto", success="true", pre_tokens=150_000)
        send(api_key, call("req_a"), compaction)
        send(api_key, compaction, call("req_b", 9, cache_read_tokens=0))
        turns = main_session().turns.order_by("index")
        marker = {"trigger": "auto", "tokens_before": 150_000}
        assert [turn.client_compaction for turn in turns] == [None, marker]
        assert [turn.request_id for turn in turns] == ["req_a", "req_b"]

    @pytest.mark.slow
    def test_compactions_with_the_same_figures_are_counted_separately(self, api_key: str) -> None:
        for seconds in (5, 25):
            compaction = event("compaction", seconds, trigger="manual")
            send(api_key, compaction)
            send(api_key, compaction, call(f"req_{seconds}", seconds + 5))
            send(api_key, compaction)
        marks = [turn.client_compaction is not None for turn in main_session().turns.order_by("index")]
        assert marks == [True, True]

    def test_a_failed_compaction_is_ignored(self, api_key: str) -> None:
        send(api_key, event("compaction", success="false", pre_tokens=9), call("req_a", 1))
        assert main_session().turns.get().client_compaction is None

    def test_durations_of_tools_are_stored(self, api_key: str) -> None:
        tool = {"tool_name": "Bash", "tool_use_id": "toolu_1", "duration_ms": "96", "success": "false"}
        for _ in range(2):
            send(api_key, event("tool_result", **tool))
        [run] = ToolRun.objects.all()
        assert (run.name, run.call_id, run.duration_ms, run.is_error) == ("Bash", "toolu_1", 96, True)

    def test_the_prompt_becomes_the_title_if_the_agent_sends_it(self, api_key: str) -> None:
        send(api_key, event("user_prompt", prompt="<REDACTED>"), event("user_prompt", 1, prompt="Fix login"))
        assert main_session().title == "Fix login"


class TestLabels:
    def test_the_member_is_the_one_with_the_email_address(self, api_key: str, project: Project) -> None:
        user = User.objects.create_user("kim", email="kim@example.com")
        Membership.objects.create(project=project, user=user, role=Role.MEMBER)
        send(api_key, call("req_a", **{"user.email": "Kim@example.com"}))
        assert main_session().created_by == user
        assert main_session().metadata["user.email"] == "Kim@example.com"

    def test_an_unknown_address_is_attributed_to_no_member(self, api_key: str) -> None:
        send(api_key, call("req_a", **{"user.email": "lee@example.com"}))
        assert main_session().created_by is None

    def test_a_member_of_another_project_is_not_used(self, api_key: str) -> None:
        user = User.objects.create_user("sam", email="sam@example.com")
        other = project_create(name="Other", slug="other")
        Membership.objects.create(project=other, user=user, role=Role.MEMBER)
        send(api_key, call("req_a", **{"user.email": "sam@example.com"}))
        assert main_session().created_by is None

    def test_resource_attributes_become_tags_and_metadata(self, api_key: str) -> None:
        send(api_key, call("req_a"), resource={"team.id": "platform", "os.type": "linux"})
        session = main_session()
        assert session.tags == ["team.id:platform"]
        assert session.metadata == {"team.id": "platform", "client_version": "2.1.197"}

    def test_secrets_are_redacted(self, api_key: str) -> None:
        secret = "AKIA" + "IOSFODNN7EXAMPLX"
        send(api_key, event("user_prompt", prompt=f"Use {secret}"), resource={"note": secret})
        session = main_session()
        assert secret not in f"{session.title} {session.tags} {session.metadata}"

    def test_the_name_of_a_label_may_show_that_it_is_a_secret(self, api_key: str) -> None:
        password = "Tr0ub4dor" + "99xKq7"
        send(api_key, call("req_a"), resource={"api_key": password, "db.password": password})
        session = main_session()
        assert set(session.metadata) > {"api_key", "db.password"}
        assert password not in f"{session.tags} {session.metadata}"


class TestCodex:
    def test_the_event_with_token_counts_becomes_a_turn(self, api_key: str) -> None:
        for _ in range(2):
            send(
                api_key,
                codex_call(1, input_token_count="") | {"attributes": codex_call(1)["attributes"][:5]},
                codex_call(1),
                codex_call(2),
                resource={"service.name": "codex_exec"},
            )
        session = main_session()
        assert figures(session.turns.all())[0][:4] == (100, 900, 0, 20)
        assert (session.agent, session.turn_count, session.started_at) == ("codex", 2, at(1))


class TestProjects:
    def test_the_same_session_and_request_ids_in_two_projects_are_separate(self, api_key: str) -> None:
        other = api_key_create(project=project_create(name="Other", slug="other"), name="k")[1]
        for key in (api_key, other):
            send(key, call("req_a"))
        assert AgentSession.objects.filter(external_id=SESSION).count() == 2
        assert Turn.objects.count() == 2


class TestPages:
    @pytest.mark.slow
    def test_the_page_of_a_turn_shows_the_durations_of_tools(
        self, api_key: str, owner_client: Client
    ) -> None:
        tool = {"tool_name": "Bash", "tool_use_id": "toolu_1", "duration_ms": "96", "success": "true"}
        send(api_key, call("req_a"), event("tool_result", 1, **tool), call("req_b", 2))
        pages = [owner_client.get(f"/p/alpha/sessions/{main_session().pk}/turns/{turn}/") for turn in (0, 1)]
        texts = [" ".join(page.content.decode().split()) for page in pages]
        assert ["Bash 96 ms" in text for text in texts] == [True, False]
        assert "Telemetry reported this call without its messages." in texts[0]

    @pytest.mark.parametrize("page", ["", "prompt/", "compactions/", "memory/"])
    def test_pages_of_a_session_without_messages(self, api_key: str, owner_client: Client, page: str) -> None:
        send(api_key, call("req_a"), call("req_b", 2))
        assert owner_client.get(f"/p/alpha/sessions/{main_session().pk}/{page}").status_code == 200

    def test_the_api_returns_a_session_without_messages(self, api_key: str) -> None:
        send(api_key, call("req_a"))
        pk, api = main_session().pk, Api(api_key)
        assert api.get(f"sessions/{pk}/").json()["turns"] == 1
        assert api.get(f"sessions/{pk}/turns/").json()["data"][0]["usage"]["output"] == 57
        assert api.get(f"sessions/{pk}/prompt/").status_code == 200
