"""Apply a model's suggestions to the memory. The model may change only its own items, within a token limit.

Each suggestion is applied independently; invalid ones are skipped. Items of other authors remain unchanged,
but can be marked stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from compaction.errors import WorkingMemoryError
from compaction.memory.extraction.suggestions import Step, Suggestion
from compaction.memory.operations import Op, Operation, operate
from compaction.memory.origins import Author, Key, Notes, Origin, Via, finding, keys, without
from compaction.memory.schema import SINGLE, Schema
from compaction.memory.updates import UpdaterState, refit
from compaction.memory.values import ASKED_TOKENS
from compaction.sizes.tokens import TokenCounter

#: Maximum tokens of all items of the model, out of `ASKED_TOKENS` for the whole memory.
OWN_TOKENS = 300

#: Minimum share of common words at which two items count as the same.
_SIMILAR = 0.75

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The notes and the state of automatic updates after an extraction. `reason` is "" if nothing changed."""

    notes: Notes
    state: UpdaterState
    reason: str = ""


def apply(
    notes: Notes,
    state: UpdaterState,
    suggestions: Sequence[Suggestion],
    *,
    schema: Schema,
    dismissed: Sequence[str],
    counter: TokenCounter,
) -> Applied:
    """Apply the suggestions that are allowed.

    The model's items have at most `OWN_TOKENS`: stale items are removed first, then the oldest ones, single
    strings last. The whole memory remains under `ASKED_TOKENS`, or does not grow if it was larger: automatic
    items are shortened, then more of the model's items are removed.
    """
    changed = replace(notes, resolved=())
    for suggestion in suggestions:
        changed = _apply_one(changed, suggestion, schema, dismissed)
    changed, refitted = _fit(notes, changed, state, counter)
    if changed.memory == notes.memory and changed.stale == notes.stale:
        return Applied(notes=notes, state=state)
    return Applied(notes=changed, state=refitted, reason=_reason(notes, changed))


def removed_items(revisions: Sequence[Notes]) -> tuple[str, ...]:
    """Return the items that were removed or reworded between revisions, oldest first.

    Excludes automatic items, and single strings that were replaced by another one.
    """
    return tuple(
        item
        for old, new in pairwise(revisions)
        for name, item in keys(old.memory)
        if item not in new.memory.items(name)
        and old.origin(name, item).via is not Via.AUTO_UPDATE
        and not (isinstance(old.memory.value(name), str) and new.memory.value(name))
    )


def _apply_one(notes: Notes, suggestion: Suggestion, schema: Schema, dismissed: Sequence[str]) -> Notes:
    """Apply one suggestion, or return the notes unchanged if it is not allowed."""
    step, key, text = suggestion.step, suggestion.key, suggestion.text
    if step is Step.STALE:
        return _mark_stale(notes, key, text)
    if step in (Step.ADD, Step.REPLACE) and not _is_new(notes, suggestion, dismissed):
        return notes
    if step is Step.ADD:
        current = notes.memory.value(key[0])
        if isinstance(current, str) and current and not _is_replaceable(notes, (key[0], current)):
            return notes
        operation = Operation(op=Op.ADD, field=key[0], item=text)
    elif _is_own(notes, key):
        operation = Operation(op=Op(step), field=key[0], item=key[1], new=text)
    else:
        return notes
    try:
        operated = operate(notes.memory, [operation], schema)
    except WorkingMemoryError:
        return notes
    origin = Origin(
        author=Author.MODEL, via=Via.EXTRACTION, turn=suggestion.turn, position=suggestion.position
    )
    return notes.written(operated.memory, origin, resolved=(*notes.resolved, *operated.resolved))


def _is_own(notes: Notes, key: Key) -> bool:
    return key in keys(notes.memory) and notes.origin(*key).via is Via.EXTRACTION


def _is_replaceable(notes: Notes, key: Key) -> bool:
    """Whether the model may overwrite a single string: one that it wrote, or an observed one."""
    return notes.origin(*key).via in (Via.EXTRACTION, Via.AUTO_UPDATE)


def _mark_stale(notes: Notes, key: Key, reason: str) -> Notes:
    """Mark an item stale, unless the finding has been overruled."""
    origin = notes.origin(*key)
    if key not in keys(notes.memory) or any(
        _is_same(finding(reason), overruled) for overruled in origin.overruled
    ):
        return notes
    return replace(notes, origins={**notes.origins, key: replace(origin, stale=reason)})


def _is_new(notes: Notes, suggestion: Suggestion, dismissed: Sequence[str]) -> bool:
    """Return whether a text differs from all other items and from removed ones."""
    others = [key[1] for key in keys(notes.memory) if key != suggestion.key]
    return not any(_is_same(suggestion.text, other) for other in (*others, *dismissed))


def _is_same(one: str, other: str) -> bool:
    """Return whether two items have most words in common, and all words that contain digits."""
    first, second = (frozenset(map(str.casefold, _WORD.findall(text))) for text in (one, other))
    if _with_digits(first) != _with_digits(second):
        return False
    return len(first & second) >= _SIMILAR * len(first | second)


def _with_digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(map(str.isdigit, word)))


def _fit(
    before: Notes, changed: Notes, state: UpdaterState, counter: TokenCounter
) -> tuple[Notes, UpdaterState]:
    """Return the changed notes with as many of the model's items as fit."""
    room = max(ASKED_TOKENS, counter.count(before.render()))
    for fewer in _fewer(changed, counter):
        if counter.count(fewer.render()) <= room:
            return fewer, state
        refitted = refit(fewer, state, counter=counter)
        if counter.count(refitted.notes.render()) <= room:
            return replace(refitted.notes, resolved=fewer.resolved), refitted.state
    return before, state  # not even the stale marks fit


def _fewer(notes: Notes, counter: TokenCounter) -> Iterator[Notes]:
    """Yield the notes with all of the model's items that fit `OWN_TOKENS`, then with one fewer each time."""
    own = [key for key in keys(notes.memory) if _is_own(notes, key)]
    own.sort(key=lambda key: _priority(notes, key))
    while counter.count("\n".join(item for _, item in own)) > OWN_TOKENS:
        notes, own = _without(notes, own[0]), own[1:]
    yield notes
    for key in own:
        notes = _without(notes, key)
        yield notes


def _priority(notes: Notes, key: Key) -> tuple[bool, bool, int]:
    """Return the sort key; items with the lowest one are removed first."""
    origin = notes.origin(*key)
    return key[0] in SINGLE, not origin.stale, origin.turn


def _without(notes: Notes, key: Key) -> Notes:
    name, item = key
    value = notes.memory.value(name)
    assert value is not None
    memory = notes.memory.with_values({name: without(value, item)})
    return notes.written(memory, notes.origin(*key), resolved=notes.resolved)


def _reason(old: Notes, new: Notes) -> str:
    names = dict.fromkeys(name for name, _ in sorted(set(keys(old.memory)) ^ set(keys(new.memory))))
    stale = sum(key not in old.stale for key in new.stale)
    parts = [", ".join(names), f"{stale} stale" if stale else ""]
    return "; ".join(filter(None, parts)) or "reworded"
