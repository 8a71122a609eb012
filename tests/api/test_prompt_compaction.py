"""`prompts/compact/`: compact a message list to a budget, with statistics."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.client import Api, code
from tests.api.talk import HANDLE, answer, assert_valid, call, openai_turn, output, request, whole_turn

COMPACT = "prompts/compact/"
TOOL = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}


def conversation(turns: int, make: Any = whole_turn) -> list[dict[str, Any]]:
    return [message for number in range(turns) for message in make(number)]


def compact(api: Api, messages: list[Any], **fields: Any) -> dict[str, Any]:
    """Return the response, whose messages must be valid for their provider."""
    response = api.post(COMPACT, {"messages": messages, **fields})
    assert response.status_code == 200, response.content
    assert_valid(response, fields.get("model", ""))
    compacted: dict[str, Any] = response.json()
    return compacted


class TestBudget:
    def test_messages_that_fit_are_returned_byte_for_byte(self, api: Api) -> None:
        message = b'{"content": "caf\\u00e9 1e5", "role":"user"}'
        body = b'{"messages": [%b], "budget": {"input_tokens": 1000}}' % message
        response = api.post(COMPACT, body)
        assert message in response.content
        compacted = response.json()
        assert (compacted["record"]["state"], compacted["edits"]) == ("not_due", [])
        assert (compacted["fits"], compacted["reason"], compacted["window"]) == (True, None, None)

    def test_messages_over_the_budget_are_compacted(self, api: Api) -> None:
        messages = conversation(12)
        compacted = compact(api, messages, budget={"input_tokens": 4_000}, system="Be brief.", tools=[TOOL])
        assert compacted["raw_tokens"] > 4_000
        assert compacted["fits"]
        assert compacted["occupancy"] <= 0.5
        assert (compacted["system"], compacted["tools"]) == ("Be brief.", [TOOL])
        assert compacted["messages"][0] == messages[0]
        assert compacted["messages"][-4:] == messages[-4:]

    def test_the_statistics_explain_the_change(self, api: Api) -> None:
        messages = conversation(12)
        compacted = compact(api, messages, budget={"input_tokens": 4_000})
        record = compacted["record"]
        assert (record["state"], record["trigger"]) == ("done", "hard")
        assert record["strategies"]
        assert sum(record["components"]["before"].values()) == compacted["raw_tokens"]
        assert sum(record["components"]["after"].values()) == compacted["tokens"]
        assert all(0 <= edit["positions"]["last"] < len(messages) for edit in compacted["edits"])

    def test_the_record_begins_after_the_window(self, api: Api) -> None:
        compacted = compact(api, conversation(6), window={"max_messages": 4})
        record = compacted["record"]
        assert sum(record["components"]["before"].values()) == record["tokens_before"]
        assert record["tokens_before"] < compacted["raw_tokens"]

    def test_long_ids_stay_those_of_their_calls(self, api: Api) -> None:
        id = "c" * 70
        action = {"type": "exec", "command": ["ls"], "env": {}}
        messages = [
            {"type": "message", "role": "user", "content": "List them."},
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": id,
                "status": "completed",
                "action": action,
            },
            {"type": "local_shell_call_output", "call_id": id, "output": "ok"},
        ]
        compact(api, messages, format="openai-responses")

    def test_a_handle_identifies_the_original(self, api: Api) -> None:
        messages = conversation(4)
        first = compact(api, messages, policy={"preset": "masking", "collapse_tokens": 50}, force=True)
        shown = {handle for message in first["messages"] for handle in HANDLE.findall(str(message))}
        edits = {edit["handle"]: edit for edit in first["edits"] if edit["handle"]}
        assert shown
        assert shown <= set(edits)
        for handle in shown:
            position = edits[handle]["positions"]["first"]
            assert "def handler_" in messages[position]["content"][0]["content"]
        # The same content has the same handle at another position, and other content at this one does not.
        moved = compact(
            api, [request(), *messages], policy={"preset": "masking", "collapse_tokens": 50}, force=True
        )
        places = {edit["handle"]: edit["positions"]["first"] for edit in moved["edits"]}
        assert all(places[handle] == edits[handle]["positions"]["first"] + 1 for handle in shown)

    @pytest.mark.parametrize(
        ("text", "policy", "expected"),
        [
            ("FAILED test_a.py::test_a - AssertionError\n", {}, "AssertionError"),
            ("", {"tools": [{"pattern": "shot", "never_collapse": True}]}, "tokens elided"),
        ],
        ids=["failure", "clipped"],
    )
    def test_an_image_that_a_shortened_output_had_is_mentioned(
        self, api: Api, text: str, policy: Any, expected: str
    ) -> None:
        source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
        shown = [{"type": "text", "text": text + output(0, 300)}, {"type": "image", "source": source}]
        content = [{"type": "tool_result", "tool_use_id": "t", "content": shown, "is_error": bool(text)}]
        messages = [request(), call("t", "shot"), {"role": "user", "content": content}, *conversation(6)]
        compacted = compact(api, messages, budget={"input_tokens": 9_000}, policy=policy, force=True)
        [shortened] = compacted["messages"][2]["content"]
        assert expected in shortened["content"]
        assert shortened["content"].endswith(
            "\n[Also not shown: an image or document, which cannot be retrieved]"
        )

    def test_the_budget_is_in_the_providers_tokens(self, api: Api) -> None:
        compacted = compact(
            api,
            conversation(20),
            model="claude-sonnet-4-5",
            budget={"input_tokens": 8_000},
            policy="baseline",
        )
        assert compacted["calibration"]["factor"] == 1.25
        assert compacted["occupancy"] == pytest.approx(compacted["tokens"] * 1.25 / 8_000, abs=0.001)
        assert compacted["fits"]

    def test_the_same_input_gives_the_same_prompt(self, api: Api) -> None:
        body = {"messages": conversation(12), "budget": {"input_tokens": 4_000}}
        first, second = (api.post(COMPACT, body).json() for _ in range(2))
        for response in (first, second):
            response["record"].pop("duration_ms")
        assert first == second

    def test_it_compacts_below_the_trigger_when_forced(self, api: Api) -> None:
        body: dict[str, Any] = {"messages": conversation(30), "budget": {"input_tokens": 40_000}}
        assert compact(api, **body)["record"]["state"] == "not_due"
        forced = compact(api, **body, force=True)
        assert (forced["record"]["state"], forced["record"]["trigger"]) == ("done", "user")
        assert forced["tokens"] < forced["raw_tokens"]

    def test_a_prompt_that_cannot_fit_has_a_reason(self, api: Api) -> None:
        compacted = compact(api, [request("word " * 500)], budget={"input_tokens": 50})
        assert compacted["fits"] is False
        assert "the budget of 50" in compacted["reason"]


class TestFormats:
    def test_the_format_is_detected(self, api: Api) -> None:
        messages = [{"role": "system", "content": "Be brief."}, *conversation(12, openai_turn)]
        compacted = compact(api, messages, budget={"input_tokens": 4_000})
        assert (compacted["format"], compacted["fits"]) == ("openai", True)
        assert compacted["messages"][0] == messages[0]

    def test_messages_of_several_formats_are_served_in_one(self, api: Api) -> None:
        messages = [*whole_turn(0), *openai_turn(1)]
        compacted = compact(api, messages, format="openai")
        assert [message["role"] for message in compacted["messages"]].count("tool") == 2


class TestWindow:
    def test_the_oldest_messages_are_removed_first(self, api: Api) -> None:
        messages = [{"role": "system", "content": "Be brief."}, *conversation(5, openai_turn)]
        compacted = compact(api, messages, window={"max_messages": 9})
        assert compacted["messages"] == [messages[0], *messages[-8:]]
        assert compacted["window"] == {
            "dropped_messages": 12,
            "dropped_turns": 6,
            "pairs_kept": 2,
            "over_by": 0,
        }
        assert compacted["tokens"] < compacted["raw_tokens"]

    def test_only_without_an_anchor_the_rules_and_the_task_disappear(self, api: Api) -> None:
        rules, task = {"role": "system", "content": "Never delete a file."}, request("Port the parser to C.")
        messages = [rules, task, *conversation(12, openai_turn)]
        anchored = compact(api, messages, policy="baseline", budget={"input_tokens": 4_000})["messages"]
        assert anchored[:2] == [rules, task]
        assert len(anchored) < len(messages)
        window = {"max_messages": len(anchored)}
        assert compact(api, messages, window=window)["messages"][0] == rules
        free = compact(api, messages, window=window | {"preserve_system": False})["messages"]
        assert free == messages[-len(anchored) :]
        assert rules not in free
        assert task not in free

    def test_recent_messages_are_kept_beyond_the_limit(self, api: Api) -> None:
        compacted = compact(
            api, conversation(3), window={"max_messages": 2, "preserve_system": False, "min_keep_recent": 4}
        )
        assert len(compacted["messages"]) == 4
        assert compacted["window"]["over_by"] == 2

    @pytest.mark.parametrize(("model", "kept"), [("claude-opus-4-8", 2), ("claude-opus-5-5", 0)])
    def test_thinking_that_is_bound_to_removed_messages_is_removed(
        self, api: Api, model: str, kept: int
    ) -> None:
        thinking = {"type": "thinking", "thinking": "Next.", "signature": "c2lnbmVk"}
        messages = [request("Start.")]
        for number in range(6):
            said = answer(f"Answer {number}.")
            messages += [{**said, "content": [thinking, *said["content"]]}, request(f"Go on, {number}.")]
        whole = compact(api, messages, window={"max_messages": 20}, model=model)
        assert json.dumps(whole["messages"]).count('"thinking":') == 6
        compacted = compact(api, messages, window={"max_messages": 5}, model=model)
        assert json.dumps(compacted["messages"]).count('"thinking":') == kept
        steps = {edit["strategy"] for edit in compacted["edits"]}
        assert steps == (set() if kept else {"clear_thinking"})

    def test_window_and_budget_work_together(self, api: Api) -> None:
        compacted = compact(
            api, conversation(12), window={"max_messages": 40}, budget={"input_tokens": 4_000}
        )
        assert compacted["window"]["dropped_messages"] == 8
        assert compacted["record"]["state"] == "done"
        assert compacted["fits"]


class TestNothingIsStored:
    def test_compacting_a_prompt_writes_nothing(self, api: Api) -> None:
        api.post(COMPACT, {"messages": [request()]})  # the key's last use is noted once a minute
        with CaptureQueriesContext(connection) as queries:
            compact(api, conversation(12), budget={"input_tokens": 4_000})
        assert {query["sql"].split()[0] for query in queries} <= {"SELECT"}

    def test_the_read_scope_is_sufficient(self, reader_api: Api) -> None:
        assert compact(reader_api, [request("hi")])["messages"] == [request("hi")]

    def test_secrets_are_returned_unredacted(self, api: Api) -> None:
        secret = request("the key is AKIAIOSFODNN7EXAMPLQ")
        assert compact(api, [secret])["messages"] == [secret]


@pytest.mark.parametrize(
    ("body", "expected", "param"),
    [
        ({}, "missing_field", "messages"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "x"}]}, "invalid_message", "messages[1]"),
        ({"messages": [], "budget": {"input_tokens": 0}}, "invalid_field", "budget.input_tokens"),
        ({"messages": [], "policy": {"target": 2}}, "invalid_field", "policy.target"),
        ({"messages": [], "window": {}}, "missing_field", "window.max_messages"),
        ({"messages": [], "window": {"max_messages": 0}}, "invalid_field", "window.max_messages"),
        ({"messages": [], "system": 1}, "invalid_field", "system"),
        ({"messages": [], "tools": [1]}, "invalid_field", "tools"),
        ({"messages": [], "message": []}, "unknown_field", "message"),
    ],
)
def test_an_invalid_request_is_explained(api: Api, body: Any, expected: str, param: str) -> None:
    response = api.post(COMPACT, body)
    assert response.status_code == 400
    assert (code(response), response.json()["error"]["param"]) == (expected, param)


def test_the_limits_are_those_of_a_prompt(api: Api, settings: Any) -> None:
    settings.CONTEXTAPP_MAX_MESSAGES = 1
    response = api.post(COMPACT, {"messages": [request("a")] * 11})
    assert (response.status_code, code(response)) == (413, "too_many_messages")
    assert api.post(COMPACT, {"messages": [request("a")] * 10}).status_code == 200
    settings.CONTEXTAPP_MAX_MESSAGE_BYTES = 10
    response = api.post(COMPACT, {"messages": [request("a")]})
    assert (response.status_code, code(response)) == (413, "text_too_long")
