"""Differences between two revisions, and the churn of a memory over many."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import pairwise

from compaction.memory.origins import Key
from compaction.memory.values import WorkingMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change of one field between two revisions.

    A reworded item is in `added` and `removed`, and as a pair in `reworded`. A resolved item is in `removed`
    and `resolved`.
    """

    field: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reworded: tuple[tuple[str, str], ...] = ()
    resolved: tuple[str, ...] = ()

    @property
    def only_added(self) -> tuple[str, ...]:
        """The new items that do not reword another one."""
        new = {after for _, after in self.reworded}
        return tuple(item for item in self.added if item not in new)

    @property
    def only_removed(self) -> tuple[str, ...]:
        """The removed items that were neither reworded nor resolved."""
        explained = {before for before, _ in self.reworded} | set(self.resolved)
        return tuple(item for item in self.removed if item not in explained)


#: Fields whose items are names. A similar name is a different item, not a rewording.
_NAMES = frozenset({"important_files", "recent_edits", "blockers"})


def diff(
    old: WorkingMemory, new: WorkingMemory, resolved: Collection[Key] = (), *, pairs: bool = True
) -> tuple[Change, ...]:
    """Return the changed fields in the order of the fields. `pairs` also detects reworded items."""
    found: list[Change] = []
    for name in dict.fromkeys(name for name, _ in (*new.fields(), *old.fields())):
        before, after = old.items(name), new.items(name)
        if before != after:
            added = tuple(item for item in after if item not in before)
            removed = tuple(item for item in before if item not in after)
            resolved_here = tuple(item for item in removed if (name, item) in resolved)
            dropped = [item for item in removed if item not in resolved_here]
            single = isinstance(old.value(name), str)
            reworded = _reworded(dropped, added, single) if pairs and name not in _NAMES else ()
            found.append(
                Change(field=name, added=added, removed=removed, reworded=reworded, resolved=resolved_here)
            )
    return tuple(found)


#: Minimum similarity (0 to 1) at which an item counts as a rewording of another.
_SIMILAR = 0.5
#: Longer items and further pairs are not compared, because the comparison takes quadratic time.
_LONGEST, _MAX_PAIRS = 400, 64


def _reworded(removed: Sequence[str], added: Sequence[str], single: bool) -> tuple[tuple[str, str], ...]:
    if single:
        return tuple(zip(removed, added, strict=False))
    if len(removed) * len(added) > _MAX_PAIRS:
        return ()
    pairs, free = [], list(added)
    for old in removed:
        for new in free:
            if max(len(old), len(new)) <= _LONGEST and SequenceMatcher(None, old, new).ratio() >= _SIMILAR:
                pairs.append((old, new))
                free.remove(new)
                break
    return tuple(pairs)


class Churn(StrEnum):
    """How a memory changes from revision to revision."""

    STEADY = "steady"
    ADDITIVE = "additive"  #: mostly additions, as expected
    CHURNING = "churning"  #: the same fields are rewritten repeatedly


#: Fields that naturally change as the work proceeds.
_EXPECTED_TO_CHANGE = frozenset({"next", "recent_edits", "important_files", "blockers", "state"})


def churn(revisions: Sequence[WorkingMemory]) -> tuple[Churn, float]:
    """Return the verdict on revisions, oldest first, and the share of changes that removed something."""
    changes = [
        change
        for old, new in pairwise(revisions)
        for change in diff(old, new, pairs=False)
        if change.field not in _EXPECTED_TO_CHANGE
    ]
    if not changes:
        return Churn.STEADY, 0.0
    share = sum(bool(change.removed) for change in changes) / len(changes)
    return (Churn.CHURNING if share > 0.5 and len(changes) >= 3 else Churn.ADDITIVE), round(share, 3)


class Motion(StrEnum):
    """How one field changes."""

    EMPTY = "empty"
    REWRITTEN = "rewritten"  #: changes in most revisions, and usually loses content
    GROWING = "growing"  #: only additions
    STILL = "still"  #: unchanged for many revisions
    ALIVE = "alive"  #: additions and removals


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMotion:
    """The history of one field.

    `changes` counts the revisions that changed it, `losses` those that removed something from it, `unmoved`
    those since its last change.
    """

    field: str
    motion: Motion
    changes: int
    losses: int
    unmoved: int

    @property
    def lasting(self) -> bool:
        """Whether the field's content is long-term, so that repeated losses indicate a problem."""
        return self.field not in _EXPECTED_TO_CHANGE


#: Number of revisions without a change after which a field counts as unchanged.
STILL_AFTER = 10


def motions(revisions: Sequence[WorkingMemory]) -> tuple[FieldMotion, ...]:
    """Return how each field changed over revisions, oldest first."""
    changed: dict[str, list[bool]] = {}
    moved_at: dict[str, int] = {}
    for number, (old, new) in enumerate(pairwise(revisions), start=1):
        for change in diff(old, new, pairs=False):
            changed.setdefault(change.field, []).append(bool(change.removed))
            moved_at[change.field] = number
    steps = max(len(revisions) - 1, 0)
    names = dict.fromkeys(name for memory in revisions for name, _ in memory.fields())
    return tuple(_motion(name, changed.get(name, []), steps - moved_at.get(name, 0), steps) for name in names)


def _motion(name: str, losses: Sequence[bool], unmoved: int, steps: int) -> FieldMotion:
    changes, lost = len(losses), sum(losses)
    if not changes:
        motion = Motion.EMPTY
    elif unmoved >= STILL_AFTER:
        motion = Motion.STILL
    elif changes >= 3 and lost * 2 > changes and changes * 2 > steps:
        motion = Motion.REWRITTEN
    elif not lost:
        motion = Motion.GROWING
    else:
        motion = Motion.ALIVE
    return FieldMotion(field=name, motion=motion, changes=changes, losses=lost, unmoved=unmoved)
