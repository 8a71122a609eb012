"""Settings of the OpenAPI schema and its documentation page."""

from __future__ import annotations

from typing import Any

_DESCRIPTION = """\
Session store and context compactor for LLM agents. Agents push each turn and fetch a prompt that fits the \
budget and is valid for the provider.

Send an API key with each request: `Authorization: Bearer ctx_…`. All errors have the same format: \
`{"error": {"type", "code", "message", "param"}}`. Lists are paginated: pass `next_cursor` as `cursor` to \
get the next page. Telemetry in OTLP over HTTP is accepted at `/otel/v1/logs` and `/otel/v1/traces`, and the \
Model Context Protocol at `/mcp`; their specifications describe them. Amounts named `…_microusd` are in \
millionths of a US dollar.
"""

#: In the order in which an agent developer needs them.
_TAGS = {
    "Sessions": "A session is the history of one agent run.",
    "Turns and prompts": "Push each turn, then fetch the prompt of the next model call.",
    "Compactions": "Compactions shorten the prompt. They never change stored messages.",
    "Removed content": "Retrieve content that is no longer in the prompt.",
    "Search": "Find messages in one session or in all sessions of the project.",
    "Agent tools": "Tools that give the model access to removed content and working memory.",
    "Working memory": "Notes about the task that stay in the prompt after compactions.",
    "Usage": "Tokens and cost by day, model, agent and tag.",
    "Imports": "Import the logs of coding agents.",
    "Replays": "Compare policies and budgets on recorded sessions.",
    "Webhooks": "Notifications about compactions, tool output spikes and cost budgets.",
    "OpenTelemetry": "OTLP over HTTP, with or without gzip. Errors are a `google.rpc.Status`.",
}


def openapi_settings(version: str) -> dict[str, Any]:
    """Return the settings of drf-spectacular."""
    return {
        "TITLE": "contextapp",
        "DESCRIPTION": _DESCRIPTION,
        "VERSION": version,
        "SERVERS": [{"url": "/", "description": "This server"}],
        "SERVE_INCLUDE_SCHEMA": False,
        "SORT_OPERATIONS": False,  # the order of the URLs
        "SCHEMA_PATH_PREFIX": "/api/v1",
        "COMPONENT_SPLIT_PATCH": False,  # the serializers of PATCH state themselves what is required
        "APPEND_COMPONENTS": {
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key, such as `ctx_…`."}
            }
        },
        "ENUM_NAME_OVERRIDES": {
            "ImportStateEnum": "sessions.models.ImportJob.State",
            "ImportedSessionStateEnum": "sessions.api.serializers.imports.SESSION_STATES",
            "FormatEnum": "compaction.dialects.dialect_choices",
            "WebhookFormatEnum": "sessions.models.WebhookFormat",
            "WebhookEventEnum": "sessions.models.WebhookEvent",
            "SharedFactStateEnum": "sessions.models.SharedFact.State",
            "ReplayStateEnum": "replay.models.ReplayRun.State",
            "ReplayWantedEnum": "replay.services.runs.REQUESTABLE",
        },
        "TAGS": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "SWAGGER_UI_DIST": "SIDECAR",
        "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
        "SWAGGER_UI_SETTINGS": {"persistAuthorization": False, "docExpansion": "list", "validatorUrl": None},
    }
