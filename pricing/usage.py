"""Read the usage that providers report: three disjoint parts of the input, and the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compaction.messages import Usage, usage_sum

#: Maximum tokens of one field, so that the sum of a prompt's three parts fits a 32-bit column.
MAX_TOKENS = 500_000_000
#: Maximum number of iterations of one response.
_MAX_ITERATIONS = 1_000


class UsageError(ValueError):
    """A field of the usage has an invalid value."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def usage_read(data: Mapping[str, Any]) -> Usage:
    """Return the usage of one response, as reported by Anthropic, OpenAI Chat, OpenAI Responses or Gemini.

    Anthropic's `input_tokens` exclude cached tokens. OpenAI's `prompt_tokens` include them, and so do the
    `input_tokens` of the Responses API, which has `input_tokens_details`, and Gemini's `promptTokenCount`.
    Reasoning tokens are part of the output. Raises `UsageError`.

    If Anthropic made several model calls for the response, `iterations` has the usage of each, and the other
    fields exclude those that compacted the context. The counts are then the sums over the iterations, and the
    prompt is that of the last iteration of type `message`.
    """
    iterations = _iterations(data)
    if not iterations:
        return _call_usage(data)
    calls = [_call_usage(each) for each in iterations]
    total = usage_sum(calls)
    if max(total.input_tokens, total.output_tokens) > MAX_TOKENS:
        raise UsageError("iterations", f"`iterations` must not exceed {MAX_TOKENS:,} tokens in total")
    return replace(total, prompt=_answered(iterations, calls).input_tokens, calls=tuple(calls))


def has_input_tokens(data: Mapping[str, Any]) -> bool:
    """Return whether the usage reports input tokens in a known format, even if they are 0."""
    return any(data.get(name) is not None for name in INPUT_FIELDS)


#: Each provider's usage has one of these. `iterations` have the usage of several calls.
INPUT_FIELDS = frozenset(
    {"input_tokens", "prompt_tokens", "iterations", "promptTokenCount", "prompt_token_count"}
)


def cache_writes_1h(data: Mapping[str, Any]) -> int:
    """Return the cache-write tokens with a TTL of one hour, which cost more (Anthropic only).

    Raises `UsageError`.
    """
    return sum(_cache_writes(each)[_HOUR] for each in _iterations(data) or [data])


def usage_salvage(data: Mapping[str, Any]) -> tuple[Usage, int]:
    """Return the usage in a log and its cache-write tokens of one hour, ignoring invalid fields."""
    plausible = _plausible(data)
    try:
        return usage_read(plausible), cache_writes_1h(plausible)
    except UsageError:
        return Usage(), 0


_HOUR = "ephemeral_1h_input_tokens"
_FIVE_MINUTES = "ephemeral_5m_input_tokens"


