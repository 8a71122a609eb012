"""What is shown: recorded edits applied to messages.

    view = apply(edits, messages)

The same edits and messages give the same view, whatever was pushed or decided later. A message that no
edit touches is the same object in the view, so that "carried through unchanged" can be checked by `is`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from compaction.edits import Edit, Op
from compaction.invariants.pairs import safe_cuts
from compaction.messages import Message, Part, Role, Text, ToolCall, ToolResult

#: Components of a prompt that are no message, in the order in which they may be shed.
MEMORY, TOOLS = "memory", "tools"

VERBATIM = "verbatim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Tokens of what stands in a prompt beside its messages."""

    system: int = 0
    tools: int = 0
    memory: int = 0

    @property
    def total(self) -> int:
        return self.system + self.tools + self.memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One shown message: by which rule it looks as it does, and the positions that it stands for."""

    message: Message
    rule: str = VERBATIM
    first: int
    last: int

    @property
    def is_made(self) -> bool:
        """Whether the message is ours (a recap, a marker) and nobody pushed it."""
        return self.rule != VERBATIM and self.message.source is None and self.message.format is None


@dataclass(frozen=True, kw_only=True)
class View:
    """The shown messages with what they came from. `edits` are those still in force, in order."""

    entries: tuple[Entry, ...]
    edits: tuple[Edit, ...] = ()
    components: Components = field(default_factory=Components)
    transcript: Sequence[Message] = ()

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        return tuple(entry.message for entry in self.entries)

    @cached_property
    def cuts(self) -> frozenset[int]:
        """Indices at which it may be cut: no tool pair is parted there."""
        return frozenset(safe_cuts(self.messages))

    @cached_property
    def message_tokens(self) -> int:
        return sum(entry.message.tokens for entry in self.entries)

    @property
    def tokens(self) -> int:
        """Raw estimate of the whole prompt: messages, system, tools and memory."""
        return self.message_tokens + self.components.total

    def with_edits(self, edits: Sequence[Edit]) -> View:
        """This view after more edits. Messages that they do not touch are the same objects still."""
        if not edits:
            return self
        current = in_force((*self.edits, *edits))
        if any(edit.op is Op.EVICT for edit in edits):
            return _view(current, self.transcript, self.components, self)
        after = replace(
            self,
            entries=_patched(self, current, {edit.position for edit in edits}),
            edits=current,
            components=shed(self.components, current),
        )
        if "cuts" in vars(self):  # no message went, and of parts at most thinking: they still hold
            vars(after)["cuts"] = self.cuts
        return after


def shed(components: Components, edits: Iterable[Edit]) -> Components:
    """The components without those that the edits shed."""
    gone = {edit.text: 0 for edit in edits if edit.op is Op.SHED and edit.text in (MEMORY, TOOLS)}
    return replace(components, **gone)


def revert(edits: Sequence[Edit], batch: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits without one batch. What the batch had replaced stands again when they are applied."""
    gone = {id(edit) for edit in batch}
    kept = tuple(edit for edit in edits if id(edit) not in gone)
    if len(edits) - len(kept) == len(batch):
        return kept
    remaining = list(edits)  # the batch came back from a store: equal values, other objects
    for edit in batch:
        remaining.remove(edit)
    return tuple(remaining)


