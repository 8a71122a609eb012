"""The view: recorded edits applied to messages.

    view = apply(edits, messages)

The same edits and messages always give the same view, regardless of later pushes and decisions. A message
without edits is the same object in the view, so `is` verifies that it was not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from compaction.edits import Edit, Op
from compaction.invariants.pairs import Pairs, matches, safe_cuts
from compaction.messages import Message, Role, Text
from compaction.provider_summary import ON_DEMAND, block_message
from compaction.view.components import COMPONENT_OPS, MEMORY, Components, shed, shown_memory, with_memory
from compaction.view.entries import Entry, PartEdits, before_answers, edited_entry
from compaction.view.spans import Spans

#: Key of edits of the memory's text, as opposed to edits that shed or restore it.
_MEMORY_TEXT = "memory text"


@dataclass(frozen=True, kw_only=True)
class View:
    """The messages of a prompt and their sources.

    `entries` are the pushed messages and their replacements; `prompt_entries` add the working memory. `edits`
    are those in force, in order. `transcript` are the messages as pushed.
    """

    entries: tuple[Entry, ...]
    edits: tuple[Edit, ...] = ()
    all_components: Components = field(default_factory=Components)
    transcript: Sequence[Message] = ()

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        return tuple(entry.message for entry in self.entries)

    @cached_property
    def cuts(self) -> frozenset[int]:
        """Indices at which the messages can be cut without separating a tool pair."""
        return frozenset(safe_cuts(self.messages, self.pairs))

    @cached_property
    def pushed(self) -> Mapping[int, Message]:
        """The messages as pushed, by position."""
        return {message.position: message for message in self.transcript}

    @cached_property
    def originals(self) -> tuple[Message, ...]:
        """The messages as pushed, and those that replace evicted ones. Indices are those of `entries`."""
        pushed = self.pushed
        return tuple(
            message if entry.is_generated else pushed.get(entry.first, message)
            for message, entry in zip(self.messages, self.entries, strict=True)
        )

    @cached_property
    def pairs(self) -> Pairs:
        """The index and part of each tool result in `originals`, with those of its call."""
        return matches(self.originals)

    @cached_property
    def places(self) -> Mapping[int, int]:
        """The index of each pushed message that the view shows, by position."""
        return {entry.first: index for index, entry in enumerate(self.entries) if not entry.is_generated}

    @cached_property
    def part_edits(self) -> Mapping[int, Mapping[int | None, Edit]]:
        """The edits of single parts, by position and part."""
        return _by_position(self.edits)

    @property
    def end_position(self) -> int:
        """The position after the newest message."""
        return self.entries[-1].last + 1 if self.entries else 0

    @cached_property
    def message_tokens(self) -> int:
        return sum(entry.message.tokens for entry in self.entries)

    @cached_property
    def prompt_entries(self) -> tuple[Entry, ...]:
        """The entries of the whole prompt in its order, including the working memory if there is one."""
        entries, memory = self.entries, shown_memory(self.edits)
        if memory is not None:
            following = (i for i, entry in enumerate(entries) if entry.first >= memory.position)
            index = next(following, len(entries))
            at = entries[index - 1].last if index else 0
            entry = Entry(message=_generated(memory), rule=MEMORY, first=at, last=at)
            entries = (*entries[:index], entry, *entries[index:])
        return tuple(before_answers(entries))

    @cached_property
    def prompt_messages(self) -> tuple[Message, ...]:
        """The messages of the whole prompt, as the model sees them."""
        return tuple(entry.message for entry in self.prompt_entries)

    @property
    def unshed_components(self) -> Components:
        """All components, whether or not they are shed."""
        return with_memory(self.all_components, self.edits)

    @cached_property
    def components(self) -> Components:
        """The components that the prompt contains: all but the shed ones."""
        return shed(self.unshed_components, self.edits)

    @cached_property
    def tokens(self) -> int:
        """Raw estimate of the whole prompt: messages, system, tools and memory."""
        return self.message_tokens + self.components.total

    def with_edits(self, edits: Sequence[Edit]) -> View:
        """Return this view after more edits. Unchanged messages remain the same objects."""
        if not edits:
            return self
        current = (*self.edits, *edits)
        if any(edit.op is Op.EVICT for edit in edits):
            return _view(in_force(current), self.transcript, self.all_components, self)
        if any(edit.op in COMPONENT_OPS for edit in edits):
            current = in_force(current)
        known, added = self.part_edits, _by_position(edits)
        return _patched(self, current, {at: {**known.get(at, {}), **added[at]} for at in added})


def revert(edits: Sequence[Edit], batch: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits without one batch. Applying them restores the content that the batch had replaced."""
    reverted = {id(edit) for edit in batch}
    kept = tuple(edit for edit in edits if id(edit) not in reverted)
    if len(edits) - len(kept) == len(batch):
        return kept
    remaining = list(edits)  # the batch was loaded from a store: its values are equal but not identical
    for edit in batch:
        remaining.remove(edit)
    return tuple(remaining)


