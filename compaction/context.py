"""What a strategy works with: the policy's figures, the layout, and what is known about the tools.

One `Context` serves one plan. It finds out once what several strategies ask for: which call an output
answers, what that call does, how large a part is, which messages are pinned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from compaction.capabilities import Capabilities
from compaction.descriptors import describe
from compaction.edits import Edit, Op
from compaction.invariants.pairs import matches
from compaction.layout import Layout
from compaction.messages import Message, Opaque, Part, ToolCall, ToolResult
from compaction.outcomes import is_error
from compaction.policy import Policy, ToolRule
from compaction.recap import Recap
from compaction.references import Mentions
from compaction.tokens import MESSAGE_OVERHEAD, OnceCounter, TokenCounter, part_tokens
from compaction.tools import Action, Kind, action_of
from compaction.view import Entry, View, with_text

MakeHandle = Callable[[int, int], str]

_OTHER = Action(kind=Kind.OTHER)


def default_handle(position: int, part: int) -> str:
    """A handle that is the same always, for use without a store. A store makes ones nobody can guess."""
    return "h_" + hashlib.sha256(f"{position}.{part}".encode()).hexdigest()[:10]


@dataclass(frozen=True, kw_only=True)
class Output:
    """One tool output as it was pushed, with what is known about the call that it answers."""

    position: int
    part: int
    turn: int
    result: ToolResult
    call: ToolCall | None
    action: Action
    rule: ToolRule

    @property
    def is_read(self) -> bool:
        return self.rule.is_read if self.rule.is_read is not None else self.action.kind is Kind.READ

    @cached_property
    def is_error(self) -> bool:
        return is_error(self.result, shows_file=self.is_read)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A model's summary that is ready to stand for the messages `first` to `last`."""

    recap: Recap
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """What an extracted recap stands for: what a model may summarise instead, in how many tokens.

    `messages` are as they were pushed; `first` and `last` bound the span, what stood for earlier
    evictions included.
    """

    messages: tuple[Message, ...]
    first: int
    last: int
    cap_tokens: int


