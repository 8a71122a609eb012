"""Asking a model for JSON of a schema: what it is sent, what it answers, and how the answer is read.

What people, tools and web pages said in a session is not trusted. It stands between tags whose names are
derived from the data itself, so that nothing in the data can close them.
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

#: Output tokens that are allowed for thinking, beside the answer.
THINKING_ROOM = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the model is sent: `content` is the one user message, `schema` the JSON schema of the answer."""

    system: str
    content: str
    schema: Mapping[str, JSON]
    max_tokens: int

    def again(self, note: str) -> Request:
        """The same request with what was wrong with the last answer."""
        return replace(self, content=f"{self.content}\n\n{note}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer: its text, and why it stopped, in the words of Anthropic's API."""

    text: str
    stop_reason: str | None


def fence_of(data: str) -> str:
    """A tag that the data does not hold: nobody can write the hash of a text into the text."""
    return f"session-{hashlib.sha256(data.encode('utf-8', 'replace')).hexdigest()[:16]}"


def answer_of(reply: Reply) -> Mapping[str, JSON]:
    """The JSON object that a model answered.

    Raises:
        SummaryRefused: the model declined.
        SummaryTooLong: the answer was cut off.
        SummaryMalformed: the answer is no JSON object.
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
        raise SummaryMalformed(f"the answer has {type(data).__name__} where an object belongs")
    return data


# -- Schemas: every property is required and nothing else is allowed, as structured outputs ask for.

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
