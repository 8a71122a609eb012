"""The edits of a compaction with what they hid, to detect later references to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from compaction.edits import Edit, Op
from compaction.messages import ToolCall, ToolResult
from compaction.referenced import WatchedEdit, with_references
from compaction.tools.actions import Kind, action_of
from compaction.view import apply, in_force
from compaction.view.components import COMPONENT_OPS
from sessions.selectors.transcripts.rows import (
    CALLS_BEFORE,
    Span,
    compactions_load,
    edits_load,
    joined,
    visible_spans,
    without_covered,
)
from sessions.selectors.transcripts.scans import ScannedMessages

#: Number of removed messages that are read per edit: the newest ones. An eviction covers all those before it.
REMOVED = 400


@dataclass(frozen=True, slots=True)
class AppliedCompaction:
    """A compaction that was applied after the message before `end`.

    `edits` are its edits by key, `shown` those in force after it.
    """

    number: int
    end: int
    edits: Mapping[int, Edit]
    shown: Mapping[int, Edit]

    @property
    def spans(self) -> list[Span]:
        """The messages that `tracked_edits` reads."""
        return joined([*_touched(self.edits.values()), *self._visible()])

    def tracked_edits(self, messages: ScannedMessages) -> list[WatchedEdit]:
        """Return the edits with the identifiers and files that they hid."""
        keys, edits = list(self.edits), list(self.edits.values())
        view = apply(list(self.shown.values()), list(messages.within(self._visible()).values()))
        touched = messages.within(_touched(edits))
        full = with_references(edits, touched, view)
        effective = {id(edit) for edit in in_force(full)}
        tracked = []
        for index, edit in enumerate(full):
            actions = map(action_of, _calls(edit, touched))
            paths = sorted({action.path for action in actions if action.kind is Kind.READ and action.path})
            if id(edit) not in effective:
                # A later step of the same plan evicted this content with its handle, so that edit hides it.
                index, edit = _cover(index, edits), replace(edit, handle=None)
            tracked.append(WatchedEdit(key=keys[index], edit=edit, paths=paths))
        return tracked

    def _visible(self) -> Sequence[Span]:
        return visible_spans(self.shown.values(), end=self.end)


def compactions_applied(
    session_id: UUID, *, after: int, end: int, shown: Sequence[int]
) -> Iterator[AppliedCompaction]:
    """Yield the applied compactions of a session with numbers after `after`, up to the message `end`.

    `shown` are the keys of the edits in force before them.
    """
    known = edits_load(shown) if shown else []
    for number, position, edits in compactions_load(session_id, after=after, end=end):
        current = without_covered([*known, *edits])
        yield AppliedCompaction(number, position, dict(edits), current)
        known = list(current.items())


def _cover(index: int, edits: Sequence[Edit]) -> int:
    """Return the index of the later eviction that covers an edit, or its own if none does."""
    covered = edits[index]
    for later in range(index + 1, len(edits)):
        edit = edits[later]
        if edit.op is Op.EVICT and edit.position <= covered.position and covered.end <= edit.end:
            return later
    return index


def _touched(edits: Iterable[Edit]) -> list[Span]:
    """Return the messages that the edits change, and those before them, which contain the outputs' calls."""
    return joined(
        (max(edit.position, edit.end + 1 - REMOVED) - CALLS_BEFORE, edit.end + 1)
        for edit in edits
        if edit.op not in COMPONENT_OPS
    )


def _calls(edit: Edit, messages: ScannedMessages) -> Iterator[ToolCall]:
    """Yield the calls in the hidden content; for an edited output, the call that produced it."""
    if edit.op is not Op.REPLACE:
        yield from _calls_within(edit.position, edit.end, messages)
        return
    parts = messages[edit.position].parts if edit.position in messages else ()
    part = parts[edit.part] if edit.part is not None and edit.part < len(parts) else None
    if isinstance(part, ToolCall):
        yield part
    elif isinstance(part, ToolResult):
        near = _calls_within(edit.position - CALLS_BEFORE, edit.end, messages)
        yield from (call for call in near if call.call_id == part.call_id)


def _calls_within(first: int, last: int, messages: ScannedMessages) -> Iterator[ToolCall]:
    for at in range(first, last + 1):
        if at in messages and messages.is_by_assistant(at):
            yield from messages[at].tool_calls
