"""Dialects: the provider message formats that agents use.

A new dialect is a `Dialect` in its own module and one line in `DIALECTS`. The API calls the name of a dialect
`format`.

Each message is read in the dialect in which it is written (see `detect`), which is derived again from the
stored JSON whenever a message is read. A session may therefore mix dialects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compaction.dialects.anthropic import Anthropic
from compaction.dialects.base import Dialect, Match
from compaction.dialects.gemini import Gemini
from compaction.dialects.openai import OpenAI
from compaction.dialects.openai_responses import OpenAIResponses
from compaction.errors import FormatError
from compaction.messages import JSON, Message
from compaction.sizes.tokens import TokenCounter, message_tokens

#: The order breaks ties in detection.
DIALECTS: dict[str, Dialect] = {
    Anthropic.name: Anthropic(),
    OpenAI.name: OpenAI(),
    OpenAIResponses.name: OpenAIResponses(),
    Gemini.name: Gemini(),
}

#: Dialect of a session or request that does not specify one, if its messages fit several.
DEFAULT = Anthropic.name


def get_dialect(name: str | None) -> Dialect:
    """Return the dialect with this name, or the default for None. Raises `FormatError` if there is none."""
    try:
        return DIALECTS[name or DEFAULT]
    except KeyError:
        raise FormatError(f"unknown format {name!r}; known: {', '.join(sorted(DIALECTS))}") from None


def dialect_choices() -> list[tuple[str, str]]:
    """Return name and label of each dialect."""
    return [(name, dialect.label) for name, dialect in DIALECTS.items()]


def detect(item: JSON, default: str | None) -> str | None:
    """Return the name of a message's dialect, or None if it fits none.

    `default` is the dialect of the message's session. A message that fits it is in another dialect only if
    that is certain.
    """
    own = get_dialect(default)
    own_match = own.recognizes(item)
    if own_match is Match.CERTAIN:
        return own.name
    best, found = Match.NONE, None
    for name, dialect in DIALECTS.items():
        if dialect is not own and (match := dialect.recognizes(item)) > best:
            best, found = match, name
    return own.name if own_match and best is not Match.CERTAIN else found


def detect_session(messages: Sequence[JSON], tools: Sequence[JSON] = ()) -> str | None:
    """Return the dialect of a session with these messages and tools, or None if they fit several."""
    best, found = Match.POSSIBLE, None
    for matches in _session_matches(messages, tools):
        if len(matches) == 1:
            matches = dict.fromkeys(matches, Match.CERTAIN)
        for name, match in matches.items():
            if match > best:
                best, found = match, name
    return found


def _session_matches(messages: Sequence[JSON], tools: Sequence[JSON]) -> Iterator[dict[str, Match]]:
    """Yield the dialects that recognize each message and each tool definition."""
    for item in messages:
        yield {name: match for name, each in DIALECTS.items() if (match := each.recognizes(item))}
    for tool in tools:
        yield {name: match for name, each in DIALECTS.items() if (match := each.recognizes_tool(tool))}


#: The messages of OpenAI's responses, by their `object`.
_RESPONSE_PARTS = {"chat.completion": "its `choices[0].message`", "response": "the items of its `output`"}


def message_error(item: JSON) -> str:
    """Return the reason why a message fits no dialect."""
    kind = item.get("object") if isinstance(item, dict) else None
    if isinstance(item, dict) and "candidates" in item:
        return (
            "This is a whole response. Send its `candidates[0].content` instead, with the response's "
            "`usageMetadata` as `usage`."
        )
    if isinstance(kind, str) and (parts := _RESPONSE_PARTS.get(kind)):
        return f"This is a whole response. Send {parts} instead, with the response's `usage`."
    reasons = {dialect.label: dialect.message_error(item) for dialect in DIALECTS.values()}
    return "The message is not valid in any format. " + " ".join(
        f"{label}: {text}" for label, text in reasons.items()
    )


def is_tool(definition: JSON) -> bool:
    """Return whether a tool definition fits any dialect."""
    return any(dialect.recognizes_tool(definition) for dialect in DIALECTS.values())


def is_unsigned(message: bytes) -> bool:
    """Return whether a stored answer of any dialect has calls that lack a signature."""
    return any(dialect.is_unsigned(message) for dialect in DIALECTS.values())


def parse_message(
    item: JSON, *, default: str | None, position: int, turn: int, tokens: int = 0, pinned: bool = False
) -> Message:
    """Parse one message in the dialect in which it is written, or in the default if it fits none.

    `default` is the dialect of the message's session. Accepts any JSON value.
    """
    dialect = get_dialect(detect(item, default) or default)
    return dialect.parse_message(item, position=position, turn=turn, tokens=tokens, pinned=pinned)


def parse_mixed(
    items: Sequence[JSON],
    *,
    default: str | None,
    start_position: int = 0,
    turn: int = 0,
    counter: TokenCounter | None = None,
) -> tuple[Message, ...]:
    """Parse messages like `parse`, but each in the dialect in which it is written (see `parse_message`)."""
    messages = (
        parse_message(item, default=default, position=start_position + index, turn=turn)
        for index, item in enumerate(items)
    )
    return _counted(messages, counter)


def parse(
    payload: JSON,
    *,
    format: str,
    start_position: int = 0,
    turn: int = 0,
    counter: TokenCounter | None = None,
) -> tuple[Message, ...]:
    """Parse a list of messages in one dialect, numbered from `start_position`. Accepts any JSON value.

    `tokens` of each message is 0 unless a `counter` is given. Raises `FormatError` for an unknown dialect.
    """
    dialect = get_dialect(format)
    items = payload if isinstance(payload, list | tuple) else [payload]
    messages = (
        dialect.parse_message(item, position=start_position + index, turn=turn)
        for index, item in enumerate(items)
    )
    return _counted(messages, counter)


def _counted(messages: Iterator[Message], counter: TokenCounter | None) -> tuple[Message, ...]:
    if counter is None:
        return tuple(messages)
    return tuple(replace(message, tokens=message_tokens(message, counter)) for message in messages)
