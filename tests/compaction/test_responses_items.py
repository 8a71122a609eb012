"""All kinds of OpenAI's items, with odd ids and outputs: the prompt is valid, and has all their content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compaction import dialects
from compaction.capabilities import Capabilities
from compaction.continuation import Continuation
from compaction.rendering import render
from compaction.validation import validate
from tests.compaction.providers import faults
from tests.compaction.test_odd_histories import served
from tests.plugins.examples import examples

JSON = dict[str, Any]

NAME = "openai-responses"

CALLS: dict[str, Callable[[str], JSON]] = {
    "function_call": lambda text: {"name": "run", "arguments": json.dumps({"a": text})},
    "custom_tool_call": lambda text: {"name": "run", "input": text},
    "local_shell_call": lambda text: {"id": f"lsh_{text}", "action": {"command": [text]}},
    "shell_call": lambda text: {"action": {"commands": [text]}},
    "apply_patch_call": lambda text: {"operation": {"diff": text}},
    "computer_call": lambda text: {"id": f"cu_{text}", "action": {"type": "type", "text": text}},
}
ODD_CALLS: dict[str, Callable[[str], JSON]] = {
    "function_call": lambda text: {"name": "", "arguments": f"[{text}"},
    "custom_tool_call": lambda text: {"name": "", "input": text},
}
OUTPUTS: dict[str, Callable[[str], Any]] = {
    "function_call_output": str,
    "custom_tool_call_output": lambda text: [{"type": "input_text", "text": text}, _image(text)],
    "local_shell_call_output": str,
    "shell_call_output": lambda text: [
        {"stdout": text, "stderr": f"{text}e", "outcome": {"type": "exit", "exit_code": 1}}
    ],
    "apply_patch_call_output": str,
    "computer_call_output": lambda text: {"type": "computer_screenshot", "image_url": text},
}
#: Ids and private fields, of which the provider rejects some.
EXTRAS = st.sampled_from(
    [{}, {"id": ""}, {"id": "x"}, {"id": "msg_1" * 20}, {"_private": 1}, {"status": "completed"}]
)
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
CALL_IDS = st.sampled_from(["a", "b", "", "é", "x" * 64, "x" * 65])


def _image(text: str) -> JSON:
    return {"type": "input_image", "image_url": f"https://example.org/{text}.png"}


def _texts(text: str) -> list[JSON]:
    return [{"type": "input_text", "text": text}]


class Words:
    """Words that occur once in a history."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return f"w{self.count}w"


@st.composite
def exchanges(draw: st.DrawFn, word: Words) -> list[JSON]:
    """Return a call and its output, often of another kind. Some ids are invalid."""
    kind, id = draw(st.sampled_from(sorted(CALLS))), draw(CALL_IDS)
    made = draw(st.sampled_from([CALLS, ODD_CALLS]))
    own = {"id": f"{PREFIXES.get(kind, 'item')}_{word()}"} if draw(st.booleans()) else {}
    call = {"type": kind, "call_id": id, **own, **made.get(kind, CALLS[kind])(word())}
    if kind == "local_shell_call" and draw(st.booleans()):
        del call["call_id"]
        id = call["id"]
    if draw(st.booleans()) and draw(st.booleans()):
        return [call]  # the user interrupted it
    # The output of a computer call is an image. No client sends it for another call.
    name = draw(st.sampled_from([f"{kind}_output", "function_call_output", "custom_tool_call_output"]))
    key = "id" if name == "local_shell_call_output" and draw(st.booleans()) else "call_id"
    made_output = draw(st.sampled_from([OUTPUTS[name], OUTPUTS[name], str, _texts]))  # not always of its type
    return [call, {"type": name, key: id, "output": made_output(word())}]


@st.composite
def messages(draw: st.DrawFn, word: Words) -> list[JSON]:
    role = draw(st.sampled_from(["user", "assistant", "developer", "system"]))
    kinds = ["output_text", "input_text"] + ["input_image"] * (role == "user")
    parts = [
        _image(word()) if kind == "input_image" else {"type": kind, "text": word()}
        for kind in draw(st.lists(st.sampled_from(kinds), max_size=3))
    ]
    if role == "assistant" and draw(st.booleans()):
        parts.append({"type": "refusal", "refusal": word()})
    phase = {"phase": "commentary"} if role == "assistant" and draw(st.booleans()) else {}
    return [{**draw(EXTRAS), **phase, "role": role, "content": parts or word()}]


@st.composite
def other_items(draw: st.DrawFn, word: Words) -> list[JSON]:
    request, search = f"mcpr_{word()}", {"type": "web_search_call", "id": f"ws_{word()}", "action": {}}
    asked = {
        "type": "mcp_approval_request",
        "id": request,
        "name": "f",
        "arguments": "{}",
        "server_label": "s",
    }
    approval = {"type": "mcp_approval_response", "approval_request_id": request, "approve": True}
    return draw(st.sampled_from([[search], [asked, approval]]))


