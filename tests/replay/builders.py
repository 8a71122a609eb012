"""Generated sessions to replay: sixty reads; every tenth call needs the result of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from compaction.dialects import parse
from compaction.messages import Message, Usage
from compaction.rendering import render
from compaction.replay.transcript import RecordedTurn, Transcript, transcript_of
from compaction.sizes.tokens import CharacterCounter

COUNTER = CharacterCounter()
BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def items(reads: int = 60, back: int = 8) -> list[dict[str, Any]]:
    """Return OpenAI messages: a request, then a call and its output for each read.

    Every tenth call needs the result of the read `back` reads earlier.
    """
    result: list[dict[str, Any]] = [{"role": "user", "content": "Find out what calls what."}]
    for n in range(reads):
        reference = f" after told_name_{n - back}" if n % 10 == 9 and n >= back else ""
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/file_{n}.py"})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        result.append({"role": "assistant", "content": f"Reading{reference}.", "tool_calls": [call]})
        text = f"told_name_{n} " + "plain words " * 100
        result.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    return result


def transcript(
    reads: int = 60,
    *,
    back: int = 8,
    usage: Usage | None = None,
    gap: float = 10,
    restart: int | None = None,
    format: str = "openai",
) -> Transcript:
    """Return a transcript with a turn for each read, `gap` seconds apart, each with the same `usage`.

    The client compacts before turn `restart`.
    """
    chat = parse(items(reads, back), format="openai", counter=COUNTER)
    messages = chat if format == "openai" else _in(format, chat)
    turns = [
        RecordedTurn(
            index=n,
            first=0 if n == 0 else 2 * n,
            end=min(2 * n + 2, len(messages)),
            usage=usage,
            at=BEGIN + timedelta(seconds=gap * n),
            restarts=n == restart,
        )
        for n in range(reads)
    ]
    return transcript_of(name="made", format=format, messages=messages, turns=turns, model="gpt-5")


def _in(format: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    return parse(render(messages, format=format).messages, format=format, counter=COUNTER)
