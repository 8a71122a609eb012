"""Read attributes, whose types differ between emitters: Codex sends numbers as strings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from telemetry.records import plausible

#: Beginnings of resource attributes that describe the process and not the work. They are not labels.
_TECHNICAL = (
    "aws.", "cloud.", "container.", "deployment.", "device.", "faas.", "gcp.", "host.", "k8s.", "os.",
    "openinference.", "process.", "service.", "telemetry.", "webengine.", "wsl.",
)  # fmt: skip

_MAX_LABELS = 10

#: Maximum number of tokens of one field (see `pricing.usage`), and of milliseconds: a day.
MAX_TOKENS, MAX_MS = 500_000_000, 86_400_000


def text(values: Mapping[str, Any], *names: str) -> str:
    """Return the first of these attributes that is a text or a number, without NUL; "" if there is none."""
    for name in names:
        value = values.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip().replace("\0", "\ufffd")
    return ""


def number(values: Mapping[str, Any], *names: str, most: int = MAX_TOKENS) -> int | None:
    """Return the first of these attributes that is a number from 0 to `most`, or None."""
    for name in names:
        value = values.get(name)
        if value is None or isinstance(value, bool):
            continue
        try:
            found = round(float(value))
        except (TypeError, ValueError, OverflowError):
            continue
        if 0 <= found <= most:
            return found
    return None


def milliseconds(values: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of these attributes that is a duration in milliseconds, or None."""
    return number(values, *names, most=MAX_MS)


def is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def time(values: Mapping[str, Any], name: str, otherwise: datetime | None) -> datetime | None:
    """Return a time in ISO 8601; `otherwise` if there is none or it is absurd."""
    value = values.get(name)
    if not isinstance(value, str):
        return otherwise
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return otherwise
    return plausible(found if found.tzinfo is not None else found.replace(tzinfo=UTC)) or otherwise


def labels(resource: Mapping[str, Any]) -> dict[str, str]:
    """Return the resource attributes that the operator set, such as `team.id`."""
    found = {key: text(resource, key) for key in sorted(resource) if not key.startswith(_TECHNICAL)}
    return {key: value for key, value in list(found.items())[:_MAX_LABELS] if value}
