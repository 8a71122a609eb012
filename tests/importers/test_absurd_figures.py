"""Logs with implausible figures are imported without these figures."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from accounts.models import Project
from importers.base import ImportedSession, LogFile
from importers.registry import recognize
from importers.values import microusd_of, time_of
from sessions.models import AgentSession
from sessions.services.imports.store import session_import

ABSURD = 10**13


def chat_log(usage: dict[str, Any]) -> bytes:
    answer = {"role": "assistant", "content": "There are none."}
    response = {"usage": usage, "choices": [{"message": answer}]}
    return orjson.dumps({"messages": [{"role": "user", "content": "List the files."}], "response": response})


def claude_code_log(usage: dict[str, Any]) -> bytes:
    base = {"sessionId": "s1", "timestamp": "2026-01-01T00:00:00Z"}
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "There are none."}],
        "usage": usage,
    }
    lines = [
        {**base, "type": "user", "uuid": "u1", "message": {"role": "user", "content": "List the files."}},
        {**base, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": answer},
    ]
    return b"\n".join(map(orjson.dumps, lines))


def imported(project: Project, data: bytes) -> AgentSession:
    log = LogFile(name="run.jsonl", data=data)
    importer = recognize(log)
    assert importer is not None
    [session] = [item for item in importer.read(log) if isinstance(item, ImportedSession)]
    return session_import(project=project, imported=session).session


@pytest.mark.django_db
@pytest.mark.parametrize(
    "data",
    [
        chat_log({"prompt_tokens": ABSURD, "completion_tokens": 5}),
        chat_log({"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": ["none"]}),
        claude_code_log({"input_tokens": ABSURD, "cache_read_input_tokens": 2**31, "output_tokens": 5}),
    ],
)
def test_implausible_token_counts_are_ignored(project: Project, data: bytes) -> None:
    session = imported(project, data)
    assert session.turn_count == 1
    assert session.billed_tokens < 100
    assert session.output_tokens == 5


@pytest.mark.parametrize("dollars", [-1, 1e30, "1e400", float("nan"), float("inf")])
def test_implausible_costs_are_ignored(dollars: Any) -> None:
    assert microusd_of(dollars) is None


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_times_at_the_limits_of_the_calendar_are_ignored(text: str) -> None:
    assert time_of(text) is None
