"""Determine whether a tool result is an error, and its exit code.

The provider's error flag decides if there is one, otherwise the content: an exit code, a traceback, or a
first line that reports an error. A file that merely contains these words is not an error.
"""

from __future__ import annotations

import re

from compaction.failures import reports_failure
from compaction.messages import ToolResult
from compaction.text_cache import once_per_text

_EXIT_CODE = re.compile(
    r"<returncode>(-?\d+)</returncode>|\bexit(?:ed with)?(?: code| status)[:= ]+(-?\d+)\b", re.IGNORECASE
)
_FIRST_LINE = re.compile(
    r"\s*(?:<[\w-]*error[\w-]*>|\{\s*\"error\"|(?:[\w.]*(?:error|exception)|fatal|failed|traceback)\b[^\n]{0,40}:"
    r"|(?:bash|sh|zsh): |error\b)",
    re.IGNORECASE,
)
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


def is_error(result: ToolResult, *, shows_file: bool = False) -> bool:
    """Whether the result reports a failure. For file content (`shows_file`), only flags are considered."""
    if result.is_error is not None:
        return result.is_error
    code = exit_code(result.text)
    if code is not None:
        return code != 0
    return not shows_file and _looks_failed(result.text)


@once_per_text(_REMEMBERED)
def _looks_failed(text: str) -> bool:
    return _FIRST_LINE.match(text[:_ENDS]) is not None or reports_failure(text)