class Context:
    """The circumstances of one plan. Token figures are raw estimates, as those of messages."""

    def __init__(
        self,
        view: View,
        layout: Layout,
        policy: Policy,
        counter: TokenCounter,
        *,
        budget: int,
        make_handle: MakeHandle = default_handle,
        capabilities: Capabilities,
        previous: Recap | None = None,
        summary: Summary | None = None,
        memory_text: str = "",
    ) -> None:
        self.policy = policy
        self.counter = OnceCounter(counter)
        self.budget = budget
        self.goal = int(budget * policy.target)
        self.ceiling = int(budget * (policy.hard or 1.0))
        self.make_handle = make_handle
        self.capabilities = capabilities
        self.previous = previous
        self.summary = summary
        self.memory_text = memory_text
        self.recap: Recap | None = None  #: the one that this plan made
        self.evicted: Evicted | None = None  #: and what it stands for
        self.layout = layout
        self.mentions = Mentions()
        self._start = view
        self._sizes: dict[tuple[int, int], int] = {}
        self._largest: dict[int, int] = {}
        entries = view.entries
        self.head_last = entries[layout.head_end - 1].last if layout.head_end else -1
        at_tail = layout.tail_start < len(entries)
        self.tail_first = entries[layout.tail_start].first if at_tail else self.end_position

    @property
    def end_position(self) -> int:
        """The position behind the newest message."""
        return self._start.entries[-1].last + 1 if self._start.entries else 0

    def original(self, position: int) -> Message:
        """A message as it was pushed."""
        return self._originals[position]

    @cached_property
    def _originals(self) -> dict[int, Message]:
        return {message.position: message for message in self._start.transcript}

    @cached_property
    def _shown(self) -> list[Message]:
        """The messages at the plan's start, edited ones as they were pushed: parts keep their indices."""
        return [self._originals.get(e.first, e.message) for e in self._start.entries if not e.is_made]

    @cached_property
    def _actions(self) -> dict[tuple[int, int], tuple[ToolCall, Action]]:
        """By position and part of an output: the call that it answers, and what that does."""
        shown = self._shown
        found: dict[tuple[int, int], tuple[ToolCall, Action]] = {}
        for (index, part), (call_index, call_part) in matches(shown).items():
            call = shown[call_index].parts[call_part]
            assert isinstance(call, ToolCall)
            found[shown[index].position, part] = (call, action_of(call))
        return found

    @cached_property
    def pinned(self) -> frozenset[int]:
        """Positions of pinned messages and of the rest of their tool groups."""
        found: set[int] = set()
        messages = list(self._start.messages)
        if not any(message.pinned for message in messages):
            return frozenset()
        cuts = sorted(self._start.cuts)
        for start, end in zip([0, *cuts], cuts, strict=False):
            if any(message.pinned for message in messages[start:end]):
                found.update(message.position for message in messages[start:end])
        return frozenset(found)

    def in_middle(self, position: int) -> bool:
        """Whether an edit may touch the message."""
        return self.head_last < position < self.tail_first and position not in self.pinned

    def middle(self, view: View) -> list[Entry]:
        """The entries that edits may touch, oldest first, what stands for evicted messages included."""
        return [entry for entry in view.entries if self.in_middle(entry.first)]

    def outputs(self, view: View) -> list[Output]:
        """The client tools' outputs that the view shows as they were pushed, oldest first."""
        shown = {entry.first for entry in view.entries if not entry.is_made}
        edited = {(edit.position, edit.part) for edit in view.edits if edit.op is Op.REPLACE}
        return [
            output
            for output in self._outputs
            if output.position in shown and (output.position, output.part) not in edited
        ]

    @cached_property
    def _outputs(self) -> tuple[Output, ...]:
        return tuple(
            self._output(message, index, part)
            for message in self._shown
            for index, part in enumerate(message.parts)
            if isinstance(part, ToolResult) and not part.server
        )

    def _output(self, message: Message, index: int, result: ToolResult) -> Output:
        call, action = self._actions.get((message.position, index), (None, _OTHER))
        return Output(
            position=message.position,
            part=index,
            turn=message.turn,
            result=result,
            call=call,
            action=action,
            rule=self.policy.tool_rule(call.name if call else ""),
        )

    def describe(self, output: Output, handle: str) -> str:
        """The line that stands for an output which is not shown."""
        names = self.policy.descriptor_names
        return describe(output.result.text, output.action, handle, names=names, mentions=self.mentions)

    def size(self, position: int, part: int) -> int:
        """Tokens of one part as it was pushed."""
        known = self._sizes.get((position, part))
        if known is None:
            known = self._sizes[position, part] = self._size(self.original(position), part)
        return known

    def _size(self, message: Message, index: int) -> int:
        """The largest part is what the others leave of the message: it need not be counted."""
        position, parts = message.position, message.parts
        if position not in self._largest:
            lengths = [_length(part) for part in parts]
            self._largest[position] = lengths.index(max(lengths))
        if index != self._largest[position]:
            return part_tokens(parts[index], self.counter)
        others = sum(self.size(position, i) for i in range(len(parts)) if i != index)
        return max(0, message.tokens - MESSAGE_OVERHEAD - others)

    def replace(
        self, strategy: str, position: int, part: int, text: str, *, handle: str, reason: str
    ) -> Edit | None:
        """The edit that shows `text` for a part; None where that would not be shorter."""
        before = self.size(position, part)
        after = part_tokens(with_text(self.original(position).parts[part], text), self.counter)
        if after >= before:
            return None
        return Edit(
            strategy=strategy,
            op=Op.REPLACE,
            position=position,
            end=position,
            part=part,
            text=text,
            handle=handle,
            reason=reason,
            tokens_before=before,
            tokens_after=after,
        )

    def shortened(self, view: View, edits: Iterable[Edit | None]) -> tuple[View, tuple[Edit, ...]]:
        """The view after the first of the edits, as many as the target asks for, and these; None is passed
        over. No edit is asked for that is not needed."""
        made: list[Edit] = []
        excess = view.tokens - self.goal
        for edit in filter(None, edits if excess > 0 else ()):
            made.append(edit)
            excess -= edit.tokens_before - edit.tokens_after
            if excess <= 0:
                break
        return view.with_edits(made), tuple(made)


def _length(part: Part) -> int:
    match part:
        case ToolCall(arguments=arguments):
            return len(arguments)
        case Opaque(media_tokens=media):
            return media
        case _:
            return len(part.text)