def _iterations(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the usage of each model call of a response; empty if the provider does not list them."""
    found = data.get("iterations")
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise UsageError("iterations", "`iterations` must be an array of objects")
    if len(found) > _MAX_ITERATIONS:
        raise UsageError("iterations", f"`iterations` must have at most {_MAX_ITERATIONS:,} elements")
    return found


def _answered(iterations: Sequence[Mapping[str, Any]], calls: Sequence[Usage]) -> Usage:
    """Return the call with the response: the last `message`. A compaction on demand has none."""
    pairs = zip(iterations, calls, strict=True)
    messages = [call for each, call in pairs if each.get("type", "message") == "message"]
    return (messages or calls)[-1]


def _call_usage(data: Mapping[str, Any]) -> Usage:
    if "promptTokenCount" in data or "prompt_token_count" in data:
        return _gemini_usage(data)
    if "prompt_tokens" in data or "input_tokens_details" in data:
        return _inclusive_usage(data)
    written = _tokens(data, "cache_creation_input_tokens") or sum(_cache_writes(data).values())
    return Usage(
        uncached_tokens=_tokens(data, "input_tokens"),
        cache_read_tokens=_tokens(data, "cache_read_input_tokens"),
        cache_write_tokens=min(written, MAX_TOKENS),
        output_tokens=_output(data),
    )


def _gemini_usage(data: Mapping[str, Any]) -> Usage:
    """Return the usage that Gemini reports. Its Python SDK spells the fields in snake case.

    Thoughts are not part of the candidates, and the results of Google's tools not of the prompt.
    """

    def count(name: str, snake: str) -> int:
        return _tokens(data, name if data.get(name) is not None else snake)

    prompt = count("promptTokenCount", "prompt_token_count")
    tools = count("toolUsePromptTokenCount", "tool_use_prompt_token_count")
    read = min(count("cachedContentTokenCount", "cached_content_token_count"), prompt)
    answer = count("candidatesTokenCount", "candidates_token_count")
    thoughts = count("thoughtsTokenCount", "thoughts_token_count")
    return Usage(
        uncached_tokens=min(prompt - read + tools, MAX_TOKENS),
        cache_read_tokens=read,
        output_tokens=min(answer + thoughts, MAX_TOKENS),
        prompt=prompt if tools else None,
    )


def _inclusive_usage(data: Mapping[str, Any]) -> Usage:
    """Return the usage of a call whose prompt tokens include the cached ones.

    DeepSeek reports cache reads as `prompt_cache_hit_tokens`, LiteLLM under Anthropic's names.
    """
    whole = _tokens(data, "prompt_tokens") or _tokens(data, "input_tokens")
    details = _details(data, "prompt_tokens_details", "input_tokens_details")
    read = (
        _tokens(details, "cached_tokens")
        or _tokens(data, "prompt_cache_hit_tokens")
        or _tokens(data, "cache_read_input_tokens")
    )
    written = (
        _tokens(details, "cache_write_tokens")
        or _tokens(details, "cache_creation_tokens")
        or _tokens(data, "cache_creation_input_tokens")
    )
    read = min(read, whole)
    written = min(written, whole - read)
    return Usage(
        uncached_tokens=whole - read - written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=_output(data),
    )


def _output(data: Mapping[str, Any]) -> int:
    output = _tokens(data, "output_tokens") or _tokens(data, "completion_tokens")
    details = _details(data, "completion_tokens_details", "output_tokens_details")
    reasoning = _tokens(details, "reasoning_tokens")
    prompt = _tokens(data, "prompt_tokens") or _tokens(data, "input_tokens")
    return min(_whole_output(output, reasoning, prompt=prompt, total=data.get("total_tokens")), MAX_TOKENS)


def _whole_output(output: int, reasoning: int, *, prompt: int, total: Any) -> int:
    """Return the output tokens, with the reasoning tokens if the provider reports them separately.

    They are separate if they exceed the output, or if the `total` counts them in addition (xAI).
    """
    is_separate = reasoning > output or total == prompt + output + reasoning
    return output + reasoning if is_separate else output


def _cache_writes(data: Mapping[str, Any]) -> Mapping[str, int]:
    """Return Anthropic's cache-write tokens by TTL."""
    split = _details(data, "cache_creation")
    return {field: _tokens(split, field) for field in (_FIVE_MINUTES, _HOUR)}


def _details(data: Mapping[str, Any], *fields: str) -> Mapping[str, Any]:
    """Return the first of these objects that is present, or an empty one."""
    field = next((field for field in fields if data.get(field) is not None), None)
    if field is None:
        return {}
    details = data[field]
    if not isinstance(details, Mapping):
        raise UsageError(field, f"`{field}` must be an object")
    return details


def _tokens(data: Mapping[str, Any], field: str) -> int:
    value = data.get(field)
    if value is None:
        return 0
    if not _is_count(value):
        raise UsageError(field, f"`{field}` must be a whole number of tokens from 0 to {MAX_TOKENS:,}")
    return int(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS


def _plausible(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with a token count or an object of token counts, also within iterations."""
    found = {name: value for name, value in data.items() if _is_count(value) or name == "type"}
    found |= {name: _plausible(value) for name, value in data.items() if isinstance(value, Mapping)}
    if isinstance(iterations := data.get("iterations"), list):
        found["iterations"] = [_plausible(each) for each in iterations if isinstance(each, Mapping)]
    return found
