"""OpenAI's Chat Completions and Responses APIs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from compaction.dialects.openai_responses.kinds import NAME
from gateway.providers import responses
from gateway.providers.base import (
    Answer,
    Identity,
    Provider,
    client_name,
    header_session,
    is_opencode,
    items,
    json_object,
    mapping,
    parent_session,
    text,
)
from sessions.services.reconcile.values import Continued

#: Headers of Codex; current versions give each sub-agent a separate thread.
_THREAD_HEADERS = ("thread-id", "thread_id")
_SESSION_HEADERS = ("session-id", "session_id")

#: The texts of a call of a function and of a custom tool.
_FUNCTION = ("name", "arguments")
_CUSTOM = ("name", "input")

#: Fields of a message that replace its content.
_ANSWERS = frozenset({"tool_calls", "function_call", "refusal"})

#: Endpoints whose requests contain the history as `input`.
_RESPONSES = frozenset({"responses", "responses-compact"})


class OpenAI(Provider):
    name = "openai"
    label = "OpenAI"
    endpoints = {
        "v1/chat/completions": "chat",
        "v1/responses": "responses",
        "v1/responses/compact": "responses-compact",
    }
    side_endpoints = frozenset({"responses-compact"})
    compacts_stored = True

    def credential_headers(self, secret: str) -> list[tuple[bytes, bytes]]:
        return [(b"authorization", b"Bearer " + secret.encode())]

    def error(self, kind: str, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()

    def identity(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> Identity:
        metadata = json_object(headers.get("x-codex-turn-metadata"))
        session = header_session(headers, _SESSION_HEADERS) or text(metadata.get("session_id"))
        thread = header_session(headers, _THREAD_HEADERS) or text(metadata.get("thread_id"))
        subagent = headers.get("x-openai-subagent", "")
        if not session:
            session = thread or _uuid(body.get("prompt_cache_key"))
        is_title = is_opencode(headers) and not body.get("tools")
        is_codex = "x-codex-turn-metadata" in headers or client_name(headers).startswith("codex")
        return Identity(
            session=session or None,
            agent=thread[:40] if thread and thread != session else "",
            parent=parent_session(headers),
            client="codex" if is_codex else client_name(headers),
            is_side=is_title
            or subagent in {"compact", "memory_consolidation"}
            or responses.is_compaction(body),
        )

    def with_usage(self, endpoint: str, body: bytes) -> bytes:
        """Insert `stream_options` into a Chat Completions request that streams and has none."""
        if endpoint != "chat":
            return body
        try:
            fields = mapping(orjson.loads(body))
        except orjson.JSONDecodeError:
            return body
        if fields.get("stream") is not True or "stream_options" in fields:
            return body
        head, brace, rest = body.partition(b"{")
        return head + brace + b'"stream_options":{"include_usage":true},' + rest

    def history(self, endpoint: str, body: bytes, fields: Mapping[str, Any]) -> bytes:
        return responses.history(body, fields) if endpoint in _RESPONSES else body

    def history_field(self, endpoint: str) -> str:
        return "input" if endpoint in _RESPONSES else "messages"

    def format(self, endpoint: str) -> str:
        return NAME if endpoint in _RESPONSES else self.name

    def continued(self, endpoint: str, fields: Mapping[str, Any]) -> Continued | None:
        return responses.continued(fields) if endpoint in _RESPONSES else None

    def uses_stored(self, endpoint: str, fields: Mapping[str, Any]) -> bool:
        return endpoint in _RESPONSES and responses.uses_stored(fields)

    def resent(self, endpoint: str, fields: Mapping[str, Any], answer: Answer) -> Answer:
        return responses.resent(fields, answer) if endpoint == "responses" else answer

    def read_body(self, endpoint: str, body: Mapping[str, Any]) -> Answer:
        if endpoint in self.side_endpoints:
            return responses.compaction(body)
        if endpoint == "responses":
            return responses.answer(body)
        choices = items(body.get("choices"))
        message = mapping(choices[0].get("message")) if choices else {}
        return Answer(
            messages=[message] if message else [],
            id=text(body.get("id")),
            model=text(body.get("model")),
            usage=mapping(body.get("usage")),
        )

    def read_events(self, endpoint: str, events: Sequence[Mapping[str, Any]]) -> Answer:
        if endpoint == "responses":
            return responses.answer_of_events(events)
        model, id, usage, finished = "", "", dict[str, Any](), False
        message: dict[str, Any] = {"role": "assistant", "content": None}
        calls: dict[Any, dict[str, Any]] = {}
        for event in events:
            model, id = text(event.get("model")) or model, text(event.get("id")) or id
            usage = dict(mapping(event.get("usage"))) or usage
            for choice in items(event.get("choices")):
                if choice.get("index"):
                    continue  # another choice, which is not part of the conversation
                delta = mapping(choice.get("delta"))
                for name in ("content", "refusal", "reasoning_content"):
                    if part := text(delta.get(name)):
                        message[name] = text(message.get(name)) + part
                for call in items(delta.get("tool_calls")):
                    _add_call(calls, call)
                if legacy := mapping(delta.get("function_call")):
                    _add_texts(message.setdefault("function_call", {}), legacy, _FUNCTION)
                finished = finished or choice.get("finish_reason") is not None
        if calls:
            message["tool_calls"] = list(calls.values())
        is_whole = finished and (message["content"] is not None or not _ANSWERS.isdisjoint(message))
        return Answer(messages=[message] if is_whole else [], id=id, model=model, usage=usage)


def _add_call(calls: dict[Any, dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add a part of a tool call. Only its first part has the id, the type and the name."""
    is_custom = part.get("type") == "custom" or "custom" in part
    kind, names = ("custom", _CUSTOM) if is_custom else ("function", _FUNCTION)
    call = calls.setdefault(part.get("index"), {"id": "", "type": kind})
    call["id"] = text(part.get("id")) or call["id"]
    _add_texts(call.setdefault(call["type"], {}), mapping(part.get(call["type"])), names)


def _add_texts(value: dict[str, Any], part: Mapping[str, Any], names: Sequence[str]) -> None:
    for name in names:
        value[name] = text(value.get(name)) + text(part.get(name))


def _uuid(value: Any) -> str:
    """Return the value if it is a UUID. Other cache keys may be shared by conversations."""
    try:
        return str(UUID(value)) if isinstance(value, str) else ""
    except ValueError:
        return ""
