"""Settings of the OpenAPI schema and its documentation page."""

from __future__ import annotations

from typing import Any


def openapi_settings(version: str) -> dict[str, Any]:
    return {
        "TITLE": "contextapp",
        "DESCRIPTION": "Session store and context compactor for LLM agents. Agents push each turn and fetch "
        "back a prompt that fits the budget and is valid for the provider.",
        "VERSION": version,
        "SERVERS": [{"url": "/", "description": "this server"}],
        "SERVE_INCLUDE_SCHEMA": False,
        "SCHEMA_PATH_PREFIX": "/api/v1",
        "APPEND_COMPONENTS": {
            "securitySchemes": {
                "apiKey": {"type": "http", "scheme": "bearer", "description": "an API key: `ctx_…`"}
            }
        },
        "ENUM_NAME_OVERRIDES": {
            "WebhookEventEnum": "sessions.models.WebhookEvent",
            "SharedFactStateEnum": "sessions.models.SharedFact.State",
            "ReplayStateEnum": "replay.models.ReplayRun.State",
            "ReplayWantedEnum": "replay.services.runs.WANTED",
        },
        # In the order in which the author of an agent needs them.
        "TAGS": [
            {"name": "Sessions"},
            {"name": "Turns and prompts"},
            {"name": "Compactions"},
            {"name": "What the prompt no longer shows"},
            {"name": "The agent's tools"},
            {"name": "Working memory"},
            {"name": "Usage"},
            {"name": "Imports"},
            {"name": "Replays"},
            {"name": "Webhooks"},
        ],
        "SWAGGER_UI_DIST": "SIDECAR",
        "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
        "SWAGGER_UI_SETTINGS": {"persistAuthorization": False, "docExpansion": "list", "validatorUrl": None},
    }
