"""The automatic items of a memory, built from the observations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compaction.memory.schema import MAX_FILES
from compaction.memory.updates.edit_diffs import MAX_CHARACTERS, clipped
from compaction.memory.updates.observe import HALF_LIFE
from compaction.memory.updates.state import Remembered, UpdaterState

#: The built-in field for results of commands: recent test runs, installs and commits.
STATE = "state"

#: Maximum number of listed blockers; the others are counted.
_MAX_BLOCKERS = 8
_TRIED, _STATE = 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdaterItem:
    """One automatic item, with the turn and message of its observation."""

    field: str
    text: str
    turn: int
    position: int


def updater_items(state: UpdaterState, share: float = 1.0) -> tuple[UpdaterItem, ...]:
    """Return all automatic items. `share` (0 to 1) scales their number and length."""
    dismissed = set(state.dismissed)
    items = (
        *_task(state),
        *_files(state),
        *_blockers(state, share),
        *_edit(state, share),
        *_tried_and_state(state, share),
    )
    return tuple(item for item in items if (item.field, item.text) not in dismissed)


def _task(state: UpdaterState) -> Iterator[UpdaterItem]:
    if state.task is not None:
        yield _item("task", state.task.text, state.task)


def _files(state: UpdaterState) -> Iterator[UpdaterItem]:
    """Yield the files with the largest weight, sorted by path, so that the order changes only with the
    content."""
    ranked = sorted(state.files.values(), key=lambda observed: _weight(observed, state.turn), reverse=True)
    for observed in sorted(ranked[:MAX_FILES], key=lambda observed: observed.text):
        yield _item("important_files", observed.text, observed)


def _weight(observed: Remembered, turn: int) -> float:
    return float(observed.weight * 0.5 ** ((turn - observed.turn) / HALF_LIFE))


def _blockers(state: UpdaterState, share: float) -> Iterator[UpdaterItem]:
    failing = [
        (f"test fails: {_with_message(test, observed.text)}", observed)
        for test, observed in state.failing.items()
    ]
    errors = [
        (f"`{command}` fails: {_with_count(observed)}", observed)
        for command, observed in state.errors.items()
    ]
    blockers = sorted([*errors, *failing], key=lambda entry: entry[1].turn)
    maximum = max(1, int(_MAX_BLOCKERS * share))
    if len(blockers) > maximum:
        yield _item("blockers", f"{len(blockers) - maximum} more, older failures", blockers[0][1])
    for text, observed in blockers[-maximum:]:
        yield _item("blockers", text, observed)


def _edit(state: UpdaterState, share: float) -> Iterator[UpdaterItem]:
    if state.edit is not None:
        room = int(MAX_CHARACTERS * share)
        yield _item("recent_edits", clipped(state.edit.text, state.edit.position, room), state.edit)


def _tried_and_state(state: UpdaterState, share: float) -> Iterator[UpdaterItem]:
    for observed in _last(state.tried.values(), int(_TRIED * share)):
        yield _item("tried", f"`{observed.group}`: {_with_count(observed)}", observed)
    for observed in _last(state.state.values(), int(_STATE * share)):
        yield _item(STATE, observed.text, observed)


def _last(observed: Iterable[Remembered], count: int) -> list[Remembered]:
    return list(observed)[-count:] if count else []


def _with_message(test: str, message: str) -> str:
    return f"{test}: {message}" if message else test


def _with_count(observed: Remembered) -> str:
    return f"{observed.text} ({observed.count} times)" if observed.count > 1 else observed.text or "no output"


def _item(field: str, text: str, observed: Remembered) -> UpdaterItem:
    return UpdaterItem(field=field, text=text, turn=observed.turn, position=observed.position)
