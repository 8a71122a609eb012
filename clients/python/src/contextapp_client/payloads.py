"""What goes over the wire: plain JSON values, and the response objects of the providers' SDKs.

Those are pydantic models; they are dumped as the SDKs themselves dump what is sent back to them: by their
wire names, without what the provider did not send.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The messages of a push, and what a response among them tells besides."""

    messages: list[object]
    usage: object | None = None
    model: str | None = None


def encode(value: object) -> bytes:
    """`value` as JSON in UTF-8. A lone surrogate is escaped, for the server to judge."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain)
    return text.encode(errors="backslashreplace")


def plain(value: object) -> Any:
    """The JSON value of an SDK's object. Raises TypeError for objects of other kinds."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    raise TypeError(f"{type(value).__name__} is neither JSON nor an object of a provider's SDK")


def read(messages: Iterable[object]) -> Pushed:
    """The messages as the provider takes them. Whole responses are reduced to their message; the last one
    gives usage and model."""
    taken: list[object] = []
    usage: object | None = None
    model: str | None = None
    for given in messages:
        value = given if isinstance(given, Mapping) else plain(given)
        message = _message_of(value)
        if message is not value:
            usage, model = value.get("usage"), value.get("model")
        taken.append(message)
    return Pushed(messages=taken, usage=usage, model=model)


def _message_of(value: Any) -> Any:
    """The message in a response of Anthropic Messages or OpenAI Chat; other values as they are."""
    if value.get("type") == "message":
        return {"role": value["role"], "content": value["content"]}
    if "choices" in value:
        return value["choices"][0]["message"]
    return value
