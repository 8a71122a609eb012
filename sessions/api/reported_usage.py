"""The usage that a client reports with a call."""

from __future__ import annotations

from typing import Any

from compaction.messages import Usage
from pricing.usage import INPUT_FIELDS, UsageError, cache_writes_1h, has_input_tokens, usage_read
from sessions.api.errors import InvalidField, sentence


def usage_field(data: Any) -> tuple[Usage | None, int]:
    """Return the usage, and the number of cache-write tokens with a TTL of one hour.

    Returns None and 0 if no usage is reported. Raises `InvalidRequest`.
    """
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
            "`usage` must have `input_tokens` or `prompt_tokens`, as in a response of Anthropic or OpenAI.",
        )
    return usage if has_input_tokens(data) else (None, 0)
