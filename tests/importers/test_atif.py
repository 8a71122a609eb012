"""ATIF trajectories."""

from __future__ import annotations

from typing import Any

from compaction.messages import Usage
from tests.importers.logs import document, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]


def trajectory(*steps: JSON, **fields: Any) -> JSON:
    agent = {"name": "terminus-2", "version": "2.0", "model_name": "gpt-5"}
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, start=1)]
    return {"schema_version": "ATIF-v1.6", "session_id": "s1", "agent": agent, "steps": numbered, **fields}


def call(id: str) -> JSON:
    return {"tool_call_id": id, "function_name": "bash", "arguments": {"command": "ls"}}


def result(call: str, words: Any) -> JSON:
    return {"source_call_id": call, "content": words}


METRICS = {"prompt_tokens": 900, "completion_tokens": 40, "cached_tokens": 700, "cost_usd": 0.25}
PICTURE = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
STEPS: list[JSON] = [
    {"source": "system", "message": "You fix bugs."},
    {"source": "user", "message": "Fix the parser", "timestamp": "2026-11-01T10:00:00Z"},
    {
        "source": "agent",
        "message": "I look.",
        "reasoning_content": "Hm.",
        "tool_calls": [call("c1"), call("c2")],
        "observation": {"results": [result("c2", "b.py"), result("c1", [{"type": "text", "text": "a.py"}])]},
        "metrics": METRICS,
    },
    {"source": "agent", "message": "Done.", "metrics": METRICS, "is_copied_context": True},
    {"source": "user", "message": [{"type": "text", "text": "And this?"}, PICTURE]},
]


def test_a_trajectory() -> None:
    [session], damages = read(document(trajectory(*STEPS)), "atif")
    assert (damages, list(misplaced(session))) == ([], [])
    assert (session.external_id, session.agent, session.title) == ("s1", "terminus-2", "Fix the parser")
    assert (session.system, session.model) == ("You fix bugs.", "gpt-5")
    assert [(body["role"], body["content"]) for body in bodies(session)] == [
        ("user", "Fix the parser"),
        ("assistant", "I look."),
        ("tool", "b.py"),
        ("tool", "a.py"),
        ("assistant", "Done."),
        (
            "user",
            [{"type": "text", "text": "And this?"}, {"type": "text", "text": "[image/png: a.png]"}],
        ),
    ]
    usage = Usage(uncached_tokens=200, cache_read_tokens=700, cache_write_tokens=0, output_tokens=40)
    assert [(turn.usage, turn.cost_microusd) for turn in session.turns] == [
        (usage, 250_000),
        (None, None),
        (None, None),
    ]


def test_a_continuation_is_a_separate_session() -> None:
    [session], _ = read(document(trajectory(*STEPS), "run/trajectory.cont-1.json"), "atif")
    assert session.external_id == "s1-cont-1"


def test_embedded_sub_agents_are_child_sessions() -> None:
    child = trajectory(*STEPS, trajectory_id="t2")
    sessions, _ = read(document(trajectory(*STEPS, subagent_trajectories=[child])), "atif")
    assert [(each.external_id, each.parent_external_id) for each in sessions] == [("s1", None), ("t2", "s1")]