def in_force(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits that still show: those that a later one covers are left out."""
    evicted: list[tuple[int, int]] = []
    parts: set[tuple[int, int | None]] = set()
    kept: list[Edit] = []
    for edit in reversed(edits):
        if edit.op is Op.SHED:
            kept.append(edit)
            continue
        if evicted and any(first <= edit.position and edit.end <= last for first, last in evicted):
            continue
        if edit.op is Op.EVICT:
            evicted.append((edit.position, edit.end))
        elif (edit.position, edit.part) in parts:
            continue
        else:
            parts.add((edit.position, edit.part))
        kept.append(edit)
    return tuple(reversed(kept))


def apply(
    edits: Sequence[Edit], messages: Sequence[Message], *, components: Components | None = None
) -> View:
    """The view of `messages` after `edits`, both in their order.

    `messages` may leave out what an EVICT covers: fetching a prompt then asks for the shown ones only.
    An edit of a part that is not there changes nothing.
    """
    return _view(in_force(edits), messages, components or Components(), None)


def _patched(view: View, edits: Sequence[Edit], positions: set[int]) -> tuple[Entry, ...]:
    """The entries of a view after edits that evict nothing and touch only these positions."""
    pushed = {message.position: message for message in view.transcript if message.position in positions}
    changed = _by_position(edit for edit in edits if edit.position in positions)
    return tuple(
        entry
        if entry.first not in changed or entry.is_made
        else _entry(pushed[entry.first], changed[entry.first])
        for entry in view.entries
    )


def _view(
    current: Sequence[Edit], messages: Sequence[Message], components: Components, known: View | None
) -> View:
    """The view of `messages` under edits that are all in force."""
    changed = _by_position(current)
    entries = _entries(
        messages,
        sorted((e for e in current if e.op is Op.EVICT), key=lambda e: (e.position, -e.end)),
        changed,
        _unchanged(known, changed) if known else {},
    )
    return View(
        entries=tuple(entries),
        edits=tuple(current),
        components=shed(components, current),
        transcript=messages,
    )


def _unchanged(known: View, changed: dict[int, list[Edit]]) -> dict[int, Entry]:
    """The entries of an earlier view that look the same after these edits, by position."""
    before = _by_position(known.edits)
    return {
        entry.first: entry
        for entry in known.entries
        if not entry.is_made and before.get(entry.first) == changed.get(entry.first)
    }


def _by_position(edits: Iterable[Edit]) -> dict[int, list[Edit]]:
    """The edits of parts, by the message that they touch."""
    found: dict[int, list[Edit]] = {}
    for edit in edits:
        if edit.op in (Op.REPLACE, Op.STRIP):
            found.setdefault(edit.position, []).append(edit)
    return found


def _entries(
    messages: Sequence[Message],
    evictions: Sequence[Edit],
    changed: dict[int, list[Edit]],
    known: dict[int, Entry],
) -> Iterator[Entry]:
    waiting = list(reversed(evictions))
    gone_until = -1
    for message in messages:
        while waiting and waiting[-1].position <= message.position:
            eviction = waiting.pop()
            gone_until = max(gone_until, eviction.end)
            yield from _stand_in(eviction)
        if message.position > gone_until:
            yield known.get(message.position) or _entry(message, changed.get(message.position))
    for eviction in reversed(waiting):
        yield from _stand_in(eviction)


def _stand_in(eviction: Edit) -> Iterator[Entry]:
    if not eviction.text:
        return
    message = Message(
        position=eviction.position,
        role=Role.USER,
        parts=(Text(text=eviction.text),),
        tokens=eviction.tokens_after,
    )
    yield Entry(message=message, rule=eviction.strategy, first=eviction.position, last=eviction.end)


def _entry(message: Message, edits: list[Edit] | None) -> Entry:
    if not edits:
        return Entry(message=message, first=message.position, last=message.position)
    by_part = {edit.part: edit for edit in edits}
    parts = tuple(
        part
        for index, old in enumerate(message.parts)
        if (part := _edited(old, by_part.get(index))) is not None
    )
    saved = sum(edit.tokens_before - edit.tokens_after for edit in edits)
    shown = replace(message, parts=parts, tokens=max(0, message.tokens - saved), patched=True)
    return Entry(message=shown, rule=edits[-1].strategy, first=message.position, last=message.position)


def _edited(part: Part, edit: Edit | None) -> Part | None:
    if edit is None:
        return part
    return None if edit.op is Op.STRIP else with_text(part, edit.text)


def with_text(part: Part, text: str) -> Part:
    """The part with our text in place of its own; a tool call keeps its name and gets other arguments."""
    match part:
        case Text():
            return replace(part, text=text, patched=True)
        case ToolResult():
            return replace(part, text=text, media_tokens=0, patched=True)
        case ToolCall():
            return replace(part, arguments=text, patched=True)
        case _:
            return Text(text=text, patched=True)
