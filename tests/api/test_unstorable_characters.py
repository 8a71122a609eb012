"""Characters that UTF-8 or Postgres rejects do not stop compactions, summaries or searches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.client import Api
from tests.api.talk import push, request

#: The arguments are JSON within JSON, so a push with a lone surrogate in them is valid.
ODD = "a\ud800 \0 src/x_1.py"


def turn(number: int, tool: str, field: str) -> list[dict[str, Any]]:
    arguments = json.dumps({field: f"cat {ODD} {number}"})
    call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    output = "Error: \0 failed in src/x_1.py\n" + "\n".join(f"\0line_{n} {number}" for n in range(300))
    return [
        request(f"Fix \0 it_{number}, because we must."),
        {"role": "assistant", "content": f"I'll use \0 x_{number} instead.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
        {"role": "assistant", "content": f"Done \0 with x_{number}, because it was wrong."},
    ]


#: Tools and the argument that contains the characters.
TOOLS = [("bash", "command"), ("Read", "path"), ("Edit", "path"), ("x", "\0")]


@pytest.mark.slow
def test_a_session_with_unstorable_characters_is_compacted(api: Api) -> None:
    policy = {"soft": 0, "hard": 0, "tail_share": 0.01}
    api.post("sessions/", {"id": "odd", "format": "openai", "policy": policy})
    for start in (0, 4):
        for number, (tool, field) in enumerate(TOOLS, start):
            push(api, turn(number, tool, field), session="odd")
        response = api.post("sessions/odd/compact/", {})
        assert (response.status_code, response.json()["state"]) == (200, "done")
        for format in ("openai", "anthropic", "openai-responses"):
            assert api.get(f"sessions/odd/prompt/?format={format}").status_code == 200
    assert api.get("sessions/odd/compactions/").status_code == 200
    assert api.get("sessions/odd/search/?q=x_1").status_code == 200


@pytest.mark.slow
def test_a_session_that_ends_with_a_call_with_an_unstorable_id_is_compacted_and_reverted(api: Api) -> None:
    policy = {"soft": 0, "hard": 0, "tail_share": 0.01}
    api.post("sessions/", {"id": "odd", "format": "openai", "policy": policy})
    for number, (tool, field) in enumerate(TOOLS):
        push(api, turn(number, tool, field), session="odd")
    call = {"id": "c\0", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    push(api, [{"role": "assistant", "content": None, "tool_calls": [call]}], session="odd")
    assert api.post("sessions/odd/compact/", {}).json()["state"] == "done"
    assert api.post("sessions/odd/compactions/1/revert/", {}).json()["state"] == "reverted"
