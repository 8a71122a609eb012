"""What the OpenAPI schema says of every call: the errors, and how to authenticate."""

from __future__ import annotations

from typing import Any

from sessions.api.serializers import Error

#: Every call may answer these.
_ALWAYS = (401, 403, 404, 429, 500, 503)


def errors(*statuses: int) -> dict[int, Any]:
    """The error answers of a call: its own and those that every call has."""
    return dict.fromkeys(sorted({*_ALWAYS, *statuses}), Error)
