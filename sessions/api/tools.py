"""`tools/` and `sessions/{id}/tool_calls/`: the tools for the agent's model, and running one."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from compaction.jsontext import loads_object
from sessions.agent_tools import TOOLS, ToolError
from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidRequest
from sessions.api.lookup import session_or_404
from sessions.api.schema import error_responses, operation
from sessions.models.session import Format


class Tools(Endpoint):
    @operation(
        operation_id="tools_list",
        summary="The tools that an agent hands to its model, in either format",
        parameters=[OpenApiParameter("format", str, enum=Format.values, description="else anthropic")],
        responses={200: serializers.Tools, **error_responses(400)},
    )
    def get(self, call: ApiCall) -> HttpResponse:
        format = call.query.get("format", Format.ANTHROPIC)
        if format not in Format.values:
            raise InvalidRequest(
                "invalid_field", f"`format` must be one of: {', '.join(Format.values)}", param="format"
            )
        return json_response(
            {"format": format, "tools": [tool.definition(format) for tool in TOOLS.values()]}
        )


class ToolCalls(Endpoint):
    @operation(
        operation_id="tool_calls",
        summary="Run one of the agent's tools",
        request=serializers.ToolCall,
        responses={200: serializers.ToolAnswer, **error_responses(400, 415)},
    )
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        data = serializers.validated(serializers.ToolCall, call.body)
        session = session_or_404(call, session_id)
        tool = TOOLS.get(data["name"])
        if tool is None:
            raise InvalidRequest(
                "unknown_tool", f"no tool {data['name']!r}; known: {', '.join(TOOLS)}", param="name"
            )
        try:
            return json_response({"content": tool.run(session, _arguments(data)), "is_error": False})
        except ToolError as error:
            return json_response({"content": str(error), "is_error": True})


def _arguments(data: dict[str, Any]) -> dict[str, Any]:
    """The arguments as an object: Anthropic's `input` is one, OpenAI's `arguments` is its JSON as text."""
    held = data.get("arguments") or {}
    if isinstance(held, str):
        return dict(loads_object(held))
    if not isinstance(held, dict):
        raise InvalidRequest("invalid_field", "`arguments` must be an object", param="arguments")
    return held
