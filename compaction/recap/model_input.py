"""Messages as input for a summarizer model: compact, numbered, split into parts that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from compaction.invariants.pairs import safe_cuts
from compaction.messages import Message, Opaque, Role, Text, ToolCall, ToolResult
from compaction.sizes.tokens import TokenCounter
from compaction.tools.actions import Action, Kind, action_of
from compaction.tools.outcomes import is_error
from compaction.user_requests import own_words
from compaction.utf8 import utf8

#: Maximum characters of each kind of content. Recaps should omit tool outputs, so their limit is low;
#: failures have a higher limit, because they may be the subject of the work.
REQUEST_LIMIT = 8_000
KEPT_REQUEST_LIMIT = 2_000
ANSWER_LIMIT = 4_000
ARGUMENTS_LIMIT = 800
OUTPUT_LIMIT = 1_200
FAILURE_LIMIT = 3_000
MESSAGE_LIMIT = 24_000

_HEAD_SHARE = 0.6
_LAST_WORD = re.compile(r"\S{1,200}\Z")
_FIRST_WORD = re.compile(r"\A\S{1,200}")


def message_texts(messages: Sequence[Message]) -> list[str]:
    """Return each message as text, without thinking.

    The first line begins with position, turn and role, as in `#12 t3 user: …`; the other lines are indented.
    """
    calls = {call.call_id: call for message in messages for call in message.tool_calls}
    return [_format(message, calls) for message in messages]


def request_texts(messages: Sequence[Message]) -> list[str]:
    """Return requests of the user as text, like `message_texts`, without what an agent inserted into them."""
    parts = ((message, _own_words(message)) for message in messages)
    return message_texts([replace(message, parts=(text,)) for message, text in parts if text.text])


def split_by_tokens(
    messages: Sequence[Message], room: int, counter: TokenCounter
) -> Iterator[Sequence[Message]]:
    """Split the messages between tool groups into runs whose texts take at most `room` tokens each.

    A larger group is split between messages; a larger message is a separate run.
    """
    sizes = [counter.count(text) for text in message_texts(messages)]
    bounds = sorted({0, *safe_cuts(messages), len(messages)})
    start = 0
    for low, high in pairwise(bounds):
        if sum(sizes[start:high]) > room and start < low:
            yield messages[start:low]
            start = low
        for end in range(low + 1, high + 1):
            if sum(sizes[start:end]) > room and start < end - 1:
                yield messages[start : end - 1]
                start = end - 1
    if start < len(messages):
        yield messages[start:]


def _own_words(message: Message) -> Text:
    texts = (own_words(part.text).strip() for part in message.parts if isinstance(part, Text))
    return Text(text=clip("\n".join(filter(None, texts)), KEPT_REQUEST_LIMIT))


def _format(message: Message, calls: Mapping[str, ToolCall]) -> str:
    limit = REQUEST_LIMIT if message.role is Role.USER else ANSWER_LIMIT
    lines = []
    for part in message.parts:
        match part:
            case Text(text=text):
                lines.append(clip(text, limit))
            case ToolCall(name=name, arguments=arguments):
                lines.append(f"calls {name} {clip(arguments, ARGUMENTS_LIMIT)}")
            case ToolResult():
                lines.append(_output(part, calls.get(part.call_id)))
            case Opaque(kind=kind):
                lines.append(f"({kind})")
    # All lines except the first are indented, so that no content can look like another message.
    text = "\n ".join(clip("\n".join(lines), MESSAGE_LIMIT).splitlines())
    return f"#{message.position} t{message.turn} {message.role}: {text}"


def _output(result: ToolResult, call: ToolCall | None) -> str:
    action = action_of(call) if call else Action(kind=Kind.OTHER)
    failed = is_error(result, shows_file=action.shows_file, command=action.command)
    text = clip(result.text, FAILURE_LIMIT if failed else OUTPUT_LIMIT)
    return f"{call.name if call else 'tool'} {'failed' if failed else 'answers'}: {text}"


def clip(text: str, size: int) -> str:
    """Return the head and tail of a text, about `size` characters, cut between words.

    Lone surrogates, which a JSON body cannot contain, become `?`.
    """
    if len(text) > size:
        head = int(size * _HEAD_SHARE)
        start = _LAST_WORD.sub("", text[:head])
        end = _FIRST_WORD.sub("", text[len(text) - (size - head) :])
        text = f"{start} [… {len(text) - len(start) - len(end)} characters left out …] {end}"
    return utf8(text).decode()
