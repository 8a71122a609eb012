"""OpenAI's Responses API. The items of a request's `input` are its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from compaction.dialects.openai_responses.kinds import ITEM_REFERENCE
from gateway.providers.base import Answer, items, mapping, text
from sessions.services.reconcile.values import Continued
from sessions.store.rawjson import element_spans, list_start

#: Events that end a stream. Each contains the whole response.
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})

#: The value of `include` with which a client requests reasoning in order to send it again.
_ENCRYPTED = "reasoning.encrypted_content"


def is_compaction(body: Mapping[str, Any]) -> bool:
    """Return whether a request requests a compaction of its input."""
    return any(item.get("type") == "compaction_trigger" for item in items(body.get("input")))


def continued(fields: Mapping[str, Any]) -> Continued | None:
    """Return the response or conversation that the provider stores and the request continues, or None."""
    conversation = fields.get("conversation")
    name = text(mapping(conversation).get("id")) if isinstance(conversation, Mapping) else text(conversation)
    response = text(fields.get("previous_response_id"))
    if not response and not name:
        return None
    return Continued(response_id=response.replace("\0", "")[:200], conversation=name.replace("\0", "")[:150])


def uses_stored(fields: Mapping[str, Any]) -> bool:
    """Return whether the provider adds a stored conversation, or stored items that the input refers to."""
    has_references = any(item.get("type") == ITEM_REFERENCE for item in items(fields.get("input")))
    return has_references or continued(fields) is not None


def history(body: bytes, fields: Mapping[str, Any]) -> bytes:
    """Return the request's history as `messages`, `system` and `tools`. Items keep their bytes."""
    parts = [b'"messages":[%b]' % _input(body, fields)]
    if text(fields.get("instructions")):
        parts.append(b'"system":' + orjson.dumps(fields["instructions"]))
    if tools := items(fields.get("tools")):
        parts.append(b'"tools":' + orjson.dumps(tools))
    return b"{%b}" % b",".join(parts)


def _input(body: bytes, fields: Mapping[str, Any]) -> bytes:
    sent = fields.get("input")
    if isinstance(sent, str):
        return orjson.dumps({"role": "user", "content": sent})
    start = list_start(body, "input")
    spans = element_spans(body, start) if start is not None else []
    if not isinstance(sent, list) or len(spans) != len(sent):
        return b",".join(map(orjson.dumps, items(sent)))
    return body[start : spans[-1][1]] if spans else b""


def answer(response: Mapping[str, Any]) -> Answer:
    """Return the answer in a whole response."""
    is_whole = response.get("status") in {"completed", "incomplete", None}
    return Answer(
        messages=items(response.get("output")) if is_whole else [],
        id=text(response.get("id")),
        model=text(response.get("model")),
        usage=mapping(response.get("usage")),
    )


def compaction(response: Mapping[str, Any]) -> Answer:
    """Return the answer to a request for a compaction: without the messages of the input that it keeps."""
    found = answer(response)
    return replace(
        found, messages=[item for item in found.messages if text(item.get("type")).startswith("compaction")]
    )


def answer_of_events(events: Sequence[Mapping[str, Any]]) -> Answer:
    """Return the answer of a stream. The last event may lack the items, which also have separate events."""
    done = [
        mapping(event.get("item")) for event in events if event.get("type") == "response.output_item.done"
    ]
    for event in events:
        if event.get("type") in _ENDS:
            response = dict(mapping(event.get("response")))
            return answer(response | ({"output": done} if done else {}))
    return Answer()


def resent(fields: Mapping[str, Any], answer: Answer) -> Answer:
    """Return an answer without its reasoning if the client does not send reasoning again.

    It does if it requests encrypted reasoning. Otherwise it does not if it leaves out that of earlier
    answers, or if neither it nor the provider stores reasoning. If the provider stores the conversation, it
    adds the whole answer to the next request.
    """
    if uses_stored(fields):
        return answer
    sent = items(fields.get("input"))
    is_kept = any(item.get("type") == "reasoning" for item in sent)
    has_answers = any(item.get("role") == "assistant" or "call_id" in item for item in sent)
    requested = fields.get("include")
    is_requested = isinstance(requested, list) and _ENCRYPTED in requested
    if is_kept or is_requested or (not has_answers and fields.get("store") is not False):
        return answer
    return replace(answer, messages=[item for item in answer.messages if item.get("type") != "reasoning"])
