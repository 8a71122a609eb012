"""A recorded session as replay reads it: its messages, and the model calls among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from compaction.messages import Message, Role, Usage
from compaction.references import message_references

#: How long a provider keeps a prompt, in seconds: five minutes, or the hour that costs more to write.
FIVE_MINUTES, HOUR = 300, 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One recorded turn: where its messages begin and end, and what the log tells of its call.

    `beside` are the estimated tokens of system prompt and tools. `restarts` says that the recording client
    compacted its context before this turn: what stood before was no longer sent.
    """

    index: int
    first: int
    end: int
    beside: int = 0
    usage: Usage | None = None
    at: datetime | None = None
    restarts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One model call: its prompt is the messages `start` to `answer`, exclusive, and message `answer` is what
    the model really wrote next. `beside`, `usage` and `at` as in `RecordedTurn`."""

    turn: int
    start: int
    answer: int
    beside: int = 0
    usage: Usage | None = None
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """One session. Positions of `messages` count from 0 without gaps.

    `cache_seconds` is how long the recording client let the provider keep its prompts.
    """

    name: str
    format: str
    messages: Sequence[Message]
    calls: Sequence[RecordedCall]
    model: str = ""
    cache_seconds: int = FIVE_MINUTES

    @cached_property
    def references(self) -> tuple[frozenset[str], ...]:
        """The identifiers that each message mentions, by position."""
        return tuple(map(message_references, self.messages))

    @cached_property
    def _tokens_before(self) -> tuple[int, ...]:
        return tuple(accumulate((message.tokens for message in self.messages), initial=0))

    def size(self, call: RecordedCall) -> int:
        """Estimated tokens of the call's prompt as the client sent it."""
        return call.beside + self._tokens_before[call.answer] - self._tokens_before[call.start]

    @cached_property
    def peak(self) -> int:
        """Estimated tokens of the largest prompt that the client sent; 0 without calls."""
        return max(map(self.size, self.calls), default=0)


def transcript_of(
    *,
    name: str,
    format: str,
    messages: Sequence[Message],
    turns: Iterable[RecordedTurn],
    model: str = "",
    cache_seconds: int = FIVE_MINUTES,
) -> Transcript:
    """The transcript of recorded turns, in their order."""
    return Transcript(
        name=name,
        format=format,
        messages=messages,
        calls=tuple(_calls(messages, turns)),
        model=model,
        cache_seconds=cache_seconds,
    )


def _calls(messages: Sequence[Message], turns: Iterable[RecordedTurn]) -> Iterator[RecordedCall]:
    """An answer is one message, or several in a row. The usage of a turn is of its first call."""
    start = 0
    for turn in turns:
        start = turn.first if turn.restarts else start
        usage, asked = turn.usage, False
        for position in range(turn.first, turn.end):
            answers = messages[position].role is Role.ASSISTANT
            if answers and position > start and not (asked and _follows_answer(messages, position)):
                yield RecordedCall(
                    turn=turn.index, start=start, answer=position, beside=turn.beside, usage=usage, at=turn.at
                )
                usage, asked = None, True


def _follows_answer(messages: Sequence[Message], position: int) -> bool:
    return messages[position - 1].role is Role.ASSISTANT
