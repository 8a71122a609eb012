"""Two prompts in a form in which they can be compared without loading long runs of unchanged messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from compaction.view import VERBATIM, Entry
from sessions.selectors.past_prompts.outline import Outline
from sessions.selectors.past_prompts.runs import Run
from sessions.selectors.transcripts.rows import END

#: What determines the content of an entry.
Key = tuple[int, int, str, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two prompts, up to the position from which both consist of unchanged messages.

    `entries` are loaded. `spans` are runs of messages that the other prompt does not show.
    """

    entries: Mapping[Key, Entry]
    spans: Sequence[Run]

    @property
    def items(self) -> list[tuple[Key | None, Entry | Run]]:
        """The entries with their keys, and the spans, in order."""
        items: list[tuple[Key | None, Entry | Run]] = [*self.entries.items()]
        items += [(None, span) for span in self.spans]
        return sorted(items, key=lambda item: item[1].first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both prompts, and the messages that follow.

    Both show the messages of `shared`. After these, only one shows those of `removed` or `added`.
    """

    before: Side
    after: Side
    shared: Run | None = None
    removed: Sequence[Run] = ()
    added: Sequence[Run] = ()


def sides_of(before: Outline, after: Outline) -> Sides:
    """Return both sides. At most six queries, which read no bodies."""
    start = END
    if before.run is not None and after.run is not None:
        start = max(before.run.first, after.run.first)
    old, new = _side(before, after, start), _side(after, before, start)
    if before.run is None or after.run is None or start == END:
        return Sides(before=old, after=new)
    shorter, longer = sorted((before.run, after.run), key=lambda run: run.end)
    shared = _part(shorter, start, shorter.end)
    rest = _rest(longer, shared, start, max(start, shorter.end))
    removed, added = ((), rest) if longer is after.run else (rest, ())
    return Sides(before=old, after=new, shared=shared, removed=removed, added=added)


def _rest(run: Run, shared: Run | None, start: int, first: int) -> Sequence[Run]:
    """Return the part of a run from position `first`, from the sums of the `shared` part if possible."""
    if shared is None or run.first != start or first >= run.end:
        part = _part(run, first, run.end)
        return [part] if part is not None else ()
    tokens, system_tokens = run.tokens - shared.tokens, run.system_tokens - shared.system_tokens
    return [replace(run, first=first, tokens=tokens, system_tokens=system_tokens)]


def _side(outline: Outline, other: Outline, start: int) -> Side:
    run = outline.run
    end = min(run.end, start) if run is not None else 0
    if run is None or end <= run.first:
        return Side(entries=_keyed(outline, outline.entries), spans=())
    shown = [each for each in other.entries if not each.is_generated and run.first <= each.first < end]
    loaded = [each for each in shown if each.rule == VERBATIM]
    if changed := [each.first for each in shown if each.rule != VERBATIM]:
        loaded = sorted([*loaded, *run.entries_at(changed)], key=lambda entry: entry.first)
    cuts = {edge for each in other.entries if each.is_generated for edge in (each.first, each.last + 1)}
    spans = _between(run.first, end, {each.first for each in loaded}, cuts)
    return Side(entries=_keyed(outline, [*outline.entries, *loaded]), spans=run.parts(spans))


def _between(first: int, end: int, taken: set[int], cuts: set[int]) -> list[tuple[int, int]]:
    """Return the spans between the taken positions, divided at the cuts."""
    edges = {first, end, *taken, *(at + 1 for at in taken), *(at for at in cuts if first < at < end)}
    return [(start, stop) for start, stop in pairwise(sorted(edges)) if start not in taken]


def _part(run: Run, first: int, end: int) -> Run | None:
    """Return a part of a run, or None if it is empty."""
    if first >= end:
        return None
    return run if (first, end) == (run.first, run.end) else run.parts([(first, end)])[0]


def _keyed(outline: Outline, entries: Iterable[Entry]) -> dict[Key, Entry]:
    return {
        (
            entry.first,
            entry.last,
            entry.rule,
            entry.message.tokens,
            tuple(edit.id for edit in outline.edits_of(entry)),
        ): entry
        for entry in entries
    }
