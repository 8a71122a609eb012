"""The changes between two prompts, message by message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import Q

from compaction.view import Entry
from sessions.models import AgentSession, Compaction
from sessions.selectors.edits import edits_in_force_after
from sessions.selectors.past_prompts.diff import keyed_entries
from sessions.selectors.past_prompts.outline import Outline, outline_at


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChange:
    """Consecutive messages that changed in the same way.

    `kind` is "kept", "shortened", "replaced", "evicted" or "new". An eviction has several `old` entries, and
    a `new` one if something replaces them. `entries` counts the messages of "kept".
    """

    kind: str
    first: int
    last: int
    old: Sequence[Entry] = ()
    new: Entry | None = None
    entries: int = 1

    @property
    def tokens_before(self) -> int:
        return sum(entry.message.tokens for entry in self.old)

    @property
    def tokens_after(self) -> int:
        if self.kind == "kept":
            return self.tokens_before
        return self.new.message.tokens if self.new is not None else 0


def prompts_around(*, session: AgentSession, row: Compaction) -> tuple[Outline, Outline] | None:
    """Return the prompt that a compaction changed, without and with its edits; None if it changed none."""
    if row.first_turn is None:
        return None
    index = min(row.first_turn + 1, session.turn_count)
    earlier = edits_in_force_after(index - 1) & Q(compaction__number__lt=row.number)
    before = outline_at(session=session, index=index, applied=earlier)
    after = outline_at(session=session, index=index, applied=earlier | Q(compaction=row))
    return (before, after) if before is not None and after is not None else None


def prompt_changes(before: Outline, after: Outline) -> list[PromptChange]:
    """Return the changes in the order of the messages, with the runs of kept messages between them."""
    old, new = keyed_entries(before), keyed_entries(after)
    removed = [entry for key, entry in old.items() if key not in new]
    changes = [_change(entry, removed) for key, entry in new.items() if key not in old]
    covered = {id(entry) for change in changes for entry in change.old}
    gone = [
        PromptChange(kind="evicted", first=entry.first, last=entry.last, old=[entry])
        for entry in removed
        if id(entry) not in covered
    ]
    kept = [
        PromptChange(kind="kept", first=entry.first, last=entry.last, old=[entry], new=entry)
        for key, entry in new.items()
        if key in old
    ]
    return _joined(sorted([*changes, *gone, *kept], key=lambda change: (change.first, change.last)))


def _change(entry: Entry, removed: Sequence[Entry]) -> PromptChange:
    old = [each for each in removed if entry.first <= each.first and each.last <= entry.last]
    kind = "new" if not old else "replaced"
    if old and entry.is_generated:
        kind = "evicted"
    elif old and entry.message.tokens < sum(each.message.tokens for each in old):
        kind = "shortened"
    return PromptChange(kind=kind, first=entry.first, last=entry.last, old=old, new=entry)


def _joined(changes: Sequence[PromptChange]) -> list[PromptChange]:
    """Return the changes with each run of kept messages as one."""
    joined: list[PromptChange] = []
    for is_kept, group in groupby(changes, key=lambda change: change.kind == "kept"):
        run = list(group)
        if is_kept:
            old = [entry for change in run for entry in change.old]
            first, last = run[0].first, run[-1].last
            joined.append(PromptChange(kind="kept", first=first, last=last, old=old, entries=len(run)))
        else:
            joined.extend(run)
    return joined
