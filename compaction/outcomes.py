"""Whether a tool's answer is an error, and what it ended with.

The provider's flag decides where there is one. Where there is none, the content does: an exit code, a
traceback, a first line that says so. A file that merely holds such words is no error.
"""

from __future__ import annotations

import re

from compaction.messages import ToolResult

_EXIT_CODE = re.compile(
    r"<returncode>(-?\d+)</returncode>|\bexit(?:ed with)?(?: code| status)[:= ]+(-?\d+)\b", re.IGNORECASE
)
_FIRST_LINE = re.compile(
    r"\s*(?:<[\w-]*error[\w-]*>|\{\s*\"error\"|(?:[\w.]*(?:error|exception)|fatal|failed|traceback)\b[^\n]{0,40}:"
    r"|(?:bash|sh|zsh): |error\b)",
    re.IGNORECASE,
)
_TRACEBACK = "Traceback (most recent call last)"

#: Exit codes and tracebacks stand at the ends of an output; its inside is the output's own matter.
_ENDS = 400
_TRACE_END = 4_000


def exit_code(text: str) -> int | None:
    """The exit code that an output names at its beginning or end, None where it names none."""
    for end in (text[:_ENDS], text[-_ENDS:]):
        words = end.lower()  # most outputs name none: looking for the words is a tenth of the pattern's work
        if ("code" in words or "status" in words) and (found := _EXIT_CODE.search(end)):
            return int(found[1] or found[2])
    return None


def is_error(result: ToolResult, *, shows_file: bool = False) -> bool:
    """Whether the answer tells of a failure. `shows_file`: it is a file's content, so only flags count."""
    if result.is_error is not None:
        return result.is_error
    code = exit_code(result.text)
    if code is not None:
        return code != 0
    if shows_file:
        return False
    return _FIRST_LINE.match(result.text[:_ENDS]) is not None or _TRACEBACK in result.text[-_TRACE_END:]
