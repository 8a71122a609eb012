"""`/mcp` and `/mcp/s/{id}`: the Model Context Protocol over streamable HTTP."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpResponse

from accounts.models import Scope
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidRequest, NotAllowed
from sessions.api.mcp import tools
from sessions.api.mcp.protocol import PARSE_ERROR, RpcError, Server, answer, read_message

INSTRUCTIONS = (
    "contextapp stores this session. Use search_history and expand_clip to retrieve content that is no "
    "longer shown, and update_working_memory for notes that must survive."
)


class Mcp(Endpoint):
    """Handles each JSON-RPC message independently, without MCP sessions or streams."""

    scopes = {"POST": Scope.READ}
    schema = None  # OpenAPI cannot describe JSON-RPC; docs/guides/mcp.md does

    def post(self, call: ApiCall, session_id: str | None = None) -> HttpResponse:
        """Handles one message of the Model Context Protocol."""
        _check_origin(call)
        id = message = None
        try:
            body = _body(call)
            id = body.get("id") if isinstance(body, dict) else None
            message = read_message(body, call.request.headers)
            if message.id is None:
                return HttpResponse(status=202)
            server = Server(
                version=settings.VERSION,
                instructions=INSTRUCTIONS,
                tools=tools.definitions(with_session=session_id is None),
                call=partial(tools.call, call.principal, session_id),
            )
            return _response(id, {"result": answer(message, server)})
        except RpcError as error:
            # Clients of earlier versions take any other status for the end of the connection.
            status = 200 if message is not None and not message.is_current else error.status
            return _response(id, {"error": error.to_json()}, status=status)


def _check_origin(call: ApiCall) -> None:
    """Reject requests from scripts of other websites, as the specification requires."""
    origin = call.request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != _host_of(call):
        raise NotAllowed("origin_not_allowed", "Requests from this origin are not allowed.")


def _host_of(call: ApiCall) -> str | None:
    """Return the host of a request, or None for a host that is not allowed, such as a rebound DNS name."""
    try:
        return call.request.get_host()
    except DisallowedHost:
        return None


def _body(call: ApiCall) -> Any:
    try:
        return call.body
    except InvalidRequest as error:
        if error.http_status == 400:
            raise RpcError(PARSE_ERROR, str(error)) from None
        raise


def _response(id: Any, outcome: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return json_response({"jsonrpc": "2.0", "id": id, **outcome}, status=status)
