"""OpenHands' event streams: old runs, events with tool calls, one event per file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compaction.messages import Usage
from importers.base import ImportedSession
from importers.reading import log_sources
from importers.registry import recognize
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies, misplaced


def called(id: int, call: str, response: str) -> dict[str, Any]:
    usage = {"prompt_tokens": 900, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 700}}
    model_response = {"id": response, "model": "claude-sonnet-4-5", "usage": usage}
    return {
        "id": id,
        "source": "agent",
        "timestamp": "2026-01-05T10:00:00",
        "action": "run",
        "args": {"command": "ls", "thought": "Look around.", "is_input": False},
        "tool_call_metadata": {
            "tool_call_id": call,
            "function_name": "execute_bash",
            "model_response": model_response,
        },
    }


def observed(id: int, cause: int, text: str, code: int) -> dict[str, Any]:
    extras = {"metadata": {"exit_code": code}}
    return {
        "id": id,
        "source": "agent",
        "observation": "run",
        "content": text,
        "cause": cause,
        "extras": extras,
    }


STREAM = [
    {
        "id": 0,
        "source": "agent",
        "action": "system",
        "args": {"content": "You fix bugs.", "tools": [{"a": 1}]},
    },
    {"id": 1, "source": "user", "action": "message", "args": {"content": "Fix issue 7"}},
    {"id": 2, "source": "user", "action": "recall", "args": {"query": "Fix issue 7"}},
    called(3, "c1", "r1"),
    called(4, "c2", "r1"),
    observed(5, 4, "b.py", 0),
    observed(6, 3, "a.py", 2),
    *({"id": id, "observation": "agent_state_changed", "content": ""} for id in range(7, 10)),
    {"id": 10, "source": "agent", "action": "finish", "args": {"final_thought": "Done."}},
]


def check(session: ImportedSession) -> None:
    assert list(misplaced(session)) == []
    assert (session.system, session.tools, session.title) == ("You fix bugs.", [{"a": 1}], "Fix issue 7")
    first, second = session.turns
    assert first.usage == Usage(
        uncached_tokens=200, cache_read_tokens=700, cache_write_tokens=0, output_tokens=40
    )
    assert [body["role"] for body in bodies(session)] == ["user", "assistant", "tool", "tool", "assistant"]
    [one, two] = bodies(session)[1]["tool_calls"]
    assert (one["id"], two["id"]) == ("c1", "c2")
    assert one["function"] == {"name": "execute_bash", "arguments": '{"command": "ls"}'}
    contents = {body["tool_call_id"]: body["content"] for body in bodies(session)[2:4]}
    assert contents["c1"] == "a.py\n[Command finished with exit code 2]"
    assert second.messages[-1].body["content"] == "Done."


def test_parallel_calls_of_one_response_are_one_message() -> None:
    [session], damages = read(document(STREAM), "openhands-events")
    assert damages == []
    check(session)


def test_a_folder_of_events_is_one_log(tmp_path: Path) -> None:
    folder = tmp_path / "conversation-1" / "events"
    folder.mkdir(parents=True)
    for event in STREAM:  # more than ten: they are sorted as numbers, not as text
        (folder / f"{event['id']}.json").write_text(json.dumps(event, indent=1))
    [source] = log_sources([tmp_path])
    log = source.read()
    importer = recognize(log)
    assert importer is not None
    [session] = list(importer.read(log))
    assert isinstance(session, ImportedSession)
    check(session)
    assert session.external_id.startswith("openhands-conversation-1-")


def test_in_an_old_run_an_observation_follows_its_action() -> None:
    history = [
        [{"action": "message", "content": "Add a license"}, {"observation": "null", "content": ""}],
        [
            {"action": "run_ipython", "code": "1 + 1", "thought": "Compute."},
            {"observation": "run_ipython", "content": "2"},
        ],
        [{"action": "finish", "thought": "Done."}, {"observation": "null", "content": ""}],
    ]
    run = {"instance_id": "task-7", "history": history, "metrics": {"costs": [0.01, 0.02]}}
    sessions, damages = read(jsonl(run, run), "openhands-events")
    assert damages == []
    assert len({session.external_id for session in sessions}) == 2
    [call] = bodies(sessions[0])[1]["tool_calls"]
    assert call["function"] == {"name": "execute_ipython_cell", "arguments": '{"code": "1 + 1"}'}
    assert [turn.cost_microusd for turn in sessions[0].turns] == [10_000, 20_000]


def test_a_condensation_is_the_clients_compaction() -> None:
    condensed = {
        "id": 11,
        "source": "agent",
        "action": "condensation",
        "args": {"forgotten_event_ids": [3, 4]},
    }
    later = {"id": 12, "source": "user", "action": "message", "args": {"content": "And now?"}}
    [session], _ = read(document([*STREAM, condensed, later]), "openhands-events")
    assert session.turns[-1].client_compaction is not None


def test_a_damaged_event_does_not_hide_the_others() -> None:
    events = [*STREAM[:2], {"action": "run", "args": {}, "tool_call_metadata": 5, "id": []}, *STREAM[3:]]
    [session], [damage] = read(document({"history": events}), "openhands-events")
    [whole], _ = read(document({"history": STREAM}), "openhands-events")
    assert bodies(session) == bodies(whole)
    assert damage.reason.startswith("message 3")
