"""Anthropic's Messages API."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from compaction.provider_engine import ProviderReport
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
from sessions.services.reconcile.thinking import without_thinking
from sessions.services.reconcile.values import Continued
from sessions.store.rawjson import BadJson

_USER_SESSION = re.compile(r"_session_([0-9a-fA-F-]{36})$")

#: Classes of Claude Code requests that belong to the conversation of the session or a sub-agent.
_CONVERSATIONS = frozenset({"main", "subagent", "workflow"})

#: Part of the error for thinking that was written for another prompt.
_BOUND = b"bound to a different conversation"

#: The field of a content block to which each kind of delta adds.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "compaction_delta": ("content", "content"),
}


class Anthropic(Provider):
    name = "anthropic"
    label = "Anthropic"
    endpoints = {"v1/messages": "messages"}

    def credential_headers(self, secret: str) -> list[tuple[bytes, bytes]]:
        return [(b"x-api-key", secret.encode())]

    def error(self, kind: str, message: str) -> bytes:
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()

    def identity(self, headers: Mapping[str, str], body: Mapping[str, Any]) -> Identity:
        named = header_session(headers, ["x-claude-code-session-id"])
        is_claude_code = "x-claude-code-session-id" in headers or client_name(headers) == "claude-cli"
        kind = headers.get("x-claude-code-request-class", "")
        has_tools = _own_tools(body) or self.continued("messages", body) is not None
        has_side = is_claude_code or is_opencode(headers)
        is_side = kind not in _CONVERSATIONS if kind else has_side and not has_tools
        return Identity(
            session=named or _session_of_user(mapping(body.get("metadata")).get("user_id")),
            agent=headers.get("x-claude-code-agent-id", "")[:40],
            parent=parent_session(headers),
            client="claude-code" if is_claude_code else client_name(headers),
            # A request for a summary on demand: the client sends the block in its next requests.
            is_side=is_side or "x-claude-code-compaction" in headers or "compaction" in body,
            is_compacted="x-claude-code-context-compacted" in headers,
        )

    def continued(self, endpoint: str, fields: Mapping[str, Any]) -> Continued | None:
        """Return the message whose thread the request continues. Such requests omit history and tools."""
        message = text(mapping(fields.get("thread")).get("previous_message_id"))
        return Continued(response_id=message.replace("\0", "")[:200]) if message else None

    def uses_stored(self, endpoint: str, fields: Mapping[str, Any]) -> bool:
        return bool(mapping(fields.get("thread")))

    def accepted(self, body: bytes, rejection: bytes) -> bytes | None:
        """Return the body without thinking, if some of it is bound to another prompt (rule A11).

        The client keeps thinking that it received for compacted prompts, but the gateway may have to forward
        a request without its edits.
        """
        if _BOUND not in rejection:
            return None
        try:
            return without_thinking(body)
        except BadJson:
            return None

    def read_body(self, endpoint: str, body: Mapping[str, Any]) -> Answer:
        content = body.get("content")
        is_whole = isinstance(content, list) and content
        return Answer(
            messages=[{"role": "assistant", "content": content}] if is_whole else [],
            id=text(body.get("id")),
            model=text(body.get("model")),
            usage=mapping(body.get("usage")),
            report=ProviderReport.of(
                body.get("context_management"), body.get("input_transformations"), body.get("usage")
            ),
        )

    def read_events(self, endpoint: str, events: Sequence[Mapping[str, Any]]) -> Answer:
        model, id, usage, ended = "", "", dict[str, Any](), False
        blocks: dict[Any, dict[str, Any]] = {}
        inputs: dict[Any, str] = {}
        open_blocks = set()
        applied: Any = None
        transformations: Any = None
        for event in events:
            index = event.get("index")
            match event.get("type"):
                case "message_start":
                    message = mapping(event.get("message"))
                    model, id = text(message.get("model")), text(message.get("id"))
                    usage |= mapping(message.get("usage"))
                    transformations = message.get("input_transformations")
                case "content_block_start":
                    blocks[index] = dict(mapping(event.get("content_block")))
                    open_blocks.add(index)
                case "content_block_delta" if index in blocks:
                    _add_delta(blocks[index], inputs, index, mapping(event.get("delta")))
                case "content_block_stop":
                    open_blocks.discard(index)
                    if inputs.get(index):
                        blocks[index]["input"] = _input(inputs[index])
                case "message_delta":
                    usage |= {k: v for k, v in mapping(event.get("usage")).items() if v is not None}
                    applied = event.get("context_management") or applied
                    ended = ended or mapping(event.get("delta")).get("stop_reason") is not None
        content = [blocks[index] for index in blocks]
        is_whole = ended and not open_blocks and content
        return Answer(
            messages=[{"role": "assistant", "content": content}] if is_whole else [],
            id=id,
            model=model,
            usage=usage,
            report=ProviderReport.of(applied, transformations, usage),
        )


def _add_delta(block: dict[str, Any], inputs: dict[Any, str], index: Any, delta: Mapping[str, Any]) -> None:
    kind = text(delta.get("type"))
    if kind == "input_json_delta":
        inputs[index] = inputs.get(index, "") + text(delta.get("partial_json"))
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
    elif kind in _DELTAS:
        name, source = _DELTAS[kind]
        block[name] = text(block.get(name)) + text(delta.get(source))


def _input(data: str) -> Any:
    """Return the arguments of a tool call, or a string if the model's JSON is broken."""
    try:
        return json.loads(data)
    except ValueError:
        return {"input": data}


def _own_tools(body: Mapping[str, Any]) -> bool:
    """Return whether the request has tools that the client runs. Tools of the provider have a type."""
    return any("input_schema" in tool for tool in items(body.get("tools")))


def _session_of_user(user_id: Any) -> str | None:
    """Return the session id in `metadata.user_id`: JSON, or `user_…_session_<uuid>`."""
    if not isinstance(user_id, str):
        return None
    if found := text(json_object(user_id).get("session_id")):
        return found[:150]
    match = _USER_SESSION.search(user_id)
    return match[1] if match else None
