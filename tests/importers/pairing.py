"""An independent, simple check of tool pairing, written without the importers' code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from importers.base import ImportedSession


def bodies(session: ImportedSession) -> list[Mapping[str, Any]]:
    return [message.body for turn in session.turns for message in turn.messages]


def calls(session: ImportedSession) -> list[str]:
    return [call for body in bodies(session) for call in _calls(body)]


def results(session: ImportedSession) -> list[str]:
    return [call for body in bodies(session) for call in _results(body)]


def misplaced(session: ImportedSession) -> Iterator[str]:
    """Return results that do not directly follow their call, and calls with two results."""
    expected: set[str] = set()
    for body in bodies(session):
        answered = _results(body)
        for call in answered:
            if call not in expected:
                yield f"result of {call} does not follow its call"
            expected.discard(call)
        if body["role"] == "assistant":
            expected = set(_calls(body))
        elif not answered:
            expected = set()


def _calls(body: Mapping[str, Any]) -> list[str]:
    if body["role"] != "assistant":
        return []
    blocks = body["content"] if isinstance(body.get("content"), list) else []
    used = [block["id"] for block in blocks if block.get("type") == "tool_use"]
    return used + [call["id"] for call in body.get("tool_calls", [])]


def _results(body: Mapping[str, Any]) -> list[str]:
    if body["role"] == "tool":
        return [body["tool_call_id"]]
    blocks = body["content"] if isinstance(body.get("content"), list) else []
    return [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
