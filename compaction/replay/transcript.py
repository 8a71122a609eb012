"""A recorded session for replay: its messages and model calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from compaction.identifiers.texts import message_references
from compaction.messages import Message, Role, Usage
from compaction.sizes.calibration import Calibration

#: Cache lifetimes of providers in seconds: five minutes, or one hour at a higher write price.
FIVE_MINUTES, HOUR = 300, 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One recorded turn: the range of its messages, and the logged data of its call.

    `beside` are the estimated tokens of the system prompt and tools. `served` are those of the whole prompt
    if contextapp served it, which may have compacted it. `model` is "" if it is the session's. `cost` are
    micro-dollars. `restarts` is set if the recording client compacted its context before this turn, so that
    earlier messages were no longer sent.
    """

    index: int
    first: int
    end: int
    beside: int = 0
    served: int | None = None
    usage: Usage | None = None
    at: datetime | None = None
    model: str = ""
    cost: int | None = None
    restarts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One model call. Its prompt consists of the messages from `start` up to, not including, `answer`.

    `answer` is the position of the recorded answer. `beside`, `served`, `usage`, `at`, `model` and `cost` are
    as in `RecordedTurn`.
    """

    turn: int
    start: int
    answer: int
    beside: int = 0
    served: int | None = None
    usage: Usage | None = None
    at: datetime | None = None
    model: str = ""
    cost: int | None = None

    @property
    def reported(self) -> int | None:
        """The provider's count of the prompt's tokens, if the log has it."""
        return (self.usage.prompt_tokens or None) if self.usage else None


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """One session. Positions of `messages` count from 0 without gaps.

    `cache_seconds` is the cache lifetime that the recording client used.
    """

    name: str
    format: str
    messages: Sequence[Message]
    calls: Sequence[RecordedCall]
    model: str = ""
    cache_seconds: int = FIVE_MINUTES

    @cached_property
    def references(self) -> tuple[frozenset[str], ...]:
        """The identifiers of each message, by position."""
        return tuple(map(message_references, self.messages))

    @cached_property
    def _tokens_before(self) -> tuple[int, ...]:
        return tuple(accumulate((message.tokens for message in self.messages), initial=0))

    def size(self, call: RecordedCall) -> int:
        """Return the estimated tokens of the call's prompt without compaction by contextapp."""
        return call.beside + self._tokens_before[call.answer] - self._tokens_before[call.start]

    def sent(self, call: RecordedCall) -> int:
        """Return the estimated tokens of the prompt that the provider received and reported.

        If contextapp served a prompt, the agent may still have sent the whole one. The report shows which.
        """
        return self._sent[call.answer]

    @cached_property
    def _sent(self) -> Mapping[int, int]:
        """The estimated tokens that the provider received, by the position of the answer."""
        found, calibration = {}, Calibration()
        for call in self.calls:
            size = self.size(call)
            sizes = [size if call.served is None else min(size, call.served), size]
            if (count := call.reported) is None:
                found[call.answer] = sizes[0]
                continue
            expected = [abs(calibration.provider(each) - count) for each in sizes]
            found[call.answer] = sizes[0] if expected[0] <= expected[1] else size
            calibration = calibration.updated(sizes=sizes, reported=count)
        return found

    @cached_property
    def peak(self) -> int:
        """The estimated tokens of the largest prompt without compaction; 0 without calls."""
        return max(map(self.size, self.calls), default=0)


def transcript_of(
    *,
    name: str,
    format: str,
    messages: Sequence[Message],
    turns: Iterable[RecordedTurn],
    model: str = "",
    cache_seconds: int = FIVE_MINUTES,
    omitted: Collection[int] = (),
) -> Transcript:
    """Return the transcript of recorded turns, in order.

    `omitted` are the positions of messages that the client sent only once. They are left out, because they
    were part of a single prompt.
    """
    if omitted:
        messages, turns = _without(messages, turns, omitted)
    return Transcript(
        name=name,
        format=format,
        messages=messages,
        calls=tuple(_calls(messages, turns)),
        model=model,
        cache_seconds=cache_seconds,
    )


def _without(
    messages: Sequence[Message], turns: Iterable[RecordedTurn], omitted: Collection[int]
) -> tuple[Sequence[Message], Iterable[RecordedTurn]]:
    kept = [message for message in messages if message.position not in omitted]
    before = [*accumulate((message.position not in omitted for message in messages), initial=0)]
    return (
        [replace(message, position=position) for position, message in enumerate(kept)],
        [replace(turn, first=before[turn.first], end=before[turn.end]) for turn in turns],
    )


def _calls(messages: Sequence[Message], turns: Iterable[RecordedTurn]) -> Iterator[RecordedCall]:
    """Yield the calls. An answer is one or more messages; usage belongs to the first call of a turn."""
    start = 0
    for turn in turns:
        start = turn.first if turn.restarts else start
        usage, has_call = turn.usage, False
        for position in range(turn.first, turn.end):
            answers = messages[position].role is Role.ASSISTANT
            if answers and position > start and not (has_call and _follows_answer(messages, position)):
                yield RecordedCall(
                    turn=turn.index,
                    start=start,
                    answer=position,
                    beside=turn.beside,
                    served=turn.served,
                    usage=usage,
                    at=turn.at,
                    model=turn.model,
                    cost=turn.cost if usage else None,
                )
                usage, has_call = None, True


def _follows_answer(messages: Sequence[Message], position: int) -> bool:
    return messages[position - 1].role is Role.ASSISTANT
