"""Spans that were exported from Arize Phoenix: with its client, from its API, or as rows of a data frame.

A value is a span, a page of the API (`data`), or a list of spans. Attributes have the names of OpenInference,
as paths with dots (`llm.input_messages.0.message.role`). Spans of the kind `LLM` are model calls. The calls
of a session, or of a trace without one, are a session here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.messages import Usage
from importers.base import Damage, ImportedSession, LogFile
from importers.calls import LoggedCall
from importers.formats.traced_calls import TracedExport, TracedSession, TraceFacts, latency_ms
from importers.formats.traced_messages import Request, answer_of_call, parsed, request_of_call
from importers.jsonlines import first_value
from importers.values import list_of, mapping_of, microusd_of, time_of, tokens_of, usage_in_parts

#: Dots of a key that are expanded. The longest path of an attribute has about ten parts.
_MAX_PARTS = 20


class PhoenixImporter:
    """Reads exports of Phoenix."""

    name = "phoenix"
    label = "Phoenix spans with OpenInference's attributes (JSON or JSONL)"

    def recognizes(self, log: LogFile) -> bool:
        value = first_value(log)
        spans = value if isinstance(value, list) else _page(value)
        return _is_span(value if spans is None else next(iter(spans), None))

    def read(self, log: LogFile) -> Iterator[ImportedSession | Damage]:
        return _Export().read(log)


class _Export(TracedExport):
    noun, expected, start_key = "span", "a span", "start_time"

    def take(self, value: Any, line: int) -> None:
        """Read a span, or each span of a list."""
        spans = value if isinstance(value, list) else _page(value)
        if spans is not None:
            self.take_all(spans, line)
            return
        span = _nested(value)
        id, parent = _id(span), span.get("parent_id")
        if str(span["span_kind"]).upper() == "LLM":
            request = _request(span)
            if request.messages:  # some libraries also record the request over HTTP, without its content
                self.add_call(id, {**span, "request": request}, line, parents=[parent])
        if not parent:
            self.traces[_trace(span)] = span

    def session_of(self, call: Mapping[str, Any]) -> str:
        return _session(call) or _session(self._root(call)) or _trace(call)

    def add_to(self, session: TracedSession, call: Mapping[str, Any]) -> None:
        name = str(self._root(call).get("name") or "")
        facts = TraceFacts(title=name, metadata={"trace": name} if name else {})
        session.add(call["request"], _call(call, call["request"]), facts)

    def _root(self, span: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.traces.get(_trace(span), {})


def _is_span(value: Any) -> bool:
    if not isinstance(value, Mapping) or "span_kind" not in value:
        return False
    return "context.span_id" in value or (
        "attributes" in value and "span_id" in mapping_of(value.get("context"))
    )


def _page(value: Any) -> list[Any] | None:
    data = mapping_of(value).get("data")
    return data if isinstance(data, list) else None


def _nested(value: Any) -> Any:
    """Return a value whose keys with dots are expanded to objects, or to lists if the parts are numbers."""
    if isinstance(value, list):
        return [_nested(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    found: dict[str, Any] = {}
    for path, each in value.items():
        *parts, last = path.split(".", _MAX_PARTS)
        owner = found
        for part in parts:
            if not isinstance(owner.get(part), dict):
                owner[part] = {}
            owner = owner[part]
        owner[last] = _nested(each)
    return _with_lists(found)


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = {key: _with_lists(each) for key, each in value.items()}
    if items and all(key.isdecimal() for key in items):
        return [items[key] for key in sorted(items, key=lambda key: (len(key), key))]
    return items


def _id(span: Mapping[str, Any]) -> str:
    return str(span["context"]["span_id"])


def _trace(span: Mapping[str, Any]) -> str:
    return str(mapping_of(span.get("context")).get("trace_id") or "")


def _session(span: Mapping[str, Any]) -> str:
    attributes = mapping_of(span.get("attributes"))
    return str(mapping_of(attributes.get("session")).get("id") or "")


def _request(span: Mapping[str, Any]) -> Request:
    """Return the request of a call, which some libraries record only as a whole."""
    attributes = mapping_of(span.get("attributes"))
    llm = mapping_of(attributes.get("llm"))
    schemas = (
        mapping_of(mapping_of(each).get("tool")).get("json_schema") for each in list_of(llm.get("tools"))
    )
    messages = _messages(llm.get("input_messages"))
    if messages:
        return request_of_call({"messages": messages, "tools": list(map(parsed, schemas))})
    return request_of_call(mapping_of(attributes.get("input")).get("value"))


def _call(span: Mapping[str, Any], request: Request) -> LoggedCall:
    attributes = mapping_of(span.get("attributes"))
    llm = mapping_of(attributes.get("llm"))
    output = parsed(mapping_of(attributes.get("output")).get("value"))
    start = time_of(span.get("start_time"))
    response_id = mapping_of(output).get("id")
    return LoggedCall(
        messages=request.messages,
        answer=answer_of_call(_messages(llm.get("output_messages")) or output),
        model=str(llm.get("model_name") or ""),
        usage=_usage(mapping_of(llm.get("token_count"))),
        response_id=response_id if isinstance(response_id, str) else f"phoenix-{_id(span)}",
        cost_microusd=microusd_of(mapping_of(llm.get("cost")).get("total")) or None,
        at=start,
        duration_ms=latency_ms(start, time_of(span.get("end_time"))),
    )


def _messages(messages: Any) -> list[dict[str, Any]]:
    """Return messages of OpenInference in the form of the providers."""
    found = [mapping_of(mapping_of(each).get("message")) for each in list_of(messages)]
    return [_message(message) for message in found if message]


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = (mapping_of(mapping_of(each).get("tool_call")) for each in list_of(message.get("tool_calls")))
    parts = [_part(mapping_of(each)) for each in list_of(message.get("contents"))]
    content = message.get("content")
    return {
        "role": message.get("role"),
        "content": [*([content] if content else []), *parts] if parts else content,
        "tool_calls": [call for call in calls if call],
        "tool_call_id": message.get("tool_call_id"),
    }


def _part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    content = mapping_of(part.get("message_content"))
    match content.get("type"):
        case "image":
            return {"type": "image", "image": mapping_of(mapping_of(content.get("image")).get("image"))}
        case "tool_use":
            return {"type": "tool_use", **mapping_of(part.get("tool_call"))}
    return content


def _usage(counts: Mapping[str, Any]) -> Usage | None:
    counts, details = _whole(counts), _whole(mapping_of(counts.get("prompt_details")))
    return usage_in_parts(
        prompt=tokens_of(counts, "prompt"),
        read=tokens_of(details, "cache_read"),
        write=tokens_of(details, "cache_write"),
        output=tokens_of(counts, "completion"),
    )


def _whole(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return counts as integers. A data frame contains floating-point numbers."""
    return {
        key: int(count) if isinstance(count, float) and count.is_integer() else count
        for key, count in counts.items()
    }
