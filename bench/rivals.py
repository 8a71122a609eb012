"""Alternative approaches in a few lines each, compared with contextapp's policies on the same transcripts.

All of them keep the head and never separate tool calls from their results, so that each approach gets its
best possible result. An output that alone exceeds the budget is clipped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from bench.replay import Case, Contender
from compaction.invariants.pairs import safe_cuts
from compaction.messages import Message, Role, Text, ToolResult
from compaction.sizes.tokens import TokenCounter, message_tokens

MARKER = "[Earlier messages truncated]"
CLEARED = "[Old tool result content cleared]"


class Raw:
    """Always sends everything: the baseline."""

    def __init__(self, case: Case, counter: TokenCounter) -> None:
        self._messages = case.messages

    def prompt(self, n: int) -> Sequence[Message]:
        return self._messages[:n]


class Window:
    """The head, a marker and the newest messages. Masks the oldest outputs before dropping messages.

    `target` is the share of the budget to cut down to. `keep_results` is the number of messages with tool
    results that are not masked (None masks none). `every_turn` masks at each step and cuts only as much as
    necessary; otherwise both wait until the budget is exceeded and are done in one batch.
    """

    def __init__(
        self,
        case: Case,
        counter: TokenCounter,
        *,
        target: float = 1.0,
        keep_results: int | None = None,
        every_turn: bool = False,
    ) -> None:
        self._case, self._counter = case, counter
        self._target, self._keep, self._every_turn = target, keep_results, every_turn
        self._head = case.messages[: case.head_end]
        self._cuts = sorted(safe_cuts(case.messages))
        self._start = case.head_end
        self._masked_until = 0
        self._shown = list(case.messages)
        self._marker = made(MARKER, counter)

    def prompt(self, n: int) -> Sequence[Message]:
        if self._every_turn and self._keep is not None:
            self._mask(n)
        if self._tokens(n) > self._case.budget:
            self._mask(n)
            if self._tokens(n) > self._target * self._case.budget:
                self._cut(n)
        return self._messages(n)

    def _messages(self, n: int) -> list[Message]:
        marker = [self._marker] if self._start > len(self._head) else []
        return [*self._head, *marker, *self._shown[self._start : n]]

    def _tokens(self, n: int) -> int:
        return sum(message.tokens for message in self._messages(n))

    def _mask(self, n: int) -> None:
        if self._keep is None:
            return
        with_results = [i for i in range(self._start, n) if self._shown[i].tool_results]
        for index in with_results[: -self._keep]:
            if index >= self._masked_until:
                self._shown[index] = with_results_of(self._shown[index], CLEARED, self._counter)
                self._masked_until = index + 1

    def _cut(self, n: int) -> None:
        room = self._target * self._case.budget - sum(m.tokens for m in self._head) - self._marker.tokens
        start = n
        while start > self._start and room >= self._shown[start - 1].tokens:
            start -= 1
            room -= self._shown[start].tokens
        cuts = self._cuts[: bisect_left(self._cuts, n)]
        at = min(bisect_left(cuts, start), len(cuts) - 1)
        self._start = max(self._start, cuts[at])
        self._clip_giants(n)

    def _clip_giants(self, n: int) -> None:
        """Clip outputs of the newest group, oldest first, if the group alone exceeds the budget."""
        for index in range(self._start, n):
            over = self._tokens(n) - self._case.budget
            if over <= 0:
                return
            if self._shown[index].tool_results:
                kept = max(0, self._shown[index].tokens - over - 50)
                text = self._shown[index].tool_results[0].text[: 2 * kept]
                self._shown[index] = with_results_of(self._shown[index], text or CLEARED, self._counter)


class Oracle:
    """The batched window plus the exact strings that the next message needs, like a perfect recap."""

    def __init__(self, case: Case, counter: TokenCounter) -> None:
        self._window = Window(case, counter, target=0.5)
        self._case, self._counter = case, counter

    def prompt(self, n: int) -> Sequence[Message]:
        messages = self._window.prompt(n)
        shown = frozenset().union(*map(self._references, messages))
        missing = self._case.references[n] - shown
        return [*messages, made(" ".join(sorted(missing)), self._counter)] if missing else messages

    def _references(self, message: Message) -> frozenset[str]:
        return self._case.references[message.position] if message.position >= 0 else frozenset()


def made(text: str, counter: TokenCounter) -> Message:
    """Return a generated user message."""
    message = Message(position=-1, role=Role.USER, parts=(Text(text=text),))
    return replace(message, tokens=message_tokens(message, counter))


def with_results_of(message: Message, text: str, counter: TokenCounter) -> Message:
    """Return the message with `text` in place of each tool result."""
    parts = tuple(
        replace(part, text=text, media_tokens=0, patched=True) if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    edited = replace(message, parts=parts, patched=True)
    return replace(edited, tokens=message_tokens(edited, counter))


#: The alternative approaches by their name in the table.
RIVALS: dict[str, Callable[[Case, TokenCounter], Contender]] = {
    "window, every turn": lambda case, counter: Window(case, counter, every_turn=True),
    "window, batches to 50 %": lambda case, counter: Window(case, counter, target=0.5),
    "masking keep 3, every turn": lambda case, counter: Window(
        case, counter, keep_results=3, every_turn=True
    ),
    "masking keep 5, batches to 70 %": lambda case, counter: Window(
        case, counter, target=0.7, keep_results=5
    ),
    "oracle": Oracle,
}
