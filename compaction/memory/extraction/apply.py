"""What of a model's suggestions comes into the memory: only its own items are written, and there is room.

Each suggestion stands by itself: one that cannot be is passed over. Items of others stay word for word; at
most they are marked stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from compaction.errors import WorkingMemoryError
from compaction.memory.extraction.values import Step, Suggestion
from compaction.memory.operations import Op, Operation, operate
from compaction.memory.origins import Author, Key, Notes, Origin, Via, finding, keys, without
from compaction.memory.schema import SINGLE, Schema
from compaction.memory.updates import UpdaterState, refit
from compaction.memory.values import ASKED_TOKENS
from compaction.tokens import TokenCounter

#: Tokens that the model's items may take together, of the `ASKED_TOKENS` of the whole memory.
OWN_TOKENS = 300

#: The share of their words that two items have in common that say the same.
_ALIKE = 0.75

_WORD = re.compile(r"\w+")

_OPS = {Step.REPLACE: Op.REPLACE, Step.RESOLVE: Op.RESOLVE, Step.REMOVE: Op.REMOVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The notes after a reading, what upkeep is to remember, and why anything changed, "" if nothing did."""

    notes: Notes
    watch: UpdaterState
    reason: str = ""


def apply(
    notes: Notes,
    watch: UpdaterState,
    suggestions: Sequence[Suggestion],
    *,
    schema: Schema,
    dismissed: Sequence[str],
    counter: TokenCounter,
) -> Applied:
    """The notes with what may be taken of the suggestions.

    The model's items take at most `OWN_TOKENS`; the stale and then the oldest of them go first, single texts
    last. The whole stays under `ASKED_TOKENS`, or does not grow where it was larger: for that upkeep's items
    shrink, then more of the model's go.
    """
    made = replace(notes, resolved=())
    for suggestion in suggestions:
        made = _taken(made, suggestion, schema, dismissed)
    made, kept = _fitted(notes, made, watch, counter)
    if made.memory == notes.memory and made.stale == notes.stale:
        return Applied(notes=notes, watch=watch)
    return Applied(notes=made, watch=kept, reason=_reason(notes, made))


def taken_out(revisions: Sequence[Notes]) -> tuple[str, ...]:
    """The items that somebody took out or reworded between revisions, oldest first. Upkeep's items come and
    go by themselves, and a single text that makes room for the next one was not taken out."""
    return tuple(
        item
        for old, new in pairwise(revisions)
        for name, item in keys(old.memory)
        if item not in new.memory.items(name)
        and old.origin(name, item).via is not Via.UPKEEP
        and not (isinstance(old.memory.value(name), str) and new.memory.value(name))
    )


def _taken(notes: Notes, suggestion: Suggestion, schema: Schema, dismissed: Sequence[str]) -> Notes:
    """The notes after one suggestion; the same where it cannot be."""
    step, key, text = suggestion.step, suggestion.key, suggestion.text
    if step is Step.STALE:
        return _marked(notes, key, text)
    if step in (Step.ADD, Step.REPLACE) and not _is_new(notes, suggestion, dismissed):
        return notes
    if step is Step.ADD:
        held = notes.memory.value(key[0])
        if isinstance(held, str) and held and not _is_own(notes, (key[0], held)):
            return notes
        operation = Operation(op=Op.ADD, field=key[0], item=text)
    elif _is_own(notes, key):
        operation = Operation(op=_OPS[step], field=key[0], item=key[1], new=text)
    else:
        return notes
    try:
        operated = operate(notes.memory, [operation], schema)
    except WorkingMemoryError:
        return notes
    origin = Origin(author=Author.MODEL, via=Via.READING, turn=suggestion.turn, position=suggestion.position)
    return notes.written(operated.memory, origin, resolved=(*notes.resolved, *operated.resolved))


def _is_own(notes: Notes, key: Key) -> bool:
    return key in keys(notes.memory) and notes.origin(*key).via is Via.READING


def _marked(notes: Notes, key: Key, reason: str) -> Notes:
    """The notes with an item marked stale, unless somebody has called the same finding wrong."""
    origin = notes.origin(*key)
    if key not in keys(notes.memory) or any(
        _says_the_same(finding(reason), wrong) for wrong in origin.overruled
    ):
        return notes
    return replace(notes, origins={**notes.origins, key: replace(origin, stale=reason)})


def _is_new(notes: Notes, suggestion: Suggestion, dismissed: Sequence[str]) -> bool:
    """Whether a text says what no other item says, and nobody took out."""
    others = [key[1] for key in keys(notes.memory) if key != suggestion.key]
    return not any(_says_the_same(suggestion.text, other) for other in (*others, *dismissed))


def _says_the_same(one: str, other: str) -> bool:
    """Whether two items have most of their words in common, and all of those with figures in them."""
    first, second = (frozenset(map(str.casefold, _WORD.findall(text))) for text in (one, other))
    if _with_figures(first) != _with_figures(second):
        return False
    return len(first & second) >= _ALIKE * len(first | second)


def _with_figures(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(map(str.isdigit, word)))


def _fitted(
    before: Notes, made: Notes, watch: UpdaterState, counter: TokenCounter
) -> tuple[Notes, UpdaterState]:
    """The notes with as many of the model's items as there is room for."""
    room = max(ASKED_TOKENS, counter.count(before.render()))
    for fewer in _fewer(made, counter):
        if counter.count(fewer.render()) <= room:
            return fewer, watch
        kept = refit(fewer, watch, counter=counter)
        if counter.count(kept.notes.render()) <= room:
            return replace(kept.notes, resolved=fewer.resolved), kept.watch
    return before, watch  # not even the marks fit beside what others wrote


def _fewer(notes: Notes, counter: TokenCounter) -> Iterator[Notes]:
    """The notes with all of the model's items that it has room for, then with one less each time."""
    own = [key for key in keys(notes.memory) if _is_own(notes, key)]
    own.sort(key=lambda key: _worth(notes, key))
    while counter.count("\n".join(item for _, item in own)) > OWN_TOKENS:
        notes, own = _without(notes, own[0]), own[1:]
    yield notes
    for key in own:
        notes = _without(notes, key)
        yield notes


def _worth(notes: Notes, key: Key) -> tuple[bool, bool, int]:
    """What goes first is least."""
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
    told = [", ".join(names), f"{stale} stale" if stale else ""]
    return "; ".join(filter(None, told)) or "reworded"
