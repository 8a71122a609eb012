"""The message formats that agents speak. A new one is a file and a line in `FORMATS`."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from compaction.errors import FormatError
from compaction.formats import anthropic, openai
from compaction.messages import JSON, Message
from compaction.tokens import TokenCounter, message_tokens


class Format(Protocol):
    """What a format's module offers to everybody; how it renders is for `compaction.render`."""

    NAME: str

    def read(
        self, item: JSON, *, position: int, turn: int, tokens: int = 0, pinned: bool = False
    ) -> Message: ...

    def tools_field(self, tools: JSON) -> list[JSON]: ...


FORMATS: dict[str, Format] = {anthropic.NAME: anthropic, openai.NAME: openai}


def get_format(name: str) -> Format:
    """The format of that name. Raises FormatError."""
    try:
        return FORMATS[name]
    except KeyError:
        raise FormatError(f"unknown format {name!r}; known: {', '.join(sorted(FORMATS))}") from None


def parse(
    payload: JSON,
    *,
    format: str,
    start_position: int = 0,
    turn: int = 0,
    counter: TokenCounter | None = None,
) -> tuple[Message, ...]:
    """Messages of a list as it stands under `messages` in a request. Tolerates anything in it.

    Positions count from `start_position`. `tokens` is 0 where no `counter` is given. Raises FormatError where
    there is no such format.
    """
    read = get_format(format).read
    items = payload if isinstance(payload, list | tuple) else [payload]
    messages = (read(item, position=start_position + index, turn=turn) for index, item in enumerate(items))
    if counter is None:
        return tuple(messages)
    return tuple(replace(message, tokens=message_tokens(message, counter)) for message in messages)
