"""The Model Context Protocol server, used through the official SDK and message by message."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from django.test import Client as DjangoClient

from accounts.models import Project, Scope
from accounts.services.api_keys import api_key_create
from sessions.services.search.indexing import search_index_run
from tests.api.client import Api
from tests.api.talk import push, whole_turn
from tests.asynchronous import run
from tests.plugins.reused import reused

if TYPE_CHECKING:
    from mcp.client import Client  # its import takes a second

pytestmark = pytest.mark.django_db

TOOLS = {
    "search_history",
    "expand_clip",
    "working_memory",
    "update_working_memory",
    "context_status",
    "request_compaction",
}
CURRENT, HANDSHAKE = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": CURRENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def post(key: str, body: Any, *, path: str = "/mcp", **headers: str) -> Any:
    content = body if isinstance(body, str) else json.dumps(body)
    authorization = {"Authorization": f"Bearer {key}"} if key else {}
    return DjangoClient().post(
        path,
        content,
        content_type="application/json",
        headers={"Accept": "application/json, text/event-stream", **authorization, **headers},
    )


def request(method: str, id: int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({} if id is None else {"id": id}), "params": params}


def current(key: str, method: str, *, path: str = "/mcp", **params: Any) -> Any:
    """Send a request in the current form of the protocol."""
    headers = {"MCP-Protocol-Version": CURRENT, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return post(key, request(method, _meta=META, **params), path=path, **headers)


def tool(key: str, name: str, *, path: str = "/mcp", **arguments: Any) -> tuple[str, bool]:
    """Call a tool; return the text and whether it is an error."""
    result = current(key, "tools/call", path=path, name=name, arguments=arguments).json()["result"]
    return result["content"][0]["text"], result["isError"]


@pytest.fixture
def read_key(project: Project) -> str:
    return api_key_create(project=project, name="reader", scopes=[Scope.READ])[1]


@reused
def talk(api: Api) -> str:
    """Return the ID of a session with a few turns."""
    api.post("sessions/", {"id": "talk", "format": "anthropic", "budget": {"input_tokens": 20_000}})
    for number in range(4):
        push(api, whole_turn(number), "talk")
    return "talk"


class TestSdk:
    """The official client, over HTTP."""

    @staticmethod
    def run(url: str, key: str, use: Callable[[Client], Awaitable[Any]], mode: str) -> Any:
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client

        async def main() -> Any:
            headers = {"Authorization": f"Bearer {key}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
            ):
                return await use(client)

        return run(main())

    @pytest.mark.processes
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    def test_tools_are_listed_and_called(self, mode, served_url, api_key, talk):
        async def use(client: Client) -> Any:
            listed = await client.list_tools()
            note = {"op": "add", "field": "decisions", "item": "Keep the pool at 20"}
            written = await client.call_tool("update_working_memory", {"operations": [note]})
            return listed, written, await client.call_tool("working_memory", {"session": talk})

        listed, written, memory = self.run(served_url, api_key, use, mode)
        assert {each.name for each in listed.tools} == TOOLS
        assert not written.is_error
        assert "Keep the pool at 20" in memory.content[0].text


class TestBothForms:
    def test_the_handshake_negotiates_a_version_the_server_knows(self, api_key):
        for sent, agreed in [("2025-06-18", "2025-06-18"), ("1999-01-01", HANDSHAKE)]:
            asking = request("initialize", protocolVersion=sent, capabilities={}, clientInfo={"name": "t"})
            result = post(api_key, asking).json()["result"]
            assert result["protocolVersion"] == agreed
            assert result["capabilities"] == {"tools": {}}
        assert post(api_key, request("notifications/initialized", id=None)).status_code == 202
        assert post(api_key, request("ping")).json()["result"] == {}

    def test_discovery_names_all_versions(self, api_key):
        result = current(api_key, "server/discover").json()["result"]
        assert {CURRENT, HANDSHAKE} <= set(result["supportedVersions"])
        assert result["resultType"] == "complete"

    def test_an_unknown_version_is_answered_with_the_known_ones(self, api_key):
        meta = META | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        response = post(
            api_key,
            request("tools/list", _meta=meta),
            **{"MCP-Protocol-Version": "2031-01-01", "Mcp-Method": "tools/list"},
        )
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["code"] == -32022
        assert CURRENT in error["data"]["supported"]

    @pytest.mark.parametrize(
        ("headers", "code"),
        [
            ({"Mcp-Method": "ping", "Mcp-Name": "context_status"}, -32020),
            ({"Mcp-Method": "tools/call", "Mcp-Name": "expand_clip"}, -32020),
            ({"Mcp-Method": "tools/call"}, -32020),
            ({"Mcp-Method": "tools/call", "MCP-Protocol-Version": HANDSHAKE}, None),
        ],
    )
    def test_headers_must_agree_with_the_body(self, headers, code, api_key, talk):
        asking = request("tools/call", name="context_status", arguments={}, _meta=META)
        body = post(api_key, asking, **{"MCP-Protocol-Version": CURRENT, **headers}).json()
        assert body.get("error", {}).get("code") == code

    @pytest.mark.parametrize(
        ("body", "code", "status"),
        [
            ("{", -32700, 400),
            ([], -32700, 400),
            ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600, 400),
            ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, 400),
            ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, 400),
            (request("resources/list"), -32601, 200),
            (request("tools/call", name="rm"), -32602, 200),
            (request("tools/call", name=1), -32602, 200),
        ],
    )
    def test_invalid_messages_get_a_json_rpc_error(self, body, code, status, api_key):
        response = post(api_key, body)
        assert response.json()["error"]["code"] == code
        assert response.status_code == status

    @pytest.mark.parametrize(
        ("method", "params", "code", "status"),
        [
            ("resources/list", {}, -32601, 404),
            ("ping", {}, -32601, 404),
            ("tools/call", {"name": "rm"}, -32602, 400),
        ],
    )
    def test_errors_of_the_current_form_have_an_http_status(self, method, params, code, status, api_key):
        response = current(api_key, method, **params)
        assert (response.json()["error"]["code"], response.status_code) == (code, status)

    def test_only_post_is_supported(self, api_key):
        response = DjangoClient().get("/mcp", headers={"Authorization": f"Bearer {api_key}"})
        assert response.status_code == 405
        assert response.headers["Allow"] == "POST"


class TestAccess:
    def test_a_key_is_required(self, db):
        response = post("", request("ping"))
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"

    def test_another_project_is_out_of_reach(self, stranger_api_key, talk):
        text, is_error = tool(stranger_api_key, "context_status", session=talk)
        assert is_error
        assert text == "No session with the id 'talk' in this project."
        text, is_error = tool(stranger_api_key, "context_status", path="/mcp/s/talk")
        assert is_error
        assert tool(stranger_api_key, "context_status") == ("This project has no sessions yet.", True)

    def test_a_reader_cannot_write(self, read_key, talk):
        assert not tool(read_key, "working_memory")[1]
        assert tool(read_key, "request_compaction") == ("The API key lacks the scope `push`.", True)

    def test_scripts_of_other_websites_are_rejected(self, api_key):
        assert post(api_key, request("ping"), Origin="https://evil.example").status_code == 403
        assert post(api_key, request("ping"), Origin="http://testserver").status_code == 200
        rebound = {"Origin": "http://evil.example", "Host": "evil.example"}
        assert post(api_key, request("ping"), **rebound).status_code == 403


class TestTools:
    def test_the_newest_session_is_the_default(self, api_key, api, talk):
        api.post("sessions/", {"id": "newer", "format": "anthropic"})
        api.post("sessions/newer/turns/", {"messages": [{"role": "user", "content": "Find the kiwi."}]})
        assert "in 1 turn." in tool(api_key, "context_status")[0]
        assert "in 4 turns" in tool(api_key, "context_status", session="talk")[0]
        assert "in 4 turns" in tool(api_key, "context_status", path="/mcp/s/talk")[0]

    def test_the_url_decides_the_session_and_the_argument_disappears(self, api_key, talk):
        tools = current(api_key, "tools/list", path="/mcp/s/talk").json()["result"]["tools"]
        assert {each["name"] for each in tools} == TOOLS
        assert all("session" not in each["inputSchema"]["properties"] for each in tools)

    def test_no_tool_is_announced_as_destructive(self, api_key):
        """Clients ask the user before each call of a tool that may be."""
        tools = current(api_key, "tools/list").json()["result"]["tools"]
        assert {each["annotations"]["destructiveHint"] for each in tools} == {False}
        writing = {each["name"] for each in tools if not each["annotations"]["readOnlyHint"]}
        assert writing == {"update_working_memory", "request_compaction"}

    def test_a_compaction_on_request_is_reported_by_the_status(self, api_key, talk):
        assert "Not compacted yet." in tool(api_key, "context_status")[0]
        text, is_error = tool(api_key, "request_compaction")
        assert not is_error
        assert text.startswith("Compaction 1")

    @pytest.mark.slow
    def test_results_stay_under_the_limit_of_clients(self, api_key, api, talk):
        api.post("sessions/", {"id": "long", "format": "anthropic"})
        api.post("sessions/long/turns/", {"messages": [{"role": "user", "content": "漢字の壁 " * 30_000}]})
        text, is_error = tool(api_key, "search_history", query="漢字の壁")
        assert not is_error
        assert len(text) < 40_000

    @pytest.mark.slow
    def test_search_in_the_whole_project(self, api_key, api, talk, stranger_api):
        words = {"messages": [{"role": "user", "content": "The migration stops at the walrus index."}]}
        api.post("sessions/", {"id": "earlier", "title": "Fix the migration"})
        api.post("sessions/earlier/turns/", words)
        stranger_api.post("sessions/", {"id": "foreign", "title": "Foreign"})
        stranger_api.post("sessions/foreign/turns/", words)
        search_index_run(everywhere=True)
        assert tool(api_key, "search_history", query="walrus", session=talk)[0] == "nothing found"
        text, is_error = tool(api_key, "search_history", query="walrus", session=talk, scope="project")
        assert not is_error
        assert text.startswith("[session earlier (Fix the migration), ")
        assert "walrus index" in text
        assert "foreign" not in text

    def test_search_in_an_unknown_scope_is_an_error(self, api_key, talk):
        text, is_error = tool(api_key, "search_history", query="x", scope="everything")
        assert (text, is_error) == ("`scope` must be one of: session, project.", True)

    def test_arguments_with_nul_do_no_harm(self, api_key, api, talk):
        operation = {"op": "add", "field": "decisions", "item": "split at \0"}
        noted = tool(api_key, "update_working_memory", operations=[operation], reason="read \0" * 1_000)
        assert noted == ("working memory is at revision 1", False)
        assert len(api.get("sessions/talk/memory/revisions/1/").json()["reason"]) == 500
        assert tool(api_key, "context_status", session="talk\0")[1]
        assert not tool(api_key, "request_compaction", instructions="keep \0")[1]

    def test_a_slash_at_the_end_of_the_url_is_accepted(self, api_key, talk):
        assert post(api_key, request("ping"), path="/mcp/").json()["result"] == {}

    def test_errors_are_results_that_the_model_can_read(self, api_key, talk):
        text, is_error = tool(api_key, "expand_clip", handle="h_unknown")
        assert is_error
        assert text
