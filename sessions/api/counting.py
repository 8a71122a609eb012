"""What a push brings, read: bytes, values, tokens; without secrets. No database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from compaction import dialects
from compaction.adapters.tiktoken_counter import counter
from redaction import Finding, Redaction, redact, redact_bytes
from sessions.api.errors import InvalidRequest
from sessions.services.push.values import NewPreamble, PushedMessage
from sessions.store import bodies


def messages_read(
    elements: Sequence[bytes], values: Sequence[dict[str, Any]], *, format: str, key: Redaction
) -> tuple[list[PushedMessage], list[Finding]]:
    """The messages of a push with their tokens, secrets taken out, and what was taken out.

    Raises `InvalidRequest` where a limit is passed.
    """
    if len(elements) > settings.CONTEXTAPP_MAX_MESSAGES:
        raise InvalidRequest(
            "too_many_messages",
            f"{len(elements):,} messages; one push may bring {settings.CONTEXTAPP_MAX_MESSAGES:,}",
            param="messages",
            status=413,
        )
    found: list[Finding] = []
    clean: list[bytes] = []
    read: list[Any] = []
    for index, (data, value) in enumerate(zip(elements, values, strict=True)):
        if len(data) > settings.CONTEXTAPP_MAX_MESSAGE_BYTES:
            raise InvalidRequest(
                "text_too_long",
                f"{len(data):,} bytes; a message may have {settings.CONTEXTAPP_MAX_MESSAGE_BYTES:,}",
                param=f"messages[{index}]",
                status=413,
            )
        safe, findings = redact_bytes(data, key=key)
        found.extend(findings)
        clean.append(safe)
        read.append(value if safe is data else bodies.json_value(safe))
    parsed = dialects.parse(read, format=format, counter=counter())
    return [PushedMessage(data=data, value=value) for data, value in zip(clean, parsed, strict=True)], found


def secret_refuse(text: str, name: str, key: Redaction) -> None:
    """Raises `InvalidRequest` where a text that names something holds a secret: it cannot be redacted, since
    calls would no longer find what it names."""
    _, found = redact(text, key=key)
    if found:
        raise InvalidRequest(
            "secret_in_field", f"`{name}` holds a secret ({found[0].kind}); nothing was stored", param=name
        )


def preamble_read(system: Any, tools: Any, *, key: Redaction) -> NewPreamble | None:
    """System text and tools with their tokens, secrets taken out; None where neither came.

    Raises `InvalidRequest` where no provider's client would take them.
    """
    if system is None and tools is None:
        return None
    if not (system is None or isinstance(system, str) or _are_objects(system)):
        raise InvalidRequest("invalid_field", "`system` must be a text or a list of blocks", param="system")
    if not (tools is None or _are_objects(tools)):
        raise InvalidRequest("invalid_field", "`tools` must be a list of tool definitions", param="tools")
    system_json = redact_bytes(bodies.json_bytes(system), key=key)[0] if system else None
    tools_json = redact_bytes(bodies.json_bytes(tools), key=key)[0] if tools else None
    return NewPreamble(
        system=system_json,
        tools=tools_json,
        system_tokens=_tokens(system_json),
        tools_tokens=_tokens(tools_json),
    )


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _tokens(data: bytes | None) -> int:
    if data is None:
        return 0
    value = bodies.json_value(data)
    return counter().count(value if isinstance(value, str) else data.decode())
