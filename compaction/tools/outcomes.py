"""Determine whether a tool result is an error, and its exit code.

The provider's error flag decides if there is one, otherwise the content: an exit code, a traceback, or a
first line that reports an error. A file that merely contains these words is not an error.

The status of `pytest | tail` is that of `tail`. For commands like this, success is not taken from the flag or
the exit code if the output reports a failure. If a filter may have removed the report, nothing is known.
"""

from __future__ import annotations

import re

import re2

from compaction.messages import ToolResult
from compaction.shell.runners import REPORTING, command_of, runner_of
from compaction.shell.syntax import Simple, has_pipe, pipelines
from compaction.text_cache import once_per_text
from compaction.tools.failures import reports_failure
from compaction.utf8 import utf8

_EXIT_CODE = re.compile(
    r"<(?:returncode|exit_code)>(-?\d+)</|\bexit(?:ed with)?(?: code| status)[:= ]+(-?\d+)\b", re.IGNORECASE
)
_FIRST_LINE = re.compile(
    r"\s*(?:<[\w-]*error[\w-]*>|\{\s*\"error\"|(?:[\w.]*(?:error|exception)|fatal|failed|traceback)\b[^\n]{0,40}:"
    r"|(?:bash|sh|zsh): |error\b|ENOENT\b|(?:file|path) (?:not found|does not exist)\b)",
    re.IGNORECASE,
)
#: What agents answer if a sub-agent or a command continues in the background: Claude Code and Codex. The line
#: with its id.
_STARTED = re.compile(
    r"\s*(?:Async agent launched[^\n]*\n(?=agentId: )|(?=Command running in background with ID: )"
    r"|(?=Command (?:did not complete within|was manually backgrounded)[^\n]* ID: )"
    r"|(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?(?=Process running with session ID ))"
    r"(?P<line>[^\n]*?(?:agentId:|\bID:?) (?P<id>[\w-]+)[^\n(]*)"
)
#: The status with which a later result about it begins: that of `BashOutput` and `TaskOutput` in Claude Code,
#: and of its notifications.
_STATUS = re.compile(
    r"\s*(?:<(?:retrieval_status|task[_-]id|task_type|tool-use-id|output-file)>[^<]*</[\w-]+>\s*)*"
    r"<status>(\w+)</status>"
)
_RUNNING, _FAILED, _COMPLETED, _KILLED = "running", "failed", "completed", "killed"
_STOPPED = re.compile(r'\s*\{"message":"Successfully (?:killed|stopped) ')
#: Filters that may remove the report of a failure, the number of lines or bytes that they show, and patterns
#: that find it.
_FILTER = re.compile(r"\| ?(?:head|tail|grep|egrep|rg)\b")
_LIMIT = re.compile(r"-?(?:-lines=?|-bytes=?|n|c)?(\d+)")
_BYTES = re.compile(r"-c|--bytes")
_DEFAULT_LINES = 10
_FINDS_FAILURES = re.compile(r"fail|error", re.IGNORECASE)
#: The line in which a run of tests counts those that passed and failed, and those that it prints if none
#: failed. RE2 searches long outputs much faster.
_COUNTED = re.compile(r"\b\d+ (?:passed|passing)\b")
_SUCCESS = re2.compile(
    r"(?m)\b\d+ (?:passed|passing)\b|^OK\b|^ok\s+\S+|test result: ok|BUILD SUCCESS|\bAll tests passed"
)
#: Number of characters at the end of an output to search for these lines.
_SUMMARY_LENGTH = 2_000
#: Number of characters at the beginning and end of an output to search for an exit code.
_ENDS = 400

#: Maximum number of characters of the message of a failed read. A longer output is the content of the file.
MAX_REFUSAL = 300

#: Number of outputs whose outcome a process remembers.
_REMEMBERED = 1 << 14


