"""Agent tools: their definitions and calls."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from compaction.messages import ToolCall
from compaction.tools.actions import action_of
from compaction.validation import validate
from sessions.services.agent_tools import MCP_TOOLS
from tests.api.client import Api, code
from tests.api.talk import HANDLE, output, push, request, whole_turn
from tests.plugins.reused import reused

CALLS = "sessions/s1/tool_calls/"


def run(api: Api, name: str, arguments: Any = None) -> dict[str, Any]:
    body = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    response = api.post(CALLS, body)
    assert response.status_code == 200, response.content
    result: dict[str, Any] = response.json()
    return result


@reused
def handle(api: Api) -> str:
    """Return the handle of the first output that a compacted session no longer shows."""
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}, "policy": "masking"})
    for number in range(12):
        push(api, whole_turn(number, lines=60))
    records = api.get("sessions/s1/compactions/").json()["data"]
    edits = api.get(f"sessions/s1/compactions/{records[-1]['number']}/").json()["edits"]
    return next(edit["handle"] for edit in edits if edit["positions"] == {"first": 2, "last": 2})


@pytest.mark.parametrize("name", MCP_TOOLS)
def test_recaps_list_no_calls_of_the_tools(name: str) -> None:
    assert not action_of(ToolCall(call_id="c1", name=name, arguments='{"reason": "Done."}')).label


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_the_provider_accepts_the_definitions(api: Api, format: str) -> None:
    body = api.get(f"/api/v1/tools/?format={format}").json()
    assert body["format"] == format
    names = [tool["name"] if format == "anthropic" else tool["function"]["name"] for tool in body["tools"]]
    assert {"expand_clip", "search_history"} <= set(names)
    assert validate([request()], format, tools=body["tools"]) == ()
    api.post("sessions/", {"id": "t", "format": format, "tools": body["tools"]})
    push(api, [request()], session="t")
    assert api.get("sessions/t/prompt/").json()["tools"] == body["tools"]


def test_agents_are_asked_to_keep_task_and_next_current(api: Api) -> None:
    text = str(api.get("/api/v1/tools/?format=openai").json())
    assert "Replace `task` when the user changes it, and `next` before you end a turn." in text


def test_an_unknown_format_is_rejected(api: Api) -> None:
    assert api.get("/api/v1/tools/?format=cohere").status_code == 400


class TestExpandClip:
    @pytest.mark.slow
    def test_it_restores_the_content(self, api: Api, handle: str) -> None:
        result = run(api, "expand_clip", {"handle": handle})
        assert result == {"content": output(0, 60), "is_error": False}

    def test_arguments_may_be_json_text(self, api: Api, handle: str) -> None:
        result = run(api, "expand_clip", f'{{"handle": "{handle}", "offset": 3, "limit": 2}}')
        assert result["content"].splitlines()[:2] == output(0, 60).splitlines()[3:5]
        assert "offset 5" in result["content"]

    def test_grep_returns_matching_lines(self, api: Api, handle: str) -> None:
        result = run(api, "expand_clip", {"handle": handle, "grep": "handler_0_7\\b"})
        assert result["content"].startswith("1 matching line\n")
        assert "8: 0.7 def handler_0_7" in result["content"]

    @pytest.mark.slow
    def test_a_long_result_is_truncated(self, api: Api) -> None:
        api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 60_000}, "policy": "masking"})
        for number in range(6):
            push(api, whole_turn(number, lines=700))
        shown = HANDLE.findall(api.get("sessions/s1/prompt/").content.decode())
        result = run(api, "expand_clip", {"handle": shown[0]})
        assert len(result["content"]) < 21_000
        assert "more" in result["content"][-200:]

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"handle": "h_aaaaaaaaaa"},
            {"handle": 5},
            {"handle": ""},
            {"handle": "a\0b"},
            {"handle": "h_x", "offset": "x"},
        ],
    )
    def test_invalid_arguments_are_reported_to_the_model(
        self, api: Api, session: dict[str, Any], arguments: Any
    ) -> None:
        result = run(api, "expand_clip", arguments)
        assert result["is_error"] is True
        assert result["content"]

    @pytest.mark.parametrize("arguments", ["not an object", "[1]", '{"handle": "h_aaaa'])
    def test_the_model_learns_that_its_arguments_are_not_json(
        self, api: Api, session: dict[str, Any], arguments: str
    ) -> None:
        result = run(api, "expand_clip", arguments)
        assert result == {"content": "the arguments are not a complete JSON object", "is_error": True}

    @pytest.mark.parametrize(
        "more", [{"offset": -1}, {"limit": "x"}, {"grep": "("}, {"offset": 1.5}, {"limit": True}]
    )
    def test_an_invalid_range_or_pattern_is_reported_to_the_model(
        self, api: Api, handle: str, more: dict[str, Any]
    ) -> None:
        assert run(api, "expand_clip", {"handle": handle, **more})["is_error"] is True


class TestSearchHistory:
    def test_it_finds_content_that_is_no_longer_shown(self, api: Api, handle: str) -> None:
        result = run(api, "search_history", {"query": "handler_0_41"})
        assert "turn 0" in result["content"]
        assert "handler_0_41" in result["content"]

    @pytest.mark.parametrize("query", [None, "", " ", 5, ["x"]])
    def test_an_invalid_query_is_reported_to_the_model(
        self, api: Api, session: dict[str, Any], query: Any
    ) -> None:
        assert run(api, "search_history", {"query": query})["is_error"] is True

    def test_an_empty_result_is_not_an_error(self, api: Api, session: dict[str, Any]) -> None:
        assert run(api, "search_history", {"query": "nothing"})["is_error"] is False


class TestToolCalls:
    def test_an_unknown_tool_is_rejected(self, api: Api, session: dict[str, Any]) -> None:
        response = api.post(CALLS, {"name": "rm"})
        assert (response.status_code, code(response)) == (400, "unknown_tool")

    @pytest.mark.parametrize(
        "body", [{}, {"name": 5}, {"name": "expand_clip", "arguments": []}, {"tool": "x"}]
    )
    def test_an_invalid_body_is_rejected(
        self, api: Api, session: dict[str, Any], body: dict[str, Any]
    ) -> None:
        response = api.post(CALLS, body)
        assert response.status_code == 400 or response.json()["is_error"] is True

    @pytest.mark.parametrize("name", ["search_history", "expand_clip"])
    def test_a_tool_that_reads_requires_the_scope_read(
        self, project: Project, session: dict[str, Any], name: str
    ) -> None:
        pusher = Api(api_key_create(project=project, name="pusher", scopes=["push"])[1])
        refused = pusher.post(CALLS, {"name": name, "arguments": {"query": "x", "handle": "h_1"}})
        assert (refused.status_code, code(refused)) == (403, "missing_scope")

    def test_it_requires_the_scope_push(self, reader_api: Api, session: dict[str, Any]) -> None:
        assert reader_api.post(CALLS, {"name": "search_history"}).status_code == 403