@st.composite
def reasoning(draw: st.DrawFn, word: Words) -> list[JSON]:
    """Return reasoning, which the provider accepts only if it is encrypted and its item follows."""
    content = draw(st.sampled_from(["opaque", None]))
    item = {"type": "reasoning", "id": f"rs_{word()}", "summary": [], "encrypted_content": content}
    said = {"type": "message", "id": f"msg_{word()}", "role": "assistant", "content": word()}
    return [item, said] if draw(st.booleans()) else [item]


@st.composite
def histories(draw: st.DrawFn) -> list[JSON]:
    word = Words()
    groups = draw(
        st.lists(st.sampled_from([exchanges, messages, other_items, reasoning]), min_size=1, max_size=6)
    )
    found = [{"role": "user", "content": word()}]
    for group in groups:
        found += draw(group(word))  # type: ignore[operator]
    return found


def words(items: Sequence[JSON]) -> set[str]:
    return set(re.findall(r"w\d+w", json.dumps(items)))


def ids(items: Sequence[JSON]) -> set[str]:
    """Return the words in the ids of items, which the model does not read."""
    return words([{"id": item["id"]} for item in items if "id" in item])


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
@example(
    [
        {"role": "user", "content": "Go."},
        {"type": "custom_tool_call", "call_id": "a", "name": "run", "input": "w1w"},
        {"type": "function_call_output", "call_id": "a", "output": "w2w"},
    ]
)
def test_every_prompt_is_valid_and_has_all_the_content_of_the_items(items: list[JSON]) -> None:
    assert faults(served(items, NAME, NAME, Capabilities()), NAME) == []  # as stored, if possible
    parsed = dialects.parse_mixed(items, default=NAME)
    for format in dialects.DIALECTS:
        shown = render(parsed, format=format)
        assert faults(shown.messages, format) == []
        # A screenshot of a computer call is not an output of other dialects' tools.
        screens = words([item for item in items if item.get("type") == "computer_call_output"])
        expected = words(items) - ids(items) - (screens if format != NAME else set())
        assert words([*shown.messages, {"system": shown.system}]) >= expected


def test_an_output_of_another_kind_closes_its_call() -> None:
    """An open call would delay compactions."""
    call = {"type": "custom_tool_call", "call_id": "a", "name": "run", "input": "x"}
    output = {"type": "function_call_output", "call_id": "a", "output": "y"}
    state = Continuation().after(dialects.parse([call, output], format=NAME), NAME)
    assert (state.open_calls, state.regular) == ((), False)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_items_that_the_provider_accepts_are_unchanged(items: list[JSON]) -> None:
    """Also messages beside which an invalid item is repaired, apart from ids that belong to reasoning."""
    shown = render(dialects.parse(items, format=NAME), format=NAME).messages
    if not faults(items, NAME):
        assert shown == items
        assert validate(items, NAME) == ()
    for item in items:
        if item.get("role") and "id" not in item and faults([item], NAME) == []:
            assert item in shown


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_an_item_that_the_provider_rejects_is_a_violation(data: st.DataObject) -> None:
    word = Words()
    group = data.draw(st.sampled_from([exchanges, messages, reasoning]))
    items = [{"role": "user", "content": word()}, *data.draw(group(word))]  # type: ignore[operator]
    if not any("_private" in item for item in items):
        assert bool(faults(items, NAME)) == bool(validate(items, NAME))


def test_the_output_of_a_patch_is_optional() -> None:
    items = [
        {"type": "message", "role": "user", "content": "Patch it."},
        {
            "type": "apply_patch_call",
            "call_id": "a",
            "status": "completed",
            "operation": {"type": "delete_file"},
        },
        {"type": "apply_patch_call_output", "call_id": "a", "status": "completed"},
    ]
    assert dialects.detect(items[2], default="openai") == NAME
    assert validate(items, NAME) == ()
    assert render(dialects.parse(items, format=NAME), format=NAME).messages == items


def test_repeated_items_have_different_ids() -> None:
    """Clients repeat items by mistake. The provider rejects two items with the same id."""
    search = {"type": "mcp_call", "id": "mcp_1", "name": "find", "arguments": "{}", "server_label": "docs"}
    call = {"type": "shell_call", "id": "sh_1", "call_id": "a", "action": {"commands": ["ls"]}}
    run = {"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    output = {"type": "shell_call_output", "call_id": "a", "output": [run]}
    items = [{"role": "user", "content": "Look."}, *[search, call, output] * 3]
    shown = render(dialects.parse(items, format=NAME), format=NAME).messages
    ids = [item["id"] for item in shown if "id" in item]
    assert len(set(ids)) == len(ids)
    assert [item["type"] for item in shown if "id" in item] == [
        "mcp_call",
        "shell_call",
        "mcp_call",
        "mcp_call",
    ]
    assert validate(shown, NAME) == ()
