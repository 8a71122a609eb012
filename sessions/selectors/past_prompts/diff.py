"""The difference between the prompts of two turns. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compaction.view import Entry
from sessions.selectors.past_prompts.outline import Outline


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
    old, new = keyed_entries(before), keyed_entries(after)
    shared = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        shared += 1
    if before.memory != after.memory:
        shared = min(shared, before.memory_index, after.memory_index)
    return Difference(
        shared=shared,
        shared_tokens=sum(entry.message.tokens for entry in after.entries[:shared]),
        changes=_changes(old, new),
    )


def keyed_entries(outline: Outline) -> dict[_Key, Entry]:
    """Return the entries by a key that determines their content."""
    return {
        (
            entry.first,
            entry.last,
            entry.rule,
            entry.message.tokens,
            tuple(edit.id for edit in outline.edits_of(entry)),
        ): entry
        for entry in outline.entries
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
