"""The difference between the prompts of two turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compaction.view import VERBATIM, Entry
from sessions.selectors.past_prompts.outline import Outline
from sessions.selectors.past_prompts.runs import Run
from sessions.selectors.past_prompts.sides import Sides, sides_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Consecutive entries that differ in the same way: `kind` is "removed", "new" or "changed".

    Tokens are those of the entries in each prompt. Rules are the strategies that produced the entries, "" for
    a prompt that does not contain them.
    """

    kind: str
    first: int
    last: int
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


def outline_diff(before: Outline, after: Outline) -> Difference:
    """Return the difference between two prompts."""
    sides = sides_of(before, after)
    old, new = sides.before.items, sides.after.items
    shared = 0
    for (key, _), (other, _) in zip(old, new, strict=False):
        if key is None or key != other:
            break
        shared += 1
    is_shared = shared == len(old) == len(new)
    if before.memory != after.memory:
        shared, is_shared = min(shared, before.memory_index, after.memory_index), False
    tokens = sum(entry.message.tokens for entry in list(sides.after.entries.values())[:shared])
    if is_shared and sides.shared is not None:
        shared, tokens = shared + len(sides.shared), tokens + sides.shared.tokens
    return Difference(shared=shared, shared_tokens=tokens, changes=_changes(sides))


def _changes(sides: Sides) -> list[Change]:
    old, new = sides.before.entries, sides.after.entries
    removed = {(e.first, e.last): e for key, e in old.items() if key not in new}
    added = {(e.first, e.last): e for key, e in new.items() if key not in old}
    changes = [_change(removed.get(span), added.get(span)) for span in {*removed, *added}]
    changes += [_run_change(run, "removed") for run in (*sides.before.spans, *sides.removed)]
    changes += [_run_change(run, "new") for run in (*sides.after.spans, *sides.added)]
    return [
        _joined(list(alike))
        for _, alike in groupby(
            sorted(changes, key=lambda change: (change.first, change.last)),
            key=lambda change: (change.kind, change.rule_before, change.rule_after),
        )
    ]


def _run_change(run: Run, kind: str) -> Change:
    is_new = kind == "new"
    return Change(
        kind=kind,
        first=run.first,
        last=run.end - 1,
        tokens_before=0 if is_new else run.tokens,
        tokens_after=run.tokens if is_new else 0,
        rule_before="" if is_new else VERBATIM,
        rule_after=VERBATIM if is_new else "",
    )


def _change(before: Entry | None, after: Entry | None) -> Change:
    either = after or before
    assert either is not None
    return Change(
        kind="removed" if after is None else "new" if before is None else "changed",
        first=either.first,
        last=either.last,
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
        tokens_before=sum(change.tokens_before for change in alike),
        tokens_after=sum(change.tokens_after for change in alike),
        rule_before=first.rule_before,
        rule_after=first.rule_after,
    )
