"""Traces that were exported from Langfuse: from its pages, its API, or to a blob storage.

A value is an observation, a trace with its observations, a page of the API (`{data, meta}`), or a list of
these. Keys are in camel case or, in a blob storage, in snake case. Observations of the type `GENERATION` are
model calls. The calls of a Langfuse session, or of a trace without one, are a session here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import Damage, ImportedSession, LogFile
from importers.calls import LoggedCall
from importers.chat import chat_usage
from importers.formats.traced_calls import TracedExport, TracedSession, TraceFacts, latency_ms
from importers.formats.traced_messages import answer_of_call, parsed, request_of_call
from importers.jsonlines import first_value
from importers.values import disjoint_usage, list_of, mapping_of, microusd_of, time_of, tokens_of

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
        return _Export().read(log)


class _Export(TracedExport):
    noun, expected, start_key = "observation", "a trace or observation", "startTime"

    def take(self, value: Any, line: int) -> None:
        """Read an observation, a trace, or each item of a list or a page."""
        if isinstance(value, list):
            self.take_all(value, line)
            return
        item = _camel(value)
        if isinstance(item.get("observations"), list):
            trace = _camel(item["trace"]) if "trace" in item else item
            self._take_trace(trace)
            observations = [
                {"traceId": trace.get("id"), **each} for each in map(_camel, item["observations"])
            ]
            self.take_all(observations, line)
        elif isinstance(item.get("traces"), list):
            self.take_all([{"sessionId": item.get("id"), **trace} for trace in item["traces"]], line)
        elif isinstance(item.get("data"), list):
            self.take_all(item["data"], line)
        elif _is_observation(item):
            if str(item["type"]).upper() == "GENERATION":
                self.add_call(str(item["id"]), item, line, parents=[item.get("parentObservationId")])
        elif "id" in item and "timestamp" in item:
            self._take_trace(item)
        else:
            raise TypeError("an object of another kind")

    def session_of(self, call: Mapping[str, Any]) -> str:
        merged = self._merged(call)
        return str(merged.get("sessionId") or merged.get("traceId") or "")

    def add_to(self, session: TracedSession, call: Mapping[str, Any]) -> None:
        _add(session, self._merged(call))

    def _take_trace(self, trace: Mapping[str, Any]) -> None:
        names = ("sessionId", "name", "environment", "release", "tags")
        self.traces[str(trace.get("id"))] = {name: trace[name] for name in names if trace.get(name)}

    def _merged(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a call with the facts of its trace, where it has no others."""
        trace = self.traces.get(str(call.get("traceId")), {})
        facts = {"sessionId": trace.get("sessionId"), "traceName": trace.get("name"), **trace}
        return {**facts, **{key: value for key, value in call.items() if value not in (None, "")}}


def _add(session: TracedSession, call: Mapping[str, Any]) -> None:
    """Add an observation to its session. Raises one of `MALFORMED`."""
    request, at = request_of_call(call.get("input")), time_of(call.get("startTime"))
    usage = mapping_of(parsed(call.get("usageDetails"))) or mapping_of(parsed(call.get("usage"))) or call
    logged = LoggedCall(
        messages=request.messages,
        answer=answer_of_call(call.get("output")),
        model=str(call.get("model") or call.get("providedModelName") or ""),
        usage=_usage(usage),
        response_id=f"langfuse-{call['id']}",
        cost_microusd=_cost(call),
        at=at,
        duration_ms=latency_ms(at, time_of(call.get("endTime"))),
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