@once_per_text(_REMEMBERED)
def exit_code(text: str) -> int | None:
    """Return the exit code at the beginning or end of an output, or None."""
    ends = (text,) if len(text) <= _ENDS else (text[:_ENDS], text[-_ENDS:])
    # Cheaper than the pattern, and most outputs have no exit code. Bytes change to lower case much faster.
    words = utf8(" ".join(ends)).lower()
    for end in ends if b"exit" in words or b"returncode" in words else ():
        if found := _EXIT_CODE.search(end):
            return int(found[1] or found[2])
    return None


def is_error(result: ToolResult, *, shows_file: bool = False, command: str = "") -> bool:
    """Whether the result reports a failure. For file content (`shows_file`), only flags are considered.

    `command` is the shell command that produced the result, if any.
    """
    if result.is_error:
        return True
    code = None if result.is_error is False else exit_code(result.text)
    status = "" if shows_file else _status(result.text)
    if code or status == _FAILED:
        return True
    succeeded = code == 0 or result.is_error is False or status == _COMPLETED
    # `a | b` and `a || b` can succeed although `a` failed.
    if shows_file or (succeeded and not has_pipe(command)):
        return False
    return _looks_failed(result.text)


def is_started(text: str) -> bool:
    """Whether a result only reports that a command or a sub-agent was started, or still runs."""
    return _STARTED.match(text) is not None or _status(text) == _RUNNING


def is_stopped(text: str) -> bool:
    """Whether a result reports that a command or a sub-agent in the background was stopped."""
    return _STOPPED.match(text) is not None or _status(text) == _KILLED


def is_ended(text: str) -> bool:
    """Whether a result reports that a command or a sub-agent in the background is no longer running."""
    return bool(_status(text) or is_stopped(text) or exit_code(text) is not None) and not is_started(text)


def started_line(text: str) -> tuple[str, str]:
    """Return the id of a command or a sub-agent that was started and the line with it, or empty strings."""
    found = _STARTED.match(text)
    return (found["id"], found["line"].strip()) if found else ("", "")


def _status(text: str) -> str:
    found = _STATUS.match(text)
    return found[1] if found else ""


def hides_outcome(command: str, text: str) -> bool:
    """Whether the output of a command shows no failure, but would not show each.

    It continues in the background, or the output is its beginning (`make | head`), or lines of a run of tests
    that do not report its success.
    """
    if is_started(text):
        return True
    if "|" not in command or not _FILTER.search(command):
        return False
    filters = found[-1][1:] if (found := pipelines(command)) else []
    return any(_may_remove_failure(filter_, command, text) for filter_ in filters)


def reports_success(text: str) -> bool:
    """Whether a line of an output reports that all tests passed, as far as it shows them."""
    return _SUCCESS.search(utf8(text)) is not None


def passed_line(text: str) -> str:
    """Return the last line in which a run of tests counts those that passed, or ""."""
    lines = text.splitlines() if _COUNTED.search(text) else ()
    return next((line.strip() for line in reversed(lines) if _COUNTED.search(line)), "")


def _may_remove_failure(filter_: Simple, command: str, text: str) -> bool:
    program, *words = filter_.words or [""]
    end = text[-_SUMMARY_LENGTH:]
    if program in ("head", "tail"):
        numbers = (int(found[1]) for found in map(_LIMIT.fullmatch, words) if found)
        shown = len(text) if any(map(_BYTES.match, words)) else text.count("\n") + 1
        if shown < next(numbers, _DEFAULT_LINES):
            return False
        runner = runner_of(command_of(command) or "")
        return program == "head" or not (not runner or runner in REPORTING or reports_success(end))
    if program in ("grep", "egrep", "rg") and command_of(command):
        options = "".join(word for word in words if word.startswith("-"))
        shows_failures = "v" in options or any(map(_FINDS_FAILURES.search, words))
        is_counted = "c" in options and text.strip() != "0"
        return is_counted or not (shows_failures or _COUNTED.search(end))
    return False


@once_per_text(_REMEMBERED)
def _looks_failed(text: str) -> bool:
    return _FIRST_LINE.match(text[:_ENDS]) is not None or reports_failure(text)
