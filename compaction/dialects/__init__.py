"""Dialects: the provider message formats that agents use.

A new dialect is a `Dialect` in its own module and one line in `DIALECTS`. The API calls the name of a dialect
`format`.
"""

from __future__ import annotations

from dataclasses import replace

from compaction.dialects.anthropic import Anthropic
from compaction.dialects.base import Dialect
from compaction.dialects.openai import OpenAI
from compaction.errors import FormatError
from compaction.messages import JSON, Message
from compaction.tokens import TokenCounter, message_tokens

DIALECTS: dict[str, Dialect] = {
    Anthropic.name: Anthropic(),
    OpenAI.name: OpenAI(),
}

#: Dialect of a session or request that does not specify one.
DEFAULT = Anthropic.name


def get_dialect(name: str) -> Dialect:
    """Return the dialect with this name. Raises `FormatError` if there is none."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise FormatError(f"unknown format {name!r}; known: {', '.join(sorted(DIALECTS))}") from None


def dialect_choices() -> list[tuple[str, str]]:
    """Return name and label of each dialect."""
    return [(name, dialect.label) for name, dialect in DIALECTS.items()]


def parse(
    payload: JSON,
    *,
    format: str,
    start_position: int = 0,
    turn: int = 0,
    counter: TokenCounter | None = None,
) -> tuple[Message, ...]:
    """Parse a list of messages, numbered from `start_position`. Accepts any JSON value.

    `tokens` of each message is 0 unless a `counter` is given. Raises `FormatError` for an unknown dialect.
    """
    parse_message = get_dialect(format).parse_message
    items = payload if isinstance(payload, list | tuple) else [payload]
    messages = (
        parse_message(item, position=start_position + index, turn=turn) for index, item in enumerate(items)
    )
    if counter is None:
        return tuple(messages)
    return tuple(replace(message, tokens=message_tokens(message, counter)) for message in messages)
