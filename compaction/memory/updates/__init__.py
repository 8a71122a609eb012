"""Automatic memory updates: keep a working memory current from tool results, without a model.

`update_notes` reads only the messages of new turns, so its run time does not grow with the history. It writes
only automatic items. Items of other authors are never changed, but are marked stale if a tool's result
contradicts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.memory.origins import Author, Key, Notes, Origin, Via, keys
from compaction.memory.schema import MAX_FILES, SINGLE
from compaction.memory.updates.items import UpdaterItem, updater_items
from compaction.memory.updates.observations import Observation, contradiction, names_in
from compaction.memory.updates.observe import move_to_tried, observe
from compaction.memory.updates.state import UpdaterState
from compaction.memory.values import ASKED_TOKENS, WorkingMemory
from compaction.messages import Message
from compaction.sizes.tokens import TokenCounter

__all__ = ["Update", "UpdaterState", "refit", "update_notes"]

#: Fields about the past, which later observations cannot contradict.
_PAST = frozenset({"tried", "recent_edits"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The notes and state after an update. `reason` is "" if nothing changed."""

    notes: Notes
    state: UpdaterState
    reason: str = ""


def update_notes(
    notes: Notes, state: UpdaterState, messages: Sequence[Message], *, counter: TokenCounter
) -> Update:
    """Update the notes with the messages of one turn, in order. Changes `state` in place.

    Automatic items are shortened to keep the memory under `ASKED_TOKENS`; items of other authors are not.
    """
    claims = _contradictable(notes)
    names = names_in(item for name, item in claims if name != "task")
    observations = [observation for message in messages for observation in observe(state, message, names)]
    turn = max((message.turn for message in messages), default=state.turn)
    move_to_tried(state, turn)
    _note_dismissed(state, notes)
    state.bound()
    state.turn = turn + 1
    updated = _fitted(notes.judged(_reasons(notes, claims, observations)), state, counter)
    state.shown = _shown(updated)
    if updated.memory == notes.memory and updated.stale == notes.stale:
        return Update(notes=notes, state=state)
    return Update(notes=updated, state=state, reason=_reason(notes, updated))


def refit(notes: Notes, state: UpdaterState, *, counter: TokenCounter) -> Update:
    """Rebuild the automatic items, as many as fit with the current items of other authors."""
    state = UpdaterState.from_json(state.to_json())
    _note_dismissed(state, notes)
    refitted = _fitted(notes, state, counter)
    state.shown = _shown(refitted)
    return Update(notes=refitted, state=state)


def _shown(notes: Notes) -> tuple[Key, ...]:
    return tuple(key for key, origin in notes.origins.items() if origin.via is Via.AUTO_UPDATE)


def _note_dismissed(state: UpdaterState, notes: Notes) -> None:
    """Record automatic items that another author removed, so that they are not added again."""
    present = set(keys(notes.memory))
    state.dismissed = (*state.dismissed, *(key for key in state.shown if key not in present))


def _contradictable(notes: Notes) -> list[Key]:
    """Return the items that an observation may contradict: other authors' items about the present.

    A task that a user set remains valid until a user changes it.
    """
    return [
        key
        for key, origin in notes.origins.items()
        if origin.via is not Via.AUTO_UPDATE
        and key[0] not in _PAST
        and not (key[0] == "task" and origin.author is Author.PERSON)
    ]


def _reasons(notes: Notes, claims: Sequence[Key], observations: Iterable[Observation]) -> Mapping[Key, str]:
    """Return why items are stale, or "" if they were confirmed. The last observation decides."""
    found: dict[Key, str] = {}
    for observation in observations:
        for key in claims:
            if key[0] == "task":
                reason = _task_contradiction(notes.origin(*key), observation)
            else:
                reason = contradiction(key[1], observation)
            if reason is not None:
                found[key] = reason
    return found


def _task_contradiction(origin: Origin, observation: Observation) -> str | None:
    """Return why a task is stale: the user requested other work after it was written."""
    if not observation.task or origin.turn >= observation.turn:
        return None
    return f"the user has requested other work since turn {observation.turn}"


def _fitted(notes: Notes, state: UpdaterState, counter: TokenCounter) -> Notes:
    """Return the notes with the current automatic items, as many as fit."""
    theirs = {name: _others(notes, name) for name, _ in notes.memory.fields()}
    for share in (1.0, 0.8, 0.6, 0.4, 0.2, 0.1):
        merged = _merged(notes, theirs, updater_items(state, share))
        if counter.count(merged.render()) <= ASKED_TOKENS:
            return merged
    return _merged(notes, theirs, ())


def _others(notes: Notes, name: str) -> tuple[str, ...]:
    return tuple(
        item for item in notes.memory.items(name) if notes.origin(name, item).via is not Via.AUTO_UPDATE
    )


def _merged(notes: Notes, theirs: Mapping[str, tuple[str, ...]], automatic: Sequence[UpdaterItem]) -> Notes:
    values = {name: list(items) for name, items in theirs.items()}
    origins = {key: origin for key, origin in notes.origins.items() if origin.via is not Via.AUTO_UPDATE}
    for item in automatic:
        items = values.setdefault(item.field, [])
        is_full = (items and item.field in SINGLE) or (
            item.field == "important_files" and len(items) >= MAX_FILES
        )
        if item.text in items or is_full:
            continue
        items.append(item.text)
        key = (item.field, item.text)
        origins[key] = _origin(notes, key, item)
    memory = WorkingMemory().with_values(
        {name: _value(notes.memory, name, items) for name, items in values.items()}
    )
    merged = replace(notes, memory=memory, origins=origins)
    return replace(merged, resolved=_resolved(notes, merged))


def _value(memory: WorkingMemory, name: str, items: Sequence[str]) -> str | tuple[str, ...]:
    return "".join(items[:1]) if isinstance(memory.value(name), str) else tuple(items)


def _origin(notes: Notes, key: Key, item: UpdaterItem) -> Origin:
    """Return the origin of an automatic item; an existing one keeps the turn of its first observation."""
    known = notes.origins.get(key)
    if known is not None and known.via is Via.AUTO_UPDATE:
        return known
    return Origin(author=Author.HARNESS, via=Via.AUTO_UPDATE, turn=item.turn, position=item.position)


def _resolved(old: Notes, new: Notes) -> tuple[Key, ...]:
    """Return the automatic blockers that no longer exist because they were resolved."""
    present = set(keys(new.memory))
    return tuple(key for key in old.origins if key[0] == "blockers" and key not in present)


def _reason(old: Notes, new: Notes) -> str:
    before, after = set(keys(old.memory)), set(keys(new.memory))
    names = dict.fromkeys(name for name, _ in sorted(before ^ after))
    stale = [key for key in new.stale if key not in old.stale]
    parts = [f"observed: {', '.join(names)}"] if names else []
    return "; ".join([*parts, f"{len(stale)} stale"] if stale else parts) or "observed"
