"""Builds messages and their deterministic recaps."""

from __future__ import annotations

import json
from dataclasses import replace

from compaction.messages import JSON, Message, Part, Role, Text, ToolCall, ToolResult
from compaction.recap import Recap, extract
from compaction.sizes.tokens import CharacterCounter, message_tokens

COUNTER = CharacterCounter()
TESTS = "pytest -q"
FAILURE = "collected 3\nE  PoolError: timed out\nFAILED tests/test_pool.py"
LISTING = "class PoolError(Exception): ...\ndef evict_idle(self, max_age): ...\nacquire_timeout = 4096\n"


class Transcript:
    """Builds messages in order, each with its position and turn."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._turn = 0

    def user(self, text: str) -> Transcript:
        return self._add(Role.USER, Text(text=text))

    def says(self, text: str) -> Transcript:
        return self._add(Role.ASSISTANT, Text(text=text))

    def calls(self, name: str, result: str, *, is_error: bool | None = None, **arguments: JSON) -> Transcript:
        call_id = f"c{len(self.messages)}"
        self._add(Role.ASSISTANT, ToolCall(call_id=call_id, name=name, arguments=json.dumps(arguments)))
        return self._add(Role.TOOL, ToolResult(call_id=call_id, text=result, is_error=is_error))

    def _add(self, role: Role, *parts: Part) -> Transcript:
        self._turn += role is Role.ASSISTANT
        message = Message(position=len(self.messages), role=role, parts=parts, turn=self._turn)
        self.messages.append(replace(message, tokens=message_tokens(message, COUNTER)))
        return self


def recap_of(transcript: Transcript, *, cap: int = 1_000, **options) -> Recap:
    return extract(transcript.messages, counter=COUNTER, cap_tokens=cap, **options)


def worked_session() -> Transcript:
    return (
        Transcript()
        .user("Make the pool evict idle connections, and never touch tests/legacy.py")
        .calls("Read", LISTING, file_path="src/pool.py")
        .says("The root cause is that evict_idle ignores max_age. I'll use a monotonic clock instead.")
        .calls("Edit", "updated", file_path="src/pool.py", old_string="x", new_string="monotonic_now()")
        .calls("Bash", FAILURE, is_error=True, command=TESTS)
        .calls("Write", "created", file_path="tests/test_pool.py", content="def test_evicts(): ...")
        .calls("Bash", "3 passed in 0.42s", is_error=False, command="ruff check")
    )  # fmt: skip
