"""Determine whether a tool result is an error, and its exit code.

The provider's error flag decides if there is one, otherwise the content: an exit code, a traceback, or a
first line that reports an error. A file that merely contains these words is not an error.

The status of `pytest | tail` is that of `tail`. For commands like this, success is not taken from the flag or
the exit code if the output reports a failure.
"""

from __future__ import annotations

import re

from compaction.failures import reports_failure
from compaction.messages import ToolResult
from compaction.shell import MAX_LENGTH
from compaction.text_cache import once_per_text

_EXIT_CODE = re.compile(
    r"<returncode>(-?\d+)</returncode>|\bexit(?:ed with)?(?: code| status)[:= ]+(-?\d+)\b", re.IGNORECASE
)
_FIRST_LINE = re.compile(
    r"\s*(?:<[\w-]*error[\w-]*>|\{\s*\"error\"|(?:[\w.]*(?:error|exception)|fatal|failed|traceback)\b[^\n]{0,40}:"
    r"|(?:bash|sh|zsh): |error\b)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
#: Number of characters at the beginning and end of an output to search for an exit code.
_ENDS = 400

#: Number of outputs whose outcome a process remembers.
_REMEMBERED = 1 << 14


@once_per_text(_REMEMBERED)
def exit_code(text: str) -> int | None:
    """Return the exit code at the beginning or end of an output, or None."""
    ends = (text,) if len(text) <= _ENDS else (text[:_ENDS], text[-_ENDS:])
    # Cheaper than the pattern, and most outputs have no exit code. Bytes change to lower case much faster.
    words = " ".join(ends).encode("utf-8", "replace").lower()
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
    if code:
        return True
    succeeded = code == 0 or result.is_error is False
    if shows_file or (succeeded and not _hides_failures(command)):
        return False
    return _looks_failed(result.text)


def _hides_failures(command: str) -> bool:
    """Whether a shell command can succeed although its first program failed: `a | b` and `a || b`."""
    return "|" in command and "|" in _QUOTED.sub("", command[:MAX_LENGTH])


@once_per_text(_REMEMBERED)
def _looks_failed(text: str) -> bool:
    return _FIRST_LINE.match(text[:_ENDS]) is not None or reports_failure(text)
