"""Traces that were exported from Langfuse: from its pages, its API, or to a blob storage.

A value is an observation, a trace with its observations, a page of the API (`{data, meta}`), or a list of
these. Keys are in camel case or, in a blob storage, in snake case. Observations of the type `GENERATION` are
model calls. The calls of a Langfuse session, or of a trace without one, are a session here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from compaction.messages import Usage

from .base import Damage, ImportedSession, LogFile
from .calls import LoggedCall
from .chat import chat_usage
from .jsonlines import MALFORMED, Record, first_value, read_records, values
from .traced_calls import TracedSession, TraceFacts, latency_ms, traced_sessions
from .traced_messages import answer_of_call, parsed, request_of_call
from .values import disjoint_usage, list_of, mapping_of, microusd_of, time_of, tokens_of

_TYPES = (
    "GENERATION",
    "SPAN",
    "EVENT",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
)
_UNDERSCORE = re.compile(r"_([a-z])")
_LATEST = datetime.max.replace(tzinfo=UTC)

#: Keys of a trace, and of the metadata.
_FACTS = {"traceName": "trace", "environment": "environment", "release": "release"}


class LangfuseImporter:
    """Reads exports of Langfuse."""

    name = "langfuse"
    label = "Langfuse traces or observations (JSON or JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        try:
            return _is_export(first_value(log))
        except RecursionError:
            return False

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        export = _Export()
        yield from read_records(log, values(log), export.take)
        yield from (Damage(file=log.name, line=line, reason=reason) for line, reason in export.damages)
        yield from traced_sessions(
            log, export.sessions(), _add, lambda call: (call["line"], f"observation {call.get('id')}")
        )


class _Export:
    """The model calls of an export, and the facts of their traces."""

    def __init__(self) -> None:
        self._calls: dict[str, dict[str, Any]] = {}
        self._parents: set[str] = set()  #: the model calls that consist of others
        self._traces: dict[str, Mapping[str, Any]] = {}
        self.damages: list[tuple[int, str]] = []

    def take(self, record: Record) -> None:
        self._take(record.value, record.line)

    def sessions(self) -> dict[str, list[dict[str, Any]]]:
        """Return the calls of each session, in order."""
        found: dict[str, list[dict[str, Any]]] = {}
        for id, call in sorted(self._calls.items(), key=lambda item: (item[1]["at"] or _LATEST, item[0])):
            if id in self._parents:
                continue
            trace = self._traces.get(str(call.get("traceId")), {})
            facts = {"sessionId": trace.get("sessionId"), "traceName": trace.get("name"), **trace}
            merged = {**facts, **{key: value for key, value in call.items() if value not in (None, "")}}
            found.setdefault(str(merged.get("sessionId") or merged.get("traceId") or id), []).append(merged)
        return found

    def _take(self, value: Any, line: int) -> None:
        if isinstance(value, list):
            for item in value:
                try:
                    self._take(item, line)
                except MALFORMED as error:
                    self.damages.append(
                        (line, f"not a trace or observation: {type(error).__name__}: {error}")
                    )
            return
        item = _camel(value)
        if isinstance(item.get("observations"), list):
            trace = _camel(item["trace"]) if "trace" in item else item
            self._take_trace(trace)
            observations = [
                {"traceId": trace.get("id"), **each} for each in map(_camel, item["observations"])
            ]
            self._take(observations, line)
        elif isinstance(item.get("traces"), list):
            self._take([{"sessionId": item.get("id"), **trace} for trace in item["traces"]], line)
        elif isinstance(item.get("data"), list):
            self._take(item["data"], line)
        elif _is_observation(item):
            self._take_observation(item, line)
        elif "id" in item and "timestamp" in item:
            self._take_trace(item)
        else:
            raise TypeError("an object of another kind")

    def _take_trace(self, trace: Mapping[str, Any]) -> None:
        names = ("sessionId", "name", "environment", "release", "tags")
        self._traces[str(trace.get("id"))] = {name: trace[name] for name in names if trace.get(name)}

    def _take_observation(self, item: dict[str, Any], line: int) -> None:
        if str(item["type"]).upper() == "GENERATION":
            at = time_of(item.get("startTime"))
            self._calls[str(item["id"])] = {**item, "line": line, "at": at}
            self._parents.add(str(item.get("parentObservationId")))


def _add(session: TracedSession, call: Mapping[str, Any]) -> None:
    """Add an observation to its session. Raises one of `MALFORMED`."""
    request = request_of_call(call.get("input"))
    usage = mapping_of(parsed(call.get("usageDetails"))) or mapping_of(parsed(call.get("usage"))) or call
    logged = LoggedCall(
        messages=request.messages,
        answer=answer_of_call(call.get("output")),
        model=str(call.get("model") or call.get("providedModelName") or ""),
        usage=_usage(usage),
        response_id=f"langfuse-{call['id']}",
        cost_microusd=_cost(call),
        at=call["at"],
        duration_ms=latency_ms(call["at"], time_of(call.get("endTime"))),
    )
    session.add(request, logged, _facts(call))


def _facts(call: Mapping[str, Any]) -> TraceFacts:
    metadata = {name: call.get(key) for key, name in _FACTS.items()}
    return TraceFacts(
        title=str(call.get("traceName") or ""),
        tags=[str(tag) for tag in list_of(parsed(call.get("tags")))],
        metadata={name: value for name, value in metadata.items() if isinstance(value, str) and value},
    )


def _camel(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its keys in camel case."""
    return {_UNDERSCORE.sub(lambda match: match[1].upper(), key): each for key, each in value.items()}


def _is_export(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping) and _is_export(value[0])
    item = _camel(value) if isinstance(value, Mapping) else {}
    if isinstance(item.get("data"), list):
        return "meta" in item and _is_export(item["data"])
    if isinstance(item.get("traces"), list):
        return "projectId" in item and any(_is_export(trace) for trace in item["traces"])
    observations = item.get("observations")
    if isinstance(observations, list):
        items = [_camel(each) for each in observations if isinstance(each, Mapping)]
        return bool(items) and all("id" in each and each.get("type") in _TYPES for each in items)
    return _is_observation(item) and "traceId" in item


def _is_observation(item: Mapping[str, Any]) -> bool:
    return "id" in item and "startTime" in item and str(item.get("type")).upper() in _TYPES


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """Return the usage. Langfuse counts the parts of the input separately, as do most of its integrations."""
    if "prompt_tokens" in usage or "input_tokens" in usage:
        return chat_usage(usage)
    counts = {str(key): tokens_of(usage, key) for key in usage}
    read = sum(counts[key] for key in counts if "cache_read" in key or "cached" in key)
    write = sum(counts[key] for key in counts if "cache_creation" in key or "cache_write" in key)
    uncached = sum(counts[key] for key in counts if key.startswith("input") and "cache" not in key)
    output = sum(counts[key] for key in counts if key.startswith("output"))
    if read and counts.get("total") == uncached + output and read + write <= uncached:
        uncached -= read + write
    return disjoint_usage(
        uncached=uncached or (0 if read + write else tokens_of(usage, "promptTokens")),
        read=read,
        write=write,
        output=output or tokens_of(usage, "completionTokens"),
    )


def _cost(call: Mapping[str, Any]) -> int | None:
    details = mapping_of(parsed(call.get("costDetails")))
    costs = (details.get("total"), call.get("calculatedTotalCost"), call.get("totalCost"))
    return next((cost for each in costs if (cost := microusd_of(each))), None)
