"""Push and list turns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from pricing.usage import MAX_TOKENS
from sessions.models import AgentSession, Turn
from tests.api.client import Api, code
from tests.api.talk import TURNS, answer, call, push, request, result, whole_turn


@pytest.mark.usefixtures("session")
class TestPushing:
    def test_the_response_has_turn_positions_and_size(self, api: Api) -> None:
        first, second = push(api, whole_turn(0)), push(api, whole_turn(1))
        assert (first["turn"], first["positions"]) == (0, {"first": 0, "last": 3})
        assert (second["turn"], second["positions"]) == (1, {"first": 4, "last": 7})
        assert second["prompt"]["tokens"] > first["prompt"]["tokens"] > 100
        assert second["prompt"]["raw_tokens"] == second["prompt"]["tokens"]
        assert first["fired"] == first["redacted"] == []

    def test_a_session_is_pushed_to_by_either_id(self, api: Api, session: dict[str, Any]) -> None:
        push(api, [request()], session=session["id"])
        assert push(api, [answer()])["turn"] == 1

    def test_a_stale_writer_is_rejected(self, api: Api) -> None:
        push(api, whole_turn(0), expected_turn=0)
        assert code(api.post(TURNS, {"messages": [request()], "expected_turn": 2})) == "stale_turn"
        response = api.post(TURNS, {"messages": [request()], "expected_turn": 0})
        assert (response.status_code, code(response)) == (409, "stale_turn")
        assert "next turn is 1. Fetch the prompt" in response.json()["error"]["message"]
        assert Turn.objects.count() == 1
        assert push(api, [request()], expected_turn=1)["turn"] == 1

    def test_a_push_after_the_clock_was_set_back_is_the_last_activity(self, api: Api) -> None:
        AgentSession.objects.update(last_active_at=timezone.now() + timedelta(hours=2))
        push(api, [request()])
        assert AgentSession.objects.get().last_active_at < timezone.now() + timedelta(minutes=1)

    def test_it_requires_the_push_scope(self, reader_api: Api) -> None:
        response = reader_api.post(TURNS, {"messages": [request()]})
        assert (response.status_code, code(response)) == (403, "missing_scope")

    def test_system_prompt_and_tools_apply_until_replaced(self, api: Api) -> None:
        tool = {"name": "read_file", "input_schema": {"type": "object"}}
        push(api, [request()], system="Be brief.", tools=[tool])
        push(api, [answer()], system="Be brief.", tools=[tool])
        push(api, [request("And now?")])
        push(api, [answer()], system="Be kind.")
        prompts = [api.get(f"sessions/s1/prompt/?at_turn={turn}").json() for turn in range(4)]
        assert [prompt["system"] for prompt in prompts] == ["Be brief."] * 3 + ["Be kind."]
        assert [prompt.get("tools") for prompt in prompts] == [[tool]] * 4
        assert AgentSession.objects.get().preamble_version == 2

    def test_a_new_system_prompt_or_new_tools_keep_the_other(self, api: Api) -> None:
        first, second = ({"name": name, "input_schema": {"type": "object"}} for name in ("read", "write"))
        push(api, [request()], system="Be brief.", tools=[first])
        push(api, [answer()], tools=[second])
        push(api, [request()], tools=[second])
        prompt = api.get("sessions/s1/prompt/").json()
        assert (prompt["system"], prompt["tools"]) == ("Be brief.", [second])
        assert AgentSession.objects.get().preamble_version == 2
        push(api, [answer()], tools=[])
        prompt = api.get("sessions/s1/prompt/").json()
        assert (prompt["system"], prompt.get("tools")) == ("Be brief.", None)


@pytest.mark.usefixtures("session")
def test_an_identifier_with_a_secret_is_rejected(api: Api) -> None:
    secret = "ghp_" + "a1B2" * 9
    model = api.post(TURNS, {"messages": [request()], "model": secret})
    key = api.post(TURNS, {"messages": [request()]}, idempotency_key=secret)
    errors = [(code(refused), refused.json()["error"]["param"]) for refused in (model, key)]
    assert errors == [("secret_in_field", "model"), ("secret_in_field", "Idempotency-Key")]
    assert secret not in (model.content + key.content).decode()
    assert not Turn.objects.exists()


@pytest.mark.usefixtures("session")
class TestIdempotency:
    body = {"messages": [request()]}

    def test_a_retry_returns_the_stored_response(self, api: Api) -> None:
        first = api.post(TURNS, self.body, idempotency_key="k1")
        push(api, [answer()])
        again = api.post(TURNS, self.body, idempotency_key="k1")
        assert "Idempotent-Replayed" not in first.headers
        assert again.headers["Idempotent-Replayed"] == "true"
        assert (again.status_code, again.content) == (201, first.content)
        assert Turn.objects.count() == 2

    def test_a_retry_with_another_body_is_rejected(self, api: Api) -> None:
        api.post(TURNS, self.body, idempotency_key="k1")
        response = api.post(TURNS, {"messages": [answer()]}, idempotency_key="k1")
        assert (response.status_code, code(response)) == (422, "idempotency_mismatch")
        assert Turn.objects.count() == 1

    def test_a_retry_is_not_a_stale_writer(self, api: Api) -> None:
        body = self.body | {"expected_turn": 0}
        first = api.post(TURNS, body, idempotency_key="k1")
        assert api.post(TURNS, body, idempotency_key="k1").content == first.content

    def test_a_key_applies_within_its_session(self, api: Api) -> None:
        api.post("sessions/", {"id": "s2"})
        for session in ("s1", "s2"):
            response = api.post(f"sessions/{session}/turns/", self.body, idempotency_key="k1")
            assert response.json()["turn"] == 0
        assert Turn.objects.count() == 2

    @pytest.mark.parametrize("key", ["", "x" * 201, "a\tb", "\x7f"])
    def test_an_invalid_key_is_rejected(self, api: Api, key: str) -> None:
        response = api.post(TURNS, self.body, idempotency_key=key)
        assert (response.status_code, code(response)) == (400, "invalid_field")
        assert Turn.objects.count() == 0

    def test_a_retry_reports_the_compaction_without_repeating_it(self, api: Api) -> None:
        api.post("sessions/", {"id": "small", "budget": {"input_tokens": 1_500}, "policy": {"soft": 0}})
        for number in range(3):
            body = {"messages": whole_turn(number)}
            response = api.post("sessions/small/turns/", body, idempotency_key=f"k{number}")
        assert response.json()["fired"]
        again = api.post("sessions/small/turns/", body, idempotency_key="k2")
        assert again.content == response.content
        assert len(api.get("sessions/small/compactions/").json()["data"]) == len(response.json()["fired"])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("expected", [{}, {"expected_turn": 0}])
def test_concurrent_retries_are_stored_once(api_key: str, expected: dict[str, int]) -> None:
    Api(api_key).post("sessions/", {"id": "s1"})

    def send(_: int) -> tuple[int, bytes]:
        try:
            body = {"messages": whole_turn(0), **expected}
            response = Api(api_key).post(TURNS, body, idempotency_key="k1")
            return response.status_code, response.content
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(24)))
    assert {status for status, _ in answers} == {201}
    assert len(answers) == 1
    assert Turn.objects.count() == 1


@pytest.mark.usefixtures("session")
class TestUsage:
    @pytest.mark.parametrize(
        ("usage", "parts"),
        [
            (
                {
                    "input_tokens": 10,
                    "cache_read_input_tokens": 1_000,
                    "cache_creation_input_tokens": 200,
                    "output_tokens": 50,
                },
                (10, 1_000, 200, 50),
            ),
            (
                {
                    "prompt_tokens": 1_210,
                    "completion_tokens": 50,
                    "prompt_tokens_details": {"cached_tokens": 1_000},
                },
                (210, 1_000, 0, 50),
            ),
            (
                {
                    "input_tokens": 1_210,
                    "output_tokens": 50,
                    "input_tokens_details": {"cached_tokens": 1_000},
                },
                (210, 1_000, 0, 50),
            ),
        ],
        ids=["anthropic", "openai-chat", "openai-responses"],
    )
    def test_it_is_stored_in_disjoint_parts(
        self, api: Api, usage: dict[str, Any], parts: tuple[int, ...]
    ) -> None:
        push(api, [request(), answer()], usage=usage, model="claude-sonnet-4-5")
        [turn] = api.get(TURNS).json()["data"]
        assert tuple(turn["usage"].values()) == parts
        assert turn["prompt_reported"] == sum(parts[:3]) == 1_210
        assert tuple(api.get("sessions/s1/").json()["billed_tokens"].values()) == parts

    def test_the_cost_follows_the_price_list(self, api: Api) -> None:
        usage = {
            "input_tokens": 1_000,
            "cache_read_input_tokens": 10_000,
            "cache_creation_input_tokens": 2_000,
            "output_tokens": 500,
        }
        pushed = push(api, [request()], usage=usage, model="claude-sonnet-4-5")
        # $3, $0.30, $3.75 and $15 a million
        assert pushed["cost_microusd"] == 3_000 + 3_000 + 7_500 + 7_500
        assert api.get("sessions/s1/").json()["cost_microusd"] == 21_000

    def test_a_compaction_by_the_provider_is_billed_but_is_not_part_of_the_prompt(self, api: Api) -> None:
        compaction = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
        message = {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}
        usage = {**message, "iterations": [compaction, message]}
        pushed = push(api, [request(), answer()], usage=usage, model="claude-opus-4-5")
        # $5 and $25 a million
        assert pushed["cost_microusd"] == 203_000 * 5 + 4_500 * 25
        [turn] = api.get(TURNS).json()["data"]
        assert turn["prompt_reported"] == 23_000
        assert turn["usage"] == {"uncached": 203_000, "cache_read": 0, "cache_write": 0, "output": 4_500}
        session = api.get("sessions/s1/").json()
        assert session["last_prompt_tokens"] == session["peak_prompt_tokens"] == 23_000
        assert session["billed_tokens"]["uncached"] == 203_000

    @pytest.mark.parametrize(
        ("usage", "param"),
        [
            ({"iterations": 5}, "usage.iterations"),
            ({"iterations": ["message"]}, "usage.iterations"),
            ({"iterations": [{"type": "message", "input_tokens": -1}]}, "usage.input_tokens"),
            ({"iterations": [{"input_tokens": 400_000_000}] * 5}, "usage.iterations"),
            ({"cache_creation": {"ephemeral_1h_input_tokens": "many"}}, "usage.ephemeral_1h_input_tokens"),
            ({"cache_creation": 7}, "usage.cache_creation"),
            ({"prompt_tokens": 7, "completion_tokens_details": []}, "usage.completion_tokens_details"),
            ({"input_tokens_details": "none"}, "usage.input_tokens_details"),
            *(
                ({"input_tokens": count}, "usage.input_tokens")
                for count in (-1, 1.5, "1", True, 2_000_000_001, 10**30)
            ),
        ],
    )
    def test_invalid_usage_is_reported_by_name(self, api: Api, usage: dict[str, Any], param: str) -> None:
        response = api.post(TURNS, {"messages": [request()], "usage": usage})
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)

    @pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}])
    def test_a_usage_without_figures_is_not_counted_as_zero(self, api: Api, usage: Any) -> None:
        push(api, [request(), answer()], usage=usage, model="claude-sonnet-4-5")
        [turn] = api.get("sessions/s1/turns/").json()["data"]
        assert (turn["usage"], turn["prompt_reported"], turn["cost_microusd"]) == (None, None, None)

    def test_the_usage_of_a_whole_response_is_that_of_the_turn(self, api: Api) -> None:
        response = answer() | {"type": "message", "id": "msg_1", "model": "claude-sonnet-4-5"}
        response |= {"usage": {"input_tokens": 1_000, "output_tokens": 10}, "context_management": None}
        push(api, [request(), response])
        push(api, [response], usage={"input_tokens": 2_000}, model=None)
        first, second = api.get("sessions/s1/turns/").json()["data"]
        assert (first["prompt_reported"], first["model"]) == (1_000, "claude-sonnet-4-5")
        assert first["cost_microusd"] == 3_150
        assert (second["prompt_reported"], second["model"]) == (2_000, "claude-sonnet-4-5")

    @pytest.mark.parametrize(
        ("response", "parts"),
        [
            ({"object": "chat.completion", "choices": []}, "`choices[0].message`"),
            ({"object": "response", "output": []}, "`output`"),
        ],
    )
    def test_a_whole_response_of_openai_is_rejected_with_what_to_send_instead(
        self, api: Api, response: dict[str, Any], parts: str
    ) -> None:
        error = api.post(TURNS, {"messages": [response]}).json()["error"]
        assert (error["code"], error["param"]) == ("invalid_message", "messages[0]")
        assert parts in error["message"]

    def test_a_model_without_a_price_is_counted_as_unpriced(self, api: Api) -> None:
        pushed = push(api, [request()], usage={"input_tokens": 1_000}, model="of-our-own")
        assert pushed["cost_microusd"] is None
        data = api.get("sessions/s1/").json()
        assert (data["cost_microusd"], data["unpriced_turns"]) == (0, 1)

    def test_a_push_without_usage_is_neither_priced_nor_unpriced(self, api: Api) -> None:
        assert push(api, [request()])["cost_microusd"] is None
        assert api.get("sessions/s1/").json()["unpriced_turns"] == 0

    def test_the_largest_numbers_are_stored(self, api: Api) -> None:
        maximum = MAX_TOKENS
        usage = {
            "input_tokens": maximum,
            "cache_read_input_tokens": maximum,
            "cache_creation_input_tokens": maximum,
            "output_tokens": maximum,
        }
        response = api.post(TURNS, {"messages": [request()], "usage": usage, "model": "claude-opus-4-5"})
        assert response.status_code == 201, response.content


@pytest.mark.usefixtures("session")
class TestListing:
    def test_turns_are_listed_oldest_first_in_pages(self, api: Api) -> None:
        for number in range(5):
            push(api, whole_turn(number, lines=1))
        first = api.get(f"{TURNS}?limit=2").json()
        assert [turn["turn"] for turn in first["data"]] == [0, 1]
        rest = api.get(f"{TURNS}?limit=10&cursor={first['next_cursor']}").json()
        assert [turn["turn"] for turn in rest["data"]] == [2, 3, 4]
        assert rest["next_cursor"] is None
        assert rest["data"][-1]["messages"] == whole_turn(4, lines=1)

    def test_last_returns_the_newest(self, api: Api) -> None:
        for number in range(5):
            push(api, whole_turn(number, lines=1))
        assert [turn["turn"] for turn in api.get(f"{TURNS}?last=2").json()["data"]] == [3, 4]
        assert len(api.get(f"{TURNS}?last=200").json()["data"]) == 5

    def test_a_session_without_turns_has_none(self, api: Api) -> None:
        assert api.get(TURNS).json() == {"data": [], "next_cursor": None}

    @pytest.mark.parametrize(
        "query", ["last=x", "limit=0", "limit=201", "last=-1", "cursor=x", "cursor=WzFd%00"]
    )
    def test_an_invalid_query_is_rejected(self, api: Api, query: str) -> None:
        assert api.get(f"{TURNS}?{query}").status_code == 400

    def test_a_turn_has_the_sizes_of_its_calls_prompt(self, api: Api) -> None:
        push(api, whole_turn(0))
        push(api, [request("Go on."), answer()])
        turns = api.get(TURNS).json()["data"]
        assert turns[0]["prompt_estimate"] < turns[1]["prompt_estimate"]
        assert (
            turns[1]["prompt_served"] == turns[1]["prompt_estimate"] == sum(turns[1]["components"].values())
        )


@pytest.mark.usefixtures("session")
def test_a_tool_loop_can_span_pushes(api: Api) -> None:
    push(api, [request(), call("t1", path="a")])
    assert AgentSession.objects.get().open_calls == ["t1"]
    push(api, [result("t1", "text"), answer()])
    assert AgentSession.objects.get().open_calls == []
