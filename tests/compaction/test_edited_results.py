"""How shortened tool results and long ids are rendered, so that the provider accepts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compaction.dialects import parse
from compaction.messages import Message, ToolResult
from compaction.rendering import render
from compaction.validation import validate
from tests.compaction.builders import call, result, user

JSON = dict[str, Any]


def edited(items: list[JSON], format: str) -> tuple[Message, ...]:
    """Return the messages with the text of each tool result replaced."""
    return tuple(
        replace(message, patched=True, parts=tuple(map(shortened, message.parts)))
        if message.tool_results
        else message
        for message in parse(items, format=format)
    )


def shortened(part: Any) -> Any:
    return replace(part, text="short", patched=True) if isinstance(part, ToolResult) else part


@pytest.mark.parametrize("flag", [{}, {"is_error": True}, {"is_error": False}])
def test_a_shortened_result_keeps_its_error_flag(flag: JSON) -> None:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    block = {"type": "tool_result", "tool_use_id": "t", "content": "long", **flag}
    items = [user("Go."), {"role": "assistant", "content": [use]}, {"role": "user", "content": [block]}]
    shown = render(edited(items, "anthropic"), format="anthropic").messages
    assert shown[2]["content"] == [{**block, "content": "short"}]
    assert validate(shown, "anthropic") == ()


@pytest.mark.parametrize(
    ("made", "output", "text"),
    [
        (
            {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {}, "status": "completed"},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
            {"type": "computer_screenshot"},
        ),
        (
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {}, "status": "completed"},
            {"type": "local_shell_call_output", "id": "c", "output": "long"},
            "short",
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {}},
            {"type": "shell_call_output", "call_id": "c", "output": []},
            [{"stdout": "short", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        ),
    ],
)
def test_a_shortened_output_has_the_form_that_its_call_requires(made: JSON, output: JSON, text: Any) -> None:
    items = [{"type": "message", "role": "user", "content": "Go."}, made, output]
    shown = render(edited(items, "openai-responses"), format="openai-responses").messages
    assert shown[1:] == [made, {**output, "output": text}]
    assert validate(shown, "openai-responses") == ()


@pytest.mark.parametrize(("format", "longest"), [("openai", 40), ("openai-responses", 64)])
def test_only_ids_that_are_too_long_for_the_provider_are_replaced(format: str, longest: int) -> None:
    for length in (longest, longest + 1):
        items = [user("Go."), call("t" * length, "f"), result("t" * length, "x")]
        foreign = render(parse(items, format="openai"), format="anthropic").messages
        shown = render(parse(foreign, format="anthropic"), format=format).messages
        ids = {
            found
            for item in shown
            for found in (item.get("tool_call_id"), item.get("call_id"), *called(item))
            if found
        }
        assert len(ids) == 1
        assert (ids == {"t" * length}) == (length == longest)
        assert len(ids.pop()) <= longest


def called(item: JSON) -> list[str]:
    return [each["id"] for each in item.get("tool_calls") or []]
