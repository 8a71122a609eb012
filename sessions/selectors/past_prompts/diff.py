"""The difference between the prompts of two turns. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from compaction.view import VERBATIM, Entry
from sessions.selectors.past_prompts.outline import Outline
from sessions.selectors.stored_rows import END


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Consecutive entries that differ in the same way: `kind` is "removed", "new" or "changed".

    Tokens are those of the entries in each prompt. Rules are the strategies that produced the entries, "" for
    a prompt that does not contain them.
    """

    kind: str
    first: int
    last: int
    entries: int
    tokens_before: int
    tokens_after: int
    rule_before: str = ""
    rule_after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The changes between two prompts.

    Both begin with the same `shared` entries of `shared_tokens`, which the provider's cache can serve.
    """

    shared: int
    shared_tokens: int
    changes: Sequence[Change]


_Key = tuple[int, int, str, int, tuple[int, ...]]


def outline_diff(before: Outline, after: Outline) -> Difference:
    """Return the difference between two prompts."""
    start = _run_start(before, after)
    old, new = (_keyed(outline, outline.between(0, start)) for outline in (before, after))
    shared = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        shared += 1
    is_shared = shared == len(old) == len(new)
    if before.memory != after.memory:
        shared, is_shared = min(shared, before.memory_index, after.memory_index), False
    tokens = sum(entry.message.tokens for entry in list(new.values())[:shared])
    changes = _changes(old, new)
    if start < END:
        was, now = (_rest(outline, start) for outline in (before, after))
        if is_shared:
            shared, tokens = shared + min(was[0], now[0]), tokens + min(was[1], now[1])
        if was != now:
            changes = [*changes, _longer(before, after, was, now)]
    return Difference(shared=shared, shared_tokens=tokens, changes=changes)


def _run_start(before: Outline, after: Outline) -> int:
    """Return the position from which both prompts consist of unchanged messages, or `END` if unknown."""
    if before.run is None or after.run is None:
        return END
    return max(before.run.first, after.run.first)


def _rest(outline: Outline, start: int) -> tuple[int, int]:
    """Return the number and the tokens of the messages from `start` on."""
    assert outline.run is not None
    skipped = outline.run[: max(start - outline.run.first, 0)]
    return max(outline.end - start, 0), outline.run.tokens - sum(e.message.tokens for e in skipped)


def _longer(before: Outline, after: Outline, was: tuple[int, int], now: tuple[int, int]) -> Change:
    """Return the messages that only one of two prompts has at its end."""
    is_new = now > was
    last = max(before.end, after.end)
    entries, tokens = abs(now[0] - was[0]), abs(now[1] - was[1])
    return Change(
        kind="new" if is_new else "removed",
        first=last - entries,
        last=last - 1,
        entries=entries,
        tokens_before=0 if is_new else tokens,
        tokens_after=tokens if is_new else 0,
        rule_before="" if is_new else VERBATIM,
        rule_after=VERBATIM if is_new else "",
    )


def keyed_entries(outline: Outline) -> dict[_Key, Entry]:
    """Return all entries by a key that determines their content."""
    return _keyed(outline, outline.all_entries)


def _keyed(outline: Outline, entries: Iterable[Entry]) -> dict[_Key, Entry]:
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


def _changes(old: dict[_Key, Entry], new: dict[_Key, Entry]) -> list[Change]:
    removed = {(e.first, e.last): e for key, e in old.items() if key not in new}
    added = {(e.first, e.last): e for key, e in new.items() if key not in old}
    changes = [_change(removed.get(span), added.get(span)) for span in sorted({*removed, *added})]
    return [
        _joined(list(alike))
        for _, alike in groupby(
            changes, key=lambda change: (change.kind, change.rule_before, change.rule_after)
        )
    ]


def _change(before: Entry | None, after: Entry | None) -> Change:
    either = after or before
    assert either is not None
    return Change(
        kind="removed" if after is None else "new" if before is None else "changed",
        first=either.first,
        last=either.last,
        entries=1,
        tokens_before=before.message.tokens if before else 0,
        tokens_after=after.message.tokens if after else 0,
        rule_before=before.rule if before else "",
        rule_after=after.rule if after else "",
    )


def _joined(alike: Sequence[Change]) -> Change:
    first = alike[0]
    return Change(
        kind=first.kind,
        first=first.first,
        last=alike[-1].last,
        entries=len(alike),
        tokens_before=sum(change.tokens_before for change in alike),
        tokens_after=sum(change.tokens_after for change in alike),
        rule_before=first.rule_before,
        rule_after=first.rule_after,
    )
