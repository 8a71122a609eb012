"""Reconcile the content of a call with its session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from importers.values import request_of, text_of
from redaction import redact
from sessions.models import AgentSession, TurnSource
from sessions.services.calls.match import CallIdentity
from sessions.services.memory.update_requests import memory_update_request
from sessions.services.push.values import Latency, Push, Target
from sessions.services.reconcile.continued import session_of_response
from sessions.services.reconcile.find import root_of_caller
from sessions.services.reconcile.history import history_reconcile
from sessions.services.reconcile.values import Continued, InvalidHistory, Reconciled, Request, Sent
from sessions.services.telemetry.values import Destination
from sessions.store.bodies import json_bytes
from sessions.store.rawjson import BadJson
from sessions.store.text import storable
from telemetry.values import Conversation, ModelCall


class NotStorable(ValueError):
    """The messages of the call fit no dialect."""


def call_reconcile(root: AgentSession, call: ModelCall, destination: Destination) -> Reconciled:
    """Store the new messages of a call as a turn. Raises `NotStorable`."""
    assert call.content is not None
    content, continued = call.content, _continued(call.content)
    if continued is not None:
        content = replace(content, messages=_without_system(content))
    request = Request(
        body=history_of(content),
        redaction=destination.redaction,
        read=lambda _: _sent(call, destination),
        idempotency_key=f"otel-{call.id}"[:200],
        call=identity_of(call),
        continued=continued,
    )
    target = Target(key_id=destination.key_id, project_id=destination.project_id, session_id=root.pk)
    try:
        reconciled = history_reconcile(target, request)
    except (InvalidHistory, BadJson) as error:
        raise NotStorable(str(error)) from None
    if destination.has_upkeep and reconciled.turn is not None:
        memory_update_request(reconciled.session_id)
    return reconciled


def identity_of(call: ModelCall) -> CallIdentity:
    """Return the identity of a call, by which other sources can report it."""
    return CallIdentity(at=call.at, usage=call.usage, request_id=call.id, response_id=call.response_id)


def _continued(content: Conversation) -> Continued | None:
    """Return `Continued` if the provider stores the earlier messages of a call, else None.

    Few spans report this, but only such a call begins with the result of a tool.
    """
    if content.previous_response:
        return Continued(response_id=content.previous_response)
    own = _without_system(content)
    has_answers = any(message.get("role") == "assistant" for message in own)
    return Continued() if own and not has_answers and _is_result(own[0]) else None


def _is_result(message: Mapping[str, Any]) -> bool:
    blocks = message.get("content")
    first = blocks[0] if isinstance(blocks, list) and blocks else None
    is_block = isinstance(first, Mapping) and first.get("type") == "tool_result"
    is_item = str(message.get("type")).endswith("_call_output")
    return message.get("role") == "tool" or is_block or is_item


def _without_system(content: Conversation) -> list[Mapping[str, Any]]:
    return [message for message in content.messages if message.get("role") not in ("system", "developer")]


def request_in(call: ModelCall, destination: Destination) -> str:
    """Return the message of the user that states the task, without secrets. "" if there is none."""
    words = ""
    for message in call.content.messages if call.content is not None else ():
        if message.get("role") == "user":
            words = request_of(words, text_of(message.get("content")))
    clean, _ = redact(words, redaction=destination.redaction)
    return storable(clean)


def session_continued(destination: Destination, content: Conversation) -> AgentSession | None:
    """Return the session whose history the content of a call continues, or None if there is none."""
    project_id, caller = destination.project_id, _caller(destination)
    if content.previous_response:
        return session_of_response(
            project_id=project_id, caller=caller, response_id=content.previous_response
        )
    try:
        return root_of_caller(
            project_id=project_id,
            caller=caller,
            body=history_of(content),
            redaction=destination.redaction,
        )
    except (InvalidHistory, BadJson):
        return None


def _caller(destination: Destination) -> bytes:
    """Return the partition in which sessions without a name are recognized: that of the API key."""
    return hashlib.blake2b(f"{destination.key_id}:telemetry".encode(), digest_size=16).digest()


def history_of(content: Conversation) -> bytes:
    """Return a history as the JSON that `history_reconcile` reads."""
    value: dict[str, Any] = {"messages": list(content.messages)}
    if content.system is not None:
        value["system"] = content.system
    if content.tools:
        value["tools"] = content.tools
    return json_bytes(value)


def _sent(call: ModelCall, destination: Destination) -> Sent:
    push = Push(
        messages=(),
        at=call.at,
        model=call.model,
        usage=call.usage,
        latency=Latency(first_token_ms=call.first_token_ms, duration_ms=call.duration_ms),
        prices=destination.prices,
        source=TurnSource.TELEMETRY,
    )
    return Sent(
        push=push,
        answers=call.content.answers if call.content is not None else (),
        caller=None if call.origin.is_named else _caller(destination),
    )
