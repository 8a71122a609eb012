"""The fields of pushes and reconciliations in which a client reports its model call.

Not a serializer, because this is the hot path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.messages import Usage
from compaction.provider_engine import ProviderReport
from pricing.usage import INPUT_FIELDS, UsageError, cache_writes_1h, has_input_tokens, usage_read
from sessions.api.auth import Principal
from sessions.api.errors import InvalidField, sentence, unknown_field
from sessions.api.ingestion import reject_secret
from sessions.services.push.values import Latency, Push

CALL_FIELDS = frozenset(
    {"usage", "model", "latency", "request_id", "response_id", "context_management", "input_transformations"}
)

#: The fields of a response of Anthropic that a push reports.
_RESPONSE_FIELDS = frozenset({"usage", "model", "context_management", "input_transformations"})

#: Maximum duration of a call in milliseconds: one day.
_MAX_MS = 86_400_000

_FIRST, _DURATION = "time_to_first_token_ms", "duration_ms"


def call_read(body: Mapping[str, Any], principal: Principal) -> Push:
    """Return what the body reports about its call, as a push without messages. Raises `InvalidRequest`."""
    names = {name: text_field(body, name) for name in ("model", "request_id", "response_id")}
    for name, text in names.items():
        if text:
            reject_secret(text, name, principal.redaction)
    usage, cache_write_1h = _usage(body.get("usage"))
    return Push(
        messages=(),
        model=names["model"],
        usage=usage,
        cache_write_1h_tokens=cache_write_1h,
        latency=_latency(body.get("latency")),
        prices=principal.prices,
        request_id=names["request_id"] or None,
        response_id=names["response_id"] or None,
        provider=_provider_report(body),
    )


def with_response_fields(body: Mapping[str, Any], messages: Sequence[Any]) -> Mapping[str, Any]:
    """Return the body with what its messages report, if one of them is a whole response of Anthropic.

    Fields of the body take precedence.
    """
    for message in messages:
        if (
            isinstance(message, dict)
            and message.get("type") == "message"
            and isinstance(message.get("usage"), dict)
        ):
            own = {name: value for name, value in body.items() if value is not None}
            return {name: message[name] for name in _RESPONSE_FIELDS & message.keys()} | own
    return body


def text_field(body: Mapping[str, Any], name: str) -> str:
    """Return a text field of the body, "" if it is missing. Raises `InvalidRequest`."""
    value = "" if body.get(name) is None else body[name]
    if not isinstance(value, str) or len(value) > 200 or "\0" in value:
        raise InvalidField(name, f"`{name}` must be a string of at most 200 characters.")
    return value


def _usage(data: Any) -> tuple[Usage | None, int]:
    """Return the usage, if any, and the number of cache-write tokens with a TTL of one hour."""
    if data is None or data == {}:
        return None, 0
    if not isinstance(data, dict):
        raise InvalidField("usage", "`usage` must be an object.")
    try:
        usage = usage_read(data), cache_writes_1h(data)
    except UsageError as error:
        raise InvalidField(f"usage.{error.field}", sentence(error)) from None
    if INPUT_FIELDS.isdisjoint(data):
        raise InvalidField(
            "usage",
            "`usage` must have `input_tokens`, `prompt_tokens` or `promptTokenCount`, as in a response of "
            "Anthropic, OpenAI or Gemini.",
        )
    return usage if has_input_tokens(data) else (None, 0)


def _latency(data: Any) -> Latency:
    """Return how long the call took, as the client measured it."""
    if data is None:
        return Latency()
    if not isinstance(data, dict):
        raise InvalidField("latency", "`latency` must be an object.")
    if unknown := data.keys() - {_FIRST, _DURATION}:
        raise unknown_field(min(unknown), (_FIRST, _DURATION), within="latency")
    first, duration = (_milliseconds(data, name) for name in (_FIRST, _DURATION))
    if first is not None and duration is not None and first > duration:
        raise InvalidField(f"latency.{_FIRST}", f"`latency.{_FIRST}` must not exceed `latency.{_DURATION}`.")
    return Latency(first_token_ms=first, duration_ms=duration)


def _milliseconds(data: dict[str, Any], name: str) -> int | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_MS:
        raise InvalidField(
            f"latency.{name}",
            f"`latency.{name}` must be a whole number of milliseconds between 0 and {_MAX_MS:,}.",
        )
    return value


def _provider_report(body: Mapping[str, Any]) -> ProviderReport | None:
    """Return what the provider reports about its own compaction."""
    for name, kind, text in (
        ("context_management", dict, "an object"),
        ("input_transformations", list, "an array"),
    ):
        if not isinstance(body.get(name), kind | None):
            raise InvalidField(name, f"`{name}` must be {text}.")
    return ProviderReport.of(
        body.get("context_management"), body.get("input_transformations"), body.get("usage")
    )
