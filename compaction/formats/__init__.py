"""The message formats that agents speak. A new one is a file and a line in `FORMATS`."""

from __future__ import annotations

from typing import Protocol

from compaction.errors import FormatError
from compaction.formats import anthropic, openai
from compaction.messages import JSON, Message
from compaction.tokens import TokenCounter


class Format(Protocol):
    """What a format's module offers to everybody; how it renders is for `compaction.render`."""

    NAME: str

    def parse(
        self, payload: JSON, *, start_position: int = 0, turn: int = 0, counter: TokenCounter | None = None
    ) -> tuple[Message, ...]: ...

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
    """Messages of a provider's JSON list; see the format's own `parse`. Raises FormatError."""
    reader = get_format(format)
    return reader.parse(payload, start_position=start_position, turn=turn, counter=counter)
