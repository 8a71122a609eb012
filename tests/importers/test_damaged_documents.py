"""A damaged part of a log is reported, and the rest is imported."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Project
from importers.base import Damage, LogFile
from importers.registry import IMPORTERS, log_items
from sessions.selectors.redaction import redaction_of
from sessions.services.imports.logs import log_import
from sessions.services.imports.reader import Reader
from tests.importers.logs import document, jsonl, read
from tests.importers.test_anthropic_messages import MESSAGES as ANTHROPIC
from tests.importers.test_atif import STEPS, trajectory
from tests.importers.test_goose import FACTS
from tests.importers.test_goose import MESSAGES as GOOSE
from tests.importers.test_openai_responses import ITEMS
from tests.importers.test_opencode import MESSAGES as OPENCODE
from tests.importers.test_opencode import SESSION
from tests.importers.test_openhands_sdk import EVENTS

BAD_BLOCK = {"role": "user", "content": [5]}
NO_ID = {"role": "assistant", "content": [{"type": "tool_use", "name": "ls", "input": {}}]}
CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
BAD_CALL = {"role": "assistant", "content": None, "tool_calls": [{"function": {}}]}
TASK = {"role": "user", "content": [{"type": "text", "text": "<task>List the files.</task>"}], "ts": 1}
BAD_TYPE = {"type": ["text"]}


@pytest.mark.parametrize(
    ("log", "format", "expected"),
    [
        (document({"info": SESSION, "messages": [OPENCODE[0], 5, *OPENCODE[1:2]]}), "opencode", 3),
        (document({**FACTS, "conversation": [*GOOSE[:2], BAD_BLOCK, *GOOSE[2:]]}), "goose", 8),
        (document([EVENTS[0], {"kind": "MessageEvent"}, *EVENTS[1:]]), "openhands-sdk", 6),
        (
            document({"model": "gpt-5", "input": [*ITEMS[:2], {"role": "tool", "content": ""}]}),
            "openai-responses",
            2,
        ),
        (document([*ANTHROPIC, BAD_BLOCK, ANTHROPIC[0]]), "anthropic-messages", 5),
        (document({"messages": [*ANTHROPIC, NO_ID]}), "anthropic-messages", 4),
        (jsonl(*ANTHROPIC, NO_ID), "anthropic-messages", 4),
        (document([CHAT[0], BAD_CALL, CHAT[1]]), "openai-chat", 2),
        (jsonl(CHAT[0], BAD_CALL, CHAT[1]), "openai-chat", 2),
        (document([{"messages": CHAT}, {"messages": 5}, {"messages": CHAT[:1] * 2}]), "openai-chat", 4),
        (document([{**TASK, "content": [*TASK["content"], BAD_TYPE]}, CHAT[1]]), "cline", 1),
        (document(trajectory(STEPS[1], subagent_trajectories=[5, trajectory(STEPS[1])])), "atif", 2),
    ],
)
def test_one_damaged_message_does_not_hide_the_others(log: LogFile, format: str, expected: int) -> None:
    sessions, damages = read(log, format)
    assert sum(len(turn.messages) for session in sessions for turn in session.turns) == expected
    assert len(damages) == 1


def test_damaged_usage_does_not_hide_the_conversation() -> None:
    state = {
        "id": "c0ffee",
        "agent": {},
        "stats": {"usage_to_metrics": {"agent": {"token_usages": 5, "costs": 5}}},
    }
    [session], damages = read(jsonl(state, *EVENTS), "openhands-sdk")
    assert (len(session.turns), damages) == (3, [])


@pytest.mark.parametrize(
    ("format", "value"),
    [
        ("opencode", {"messages": [], "info": 5}),
        ("opencode", {"messages": 5, "info": {}}),
        ("cline", {"messages": 5}),
        ("cline", "text"),
        ("goose", {"conversation": 5}),
        ("goose", [1]),
        ("atif", {"steps": 5}),
        ("openai-chat", {"messages": 5}),
        ("anthropic-messages", {"messages": 5}),
        ("openai-responses", {"input": 5}),
        ("langsmith", {"runs": 5}),
        ("phoenix", {"data": 5}),
        ("vscode-chat", {"requests": 5}),
        ("continue", {"history": 5}),
    ],
)
def test_a_value_of_another_format_is_reported(format: str, value: Any) -> None:
    [damage] = log_items(IMPORTERS[format], document(value))
    assert isinstance(damage, Damage)
    assert damage.reason.startswith("not a record of this format: ")


@pytest.mark.django_db
@pytest.mark.parametrize("format", list(IMPORTERS))
def test_a_file_of_another_format_is_reported_or_adds_no_messages(project: Project, format: str) -> None:
    reader = Reader(redaction=redaction_of(project), format=format)
    for data in (b"no JSON", b"null", b'{"messages": 1}', b'[{"role": []}]', b"\0\xff"):
        log = reader.read_file(LogFile(name="run.json", data=data))
        results = log_import(project=project, log=log)
        assert log.damages or not any(result.session.message_count for result in results), data


def test_a_deeply_nested_call_does_not_hide_the_others() -> None:
    arguments = {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "ls", "arguments": {"a": "DEEP"}}}],
    }
    data = document([CHAT[0], arguments, CHAT[1]]).data.replace(b'"DEEP"', b"[" * 990 + b"]" * 990)
    [session], damages = read(LogFile(name="deep.json", data=data), "openai-chat")
    assert sum(len(turn.messages) for turn in session.turns) + len(damages) == 3
