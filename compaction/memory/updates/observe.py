"""From the messages of a turn to what they show: calls wait for their results, and results count."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from compaction.memory.updates.commands import is_quiet, removed_paths, segments, state_changes
from compaction.memory.updates.edit_diffs import clipped, edit_diff, texts_of
from compaction.memory.updates.observations import Observation, tools_in, values_in
from compaction.memory.updates.runs import Run, run_of
from compaction.memory.updates.state import Pending, Remembered, UpdaterState
from compaction.messages import Message, Role, Text, ToolCall, ToolResult
from compaction.outcomes import is_error
from compaction.tools import Kind, action_of

#: Turns after which a file that was touched counts half.
HALF_LIFE = 10

#: Turns after which a command that failed and was not tried again counts as given up.
GIVEN_UP_AFTER = 10

_CHARACTERS = {"task": 240, "command": 100, "line": 140}
_ERROR_LINE = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|panic|exception|cannot|undefined)\b|Error\b", re.IGNORECASE
)
_NOT_RUN = re.compile(
    r"user doesn't want to|\[Request interrupted|was rejected|permission to use|requires approval",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file|does not exist|not found", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_TOUCHES = frozenset({Kind.READ, Kind.EDIT, Kind.WRITE})
_WINDOW = 4_000
#: A longer answer to a read is the file itself (characters).
_LONGEST_REFUSAL = 300


def observe(watch: UpdaterState, message: Message, names: Collection[str] = ()) -> list[Observation]:
    """Takes one message in. Answers what may contradict what others wrote: of values, those of `names`."""
    sightings: list[Observation] = []
    for part in message.parts:
        if isinstance(part, Text) and message.role is Role.USER and watch.task is None:
            watch.task = _task(part.text, message)
        elif isinstance(part, ToolCall):
            call = watch.calls[part.call_id] = _pending(part, message, names)
            if call.kind in _TOUCHES and call.path:
                _touch(watch, call)
        elif isinstance(part, ToolResult):
            waiting = watch.calls.pop(part.call_id, None)
            if waiting is not None:
                sightings += _result(watch, waiting, part, names)
    return sightings


def give_up(watch: UpdaterState, turn: int) -> None:
    """Commands that failed long ago and were not tried again leave the blockers: they were tried."""
    for command, seen in list(watch.errors.items()):
        if turn - seen.turn >= GIVEN_UP_AFTER:
            del watch.errors[command]
            watch.tried[command] = seen


def _task(text: str, message: Message) -> Remembered | None:
    """The first line of the request that says something."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    told = next((line for line in lines if line and not line.startswith("<")), "")
    return _seen(_clip(told, _CHARACTERS["task"]), message.turn, message.position) if told else None


def _pending(call: ToolCall, message: Message, names: Collection[str]) -> Pending:
    action = action_of(call)
    is_edit = action.kind in (Kind.EDIT, Kind.WRITE)
    old, new = texts_of(call) if is_edit else ("", "")
    return Pending(
        kind=action.kind,
        path=action.path,
        command=action.command,
        diff=clipped(edit_diff(call, action), message.position) if is_edit else "",
        turn=message.turn,
        position=message.position,
        before=values_in(old, names),
        after=values_in(new, names),
    )


def _result(
    watch: UpdaterState, call: Pending, result: ToolResult, names: Collection[str]
) -> Iterator[Observation]:
    shows_file = call.kind == Kind.READ and len(result.text) > _LONGEST_REFUSAL
    failed = is_error(result, shows_file=shows_file)
    if failed and _NOT_RUN.search(result.text[:_WINDOW]):
        return
    if call.kind in (Kind.EDIT, Kind.WRITE) and not failed:
        yield from _edited(watch, call)
    elif call.kind == Kind.READ:
        yield from _read(watch, call, result.text, failed, names)
    if call.command:
        yield from _ran(watch, call, result.text, failed)


