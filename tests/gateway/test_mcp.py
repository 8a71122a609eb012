"""Claude Code as a client of the MCP server. Its model is a fake provider that calls the tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sessions.models import AgentSession, MemoryRevision
from tests.api.client import Api
from tests.gateway import agents
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


def test_claude_code_calls_the_tools(
    provider: Provider, served_url: str, api_key: str, tmp_path: Path
) -> None:
    api = Api(api_key)
    api.post("sessions/", {"id": "talk", "format": "anthropic"})
    api.post("sessions/talk/turns/", {"messages": [{"role": "user", "content": "Mind the walrus index."}]})
    provider.otherwise = model = Model()
    headers: Mapping[str, str] = {"Authorization": f"Bearer {api_key}"}
    server = {"type": "http", "url": f"{served_url}/mcp/s/talk", "headers": headers}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"contextapp": server}}))
    result, _ = agents.claude_code(
        tmp_path / "home",
        gateway="",
        key=api_key,
        prompt="Use your notes.",
        options=["--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", "mcp__contextapp"],
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
    assert "in 1 turns" in status
    assert "Mind the walrus index." in found
    assert "Skip the walrus index" in memory
    assert MemoryRevision.objects.filter(session=AgentSession.objects.get()).exists()
