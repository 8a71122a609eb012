"""The inputs of strategies while a compaction is planned: limits, settings, and facts about the messages.

A `Context` belongs to one plan and never changes. Values that several strategies need are computed once, on
first use: the call that produced an output, the call's action, the size of a part, the pinned messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from compaction.capabilities import Capabilities
from compaction.deadline import check_deadline
from compaction.descriptors import MEDIA, clip, describe, describe_failure, short_arguments
from compaction.edits import Edit, MakeHandle, Op
from compaction.identifiers.extract import references
from compaction.identifiers.texts import message_references
from compaction.invariants import programs
from compaction.invariants.pairs import open_start
from compaction.layout import Layout
from compaction.messages import Message, Opaque, Part, ToolCall, ToolResult, changes_settings
from compaction.recap import Recap
from compaction.recap.spans import Summary
from compaction.settings import StrategySettings, ToolRule
from compaction.sizes.tokens import MESSAGE_OVERHEAD, PART_OVERHEAD, TokenCounter, part_tokens, text_tokens
from compaction.tools.actions import Action, Kind, action_of
from compaction.tools.outcomes import MAX_REFUSAL, is_error
from compaction.user_requests import latest_request
from compaction.view import Entry, View
from compaction.view.components import SHEDDABLE

_OTHER = Action(kind=Kind.OTHER)

#: Tokens of content per name that a descriptor lists, and minimum number of names.
_TOKENS_PER_NAME, _NAMES_MIN = 125, 10


class Output(NamedTuple):
    """One tool output as pushed, with the call that produced it."""

    position: int
    part: int
    turn: int
    result: ToolResult
    call: ToolCall | None
    action: Action
    rule: ToolRule
    in_middle: bool

    @property
    def is_editable(self) -> bool:
        """Whether steps for the middle may shorten it."""
        return self.in_middle and not self.rule.exempt

    @property
    def is_read(self) -> bool:
        return self.rule.is_read if self.rule.is_read is not None else self.action.kind is Kind.READ

    @property
    def shows_file(self) -> bool:
        """Whether it contains a file or lines of files, possibly among other content."""
        return self.rule.is_read if self.rule.is_read is not None else self.action.shows_file

    @property
    def is_error(self) -> bool:
        is_content = self.is_read and len(self.result.text) > MAX_REFUSAL
        only_files = is_content or self.action.kind is Kind.SEARCH
        return is_error(self.result, shows_file=only_files, command=self.action.command)


@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """The context of one plan. Token figures are raw estimates, like those of messages.

    `start` is the view before the plan. A compaction reduces the prompt to `goal` tokens; from `ceiling`
    tokens on, a prompt is compacted immediately. `previous` is the recap that `start` shows. `memory_text` is
    the working memory, whose names a recap does not repeat. `sheddable` are the components that may be shed.
    """

    start: View
    layout: Layout
    settings: StrategySettings
    counter: TokenCounter
    budget_tokens: int
    goal: int
    ceiling: int
    capabilities: Capabilities
    make_handle: MakeHandle
    previous: Recap | None = None
    summary: Summary | None = None
    memory_text: str = ""
    sheddable: tuple[str, ...] = SHEDDABLE

    @cached_property
    def head_last(self) -> int:
        """The last position of the head, or -1 if there is none."""
        return self.start.entries[self.layout.head_end - 1].last if self.layout.head_end else -1

    @cached_property
    def tail_first(self) -> int:
        """The first position of the tail."""
        entries, index = self.start.entries, self.layout.tail_start
        return entries[index].first if index < len(entries) else self.start.end_position

    def original(self, position: int) -> Message:
        """Return a message as pushed."""
        return self.start.pushed[position]

    @cached_property
    def _actions(self) -> dict[tuple[int, int], tuple[ToolCall, Action]]:
        """By position and part of an output: the call that produced it, and the call's action."""
        shown = self.start.originals
        found: dict[tuple[int, int], tuple[ToolCall, Action]] = {}
        for (index, part), (call_index, call_part) in self.start.pairs.items():
            call = shown[call_index].parts[call_part]
            assert isinstance(call, ToolCall)
            found[shown[index].position, part] = (call, action_of(call))
        return found

    def call_at(self, position: int, part: int | None) -> ToolCall | None:
        """Return the tool call in this part, or the call of this result; None for other parts."""
        if part is None:
            return None
        call = self.original(position).parts[part]
        found = self._actions.get((position, part))
        return call if isinstance(call, ToolCall) else found[0] if found else None

    @cached_property
    def _pinned(self) -> frozenset[int]:
        """Positions of pinned messages and of the rest of their tool groups."""
        found: set[int] = set()
        messages = self.start.messages
        if not any(message.pinned for message in messages):
            return frozenset()
        cuts = sorted(self.start.cuts)
        for start, end in zip([0, *cuts], cuts, strict=False):
            if any(message.pinned for message in messages[start:end]):
                found.update(message.position for message in messages[start:end])
        return frozenset(found)

    @cached_property
    def fixed(self) -> frozenset[int]:
        """The positions that no step may change: of pins, the latest user request, changes of settings, and
        of open calls, which the agent is running and whose results it appends (R5).
        """
        messages = self.start.messages
        unanswered = messages[open_start(messages, self.start.pairs) :]
        kept = (*filter(changes_settings, messages), *unanswered)
        request = latest_request(self.start.entries)
        return self._pinned | {request} | {message.position for message in kept}

    @cached_property
    def protected(self) -> frozenset[int]:
        """The positions that no step may evict: the fixed ones, and a program whose result is missing."""
        messages = self.start.messages
        return self.fixed | {message.position for message in messages[programs.open_start(messages) :]}

    def in_middle(self, position: int) -> bool:
        """Whether an edit may change the message."""
        return self.head_last < position < self.tail_first and position not in self.protected

    def middle(self, view: View) -> list[Entry]:
        """Return the entries that edits may change, oldest first, with replacements of evicted messages."""
        head_last, tail_first, protected = self.head_last, self.tail_first, self.protected
        return [
            entry
            for entry in view.entries
            if head_last < entry.first < tail_first and entry.first not in protected
        ]

    def outputs(self, view: View) -> list[Output]:
        """Return the outputs of client tools that the view still shows unedited, oldest first."""
        shown, edits = view.places, view.part_edits
        return [
            output
            for output in self._outputs
            if output.position in shown and output.part not in edits.get(output.position, ())
        ]

    @cached_property
    def _outputs(self) -> tuple[Output, ...]:
        return tuple(
            self._output(message, index, part)
            for message in map(self.start.originals.__getitem__, self.start.places.values())
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
            rule=self.settings.tool_rule(call.name if call else ""),
            in_middle=self.in_middle(message.position),
        )

    def describe(self, output: Output, handle: str) -> str:
        """Return the text that replaces an output: its descriptor, or the failing lines of a failure."""
        if output.is_error:
            return describe_failure(output.result.text, handle)
        return describe(
            output.result.text,
            output.action,
            handle,
            names=self._names_listed(self.size(output.position, output.part)),
            elsewhere=self.fixed_names if output.in_middle else frozenset(),
            has_media=output.result.media_tokens > 0,
        )

    def shorten(self, call: ToolCall, handle: str, *, size: int) -> str:
        """Return the arguments that replace those of a call in the middle. `size` is that of the call."""
        return short_arguments(
            call.arguments,
            handle,
            names=self._names_listed(size - PART_OVERHEAD - self.counter.count(call.name)),
            elsewhere=self.fixed_names,
        )

    def clip(self, text: str, handle: str, *, cap: int) -> str:
        """Return a text without its middle, at most about `cap` tokens long."""
        return clip(text, cap=cap, head_share=self.settings.clip_head, handle=handle, counter=self.counter)

    def _names_listed(self, size: int) -> int:
        """Return how many names to list for content of `size` tokens. Longer content gets more."""
        return min(self.settings.descriptor_names, max(_NAMES_MIN, size // _TOKENS_PER_NAME))

    @cached_property
    def fixed_names(self) -> frozenset[str]:
        """The identifiers of the head, the tail and the working memory, which stay in the prompt."""
        fixed = [entry.message for entry in self.start.entries if not self.in_middle(entry.first)]
        return message_references(*fixed) | references(self.memory_text)

    def size(self, position: int, part: int) -> int:
        """Return the tokens of one part as pushed."""
        known = self._sizes.get((position, part))
        if known is None:
            known = self._sizes[position, part] = self._size(self.original(position), part)
        return known

    @cached_property
    def _sizes(self) -> dict[tuple[int, int], int]:
        return {}

    @cached_property
    def _largest(self) -> dict[int, int]:
        """By position, the index of the message's longest part."""
        return {}

    def _size(self, message: Message, index: int) -> int:
        """Return the tokens of a part. The longest part has the tokens that the others leave."""
        position, parts = message.position, message.parts
        if len(parts) == 1:
            return max(0, message.tokens - MESSAGE_OVERHEAD)
        if position not in self._largest:
            lengths = list(map(_length, parts))
            self._largest[position] = lengths.index(max(lengths))
        if index != self._largest[position]:
            return part_tokens(parts[index], self.counter)
        others = sum(part_tokens(part, self.counter) for i, part in enumerate(parts) if i != index)
        return max(0, message.tokens - MESSAGE_OVERHEAD - others)

    def replace(
        self, strategy: str, position: int, part: int, text_of: Callable[[str], str], *, reason: str
    ) -> Edit | None:
        """Return the edit that replaces a part with `text_of(handle)`, or None if that is not shorter."""
        check_deadline()
        handle = self.make_handle(position, part)
        text, original = text_of(handle), self.original(position).parts[part]
        if isinstance(original, ToolResult) and original.media_tokens and MEDIA not in text:
            text = f"{text}\n[Also not shown: {MEDIA}]"
        before = self.size(position, part)
        after = text_tokens(original, text, self.counter)
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


def _length(part: Part) -> int:
    if isinstance(part, ToolCall):
        return len(part.arguments)
    return part.media_tokens if isinstance(part, Opaque) else len(part.text)