def _touch(watch: UpdaterState, call: Pending) -> None:
    """A file was read or changed: its weight halves every `HALF_LIFE` turns, and a touch adds one."""
    known = watch.files.pop(call.path, None)
    weight = known.weight * 0.5 ** ((call.turn - known.turn) / HALF_LIFE) if known else 0.0
    watch.files[call.path] = Remembered(
        text=call.path, turn=call.turn, position=call.position, weight=weight + 1
    )


def _edited(watch: UpdaterState, call: Pending) -> Iterator[Observation]:
    if call.diff:
        watch.edit = _seen(call.diff, call.turn, call.position, group=call.path)
    for name, value in call.after.items():
        before = call.before.get(name, "")
        if before != value:
            yield Observation(turn=call.turn, name=name, value=value, before=before, path=call.path)


def _read(
    watch: UpdaterState, call: Pending, text: str, failed: bool, names: Collection[str]
) -> Iterator[Observation]:
    if failed:
        if _MISSING.search(text[:_WINDOW]):
            watch.files.pop(call.path, None)
            yield Observation(turn=call.turn, gone=call.path)
        return
    for name, value in values_in(text, names).items():
        yield Observation(turn=call.turn, name=name, value=value, path=call.path)


def _ran(watch: UpdaterState, call: Pending, text: str, failed: bool) -> Iterator[Observation]:
    run = run_of(call.command, text, failed)
    if run is not None:
        yield from _tested(watch, call, run, text)
    elif call.kind == Kind.COMMAND:
        _outcome(watch, call, text, failed)
    if failed:
        return
    yield from tools_in(segments(call.command), call.turn)
    for path in removed_paths(call.command):
        for known in [known for known in watch.files if known == path or known.endswith(f"/{path}")]:
            del watch.files[known]
        yield Observation(turn=call.turn, gone=path)
    if changes := state_changes(call.command):
        told = _clip(changes[-1], _CHARACTERS["command"])
        watch.state.pop(told, None)
        watch.state[told] = _seen(told, call.turn, call.position)


def _tested(watch: UpdaterState, call: Pending, run: Run, text: str) -> Iterator[Observation]:
    """A run of tests: what fails now is a blocker, what passes now is none any more."""
    command = _clip(run.command, _CHARACTERS["command"])
    for test, seen in list(watch.failing.items()):
        if run.settles(test, seen.group):
            del watch.failing[test]
            yield Observation(turn=call.turn, passing=test)
    for test in run.passing:
        if test not in watch.failing:
            yield Observation(turn=call.turn, passing=test)
    failing = run.failing or ({} if run.passed else {run.command: _telling_line(text)})
    for test, why in failing.items():
        known = watch.failing.pop(test, None)
        told = _clip(why, _CHARACTERS["line"]) or (known.text if known else "")
        watch.failing[test] = _seen(told, call.turn, call.position, group=run.command)
    key = f"tests {run.runner}"
    watch.state.pop(key, None)
    outcome = "passed" if run.passed else f"{len(run.failing)} failing" if run.failing else "failed"
    watch.state[key] = _seen(f"{command}: {outcome}", call.turn, call.position)


def _outcome(watch: UpdaterState, call: Pending, text: str, failed: bool) -> None:
    """A command that is no test: one that fails is an open error until it works."""
    command = _clip(" ".join(call.command.split()), _CHARACTERS["command"])
    known = watch.errors.pop(command, None)
    if not failed:
        watch.tried.pop(command, None)
    elif not is_quiet(call.command):
        count = known.count + 1 if known else 1
        seen = _seen(_telling_line(text), call.turn, call.position, group=command)
        watch.errors[command] = replace(seen, count=count)


def _telling_line(text: str) -> str:
    """The line of a failure that tells most: the last that says error, else the last one."""
    lines = [line.strip() for line in text[-_WINDOW:].splitlines() if _LETTERS.search(line)]
    lines = [line for line in lines if not line.startswith("<")]
    telling = [line for line in lines if _ERROR_LINE.search(line)]
    return _clip((telling or lines)[-1], _CHARACTERS["line"]) if lines else ""


def _seen(text: str, turn: int, position: int, group: str = "") -> Remembered:
    return Remembered(text=text, turn=turn, position=position, group=group)


def _clip(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
