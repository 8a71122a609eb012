"""The OpenAPI description of endpoints: parameters, errors, scopes, tags and examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema

from sessions.api.examples import EXAMPLES
from sessions.api.serializers import Error

#: Error statuses of every endpoint.
_ALWAYS = (400, 401, 403, 404, 429, 500, 503)

_TAGS = {
    "turns": "Turns and prompts",
    "prompt": "Turns and prompts",
    "validate": "Turns and prompts",
    "compact": "Compactions",
    "compactions": "Compactions",
    "memory": "Working memory",
    "blobs": "Removed content",
    "pin": "Compactions",
    "search": "Removed content",
    "tools": "Agent tools",
    "tool_calls": "Agent tools",
    "usage": "Usage",
    "imports": "Imports",
    "replays": "Replays",
    "webhooks": "Webhooks",
}


Handler = TypeVar("Handler", bound=Callable[..., Any])


def operation(*, parameters: Sequence[OpenApiParameter] = (), **options: Any) -> Callable[[Handler], Handler]:
    """Describe an endpoint's method in the schema. Requests with other query parameters are rejected."""

    def describe(handler: Handler) -> Handler:
        query = frozenset(each.name for each in parameters if each.location == OpenApiParameter.QUERY)
        handler.query_names = query  # type: ignore[attr-defined]  # functions take attributes
        return extend_schema(parameters=list(parameters), **options)(handler)

    return describe


def error_responses(*statuses: int) -> dict[int, Any]:
    """Return the error responses of an endpoint: `statuses` and those of every endpoint."""
    return dict.fromkeys(sorted({*_ALWAYS, *statuses}), Error)


class CallSchema(AutoSchema):
    """Describes the methods of an `Endpoint`."""

    def get_tags(self) -> list[str]:
        tags = [_TAGS[piece] for piece in self.path.split("/") if piece in _TAGS]
        return tags[:1] or ["Sessions"]

    def get_description(self) -> str:  # type: ignore[override]  # drf-spectacular annotates the return type as str
        text: str = super().get_description() or ""
        scope = getattr(self.view, "scopes", {}).get(self.method)
        return "\n\n".join(filter(None, (text, scope and f"Requires an API key with the `{scope}` scope.")))

    def get_auth(self) -> list[dict[str, list[str]]]:
        return [{"apiKey": []}]  # defined in SPECTACULAR_SETTINGS; `Endpoint` checks keys, not DRF

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
