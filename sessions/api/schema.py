"""The OpenAPI description of endpoints: parameters, errors, scopes, tags and examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import orjson
from django.apps import apps
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.serializers import ListField, MultipleChoiceField

from sessions.api.serializers.fields import Error, PlainText, Strict

#: Error statuses of every endpoint.
_ALWAYS = (400, 401, 403, 404, 429, 500, 503)

#: What the error statuses mean.
ERROR_TEXTS = {
    400: "The request is invalid.",
    401: "No valid API key.",
    403: "The API key lacks the required scope.",
    404: "The object does not exist in this project.",
    408: "The body was not received in time.",
    409: "The current state does not allow the request.",
    412: "`If-Match` does not match the current revision.",
    413: "The body, a message or the number of messages exceeds a limit.",
    415: "The media type or the compression of the body is not supported.",
    422: "The body is well-formed but cannot be processed.",
    428: "The `If-Match` header is required.",
    429: "The API key exceeded its rate limit. Retry after `Retry-After` seconds.",
    500: "The server failed.",
    503: "The server is busy, a service is unavailable, or the request took too long. Retry later.",
}

#: Patterns of strings without NUL, and with a character that is not blank.
_PLAIN, _NOT_BLANK = r"^[^\x00]*$", r"^[^\x00]*[^\s\x00][^\x00]*$"

_PATH_PARAMETERS = {
    "session_id": "The session's `id` or `external_id`.",
    "number": "The number within the session.",
    "handle": "The handle in the prompt, such as `h_52ft5e7ibp`.",
    "position": "The position of the message, from 0.",
    "fact_id": "The fact's id.",
    "import_id": "The import's id.",
    "replay_id": "The replay's id.",
    "webhook_id": "The webhook's id.",
    "delivery_id": "The delivery's id.",
}

_TAGS = {
    "turns": "Turns and prompts",
    "prompt": "Turns and prompts",
    "reconcile": "Turns and prompts",
    "validate": "Turns and prompts",
    "compact": "Compactions",
    "compactions": "Compactions",
    "memory": "Working memory",
    "blobs": "Removed content",
    "pin": "Compactions",
    "search": "Search",
    "tools": "Agent tools",
    "tool_calls": "Agent tools",
    "usage": "Usage",
    "imports": "Imports",
    "replays": "Replays",
    "webhooks": "Webhooks",
    "otel": "OpenTelemetry",
}


#: Requests and responses that were recorded from a real server, by operation id: {"request": {name: body},
#: "response": {status: {name: body}}}, and the "media_type" of a response that is not JSON.
EXAMPLES: Mapping[str, Any] = {
    name: example
    for app in apps.get_app_configs()
    for path in sorted(Path(app.path).glob("api/examples*.json"))
    for name, example in orjson.loads(path.read_bytes()).items()
}


Handler = TypeVar("Handler", bound=Callable[..., Any])


def operation(
    operation_id: str,
    summary: str,
    returns: Any = None,
    *,
    parameters: Sequence[OpenApiParameter] = (),
    request: Any = None,
    responses: Mapping[Any, Any] = MappingProxyType({}),
    errors: Sequence[int] = (),
) -> Callable[[Handler], Handler]:
    """Describe an endpoint's method in the schema. Requests with other query parameters are rejected.

    `returns` is the body of the response with status 200; `responses` contains other responses. `errors` are
    the error statuses in addition to those of all endpoints and of all endpoints with a body.
    """
    of_body = () if request is None else (408, 413, 415)
    statuses = sorted({*_ALWAYS, *of_body, *errors})
    described = {200: returns} if returns is not None else {}
    described |= responses
    described |= {status: OpenApiResponse(Error, description=ERROR_TEXTS[status]) for status in statuses}

    def describe(handler: Handler) -> Handler:
        query = frozenset(each.name for each in parameters if each.location == OpenApiParameter.QUERY)
        handler.query_names = query  # type: ignore[attr-defined]  # functions take attributes
        return extend_schema(
            operation_id=operation_id,
            summary=summary,
            parameters=list(parameters),
            request=request,
            responses=described,
        )(handler)

    return describe


class CallSchema(AutoSchema):
    """Describes the methods of an `Endpoint`."""

    def get_tags(self) -> list[str]:
        tags = [_TAGS[piece] for piece in self.path.split("/") if piece in _TAGS]
        return tags[:1] or ["Sessions"]

    def get_description(self) -> str:  # type: ignore[override]  # drf-spectacular annotates the return type as str
        text: str = super().get_description() or ""
        scope = getattr(self.view, "scopes", {}).get(self.method)
        return "\n\n".join(filter(None, (text, scope and f"Requires an API key with the `{scope}` scope.")))

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if isinstance(serializer, Strict):
            schema["additionalProperties"] = False
        return schema

    def _map_serializer_field(self, field: Any, direction: Any, *arguments: Any, **options: Any) -> Any:
        schema = super()._map_serializer_field(  # type: ignore[no-untyped-call]
            field, direction, *arguments, **options
        )
        if isinstance(field, MultipleChoiceField | ListField) and not field.allow_empty:
            schema = {**schema, "minItems": 1}
        return schema

    def _insert_field_validators(self, field: Any, schema: Any) -> None:
        super()._insert_field_validators(field, schema)  # type: ignore[no-untyped-call]
        # After the superclass, which would add an alternative for blank strings that the pattern matches too.
        if isinstance(field, PlainText):
            schema["pattern"] = _PLAIN if field.allow_blank else _NOT_BLANK

    def get_override_parameters(self) -> list[Any]:
        names = re.findall(r"{(\w+)}", self.path)
        return [
            OpenApiParameter(
                name,
                {"type": "integer", "minimum": 0} if name in {"number", "position"} else str,
                OpenApiParameter.PATH,
                description=_PATH_PARAMETERS[name],
            )
            for name in names
        ] + super().get_override_parameters()

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
                OpenApiExample(
                    name,
                    value=value,
                    response_only=True,
                    status_codes=[status],
                    media_type=found.get("media_type", "application/json"),
                )
                for status, answers in found.get("response", {}).items()
                for name, value in answers.items()
            ),
        ]
