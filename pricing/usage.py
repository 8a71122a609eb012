"""Read the usage that providers report: three disjoint parts of the input, and the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.messages import Usage

#: Maximum tokens of one field. The sum of a prompt's three parts still fits a 32-bit column.
MAX_TOKENS = 500_000_000


class UsageError(ValueError):
    """A field of the usage has an invalid value."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def usage_read(data: Mapping[str, Any]) -> Usage:
    """Return the usage of one call, as reported by Anthropic, OpenAI Chat or OpenAI Responses.

    Anthropic's `input_tokens` exclude cached tokens. OpenAI's `prompt_tokens` include them, and so do the
    `input_tokens` of the Responses API, which has `input_tokens_details`. Raises `UsageError`.
    """
    output = _tokens(data, "output_tokens") or _tokens(data, "completion_tokens")
    if "prompt_tokens" in data or "input_tokens_details" in data:
        whole = _tokens(data, "prompt_tokens") or _tokens(data, "input_tokens")
        details = data.get("prompt_tokens_details") or data.get("input_tokens_details") or {}
        if not isinstance(details, Mapping):
            raise UsageError("prompt_tokens_details", "must be an object")
        read = min(_tokens(details, "cached_tokens"), whole)
        written = min(_tokens(details, "cache_write_tokens"), whole - read)
        return Usage(
            uncached_tokens=whole - read - written,
            cache_read_tokens=read,
            cache_write_tokens=written,
            output_tokens=output,
        )
    return Usage(
        uncached_tokens=_tokens(data, "input_tokens"),
        cache_read_tokens=_tokens(data, "cache_read_input_tokens"),
        cache_write_tokens=_tokens(data, "cache_creation_input_tokens"),
        output_tokens=output,
    )


def written_for_an_hour(data: Mapping[str, Any]) -> int:
    """Return the cache-write tokens with a TTL of one hour, which cost more (Anthropic only)."""
    split = data.get("cache_creation")
    return _tokens(split, "ephemeral_1h_input_tokens") if isinstance(split, Mapping) else 0


def _tokens(data: Mapping[str, Any], field: str) -> int:
    value = data.get(field)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_TOKENS:
        raise UsageError(field, f"`{field}` must be a whole number of tokens from 0 to {MAX_TOKENS:,}")
    return value
