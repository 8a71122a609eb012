"""Events of Claude Code: https://code.claude.com/docs/en/monitoring-usage

`query_source` names the part of the client that made a call: the main conversation, a sub-agent, or a purpose
such as the title of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from compaction.messages import Usage
from telemetry.attributes import is_true, labels, milliseconds, number, text, time
from telemetry.records import LogRecord
from telemetry.tool_events import tool_run
from telemetry.values import CompactionReport, ModelCall, Origin, PromptReport, Report

_PREFIX = "claude_code."
_MAIN_SOURCES = ("repl_main_thread", "sdk", "main")
_AGENT_PREFIXES = ("agent:builtin:", "agent:custom:", "agent:")
_REDACTED = "<REDACTED>"


def read(record: LogRecord) -> Report | None:
    """Return what an event reports, or None if it is of another client or not of interest."""
    if record.resource.get("service.name") != "claude-code" and not record.name.startswith(_PREFIX):
        return None
    values = record.attributes
    session, at = text(values, "session.id"), time(values, "event.timestamp", record.at)
    if not session or at is None:
        return None
    match record.name.removeprefix(_PREFIX):
        case "api_request":
            return _call(record, session, at)
        case "compaction":
            return _compaction(record, session, at)
        case "tool_result":
            return tool_run(values, text(values, "tool_use_id"), _origin(record, session), at)
        case "user_prompt" if text(values, "prompt") not in ("", _REDACTED):
            return PromptReport(origin=_origin(record, session), at=at, text=text(values, "prompt"))
    return None


def _origin(record: LogRecord, session: str, line: str = "") -> Origin:
    return Origin(
        session=session,
        line=line,
        agent="claude-code",
        version=text(record.resource, "service.version"),
        member=text(record.attributes, "user.email"),
        labels=labels(record.resource),
    )


def _call(record: LogRecord, session: str, at: datetime) -> ModelCall:
    values = record.attributes
    usage = Usage(
        uncached_tokens=number(values, "input_tokens") or 0,
        cache_read_tokens=number(values, "cache_read_tokens") or 0,
        cache_write_tokens=number(values, "cache_creation_tokens") or 0,
        output_tokens=number(values, "output_tokens") or 0,
    )
    return ModelCall(
        origin=_origin(record, session, line_of(values)),
        id=text(values, "request_id", "client_request_id")
        or f"{text(values, 'event.sequence')}:{at.isoformat()}:{session}",
        at=at,
        model=text(values, "model"),
        usage=usage,
        cost_microusd=_cost(values),
        first_token_ms=milliseconds(values, "ttft_ms"),
        duration_ms=milliseconds(values, "duration_ms"),
    )


def line_of(values: Mapping[str, Any]) -> str:
    """Return the conversation that a call belongs to: "" for the main one, else a sub-agent or a purpose."""
    source = text(values, "query_source")
    if not source or source.startswith(_MAIN_SOURCES):
        return ""
    name = text(values, "agent.name")
    for prefix in _AGENT_PREFIXES:
        source = source.removeprefix(prefix)
    return name or source


def _cost(values: Mapping[str, Any]) -> int | None:
    """Return the cost in micro-dollars; 0 for a model that the client has no price for."""
    cost = number(values, "cost_usd_micros", most=10**12)
    if cost is None:
        dollars = values.get("cost_usd")
        if isinstance(dollars, int | float) and not isinstance(dollars, bool):
            cost = number({"cost": dollars * 1e6}, "cost", most=10**12)
    return cost or None


def _compaction(record: LogRecord, session: str, at: datetime) -> CompactionReport | None:
    values = record.attributes
    if "success" in values and not is_true(values["success"]):
        return None
    return CompactionReport(
        origin=_origin(record, session),
        at=at,
        trigger=text(values, "trigger"),
        tokens_before=number(values, "pre_tokens"),
    )
