"""Fetch the prompt."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compaction.view import in_force
from sessions.models import AgentSession, Edit
from sessions.selectors.compactions.edits import edits_in_force_after, edits_not_evicted
from sessions.selectors.convert import edit_value
from sessions.store.bodies import json_bytes
from tests.api.client import Api, code
from tests.api.talk import (
    PROMPT,
    TURNS,
    answer,
    assert_valid,
    call,
    openai_turn,
    output,
    prompt,
    push,
    request,
    result,
    whole_turn,
)

pytestmark = pytest.mark.usefixtures("session")

TOOL = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}


def small(api: Api, **fields: Any) -> None:
    """Return a session `small` whose budget is full after about five turns."""
    response = api.post(
        "sessions/", {"id": "small", "budget": {"input_tokens": 2_500}, "policy": {"soft": 0}, **fields}
    )
    assert response.status_code == 201, response.content


class TestServing:
    def test_a_session_without_turns_has_an_empty_prompt(self, api: Api) -> None:
        served = api.get(PROMPT).json()
        assert (served["turn"], served["messages"], served["tokens"]) == (-1, [], 0)
        assert "system" not in served
        assert "tools" not in served

    def test_it_can_be_passed_to_the_providers_sdk(self, api: Api) -> None:
        push(api, whole_turn(0), system="Be brief.", tools=[TOOL])
        served = prompt(api)
        assert (served["system"], served["tools"], served["messages"]) == ("Be brief.", [TOOL], whole_turn(0))
        assert served["fits"] is True
        assert served["reason"] is None

    def test_the_openai_format_has_a_system_message_and_openai_tools(self, api: Api) -> None:
        push(api, whole_turn(0), system="Be brief.", tools=[TOOL])
        served = prompt(api, "?format=openai")
        assert [message["role"] for message in served["messages"]] == [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        assert served["messages"][3]["content"] == output(0)
        assert served["tools"][0]["function"]["parameters"] == TOOL["input_schema"]
        assert "system" not in served

    def test_openai_messages_are_served_as_anthropic(self, api: Api) -> None:
        api.post("sessions/", {"id": "o", "format": "openai"})
        push(api, [{"role": "system", "content": "Be brief."}, *openai_turn(0)], session="o")
        assert prompt(api, session="o")["messages"][1:] == openai_turn(0)
        served = prompt(api, "?format=anthropic", session="o")
        assert served["system"] == "Be brief."
        assert [message["role"] for message in served["messages"]] == ["user", "assistant"] * 2
        [block] = served["messages"][2]["content"]
        assert (block["type"], block["content"]) == ("tool_result", output(0))

    @pytest.mark.parametrize(
        "query", ["format=cohere", "manifest=2", "memory=old", "at_turn=-1", "at_turn=x", "at_turn=1e3"]
    )
    def test_an_invalid_query_is_rejected(self, api: Api, query: str) -> None:
        response = api.get(f"{PROMPT}?{query}")
        assert (response.status_code, code(response)) == (400, "invalid_field")

    def test_a_future_turn_is_not_found(self, api: Api) -> None:
        push(api, whole_turn(0))
        assert api.get(f"{PROMPT}?at_turn=0").status_code == 200
        assert api.get(f"{PROMPT}?at_turn=1").status_code == 404

    @pytest.mark.slow
    def test_a_fetch_writes_nothing(self, api: Api) -> None:
        small(api)
        for number in range(8):
            push(api, whole_turn(number), session="small")
        api.get("sessions/small/prompt/")  # the key's last use is noted once a minute
        with CaptureQueriesContext(
            connection,
        ) as queries:
            for query in ("", "?manifest=1", "?format=openai", "?at_turn=3"):
                assert api.get(f"sessions/small/prompt/{query}").status_code == 200
        assert {query["sql"].split()[0] for query in queries} == {"SELECT"}


class TestEtag:
    def test_an_unchanged_prompt_returns_304(self, api: Api) -> None:
        push(api, whole_turn(0))
        etag = api.get(PROMPT).headers["ETag"]
        again = api.get(PROMPT, if_none_match=etag)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == etag

    @pytest.mark.parametrize("header", ["W/{}", '"other", {}', "*"])
    def test_if_none_match_follows_http(self, api: Api, header: str) -> None:
        push(api, whole_turn(0))
        etag = api.get(PROMPT).headers["ETag"]
        assert api.get(PROMPT, if_none_match=header.format(etag)).status_code == 304

    def test_push_compaction_and_revert_change_the_etag(self, api: Api) -> None:
        small(api)
        address = "sessions/small/prompt/"
        seen = [api.get(address).headers["ETag"]]
        for number in range(3):
            push(api, whole_turn(number), session="small")
        seen.append(api.get(address).headers["ETag"])
        done = api.post("sessions/small/compact/").json()
        assert done["state"] == "done"
        seen.append(api.get(address).headers["ETag"])
        api.post(f"sessions/small/compactions/{done['number']}/revert/")
        seen.append(api.get(address).headers["ETag"])
        assert len(set(seen)) == 4

    @pytest.mark.slow
    def test_a_past_prompt_keeps_its_etag(self, api: Api) -> None:
        small(api)
        address, tags = "sessions/small/prompt/?at_turn={}", []
        for number in range(6):
            push(api, whole_turn(number), session="small")
            tags.append(api.get(address.format(number)).headers["ETag"])
        assert api.post("sessions/small/compact/").json()["state"] == "done"
        push(api, whole_turn(6), session="small")
        again = [api.get(address.format(turn), if_none_match=tag) for turn, tag in enumerate(tags)]
        assert [response.status_code for response in again] == [304] * len(tags)
        assert len(set(tags)) == len(tags)

    def test_another_budget_changes_the_etag(self, api: Api) -> None:
        push(api, whole_turn(0))
        etag = api.get(PROMPT).headers["ETag"]
        AgentSession.objects.update(budget_tokens=10)
        assert api.get(PROMPT, if_none_match=etag).json()["fits"] is False

    def test_a_compaction_without_effect_keeps_prompt_and_etag_consistent(self, api: Api) -> None:
        push(api, [request()])
        before = api.get(PROMPT)
        assert api.post("sessions/s1/compact/").json()["state"] == "skipped"
        after = api.get(PROMPT)
        assert (after.headers["ETag"] == before.headers["ETag"]) == (after.content == before.content)

    def test_each_variant_has_a_separate_etag(self, api: Api) -> None:
        push(api, whole_turn(0))
        push(api, whole_turn(1))
        queries = ("", "?format=openai", "?manifest=1", "?at_turn=0", "?at_turn=1", "?at_turn=0&manifest=1")
        assert len({api.get(PROMPT + query).headers["ETag"] for query in queries}) == len(queries)


class TestManifest:
    @pytest.mark.slow
    def test_it_lists_every_message_and_adds_up(self, api: Api) -> None:
        small(api, system="Be brief.", tools=[TOOL])
        for number in range(12):
            push(api, whole_turn(number), session="small")
            served = prompt(api, "?manifest=1", session="small")
            manifest = served["manifest"]
            beside = api.get("sessions/small/turns/?last=1").json()["data"][0]["components"]
            assert len(manifest) == len(served["messages"])
            assert [entry["role"] for entry in manifest] == [m["role"] for m in served["messages"]]
            total = sum(entry["tokens"] for entry in manifest) + beside["system"] + beside["tools"]
            assert total == served["tokens"]
        assert served["compactions"] > 0
        assert {entry["rule"] for entry in manifest} > {"verbatim"}

    @pytest.mark.slow
    def test_together_they_cover_every_message_in_order(self, api: Api) -> None:
        small(api)
        for number in range(12):
            push(api, whole_turn(number), session="small")
        manifest = prompt(api, "?manifest=1", session="small")["manifest"]
        covered = [
            position
            for entry in manifest
            for position in range(entry["positions"]["first"], entry["positions"]["last"] + 1)
        ]
        assert covered == list(range(48))

    @pytest.mark.slow
    def test_verbatim_means_unchanged(self, api: Api) -> None:
        small(api)
        pushed = [message for number in range(12) for message in whole_turn(number)]
        for number in range(12):
            push(api, whole_turn(number), session="small")
        served = prompt(api, "?manifest=1", session="small")
        pairs = zip(served["manifest"], served["messages"], strict=True)
        verbatim = [(entry, message) for entry, message in pairs if entry["rule"] == "verbatim"]
        assert 0 < len(verbatim) < len(served["messages"])
        for entry, message in verbatim:
            assert message == pushed[entry["positions"]["first"]]
            assert entry["tokens"] == entry["tokens_raw"]


class TestThePast:
    @pytest.mark.slow
    @pytest.mark.parametrize("format", ["anthropic", "openai"])
    def test_every_past_prompt_can_be_rebuilt_byte_for_byte(self, api: Api, format: str) -> None:
        small(api, format=format, system="Be brief.")
        turn_of = whole_turn if format == "anthropic" else openai_turn
        served: dict[str, list[bytes]] = {}
        queries = ("?", "?manifest=1", "?format=anthropic", "?format=openai")
        for number in range(14):
            push(api, turn_of(number), session="small")
            for query in queries:
                served.setdefault(query, []).append(api.get(f"sessions/small/prompt/{query}").content)
        assert api.get("sessions/small/").json()["compactions"] >= 3
        for query, contents in served.items():
            for turn, content in enumerate(contents):
                assert api.get(f"sessions/small/prompt/{query}&at_turn={turn}").content == content

    @pytest.mark.slow
    def test_a_past_prompt_of_a_long_session_reads_few_edits(self, api: Api) -> None:
        """Edits that a later eviction covers are not loaded, and the prompt is the same."""
        small(api)
        for number in range(40):
            push(api, whole_turn(number), session="small")
        for turn in (13, 26, 39):
            made = Edit.objects.filter(edits_in_force_after(turn)).order_by("compaction__number", "ordinal")
            read = list(edits_not_evicted(made))
            assert in_force([edit_value(edit) for edit in read]) == in_force([*map(edit_value, made)])
        assert 0 < len(read) < len(made) / 4

    @pytest.mark.slow
    def test_a_prompt_with_an_open_call_can_be_rebuilt(self, api: Api) -> None:
        small(api)
        served = []
        messages = [request(), call("t0", path="f0")]
        for number in range(14):
            push(api, messages, session="small")
            served.append(api.get("sessions/small/prompt/?manifest=1"))
            assert_valid(served[-1])
            messages = [result(f"t{number}", output(number)), call(f"t{number + 1}", path=f"f{number + 1}")]
        assert api.get("sessions/small/").json()["compactions"] >= 3
        for turn, response in enumerate(served):
            again = api.get(f"sessions/small/prompt/?manifest=1&at_turn={turn}")
            assert again.content == response.content

    def test_a_prompt_before_a_model_change_can_be_rebuilt(self, api: Api) -> None:
        """Models differ in their context windows and in the rules for the last message of a prompt."""
        api.post("sessions/", {"id": "m", "model": "claude-sonnet-4-5"})
        served = []
        for number, model in enumerate(("", "claude-opus-4-6", "gpt-5", "", "claude-sonnet-4-5")):
            push(api, whole_turn(number), session="m", model=model)
            served.append(api.get("sessions/m/prompt/").content)
        for turn, content in enumerate(served):
            assert api.get(f"sessions/m/prompt/?at_turn={turn}").content == content

    def test_a_compaction_without_gain_changes_no_past_prompt(self, api: Api) -> None:
        push(api, [request()])
        served = prompt(api)
        assert api.post("sessions/s1/compact/").json()["state"] == "skipped"
        push(api, [answer()])
        assert prompt(api, "?at_turn=0") == served


class TestFitting:
    @pytest.mark.slow
    def test_every_prompt_fits(self, api: Api) -> None:
        small(api)
        for number in range(20):
            pushed = push(api, whole_turn(number), session="small")
            served = prompt(api, session="small")
            assert served["fits"] is True
            assert served["tokens"] == pushed["prompt"]["tokens"] <= served["budget"] == 2_500
            assert served["raw_tokens"] == pushed["prompt"]["raw_tokens"] >= served["tokens"]
        assert served["raw_tokens"] > 3 * served["tokens"]

    @pytest.mark.slow
    def test_a_prompt_that_cannot_fit_has_a_reason_and_is_valid(self, api: Api) -> None:
        api.post("sessions/", {"id": "tiny", "budget": {"input_tokens": 300}})
        for number in range(3):
            push(api, whole_turn(number), session="tiny")
        pushed = push(api, [request("Read this. " + output(9, 60))], session="tiny")
        served = prompt(api, session="tiny")
        assert served["fits"] is False
        assert served["tokens"] == pushed["prompt"]["tokens"] > 300
        assert "latest user message" in served["reason"]
        assert str(served["tokens"]) in served["reason"]
        assert served["messages"][-1] == request("Read this. " + output(9, 60))

    def test_the_reason_describes_the_current_prompt(self, api: Api) -> None:
        """With a policy that never compacts, the prompt continues to grow."""
        api.post("sessions/", {"id": "off", "budget": {"input_tokens": 300}, "policy": {"preset": "off"}})
        for number in range(2):
            push(api, whole_turn(number), session="off")
        served = prompt(api, session="off")
        assert served["fits"] is False
        assert f"{served['tokens']:,}" in served["reason"]

    def test_tools_that_leave_no_room_are_shed(self, api: Api) -> None:
        tools = [dict(TOOL, name=f"tool_{n}", description=output(n, 10)) for n in range(10)]
        api.post("sessions/", {"id": "shed", "budget": {"input_tokens": 800}, "tools": tools})
        for number in range(3):
            push(api, whole_turn(number, lines=10), session="shed")
        served = prompt(api, session="shed")
        counted = api.get("sessions/shed/turns/?last=1").json()["data"][0]["components"]
        assert served["fits"] is True
        assert "tools" not in served
        assert "tools" not in counted


def test_a_push_returns_the_size_of_the_next_prompt(api: Api) -> None:
    for number in range(3):
        pushed = push(api, whole_turn(number))
        served = api.get(PROMPT).json()
        sizes = {name: served[name] for name in ("tokens", "raw_tokens", "budget", "occupancy")}
        assert sizes == pushed["prompt"]
    assert api.get(TURNS).json()["data"][-1]["turn"] == 2


class TestReadiness:
    def test_a_prompt_without_messages_is_not_ready(self, api: Api) -> None:
        served = api.get(PROMPT).json()
        assert (served["fits"], served["reason"]) == (False, "the session has no messages to send")

    def test_open_calls_at_the_end_of_the_prompt_are_reported(self, api: Api) -> None:
        push(api, [request(), call("toolu_1", path="a.py")])
        assert api.get(PROMPT).json()["open_calls"] == ["toolu_1"]
        assert api.get(f"{PROMPT}?at_turn=0").json()["open_calls"] == ["toolu_1"]
        push(api, [result("toolu_1", "content")])
        assert api.get(PROMPT).json()["open_calls"] == []

    def test_a_model_that_rejects_open_calls_gets_a_note_for_each_result(self, api: Api) -> None:
        api.post("sessions/", {"id": "newest", "model": "claude-opus-4-8"})
        push(api, [request(), call("toolu_1", path="a.py")], session="newest")
        served = api.get("sessions/newest/prompt/").json()
        assert served["open_calls"] == []
        [block] = served["messages"][-1]["content"]
        assert (block["type"], block["tool_use_id"]) == ("tool_result", "toolu_1")
        push(api, [result("toolu_1", "content")], session="newest")
        assert api.get("sessions/newest/prompt/").json()["messages"][2:] == [result("toolu_1", "content")]

    def test_the_messages_before_open_calls_keep_their_bytes(self, api: Api) -> None:
        pushed = b'{"role" : "user",  "content" : "Please read the files."}'
        body = b'{"messages": [%b, %b]}' % (pushed, json_bytes(call("toolu_1", path="a.py")))
        assert api.post(TURNS, body).status_code == 201
        assert pushed in api.get(PROMPT).content
        assert pushed in api.get(f"{PROMPT}?at_turn=0").content
