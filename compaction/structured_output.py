"""Model calls that return JSON of a schema: the request, the reply, and parsing the reply.

The content of a session comes from users, tools and web pages and is not trusted. It is enclosed in tags
whose names are derived from the content itself, so that nothing in it can close them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from compaction.errors import SummaryMalformed, SummaryRefused, SummaryTooLong
from compaction.messages import JSON

_REFUSAL = "refusal"
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")

#: Output tokens allowed for thinking, in addition to the answer.
THINKING_ROOM = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a model: `content` is the only user message, `schema` the JSON schema of the answer."""

    system: str
    content: str
    schema: Mapping[str, JSON]
    max_tokens: int

    def again(self, note: str) -> Request:
        """Return the same request with a note about the error in the last answer."""
        return replace(self, content=f"{self.content}\n\n{note}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer: its text, and the stop reason as named by Anthropic's API."""

    text: str
    stop_reason: str | None


def fence_of(data: str) -> str:
    """Return a tag that the data cannot contain, because it includes the hash of the data."""
    return f"session-{hashlib.sha256(data.encode('utf-8', 'replace')).hexdigest()[:16]}"


def answer_of(reply: Reply) -> Mapping[str, JSON]:
    """Return the JSON object of a model's answer.

    Raises:
        SummaryRefused: the model declined.
        SummaryTooLong: the answer was cut off.
        SummaryMalformed: the answer is not a JSON object.
    """
    if reply.stop_reason == _REFUSAL:
        raise SummaryRefused("the model declined to answer")
    if reply.stop_reason in _CUT_OFF:
        raise SummaryTooLong(f"the answer was cut off ({reply.stop_reason})")
    try:
        data = orjson.loads(reply.text)
    except orjson.JSONDecodeError as error:
        raise SummaryMalformed(f"the answer is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise SummaryMalformed(f"the answer is of type {type(data).__name__}, not an object")
    return data


# Schemas: structured outputs require every property and allow no others.

STRING: JSON = {"type": "string"}
INTEGER: JSON = {"type": "integer"}


def object_of(**properties: JSON) -> dict[str, JSON]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def array_of(items: JSON) -> dict[str, JSON]:
    return {"type": "array", "items": items}


def one_of(*values: str) -> dict[str, JSON]:
    return {"type": "string", "enum": list(values)}


_TYPES = {"object": dict, "array": list, "string": str, "integer": int}


def check(data: JSON, schema: Mapping[str, JSON]) -> None:
    """Raise SummaryMalformed if the data does not match a schema of these functions."""
    kind, values = schema["type"], schema.get("enum")
    if type(data) is not _TYPES[kind] or (values and data not in values):
        expected = f"one of {', '.join(values)}" if values else f"a value of the type {kind}"
        raise SummaryMalformed(f"expected {expected} in the answer, got {type(data).__name__}")
    if isinstance(data, dict):
        properties = schema["properties"]
        if data.keys() != properties.keys():
            raise SummaryMalformed(f"expected the fields {', '.join(properties)} in an object of the answer")
        for name, value in data.items():
            check(value, properties[name])
    elif isinstance(data, list):
        for item in data:
            check(item, schema["items"])
