"""Ingestion of request bodies: limits and field checks of the API, then `sessions.services.ingestion`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from compaction import dialects
from redaction import Finding, Redaction, redact
from sessions.api.errors import InvalidField, InvalidRequest
from sessions.services.ingestion import IngestedMessage, NewPreamble, messages_ingest, preamble_ingest


def ingest_messages(
    elements: Sequence[bytes], values: Sequence[Any], *, format: str | None, redaction: Redaction
) -> tuple[list[IngestedMessage], list[Finding]]:
    """Return the messages of a push and the secrets found in them.

    `format` is the dialect of the session. Raises `InvalidRequest` if there are too many messages, or one is
    too large or fits no dialect.
    """
    check_messages(elements, values, format=format, maximum=settings.CONTEXTAPP_MAX_MESSAGES)
    return messages_ingest(elements, values, format=format, redaction=redaction)


def prompt_messages_max() -> int:
    """Return how many messages a whole prompt may have: it contains the messages of many pushes."""
    return int(settings.CONTEXTAPP_MAX_MESSAGES) * 10


def check_messages(
    elements: Sequence[bytes], values: Sequence[Any], *, format: str | None, maximum: int
) -> None:
    """Raise `InvalidRequest` for more than `maximum` messages, an oversized one, or one that fits no dialect.

    `elements` and `values` are the same messages as JSON bytes and as parsed JSON.
    """
    check_count(values, maximum)
    for index, data in enumerate(elements):
        if len(data) > settings.CONTEXTAPP_MAX_MESSAGE_BYTES:
            raise InvalidRequest(
                "text_too_long",
                f"{len(data):,} bytes exceed the message limit of {settings.CONTEXTAPP_MAX_MESSAGE_BYTES:,}.",
                param=f"messages[{index}]",
                status=413,
            )
    for index, value in enumerate(values):
        if dialects.detect(value, format) is None:
            raise InvalidRequest("invalid_message", dialects.message_error(value), param=f"messages[{index}]")


def check_count(messages: Sequence[Any], maximum: int) -> None:
    """Raise `InvalidRequest` for more than `maximum` messages."""
    if len(messages) > maximum:
        raise InvalidRequest(
            "too_many_messages",
            f"{len(messages):,} messages exceed the limit of {maximum:,}.",
            param="messages",
            status=413,
        )


def ingest_preamble(system: Any, tools: Any, *, redaction: Redaction) -> NewPreamble | None:
    """Return the system prompt and tools, or None if the request has neither. Raises `InvalidRequest`."""
    check_preamble(system, tools)
    return preamble_ingest(system, tools, redaction=redaction)[0]


def check_preamble(system: Any, tools: Any) -> None:
    """Raise `InvalidRequest` if the system prompt or the tools have a form that no provider accepts."""
    if not (system is None or isinstance(system, str) or _is_list_of_objects(system) or _is_content(system)):
        text = "`system` must be a string, an array of content blocks, or an object with an array `parts`."
        raise InvalidField("system", text)
    if not (tools is None or _is_list_of_objects(tools)):
        raise InvalidField("tools", "`tools` must be an array of tool definitions.")
    for index, tool in enumerate(tools or ()):
        if not dialects.is_tool(tool):
            text = "The tool definition is not valid in any format: its name, type or functions are missing."
            raise InvalidField(f"tools[{index}]", text)


def reject_secret(value: Any, name: str, redaction: Redaction) -> None:
    """Raise `InvalidRequest` if the value of a name or a setting contains a secret.

    These values cannot be redacted: later calls could no longer find the object by them.
    """
    _, found = redact(value, redaction=redaction)
    if found:
        raise InvalidRequest(
            "secret_in_field",
            f"`{name}` contains a secret ({found[0].kind}). Nothing was stored.",
            param=name,
        )


def _is_content(value: Any) -> bool:
    """Return whether a value has the form of Gemini's `systemInstruction`."""
    return isinstance(value, dict) and _is_list_of_objects(value.get("parts"))


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
