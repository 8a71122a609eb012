"""Claude Code as a client of the MCP server. Its model is a fake provider that calls the tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import RequestFactory

from sessions.models import AgentSession, MemoryRevision
from sessions.pages.connect.snippets import snippet_groups
from tests.api.client import Api
from tests.gateway import agents, openai_talk
from tests.gateway.anthropic_talk import streamed, text, whole
from tests.gateway.double import Provider, Received, Reply

pytestmark = pytest.mark.processes

JSON = dict[str, Any]

#: The tool calls of the fake model, in order.
CALLS: list[tuple[str, JSON]] = [
    ("context_status", {}),
    ("search_history", {"query": "walrus"}),
    (
        "update_working_memory",
        {"operations": [{"op": "add", "field": "decisions", "item": "Skip the walrus index"}]},
    ),
    ("working_memory", {}),
]


class Model:
    """Calls the tools of `CALLS`, and keeps the definitions and the results that it receives."""

    def __init__(self) -> None:
        self.tools: dict[str, JSON] = {}
        self.results: list[str] = []

    def __call__(self, received: Received) -> Reply:
        body = json.loads(received.body or b"{}")
        if not received.path.startswith("/v1/messages?") or not body.get("tools"):
            return whole(text("A title"))
        self.tools = {tool["name"]: tool for tool in body["tools"]}
        self.results = [
            _text(block["content"])
            for message in body["messages"]
            for block in message["content"]
            if isinstance(block, dict) and block["type"] == "tool_result"
        ]
        number = len(self.results)
        if number == len(CALLS):
            return streamed(text("Done."))
        name, arguments = CALLS[number]
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": f"mcp__contextapp__{name}"}
        return streamed({**call, "input": arguments}, stop="tool_use")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def _shown(snippet_id: str, url: str, key: str) -> str:
    """Return the settings that the page **Connect** shows."""
    request = RequestFactory().get("/", headers={"host": urlsplit(url).netloc})
    groups = snippet_groups(request, key)
    return next(each.text for group in groups for each in group.snippets if each.id == snippet_id)


def test_claude_code_calls_the_tools(
    provider: Provider, served_url: str, api_key: str, tmp_path: Path
) -> None:
    """Claude Code is set up with the command that the page **Connect** shows."""
    api = Api(api_key)
    api.post("sessions/", {"id": "talk", "format": "anthropic"})
    api.post("sessions/talk/turns/", {"messages": [{"role": "user", "content": "Mind the walrus index."}]})
    provider.otherwise = model = Model()
    agents.run_as_shown(_shown("mcp-claude-code", served_url, api_key), tmp_path / "home")
    result, _ = agents.claude_code(
        tmp_path / "home",
        gateway="",
        key=api_key,
        prompt="Use your notes.",
        options=["--allowedTools", "mcp__contextapp"],
        settings={"ANTHROPIC_BASE_URL": provider.url},
    )
    assert result["result"] == "Done."
    assert {name for name in model.tools if name.startswith("mcp__")} == {
        f"mcp__contextapp__{name}"
        for name in (
            "context_status",
            "expand_clip",
            "request_compaction",
            "search_history",
            "update_working_memory",
            "working_memory",
        )
    }
    status, found, _, memory = model.results
    assert "in 1 turn." in status
    assert "Mind the walrus index." in found
    assert "Skip the walrus index" in memory
    assert MemoryRevision.objects.filter(session=AgentSession.objects.get()).exists()


def test_codex_calls_a_tool(provider: Provider, served_url: str, api_key: str, tmp_path: Path) -> None:
    """Codex is set up with the lines that the page **Connect** shows."""
    api = Api(api_key)
    api.post("sessions/", {"id": "talk", "format": "openai-responses"})
    api.post("sessions/talk/turns/", {"messages": [{"role": "user", "content": "Mind the walrus index."}]})
    search = openai_talk.function_call("c1", "search_history", query="walrus")
    outputs: list[JSON] = []

    def model(received: Received) -> Reply:
        items = json.loads(received.body or b"{}").get("input", [])
        outputs[:] = [item for item in items if item.get("type") == "function_call_output"]
        if outputs:
            return openai_talk.responses_stream(openai_talk.said("Done."))
        return openai_talk.responses_stream({**search, "namespace": "mcp__contextapp"})

    provider.otherwise = model
    agents.codex(
        tmp_path / "codex",
        gateway=provider.url,
        key=api_key,
        prompt="Use your notes.",
        config=_shown("mcp-codex", served_url, api_key),
    )
    assert "Mind the walrus index." in json.dumps(outputs)
