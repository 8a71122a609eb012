"""`tools/` and `sessions/{id}/tool_calls/`: list and call the tools for the agent's model."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from accounts.models import Scope
from compaction import dialects
from compaction.jsontext import is_object, loads_object
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, InvalidRequest, NotAllowed
from sessions.api.lookup import session_or_404
from sessions.api.parameters import format_param, format_parameter
from sessions.api.schema import operation
from sessions.api.serializers import contents as serializers
from sessions.services.agent_tools import TOOLS, ToolError


class Tools(Endpoint):
    @operation(
        "tools_list",
        "List agent tools",
        serializers.Tools,
        parameters=[format_parameter(f"Format of the definitions. Defaults to `{dialects.DEFAULT}`.")],
    )
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns the definitions of tools to add to the model's tools. Pass the model's calls to them to
        `sessions/{id}/tool_calls/`."""
        format = format_param(call) or dialects.DEFAULT
        definitions = [tool.definition(format) for tool in TOOLS.values()]
        return json_response({"format": format, "tools": definitions})


class ToolCalls(Endpoint):
    @operation("tool_calls", "Call an agent tool", serializers.ToolResult, request=serializers.ToolCall)
    def post(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Runs a tool that the model called and returns the result for the model. Errors that the model can
        fix are returned with `is_error`. Tools that return content also require the scope `read`."""
        data = call.validated(serializers.ToolCall)
        session = session_or_404(call, session_id)
        tool = TOOLS.get(data["name"])
        if tool is None:
            raise InvalidRequest(
                "unknown_tool",
                f"No tool named {data['name']!r}. Available: {', '.join(TOOLS)}.",
                param="name",
            )
        if not tool.writes and Scope.READ not in call.principal.scopes:
            raise NotAllowed("missing_scope", f"The API key lacks the scope `{Scope.READ}`.")
        try:
            return json_response({"content": tool.run(session, _arguments(data)), "is_error": False})
        except ToolError as error:
            return json_response({"content": str(error), "is_error": True})


def _arguments(data: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as an object. Dialects pass them as an object or as a JSON string.

    Raises `ToolError` for a string that the model has not finished, or that is not JSON.
    """
    arguments = data.get("arguments") or {}
    if isinstance(arguments, str):
        if arguments.strip() and not is_object(arguments):
            raise ToolError("the arguments are not a complete JSON object")
        return dict(loads_object(arguments))
    if not isinstance(arguments, dict):
        raise InvalidField("arguments", "`arguments` must be an object.")
    return arguments
