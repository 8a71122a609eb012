"""Whether what is appended goes on validly, message by message, without looking at what stood before.

A store that knows this of every push can serve a prompt from the stored bytes. It is a one-sided test:
"regular" is certain, anything else only means that `repair` has to look. Ids used twice over the whole
conversation (A3) and the number of cache breakpoints (A12) are not seen from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compaction.invariants.thinking import is_whole
from compaction.messages import Message, Opaque, Role, Text, Thinking, ToolCall, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """The seam to what comes next: calls that wait for their answers, and whether all was regular so far."""

    open_calls: tuple[str, ...] = ()
    regular: bool = True

    def after(self, messages: Iterable[Message], format: str) -> Continuation:
        """The seam behind `messages`, pushed in `format`."""
        seam = self
        for message in messages:
            seam = seam._after_one(message, merged=format == "anthropic")
        return seam

    def _after_one(self, message: Message, *, merged: bool) -> Continuation:
        open_calls = self.open_calls
        sound = self.regular and not message.patched and not any(_is_odd(part) for part in message.parts)
        answers = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        if message.role is Role.ASSISTANT:
            calls = tuple(part.call_id for part in message.parts if isinstance(part, ToolCall))
            sound = sound and not open_calls and not answers and len(set(calls)) == len(calls)
            return Continuation(open_calls=calls, regular=sound)
        if not open_calls:
            return Continuation(regular=sound and not answers)
        if merged:
            return Continuation(regular=sound and _answers_first(message, open_calls))
        left = tuple(call for call in open_calls if call not in answers)
        return Continuation(
            open_calls=left, regular=sound and message.role is Role.TOOL and len(left) + 1 == len(open_calls)
        )


def _answers_first(message: Message, open_calls: tuple[str, ...]) -> bool:
    """A1, A2: the first blocks answer every open call once, and no block behind them is an answer."""
    first, rest = message.parts[: len(open_calls)], message.parts[len(open_calls) :]
    answered = [part.call_id for part in first if isinstance(part, ToolResult)]
    return sorted(answered) == sorted(open_calls) and not any(isinstance(part, ToolResult) for part in rest)


def _is_odd(part: object) -> bool:
    """Parts that only `repair` should judge: a server's own tools, blocks of unknown kind, empty texts."""
    match part:
        case ToolCall(server=server) | ToolResult(server=server):
            return server
        case Opaque(kind=kind):
            return kind not in {"image", "image_url", "document"}
        case Text(text=text):
            return not text.strip()
        case Thinking(source=source):
            # Without a source it is another format's reasoning, which no signature belongs to.
            return source is not None and not is_whole(part)
    return True
