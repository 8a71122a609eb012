"""What the OpenAPI schema says of every call: its errors, scope, tag and examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema

from sessions.api.examples import EXAMPLES
from sessions.api.serializers import Error

#: Every call may answer these.
_ALWAYS = (400, 401, 403, 404, 429, 500, 503)

_TAGS = {
    "turns": "Turns and prompts",
    "prompt": "Turns and prompts",
    "validate": "Turns and prompts",
    "compact": "Compactions",
    "compactions": "Compactions",
    "memory": "Working memory",
    "blobs": "What the prompt no longer shows",
    "pin": "Compactions",
    "search": "What the prompt no longer shows",
    "tools": "The agent's tools",
    "tool_calls": "The agent's tools",
    "usage": "Usage",
    "imports": "Imports",
    "replays": "Replays",
    "webhooks": "Webhooks",
}


Handler = TypeVar("Handler", bound=Callable[..., Any])


def operation(*, parameters: Sequence[OpenApiParameter] = (), **told: Any) -> Callable[[Handler], Handler]:
    """What the schema says of a call, which refuses query parameters that it does not name."""

    def describe(handler: Handler) -> Handler:
        query = frozenset(each.name for each in parameters if each.location == OpenApiParameter.QUERY)
        handler.query_names = query  # type: ignore[attr-defined]  # functions take attributes
        return extend_schema(parameters=list(parameters), **told)(handler)

    return describe


def error_responses(*statuses: int) -> dict[int, Any]:
    """The error answers of a call: its own and those that every call has."""
    return dict.fromkeys(sorted({*_ALWAYS, *statuses}), Error)


class CallSchema(AutoSchema):
    """Describes an `Endpoint`."""

    def get_tags(self) -> list[str]:
        named = [_TAGS[piece] for piece in self.path.split("/") if piece in _TAGS]
        return named[:1] or ["Sessions"]

    def get_description(self) -> str:  # type: ignore[override]  # as drf-spectacular has it
        told: str = super().get_description() or ""
        scope = getattr(self.view, "scopes", {}).get(self.method)
        return "\n\n".join(filter(None, (told, scope and f"The key needs the scope `{scope}`.")))

    def get_auth(self) -> list[dict[str, list[str]]]:
        return [{"apiKey": []}]  # the scheme stands in the settings: `Endpoint` checks keys, not DRF

    def get_examples(self) -> list[OpenApiExample]:
        found = EXAMPLES.get(self.get_operation_id(), {})
        return [
            *(
                OpenApiExample(name, value=value, request_only=True)
                for name, value in found.get("request", {}).items()
            ),
            *(
                OpenApiExample(name, value=value, response_only=True, status_codes=[status])
                for status, answers in found.get("response", {}).items()
                for name, value in answers.items()
            ),
        ]
