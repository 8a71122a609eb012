"""Read model calls and tool runs from spans.

The names of attributes are those of the OpenTelemetry conventions for generative AI, their earlier versions,
OpenLLMetry, OpenInference and Vercel's AI SDK.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compaction.messages import Usage
from telemetry.attributes import labels, milliseconds, number, text
from telemetry.genai.content import conversation, response_id
from telemetry.records import Span
from telemetry.values import ModelCall, Origin, Report, ToolRunReport

_CALLS = frozenset({"chat", "text_completion", "generate_content"})
_SESSIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "langfuse.session.id",
    "gen_ai.thread.id",
    "ai.telemetry.metadata.sessionId",
    "ai.settings.context.sessionId",
)
_INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "llm.usage.prompt_tokens",
)
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "llm.usage.completion_tokens",
)
_CACHE_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "gen_ai.usage.details.cache_read_tokens",
    "llm.token_count.prompt_details.cache_read",
    "ai.usage.inputTokenDetails.cacheReadTokens",
    "ai.usage.cachedInputTokens",
)
_CACHE_WRITE = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.input_tokens.cache_write",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
    "ai.usage.inputTokenDetails.cacheWriteTokens",
)
#: Durations in seconds.
_FIRST_CHUNK = (
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.client.operation.time_to_first_chunk",
    "gen_ai.server.time_to_first_token",
)

#: Clients whose spans repeat what their log records report.
_REPEATING = frozenset({"claude-code"})


def read(spans: Sequence[Span]) -> Iterator[Report]:
    """Yield what the spans of an export report."""
    own = [span for span in spans if text(span.resource, "service.name") not in _REPEATING]
    named = {span.trace_id: name for span in own if (name := text(span.attributes, *_SESSIONS))}
    for span in own:
        report = _call(span, named) if is_call(span) else _tool_run(span, named)
        if report is not None:
            yield report


def is_call(span: Span) -> bool:
    """Return whether the span is a model call, and not an agent that sums the usage of its calls."""
    values = span.attributes
    operation = values.get("gen_ai.operation.name")
    if operation is not None:
        return isinstance(operation, str) and operation in _CALLS
    kind = values.get("openinference.span.kind") or values.get("llm.request.type")
    if kind is not None:
        return isinstance(kind, str) and kind in {"LLM", "chat", "completion"}
    return "gen_ai.request.model" in values and number(values, *_INPUT) is not None


def _call(span: Span, named: Mapping[str, str]) -> ModelCall | None:
    values = span.attributes
    whole = number(values, *_INPUT)
    at = span.ended_at or span.started_at
    if whole is None or at is None:
        return None  # a failed call
    response = response_id(values)
    first = next((values[name] for name in _FIRST_CHUNK if name in values), None)
    return ModelCall(
        origin=_origin(span, named),
        id=response or f"{span.trace_id}:{span.span_id}",
        at=at,
        model=text(
            values,
            "gen_ai.response.model",
            "llm.response.model_name",
            "gen_ai.request.model",
            "llm.model_name",
        ),
        usage=_usage(values, whole),
        response_id=response,
        first_token_ms=_in_milliseconds(first) or milliseconds(values, "ai.response.msToFirstChunk"),
        duration_ms=span.duration_ms,
        content=conversation(span),
    )


def _usage(values: Mapping[str, Any], whole: int) -> Usage:
    """Return the usage. The input should include cached tokens; if it is too small to, it excludes them."""
    read_tokens, written = number(values, *_CACHE_READ) or 0, number(values, *_CACHE_WRITE) or 0
    cached = read_tokens + written
    return Usage(
        uncached_tokens=whole - cached if cached <= whole else whole,
        cache_read_tokens=read_tokens,
        cache_write_tokens=written,
        output_tokens=number(values, *_OUTPUT) or 0,
    )


def _in_milliseconds(seconds: Any) -> int | None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return milliseconds({"ms": seconds * 1_000}, "ms") if is_number else None


def _origin(span: Span, named: Mapping[str, str]) -> Origin:
    values = span.attributes
    name = text(values, *_SESSIONS) or named.get(span.trace_id, "")
    user = text(values, "user.email", "enduser.id", "user.id")
    return Origin(
        session=name or f"trace-{span.trace_id}",
        is_named=bool(name),
        agent=text(values, "gen_ai.agent.name") or _service(span),
        member=user if "@" in user else "",
        labels=labels(span.resource),
    )


def _service(span: Span) -> str:
    """Return the name of the service, without the one that SDKs invent."""
    name = text(span.resource, "service.name")
    return "" if name.startswith("unknown_service") else name


def _tool_run(span: Span, named: Mapping[str, str]) -> ToolRunReport | None:
    values, duration, at = span.attributes, span.duration_ms, span.started_at
    kinds = (
        values.get("gen_ai.operation.name") == "execute_tool",
        values.get("openinference.span.kind") == "TOOL",
        values.get("traceloop.span.kind") == "tool",
        values.get("ai.operationId") == "ai.toolCall",
    )
    call_id = text(values, "gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id")
    if not any(kinds) or duration is None or at is None:
        return None
    return ToolRunReport(
        origin=_origin(span, named),
        at=at,
        call_id=call_id or f"{span.trace_id}:{span.span_id}",
        name=text(values, "gen_ai.tool.name", "tool.name", "traceloop.entity.name", "ai.toolCall.name")
        or span.name,
        duration_ms=min(duration, 86_400_000),
        is_error=span.is_error,
    )
