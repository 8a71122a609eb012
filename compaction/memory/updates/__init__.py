"""Upkeep: a working memory kept current from what tools were seen to do, without a model.

`upkeep` reads the messages of new turns and nothing else, so its work is constant in the history. It
writes only items of its own: what a person, a model or a harness wrote is never changed by it, only marked
stale where a tool's result contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.memory.origins import Author, Key, Notes, Origin, Via, keys
from compaction.memory.schema import MAX_FILES, TITLES
from compaction.memory.updates.items import UpdaterItem, updater_items
from compaction.memory.updates.observations import Observation, contradiction, names_in
from compaction.memory.updates.observe import give_up, observe
from compaction.memory.updates.state import UpdaterState
from compaction.memory.values import ASKED_TOKENS, WorkingMemory
from compaction.messages import Message
from compaction.tokens import TokenCounter

__all__ = ["Update", "UpdaterState", "refit", "upkeep"]

#: Items that say what was, not what is: nothing later contradicts them.
_PAST = frozenset({"task", "tried", "recent_edits"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The notes after upkeep, what to remember for the next turn, and why anything changed, "" if not."""

    notes: Notes
    watch: UpdaterState
    reason: str = ""


def update_notes(
    notes: Notes, watch: UpdaterState, messages: Sequence[Message], *, counter: TokenCounter
) -> Update:
    """The notes after the messages of one turn, in order. `watch` is taken over and changed in place.

    The memory stays under `ASKED_TOKENS` as far as upkeep's own items go: where others' items take the room,
    its own shrink.
    """
    beliefs = _judged(notes)
    names = names_in(item for _, item in beliefs)
    sightings = [sighting for message in messages for sighting in observe(watch, message, names)]
    turn = max((message.turn for message in messages), default=watch.turn)
    give_up(watch, turn)
    _note_dismissed(watch, notes)
    watch.bound()
    watch.turn = turn + 1
    judged = notes.judged(_reasons(beliefs, sightings))
    made = _fitted(judged, watch, counter)
    watch.shown = _shown(made)
    if made.memory == notes.memory and made.stale == notes.stale:
        return Update(notes=notes, watch=watch)
    return Update(notes=made, watch=watch, reason=_reason(notes, made))


def refit(notes: Notes, watch: UpdaterState, *, counter: TokenCounter) -> Update:
    """The notes with upkeep's items anew, as many as there is room for beside what others wrote since."""
    watch = UpdaterState.from_json(watch.to_json())
    _note_dismissed(watch, notes)
    made = _fitted(notes, watch, counter)
    watch.shown = _shown(made)
    return Update(notes=made, watch=watch)


def _shown(notes: Notes) -> tuple[Key, ...]:
    return tuple(key for key, origin in notes.origins.items() if origin.via is Via.UPKEEP)


def _note_dismissed(watch: UpdaterState, notes: Notes) -> None:
    """What upkeep showed and somebody took out stays out."""
    there = set(keys(notes.memory))
    watch.dismissed = (*watch.dismissed, *(key for key in watch.shown if key not in there))


def _judged(notes: Notes) -> list[Key]:
    """The items that a sighting may contradict: what others wrote of how things are."""
    return [
        key for key, origin in notes.origins.items() if origin.via is not Via.UPKEEP and key[0] not in _PAST
    ]


def _reasons(judged: Sequence[Key], sightings: Iterable[Observation]) -> Mapping[Key, str]:
    """Of the items, why each no longer holds, or "" where it was confirmed. The last word counts."""
    found: dict[Key, str] = {}
    for sighting in sightings:
        for key in judged:
            reason = contradiction(key[1], sighting)
            if reason is not None:
                found[key] = reason
    return found


def _fitted(notes: Notes, watch: UpdaterState, counter: TokenCounter) -> Notes:
    """The notes with upkeep's items as they are now, as many as there is room for."""
    theirs = {name: _others(notes, name) for name, _ in notes.memory.fields()}
    for share in (1.0, 0.8, 0.6, 0.4, 0.2, 0.1):
        made = _merged(notes, theirs, updater_items(watch, share))
        if counter.count(made.render()) <= ASKED_TOKENS:
            return made
    return _merged(notes, theirs, ())


def _others(notes: Notes, name: str) -> tuple[str, ...]:
    return tuple(item for item in notes.memory.items(name) if notes.origin(name, item).via is not Via.UPKEEP)


def _merged(notes: Notes, theirs: Mapping[str, tuple[str, ...]], own: Sequence[UpdaterItem]) -> Notes:
    values = {name: list(items) for name, items in theirs.items()}
    origins = {key: origin for key, origin in notes.origins.items() if origin.via is not Via.UPKEEP}
    for item in own:
        held = values.setdefault(item.field, [])
        full = (item.single and held) or (item.field == "important_files" and len(held) >= MAX_FILES)
        if item.text in held or full:
            continue
        held.append(item.text)
        key = (item.field, item.text)
        origins[key] = _origin(notes, key, item)
    memory = WorkingMemory().with_values(
        {name: _value(notes.memory, name, held) for name, held in values.items()}
    )
    made = replace(notes, memory=memory, origins=origins)
    return replace(made, resolved=_resolved(notes, made))


def _value(memory: WorkingMemory, name: str, held: Sequence[str]) -> str | tuple[str, ...]:
    single = isinstance(getattr(memory, name) if name in TITLES else memory.value(name), str)
    return "".join(held[:1]) if single else tuple(held)


def _origin(notes: Notes, key: Key, item: UpdaterItem) -> Origin:
    """An item that was there before keeps the turn at which it was first seen."""
    known = notes.origins.get(key)
    if known is not None and known.via is Via.UPKEEP:
        return known
    return Origin(author=Author.HARNESS, via=Via.UPKEEP, turn=item.turn, position=item.position)


def _resolved(old: Notes, new: Notes) -> tuple[Key, ...]:
    """Blockers that upkeep put there and that are gone now were settled."""
    there = set(keys(new.memory))
    return tuple(key for key in old.origins if key[0] == "blockers" and key not in there)


def _reason(old: Notes, new: Notes) -> str:
    before, after = set(keys(old.memory)), set(keys(new.memory))
    names = dict.fromkeys(name for name, _ in sorted(before ^ after))
    stale = [key for key in new.stale if key not in old.stale]
    told = [f"observed: {', '.join(names)}"] if names else []
    return "; ".join([*told, f"{len(stale)} stale"] if stale else told) or "observed"
