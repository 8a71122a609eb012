"""The items that upkeep writes, from what it has seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compaction.memory.schema import MAX_FILES
from compaction.memory.updates.edit_diffs import MAX_CHARACTERS, clipped
from compaction.memory.updates.observe import HALF_LIFE
from compaction.memory.updates.state import Remembered, UpdaterState

#: The field for what commands did: the last runs of tests, installs, commits. It is always there.
STATE = "state"

#: Blockers that are told one by one; the rest are counted.
_MAX_BLOCKERS = 8
_TRIED, _STATE = 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdaterItem:
    """One item of upkeep's, with the turn and the message that it was seen in."""

    field: str
    text: str
    turn: int
    position: int
    single: bool = False


def updater_items(watch: UpdaterState, share: float = 1.0) -> tuple[UpdaterItem, ...]:
    """Every item that the watch has to show; `share` (0 to 1) says how much of the usual."""
    dismissed = set(watch.dismissed)
    items = (
        *_task(watch),
        *_files(watch),
        *_blockers(watch, share),
        *_edit(watch, share),
        *_rest(watch, share),
    )
    return tuple(item for item in items if (item.field, item.text) not in dismissed)


def _task(watch: UpdaterState) -> Iterator[UpdaterItem]:
    if watch.task is not None:
        yield _own("task", watch.task.text, watch.task, single=True)


def _files(watch: UpdaterState) -> Iterator[UpdaterItem]:
    """The files that were touched most and last. They stand in order of their names' coming in, so that the
    list changes only with its content."""
    ranked = sorted(watch.files.values(), key=lambda seen: _weight(seen, watch.turn), reverse=True)
    for seen in sorted(ranked[:MAX_FILES], key=lambda seen: seen.text):
        yield _own("important_files", seen.text, seen)


def _weight(seen: Remembered, turn: int) -> float:
    return float(seen.weight * 0.5 ** ((turn - seen.turn) / HALF_LIFE))


def _blockers(watch: UpdaterState, share: float) -> Iterator[UpdaterItem]:
    failing = [(f"test fails: {_named(test, seen.text)}", seen) for test, seen in watch.failing.items()]
    errors = [(f"`{command}` fails: {_counted(seen)}", seen) for command, seen in watch.errors.items()]
    told = sorted([*errors, *failing], key=lambda entry: entry[1].turn)
    most = max(1, int(_MAX_BLOCKERS * share))
    if len(told) > most:
        yield _own("blockers", f"{len(told) - most} more, older failures", told[0][1])
    for text, seen in told[-most:]:
        yield _own("blockers", text, seen)


def _edit(watch: UpdaterState, share: float) -> Iterator[UpdaterItem]:
    if watch.edit is not None:
        room = int(MAX_CHARACTERS * share)
        yield _own("recent_edits", clipped(watch.edit.text, watch.edit.position, room), watch.edit)


def _rest(watch: UpdaterState, share: float) -> Iterator[UpdaterItem]:
    for seen in _last(watch.tried.values(), int(_TRIED * share)):
        yield _own("tried", f"`{seen.group}`: {_counted(seen)}", seen)
    for seen in _last(watch.state.values(), int(_STATE * share)):
        yield _own(STATE, seen.text, seen)


def _last(seen: Iterable[Remembered], count: int) -> list[Remembered]:
    return list(seen)[-count:] if count else []


def _named(test: str, why: str) -> str:
    return f"{test}: {why}" if why else test


def _counted(seen: Remembered) -> str:
    return f"{seen.text} ({seen.count} times)" if seen.count > 1 else seen.text or "no output"


def _own(field: str, text: str, seen: Remembered, *, single: bool = False) -> UpdaterItem:
    return UpdaterItem(field=field, text=text, turn=seen.turn, position=seen.position, single=single)
