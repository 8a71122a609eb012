"""Events of Codex, as `[otel]` in its configuration exports them.

Codex reports no request id, so a call is identified by its conversation and time. Of the two events with
which a response ends, one has the token counts.
"""

from __future__ import annotations

from datetime import datetime

from compaction.messages import Usage
from telemetry.attributes import labels, milliseconds, number, text, time
from telemetry.records import LogRecord
from telemetry.tool_events import tool_run
from telemetry.values import ModelCall, Origin, PromptReport, Report

_PREFIX = "codex."
_REDACTED = "[REDACTED]"


def read(record: LogRecord) -> Report | None:
    """Return what an event reports, or None if it is of another client or not of interest."""
    if not record.name.startswith(_PREFIX):
        return None
    values = record.attributes
    session = text(values, "conversation.id")
    at = time(values, "event.timestamp", record.at)
    if not session or at is None:
        return None
    match record.name.removeprefix(_PREFIX):
        case "sse_event" | "websocket_event" if values.get("event.kind") == "response.completed":
            return _call(record, session, at)
        case "tool_result":
            return tool_run(values, text(values, "call_id"), _origin(record, session), at)
        case "user_prompt" if text(values, "prompt") not in ("", _REDACTED):
            return PromptReport(origin=_origin(record, session), at=at, text=text(values, "prompt"))
    return None


def _origin(record: LogRecord, session: str) -> Origin:
    return Origin(
        session=session,
        agent="codex",
        version=text(record.attributes, "app.version"),
        member=text(record.attributes, "user.email"),
        labels=labels(record.resource),
    )


def _call(record: LogRecord, session: str, at: datetime) -> ModelCall | None:
    values = record.attributes
    whole = number(values, "input_token_count")
    if whole is None:
        return None
    read_tokens = min(number(values, "cached_token_count") or 0, whole)
    written = min(number(values, "cache_write_token_count") or 0, whole - read_tokens)
    return ModelCall(
        origin=_origin(record, session),
        id=f"codex:{at.isoformat()}:{session}",
        at=at,
        model=text(values, "model", "slug"),
        usage=Usage(
            uncached_tokens=whole - read_tokens - written,
            cache_read_tokens=read_tokens,
            cache_write_tokens=written,
            output_tokens=number(values, "output_token_count") or 0,
        ),
        first_token_ms=milliseconds(values, "ttft_ms"),
    )
