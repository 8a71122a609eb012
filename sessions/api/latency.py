"""The field `latency` of a pushed turn: how long the model call took, as the client measured it."""

from __future__ import annotations

from typing import Any

from sessions.api.errors import InvalidField, unknown_field
from sessions.services.push.values import Latency

#: Maximum duration of a call in milliseconds: one day.
MAX_MS = 86_400_000

_FIRST, _DURATION = "time_to_first_token_ms", "duration_ms"


def latency_field(data: Any) -> Latency:
    """Return the latency of a call, without values if it is missing. Raises `InvalidRequest`."""
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
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_MS:
        raise InvalidField(
            f"latency.{name}",
            f"`latency.{name}` must be a whole number of milliseconds between 0 and {MAX_MS:,}.",
        )
    return value
