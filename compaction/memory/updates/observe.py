"""Update the state from the messages of a turn: match calls to results, and evaluate the results."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from compaction.memory.updates.edit_diffs import clipped, edit_diff, texts_of
from compaction.memory.updates.observations import Observation, tools_in, values_in
from compaction.memory.updates.runs import Run, run_of
from compaction.memory.updates.state import PendingCall, Remembered, UpdaterState
from compaction.memory.updates.task import replaces_task, task_of
from compaction.messages import Message, Role, Text, ToolCall, ToolResult
from compaction.recap.commands import key_line
from compaction.shell.chains import Failures, one_line, program_run
from compaction.shell.effects import is_quiet, removed_paths, segments, state_changes
from compaction.shell.runners import selected_tests
from compaction.shell.syntax import is_absolute
from compaction.shortening import shortened
from compaction.tools.actions import Kind, action_of
from compaction.tools.outcomes import MAX_REFUSAL, hides_outcome, is_error
from compaction.tools.paths import known_path
from compaction.user_requests import is_client_command, is_summary, own_words

#: Number of turns after which the weight of a file is halved.
HALF_LIFE = 10

#: Number of turns after which a failed command that was not retried counts as abandoned.
GIVEN_UP_AFTER = 10
#: The same for a run of tests, which may be retried after much work.
TESTS_GIVEN_UP_AFTER = 30

_CHARACTERS = {"command": 100, "line": 140}
_NOT_RUN = re.compile(
    r"user doesn't want to|\[Request interrupted|was rejected|permission to use|requires approval",
    re.IGNORECASE,
)
_MISSING = re.compile(r"no such file|does not exist|not found", re.IGNORECASE)
_CHANGES = frozenset({Kind.EDIT, Kind.WRITE})
_TOUCHES = _CHANGES | {Kind.READ}
_WINDOW = 4_000


def observe(state: UpdaterState, message: Message, names: Collection[str] = ()) -> list[Observation]:
    """Process one message.

    Returns the observations that may contradict items, with values of `names` only.
    """
    observations: list[Observation] = []
    for part in message.parts:
        if isinstance(part, Text) and message.role is Role.USER:
            observations += _requested(state, part.text, message)
        elif isinstance(part, ToolCall):
            call = state.calls[part.call_id] = _pending(part, message, names)
            if call.kind in _TOUCHES and call.path:
                _touch(state, call)
        elif isinstance(part, ToolResult):
            answered = state.calls.pop(part.call_id, None)
            if answered is not None:
                observations += _result(state, answered, part, names)
    if message.role is Role.ASSISTANT:
        state.finished = not message.tool_calls
    return observations


def _requested(state: UpdaterState, text: str, message: Message) -> Iterator[Observation]:
    """Process text of the user: the first request is the task until another one replaces it."""
    text = own_words(text)
    is_known = state.task is not None and not is_client_command(state.task.text)
    if is_summary(text):
        return
    if is_known and not replaces_task(text, is_finished=state.finished, has_files=bool(state.files)):
        return
    if task := task_of(text):
        is_new = is_known
        state.task = _observed(task, message)
        state.finished = False
        if is_new:
            yield Observation(turn=message.turn, task=task)


def move_to_tried(state: UpdaterState, turn: int) -> None:
    """Move commands that failed long ago and were not retried from the blockers to `tried`.

    Failing tests remain, but not runs that failed without naming any.
    """
    for command, error in list(state.errors.items()):
        if turn - error.turn >= GIVEN_UP_AFTER:
            del state.errors[command]
            state.tried[command] = error
    for test, failure in list(state.failing.items()):
        if test == failure.group and turn - failure.turn >= TESTS_GIVEN_UP_AFTER:
            del state.failing[test]
            state.tried[test] = failure


def _pending(call: ToolCall, message: Message, names: Collection[str]) -> PendingCall:
    action = action_of(call)
    is_edit = action.kind in _CHANGES
    old, new = texts_of(call) if is_edit else ("", "")
    return PendingCall(
        kind=action.kind,
        path=action.path,
        command=program_run(action.command) if is_edit else action.command,
        diff=clipped(edit_diff(call, action), message.position) if is_edit else "",
        turn=message.turn,
        position=message.position,
        before=values_in(old, names),
        after=values_in(new, names),
    )


def _result(
    state: UpdaterState, call: PendingCall, result: ToolResult, names: Collection[str]
) -> Iterator[Observation]:
    shows_file = call.kind == Kind.READ and len(result.text) > MAX_REFUSAL
    failed = is_error(result, shows_file=shows_file, command=call.command)
    if failed and _NOT_RUN.search(result.text[:_WINDOW]):
        return
    # A shell command that runs a program after it has changed a file may fail, but the file is changed.
    if call.kind in _CHANGES and (call.command or not failed):
        yield from _edit_result(state, call)
    elif call.kind == Kind.READ:
        yield from _read_result(state, call, result.text, failed, names)
    if call.command:
        yield from _command_run(state, call, result.text, failed)


def _touch(state: UpdaterState, call: PendingCall) -> None:
    """Add 1 to the weight of a file that was read or changed. Weights halve every `HALF_LIFE` turns."""
    path = _file(state, call.path)
    known = state.files.pop(path, None)
    weight = known.weight * 0.5 ** ((call.turn - known.turn) / HALF_LIFE) if known else 0.0
    absolute = call.path if is_absolute(call.path) else known.group if known else ""
    state.files[path] = Remembered(
        text=path, turn=call.turn, position=call.position, weight=weight + 1, group=absolute
    )


def _file(state: UpdaterState, path: str) -> str:
    """Return the path under which a file is known. Its absolute path is the group of the file."""
    if path in state.files:
        return path
    absolute = is_absolute(path)
    return known_path(
        path, [known for known, file in state.files.items() if not absolute or file.group in ("", path)]
    )


def _edit_result(state: UpdaterState, call: PendingCall) -> Iterator[Observation]:
    if call.diff:
        state.edit = _observed(call.diff, call, group=call.path)
    for name, value in call.after.items():
        before = call.before.get(name, "")
        if before != value:
            yield Observation(turn=call.turn, name=name, value=value, before=before, path=call.path)


def _read_result(
    state: UpdaterState, call: PendingCall, text: str, failed: bool, names: Collection[str]
) -> Iterator[Observation]:
    if failed:
        if _MISSING.search(text[:_WINDOW]):
            state.files.pop(_file(state, call.path), None)
            yield Observation(turn=call.turn, missing=call.path)
        return
    for name, value in values_in(text, names).items():
        yield Observation(turn=call.turn, name=name, value=value, path=call.path)


def _command_run(state: UpdaterState, call: PendingCall, text: str, failed: bool) -> Iterator[Observation]:
    run = run_of(call.command, text, failed)
    if run is not None:
        yield from _test_run(state, call, run, text)
    elif failed and call.kind in (Kind.COMMAND, *_CHANGES) and not is_quiet(call.command):
        _command_failure(state, call, text)
    if failed:
        return
    if not hides_outcome(call.command, text):
        _command_success(state, call.command)
    yield from tools_in(segments(call.command), call.turn)
    for path in removed_paths(call.command):
        file = _file(state, path)
        for known in [known for known in state.files if known == file or known.endswith(f"/{path}")]:
            del state.files[known]
        yield Observation(turn=call.turn, missing=path)
    if changes := state_changes(call.command):
        change = shortened(changes[-1], _CHARACTERS["command"])
        state.state.pop(change, None)
        state.state[change] = _observed(change, call)


def _test_run(state: UpdaterState, call: PendingCall, run: Run, text: str) -> Iterator[Observation]:
    """Process a test run: failing tests become blockers, passing tests are no longer blockers."""
    command = shortened(run.command, _CHARACTERS["command"])
    for test, failure in list(state.failing.items()):
        if run.settles(test, failure.group):
            del state.failing[test]
            yield Observation(turn=call.turn, passing=test)
    for test in run.passing:
        if test not in state.failing:
            yield Observation(turn=call.turn, passing=test)
    if run.passed is None:
        return
    failing = run.failing or ({} if run.passed else {run.command: _error_line(text)})
    if failing and not run.failing:
        for test in _same_failures(state, run, failing[run.command]):
            del state.failing[test]
    for test, why in failing.items():
        known = state.failing.pop(test, None)
        text = shortened(why, _CHARACTERS["line"]) or (known.text if known else "")
        state.failing[test] = _observed(text, call, group=run.command)
    key = f"tests {run.runner}"
    state.state.pop(key, None)
    outcome = "passed" if run.passed else f"{len(run.failing)} failing" if run.failing else "failed"
    state.state[key] = _observed(f"{command}: {outcome}", call)


def _same_failures(state: UpdaterState, run: Run, error: str) -> list[str]:
    """Return earlier runs that named no failing test, of the same tests or with the same error."""
    mine = run.tests
    return [
        command
        for command, failure in state.failing.items()
        if command == failure.group != run.command
        and (earlier := selected_tests(command))
        and mine
        and (mine.covers(earlier) or (error == failure.text and mine.runner == earlier.runner))
    ]


def _command_failure(state: UpdaterState, call: PendingCall, text: str) -> None:
    """Note an open error, instead of those of earlier runs of the same command."""
    command = _short(call.command)
    same = [command, *_failures(state).add(command, call.command)]
    known = _taken(state.errors, same) + _taken(state.tried, same)
    error = _observed(_error_line(text), call, group=command)
    state.errors[command] = replace(error, count=sum(error.count for error in known) + 1)
    state.settled.pop(command, None)


def _command_success(state: UpdaterState, command: str) -> None:
    """Remove the failures that the success of a command settles."""
    if not (state.errors or state.tried):
        return
    failures = _failures(state)
    settled = list(failures.settle(_short(command), command))
    for known in (state.errors, state.tried):
        _taken(known, settled)
    state.settled = failures.settled_steps()


def _failures(state: UpdaterState) -> Failures:
    return Failures.of([*state.tried, *state.errors], state.settled)


def _short(command: str) -> str:
    return shortened(one_line(command), _CHARACTERS["command"])


def _taken(failures: dict[str, Remembered], commands: Sequence[str]) -> list[Remembered]:
    """Remove and return the failures of these commands."""
    return [failures.pop(command) for command in dict.fromkeys(commands) if command in failures]


def _error_line(text: str) -> str:
    """Return the most informative line of a failure."""
    return shortened(key_line(text, True), _CHARACTERS["line"])


def _observed(text: str, source: Message | PendingCall, group: str = "") -> Remembered:
    return Remembered(text=text, turn=source.turn, position=source.position, group=group)
