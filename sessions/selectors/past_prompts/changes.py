"""The changes between two prompts, message by message. Long runs are loaded only where they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from django.db.models import Q

from compaction.view import Entry
from sessions.models import AgentSession, Compaction
from sessions.selectors.compactions.edits import edits_in_force_after
from sessions.selectors.past_prompts.outline import Outline, outline_at
from sessions.selectors.past_prompts.runs import Run
from sessions.selectors.past_prompts.sides import Side, sides_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChange:
    """Consecutive messages that changed in the same way.

    `kind` is "kept", "shortened", "replaced", "evicted" or "new". `entries` is the number of messages that
    were kept, changed or evicted, or 1 for a new one. Like the compaction's record, it does not count an
    earlier recap. The first evicted messages are in `old`, including this recap, and the others in `runs`;
    `new` is what replaces them, if anything.
    """

    kind: str
    first: int
    last: int
    entries: int
    tokens_before: int
    tokens_after: int
    old: Sequence[Entry] = ()
    runs: Sequence[Run] = ()
    new: Entry | None = None

    @property
    def old_count(self) -> int:
        """Number of messages that were changed or evicted, including an earlier recap."""
        return len(self.old) + sum(map(len, self.runs))

    def old_entries(self, limit: int) -> list[Entry]:
        """Return the first messages that were changed or evicted. One query for each run."""
        found = list(self.old[:limit])
        for run in self.runs:
            found += run[: limit - len(found)]
        return found


class PromptChanges:
    """The changes between two prompts, in the order of the messages."""

    def __init__(self, pieces: Sequence[PromptChange | Run]) -> None:
        """`pieces` are the changes, and runs of new messages, each of which is a change."""
        self._pieces = pieces

    def __len__(self) -> int:
        return sum(len(piece) if isinstance(piece, Run) else 1 for piece in self._pieces)

    def page(self, first: int, limit: int) -> list[PromptChange]:
        """Return `limit` changes, beginning with number `first`."""
        found: list[PromptChange] = []
        for piece in self._pieces:
            if len(found) == limit:
                break
            count = len(piece) if isinstance(piece, Run) else 1
            if first >= count:
                first -= count
                continue
            if isinstance(piece, Run):
                entries = piece[first : first + limit - len(found)]
                found += [_change(entry, (), ()) for entry in entries]
            else:
                found.append(piece)
            first = 0
        return found

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """Return the number of messages by kind, and their tokens before and after."""
        counts: dict[str, tuple[int, int, int]] = {}
        for piece in self._pieces:
            kind, *added = (
                ("new", len(piece), 0, piece.tokens)
                if isinstance(piece, Run)
                else (piece.kind, piece.entries, piece.tokens_before, piece.tokens_after)
            )
            known = counts.get(kind, (0, 0, 0))
            counts[kind] = (known[0] + added[0], known[1] + added[1], known[2] + added[2])
        return counts


def prompts_around(*, session: AgentSession, row: Compaction) -> tuple[Outline, Outline] | None:
    """Return the prompt that a compaction changed, without and with its edits; None if it changed none."""
    if row.first_turn is None:
        return None
    index = min(row.first_turn + 1, session.turn_count)
    earlier = edits_in_force_after(row.first_turn) & Q(compaction__number__lt=row.number)
    before = outline_at(session=session, index=index, applied=earlier)
    after = outline_at(session=session, index=index, applied=earlier | Q(compaction=row))
    return (before, after) if before is not None and after is not None else None


def prompt_changes(before: Outline, after: Outline) -> PromptChanges:
    """Return the changes in the order of the messages, with the runs of kept messages between them.

    Reads no bodies, and long runs of messages only when they are shown.
    """
    sides = sides_of(before, after)
    old, new = sides.before.entries, sides.after.entries
    removed = [entry for key, entry in old.items() if key not in new]
    changes = [_change(entry, removed, sides.before.spans) for key, entry in new.items() if key not in old]
    pieces: list[PromptChange | Run] = [
        *changes,
        *_evicted(sides.before, removed, changes),
        *(_kept(entry) for key, entry in new.items() if key in old),
        *sides.after.spans,
        *map(_evicted_run, sides.removed),
        *sides.added,
    ]
    pieces += [_kept_run(sides.shared)] if sides.shared is not None else []
    return PromptChanges(_joined(sorted(pieces, key=lambda piece: (piece.first, _last(piece)))))


def _last(piece: PromptChange | Run) -> int:
    return piece.end - 1 if isinstance(piece, Run) else piece.last


def _change(entry: Entry, removed: Sequence[Entry], spans: Sequence[Run]) -> PromptChange:
    """Return the change that produced an entry, from the entries and spans that it replaces."""
    old = [each for each in removed if entry.first <= each.first and each.last <= entry.last]
    runs = [run for run in spans if entry.first <= run.first and run.end <= entry.last + 1]
    tokens = _tokens(old) + sum(run.tokens for run in runs)
    kind = "new" if not old and not runs else "replaced"
    if kind != "new" and entry.is_generated:
        kind = "evicted"
    elif old and entry.message.tokens < tokens:
        kind = "shortened"
    return PromptChange(
        kind=kind,
        first=entry.first,
        last=entry.last,
        entries=max(sum(not each.is_generated for each in old) + sum(map(len, runs)), 1),
        tokens_before=tokens,
        tokens_after=entry.message.tokens,
        old=old,
        runs=runs,
        new=entry,
    )


def _evicted(side: Side, removed: Sequence[Entry], changes: Sequence[PromptChange]) -> Iterable[PromptChange]:
    """Yield the messages and spans that nothing replaces."""
    covered = {id(each) for change in changes for each in (*change.old, *change.runs)}
    for entry in removed:
        if id(entry) not in covered:
            yield PromptChange(
                kind="evicted",
                first=entry.first,
                last=entry.last,
                entries=1,
                tokens_before=entry.message.tokens,
                tokens_after=0,
                old=[entry],
            )
    yield from (_evicted_run(run) for run in side.spans if id(run) not in covered)


def _evicted_run(run: Run) -> PromptChange:
    return PromptChange(
        kind="evicted",
        first=run.first,
        last=run.end - 1,
        entries=len(run),
        tokens_before=run.tokens,
        tokens_after=0,
        runs=[run],
    )


def _kept(entry: Entry) -> PromptChange:
    tokens = entry.message.tokens
    return PromptChange(
        kind="kept",
        first=entry.first,
        last=entry.last,
        entries=1,
        tokens_before=tokens,
        tokens_after=tokens,
    )


def _kept_run(run: Run) -> PromptChange:
    return replace(_evicted_run(run), kind="kept", tokens_after=run.tokens)


def _tokens(entries: Iterable[Entry]) -> int:
    return sum(entry.message.tokens for entry in entries)


def _joined(pieces: Sequence[PromptChange | Run]) -> list[PromptChange | Run]:
    """Return the pieces with consecutive kept messages as one."""
    joined: list[PromptChange | Run] = []
    for is_kept, group in groupby(pieces, key=_is_kept):
        run = list(group)
        kept = [piece for piece in run if isinstance(piece, PromptChange)]
        if not is_kept:
            joined.extend(run)
            continue
        tokens = sum(change.tokens_before for change in kept)
        joined.append(
            PromptChange(
                kind="kept",
                first=kept[0].first,
                last=kept[-1].last,
                entries=sum(change.entries for change in kept),
                tokens_before=tokens,
                tokens_after=tokens,
            )
        )
    return joined


def _is_kept(piece: PromptChange | Run) -> bool:
    return isinstance(piece, PromptChange) and piece.kind == "kept"
