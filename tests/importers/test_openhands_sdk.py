"""Conversations of OpenHands since version 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from compaction.messages import Usage
from importers.reading import log_sources
from tests.importers.logs import document, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]


def event(number: int, kind: str, source: str, **fields: Any) -> JSON:
    return {
        "id": f"e{number}",
        "kind": kind,
        "source": source,
        "timestamp": f"2026-11-01T10:00:{number:02}",
        **fields,
    }


def text(words: str) -> JSON:
    return {"type": "text", "text": words, "cache_prompt": False}


def action(number: int, call: str, response: str) -> JSON:
    tool_call = {"id": call, "name": "terminal", "arguments": '{"command": "ls"}', "origin": "completion"}
    return event(
        number,
        "ActionEvent",
        "agent",
        thought=[text("I look.")],
        tool_name="terminal",
        tool_call_id=call,
        tool_call=tool_call,
        llm_response_id=response,
    )


def observation(number: int, call: str, kind: str = "ObservationEvent", **fields: Any) -> JSON:
    return event(number, kind, "environment", tool_name="terminal", tool_call_id=call, **fields)


IMAGE = {"type": "image", "image_urls": ["data:image/png;base64,QUJD"]}
EVENTS = [
    event(0, "SystemPromptEvent", "agent", system_prompt=text("You fix bugs."), tools=[]),
    event(
        1, "MessageEvent", "user", llm_message={"role": "user", "content": [text("Fix the parser"), IMAGE]}
    ),
    action(2, "c1", "r1"),
    action(3, "c2", "r1"),
    event(4, "ConversationStateUpdateEvent", "environment", key="stats", value={}),
    observation(
        5,
        "c2",
        observation={
            "kind": "TerminalObservation",
            "content": [text("b.py")],
            "metadata": {"exit_code": 2, "working_dir": "/work"},
        },
    ),
    observation(6, "c1", "UserRejectObservation", rejection_reason="No."),
    event(7, "Condensation", "environment", forgotten_event_ids=["e1"], summary="The parser is in a.py."),
    event(
        8,
        "MessageEvent",
        "agent",
        llm_message={"role": "assistant", "content": [text("Done.")]},
        llm_response_id="r2",
    ),
]


def usage(response: str, prompt: int, read: int, output: int) -> JSON:
    counts = {"prompt_tokens": prompt, "completion_tokens": output, "cache_read_tokens": read}
    return {"model": "claude-sonnet-4-5", "response_id": response, "cache_write_tokens": 40, **counts}


METRICS = {
    "token_usages": [usage("r1", 900, 700, 50), "damaged", usage("r2", 1000, 800, 5)],
    "costs": [{"model": "claude-sonnet-4-5", "cost": cost} for cost in (0.25, 0.0, 0.5)],
}
STATE = {
    "id": "c0ffee",
    "agent": {"kind": "Agent"},
    "workspace": {"kind": "LocalWorkspace", "working_dir": "/work"},
    "stats": {"usage_to_metrics": {"agent": METRICS}},
}


def test_a_conversation(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "base_state.json").write_bytes(orjson.dumps(STATE))
    for number, each in enumerate(EVENTS):
        (tmp_path / "events" / f"event-{number:05}-0a1b2c3d.json").write_bytes(orjson.dumps(each))
    [source] = log_sources([tmp_path])
    [session], damages = read(source.read(), "openhands-sdk")
    assert (damages, list(misplaced(session))) == ([], [])
    assert (session.external_id, session.title, session.system) == (
        "openhands-c0ffee",
        "Fix the parser",
        "You fix bugs.",
    )
    assert (session.model, session.metadata) == ("claude-sonnet-4-5", {"cwd": "/work"})
    assert [body.get("content") for body in bodies(session)] == [
        [
            {"type": "text", "text": "Fix the parser"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        ],
        "I look.",
        "b.py\n[Current working directory: /work]\n[Command finished with exit code 2]",
        "Action rejected: No.",
        "The parser is in a.py.",
        "Done.",
    ]
    assert [(turn.usage, turn.cost_microusd) for turn in session.turns if turn.usage] == [
        (Usage(uncached_tokens=160, cache_read_tokens=700, cache_write_tokens=40, output_tokens=50), 250_000),
        (Usage(uncached_tokens=160, cache_read_tokens=800, cache_write_tokens=40, output_tokens=5), 500_000),
    ]
    assert session.turns[-1].client_compaction


def test_a_list_of_events_is_read_without_usage() -> None:
    [session], damages = read(document(EVENTS, "events.json"), "openhands-sdk")
    assert (damages, [turn.usage for turn in session.turns if turn.usage]) == ([], [])
    assert len(bodies(session)) == 6
