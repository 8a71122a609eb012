"""A log that grows keeps the messages that it had, so that importing it again adds only new ones."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from importers.base import ImportedSession, LogFile
from importers.registry import IMPORTERS

RECORDED = Path(__file__).parent / "recorded"


def sessions_of(format: str, name: str, data: bytes) -> dict[str, ImportedSession]:
    found = IMPORTERS[format].read(LogFile(name=name, data=data))
    return {item.external_id: item for item in found if isinstance(item, ImportedSession)}


def langfuse_rows() -> bytes:
    traces = orjson.loads((RECORDED / "langfuse.json").read_bytes())
    return b"\n".join(orjson.dumps(call) for trace in traces for call in trace["observations"])


@pytest.mark.parametrize(
    ("format", "name", "data"),
    [
        ("copilot", "events.jsonl", (RECORDED / "copilot.jsonl").read_bytes()),
        ("copilot", "events.jsonl", (RECORDED / "copilot-resumed.jsonl").read_bytes()),
        ("aider", ".aider.chat.history.md", (RECORDED / "aider.md").read_bytes()),
        ("langfuse", "rows.jsonl", langfuse_rows()),
    ],
)
def test_a_log_that_grows_keeps_its_messages(format: str, name: str, data: bytes) -> None:
    whole, lines = sessions_of(format, name, data), data.splitlines(keepends=True)
    for count in range(1, len(lines)):
        for id, part in sessions_of(format, name, b"".join(lines[:count])).items():
            for turn, later in zip(part.turns[:-2], whole[id].turns, strict=False):
                assert [message.source_id for message in turn.messages] == [
                    message.source_id for message in later.messages
                ]
                assert [message.body for message in turn.messages] == [
                    message.body for message in later.messages
                ]