def in_force(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits that have an effect, without those that a later one covers."""
    evicted = Spans()
    components: set[str] = set()
    kept: list[Edit] = []
    for edit in reversed(edits):
        if edit.op in COMPONENT_OPS:
            component = _MEMORY_TEXT if edit.op is Op.MEMORY else edit.text
            if component not in components and edit.op is not Op.RESTORE:
                kept.append(edit)
            components.add(component)
            continue
        if evicted.cover(edit.position, edit.end):
            continue
        if edit.op is Op.EVICT:
            evicted.add(edit.position, edit.end)
        kept.append(edit)
    return tuple(reversed(kept))


def apply(
    edits: Sequence[Edit], messages: Sequence[Message], *, components: Components | None = None
) -> View:
    """Return the view of `messages` after `edits`, both in order.

    `messages` may omit those that an EVICT covers, so that fetching a prompt loads only the visible ones. An
    edit of a missing part has no effect.
    """
    return _view(in_force(edits), messages, components or Components(), None)


#: Properties of a view that edits of parts do not change: no message is evicted, and only thinking can be
#: removed from one.
_LASTING = ("cuts", "pushed", "originals", "pairs", "places")


def _patched(view: View, edits: Sequence[Edit], changed: PartEdits) -> View:
    """Return the view after edits that evict nothing; `changed` are all edits of the messages they change."""
    entries = list(view.entries)
    for position, parts in changed.items():
        index = view.places.get(position)
        if index is not None:
            entries[index] = edited_entry(view.pushed[position], parts)
    patched = View(
        entries=tuple(entries),
        edits=tuple(edits),
        all_components=view.all_components,
        transcript=view.transcript,
    )
    vars(patched).update((name, getattr(view, name)) for name in _LASTING)
    vars(patched)["part_edits"] = {**view.part_edits, **changed}
    return patched


def _view(
    current: Sequence[Edit], messages: Sequence[Message], components: Components, known: View | None
) -> View:
    """Return the view of `messages` under edits that are all in force."""
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
        all_components=components,
        transcript=messages,
    )


def _unchanged(known: View, changed: PartEdits) -> dict[int, Entry]:
    """Return the entries of an earlier view that these edits leave unchanged, by position."""
    before, entries = known.part_edits, known.entries
    return {
        position: entries[index]
        for position, index in known.places.items()
        if before.get(position) == changed.get(position)
    }


def _by_position(edits: Iterable[Edit]) -> PartEdits:
    """Group the edits of parts by position and part, each message's in order."""
    found: PartEdits = {}
    replaces, strips = Op.REPLACE, Op.STRIP
    for edit in edits:
        if edit.op is replaces or edit.op is strips:
            if edit.position in found:
                found[edit.position][edit.part] = edit
            else:
                found[edit.position] = {edit.part: edit}
    return found


def _entries(
    messages: Sequence[Message],
    evictions: Sequence[Edit],
    changed: PartEdits,
    known: dict[int, Entry],
) -> Iterator[Entry]:
    waiting = list(reversed(evictions))
    evicted_until = -1
    for message in messages:
        while waiting and waiting[-1].position <= message.position:
            eviction = waiting.pop()
            evicted_until = max(evicted_until, eviction.end)
            yield from _replacement(eviction)
        if message.position > evicted_until:
            yield known.get(message.position) or edited_entry(message, changed.get(message.position))
    for eviction in reversed(waiting):
        yield from _replacement(eviction)


def _replacement(eviction: Edit) -> Iterator[Entry]:
    if not eviction.text:
        return
    message = _generated(eviction)
    yield Entry(message=message, rule=eviction.strategy, first=eviction.position, last=eviction.end)


def _generated(edit: Edit) -> Message:
    """Return the message that shows an edit's text."""
    if edit.strategy == ON_DEMAND:
        return block_message(edit)
    return Message(
        position=edit.position, role=Role.USER, parts=(Text(text=edit.text),), tokens=edit.tokens_after
    )
