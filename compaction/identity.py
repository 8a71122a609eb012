"""Recognize messages that a client sends again, by a hash of their content that ignores formatting.

Clients serialize their whole history again for each call. Between two calls, a message may gain or lose a
cache breakpoint, lose its thinking, or change from a string to a list of blocks, and the whitespace in the
arguments of a tool call may change; its hash remains the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from compaction.messages import JSON

#: Bytes of a message's hash. Hashes are compared within one session only.
HASH_BYTES = 8

#: The digest of an empty history.
EMPTY = bytes(HASH_BYTES)

#: The hash of a message that is only reasoning. Some clients do not send them again, so they do not count.
REASONING = b"\xff" * HASH_BYTES

#: Fields of a request or response that are not part of a message's content.
_IGNORED = frozenset(
    {"cache_control", "citations", "caller", "id", "status", "phase", "annotations", "logprobs"}
)
#: A field of Gemini's parts that is not part of their content, as clients may drop it.
_SIGNATURE = "thoughtsignature"
_THINKING = ("thinking", "redacted_thinking", "reasoning")
_SYSTEM = ("system", "developer")


def message_hashes(messages: Sequence[JSON], *, key: bytes, after: int = 0) -> list[bytes]:
    """Return the hash of each message. `after` is the number of messages before the first of them.

    Leading system messages have the same hash regardless of their content, because clients change their
    system prompt during a session. The hash is keyed, so that it does not reveal secrets in the message.
    """
    hashes = []
    keyed = hashlib.blake2b(digest_size=HASH_BYTES, key=key[:64])
    leading = after == 0
    for message in messages:
        leading = leading and isinstance(message, Mapping) and message.get("role") in _SYSTEM
        if isinstance(message, Mapping) and message.get("type") == "reasoning":
            hashes.append(REASONING)
        else:
            hasher = keyed.copy()
            hasher.update(b"system" if leading else canonical(message))
            hashes.append(hasher.digest())
    return hashes


def beginning_hashes(message: JSON, *, key: bytes, after: int) -> set[bytes]:
    """Return the hashes of a message without one or more of its last blocks."""
    given = message if isinstance(message, Mapping) else {}
    field = "parts" if "parts" in given else "content"
    if not isinstance(given.get(field), list):
        return set()
    beginnings = [{**given, field: given[field][:end]} for end in range(1, len(given[field]))]
    return {message_hashes([each], key=key, after=after)[0] for each in beginnings}


def history_digest(hashes: Sequence[bytes], *, start: bytes = EMPTY) -> bytes:
    """Return the digest of a history. `start` is the digest of the messages before these."""
    digest = start
    for each in hashes:
        if each == REASONING:
            continue
        digest = hashlib.blake2b(digest + each, digest_size=HASH_BYTES).digest()
    return digest


def canonical(message: JSON) -> bytes:
    """Return the content of a message in a form that does not depend on the client's serialization."""
    if not isinstance(message, Mapping):
        return _dumps(message)
    if isinstance(parts := message.get("parts"), list) and "content" not in message:
        return _dumps([message.get("role", "user"), _google_parts(parts)])
    if "role" not in message:
        return _dumps(_plain(_with_arguments(message)))
    calls, legacy = message.get("tool_calls"), message.get("function_call")
    said = [
        message["role"],
        _blocks(message.get("content")),
        [_call(call) for call in calls] if isinstance(calls, list) else [],
        message.get("tool_call_id"),
        *([_plain(_with_arguments(legacy))] if isinstance(legacy, Mapping) else []),
    ]
    return _dumps(said)


def _blocks(content: JSON) -> list[JSON]:
    if isinstance(content, str):
        text = content.strip()
        return [text] if text else []
    if not isinstance(content, list):
        return []
    return [said for block in content if (said := _block(block)) is not None]


def _block(block: JSON) -> JSON:
    """Return the content of a block, or None for thinking and empty text."""
    if not isinstance(block, Mapping):
        return block
    kind = block.get("type")
    if kind in ("text", "input_text", "output_text") and isinstance(block.get("text"), str):
        return block["text"].strip() or None
    if kind in _THINKING:
        return None
    if kind == "tool_use":
        return [kind, block.get("id"), block.get("name"), block.get("input")]
    if kind == "tool_result":
        return [kind, block.get("tool_use_id"), _blocks(block.get("content")), bool(block.get("is_error"))]
    return _plain(block)


def _google_parts(parts: Sequence[JSON]) -> list[JSON]:
    """Return the content of Gemini's parts, without thoughts and signatures.

    Clients join the texts that the model streams in several ways, so adjacent ones count as one.
    """
    said: list[JSON] = []
    for part in parts:
        if not isinstance(part, Mapping):
            said.append(part)
        elif not part.get("thought"):
            kept = {name: _fields(value) for name, value in _fields(part).items() if name != _SIGNATURE}
            text = kept.get("text") if kept.keys() == {"text"} else None
            if isinstance(text, str) and said and isinstance(said[-1], str):
                said[-1] += text
            elif kept:
                said.append(text if isinstance(text, str) else kept)
    stripped = (part.strip() if isinstance(part, str) else part for part in said)
    return [part for part in stripped if part != ""]


def _fields(value: JSON) -> JSON:
    """Return the value without its own ignored and empty fields, in one of the API's two spellings.

    Arguments and responses, which are one level deeper, stay whole.
    """
    if not isinstance(value, Mapping):
        return value
    kept = ((name, each) for name, each in value.items() if name not in _IGNORED and each not in (None, {}))
    return {name.replace("_", "").lower(): each for name, each in kept}


def _call(call: JSON) -> JSON:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return _plain(call)
    return [call.get("id"), function.get("name"), _with_arguments(function).get("arguments")]


def _with_arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call whose arguments are compact JSON, the form that most models write.

    Frameworks parse the arguments and serialize them again with different whitespace and escapes.
    """
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        return call
    try:
        return {**call, "arguments": orjson.dumps(orjson.loads(arguments)).decode()}
    except (orjson.JSONDecodeError, TypeError):  # broken, or nested too deeply
        return call


def _plain(value: JSON) -> JSON:
    """Return the value without ignored and empty fields."""
    if isinstance(value, Mapping):
        return {
            name: _plain(each) for name, each in value.items() if name not in _IGNORED and each is not None
        }
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer over 64 bits
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")
