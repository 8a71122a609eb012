"""The diff of an edit, from the call that made it: what the recap's "edited pool.py" loses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from compaction.jsontext import loads_object_fast
from compaction.messages import ToolCall
from compaction.tools import Action

_OLD, _NEW = ("old_string", "old_str", "oldText"), ("new_string", "new_str", "newText")
_WHOLE = ("content", "file_text", "contents", "text")
_PATCH = ("patch", "input", "diff")

_HEREDOC = re.compile(
    r"<<-?\s*['\"]?(?P<end>\w+)['\"]?[^\n]*\n(?P<body>.*?)\n[ \t]*(?P=end)\s*(?:\n|$)", re.DOTALL
)

#: Characters of a diff that are kept; the rest is in the transcript.
MAX_CHARACTERS = 2_200
_HEAD_SHARE = 0.6

#: Longer commands are not looked into: what resembles the mark of a here-document may stand in them often.
_MAX_COMMAND = 40_000

#: Longer texts are not compared line by line, which takes quadratic time: all of the old goes, all new comes.
_MAX_LINES = 1_500


def edit_diff(call: ToolCall, action: Action) -> str:
    """The diff that an edit made, with the path on its first line; "" where the call does not say it."""
    arguments = loads_object_fast(call.arguments)
    return "\n".join([action.path, *lines]) if (lines := _lines(arguments, action)) else ""


def texts_of(call: ToolCall) -> tuple[str, str]:
    """The text that an edit took out and the one that it put in, as far as the call says."""
    arguments = loads_object_fast(call.arguments)
    pairs = _pairs(arguments)
    if pairs:
        return "\n".join(old for old, _ in pairs), "\n".join(new for _, new in pairs)
    return "", _first(arguments, _WHOLE)


def _lines(arguments: Mapping[str, Any], action: Action) -> list[str]:
    if pairs := _pairs(arguments):
        return [line for old, new in pairs for line in _compared(old, new)]
    if whole := _first(arguments, _WHOLE):
        return ["@@ new file or whole content @@", *(f"+{line}" for line in whole.splitlines())]
    if patch := _first(arguments, _PATCH):
        return patch.splitlines()
    if action.command:
        return _command_lines(action.command)
    return []


def _command_lines(command: str) -> list[str]:
    """A file written by the shell, or the command that changed it in place."""
    found = _HEREDOC.search(command) if len(command) <= _MAX_COMMAND else None
    if found is None:
        return [f"$ {line}" for line in command.splitlines()]
    return ["@@ written by the shell @@", *(f"+{line}" for line in found["body"].splitlines())]


def _pairs(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The texts before and after of every replacement in the call."""
    edits = arguments.get("edits")
    several = edits if isinstance(edits, list) else [arguments]
    wanted = [edit for edit in several if isinstance(edit, Mapping)]
    pairs = [(_first(edit, _OLD), _first(edit, _NEW)) for edit in wanted]
    return [pair for pair in pairs if any(pair)]


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := arguments.get(name), str) and value), "")


def _compared(old: str, new: str) -> list[str]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MAX_LINES:
        return ["@@ @@", *(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    # The call holds a snippet, so the line numbers of a hunk would be wrong: they are left out.
    told = list(unified_diff(before, after, n=2, lineterm=""))[2:]
    return ["@@ @@" if line.startswith("@@") else line for line in told]


def clipped(diff: str, position: int, characters: int = MAX_CHARACTERS) -> str:
    """A diff with its middle left out where it is long: whole lines, and the message that has it whole."""
    if len(diff) <= characters:
        return diff
    lines = diff.splitlines()
    head = _fitting(lines, int(characters * _HEAD_SHARE))
    tail = _fitting(lines[len(head) :][::-1], characters - sum(map(len, head)) - len(head))[::-1]
    gone = len(lines) - len(head) - len(tail)
    return "\n".join([*head, f"… {gone} lines more; the call is in message {position}", *tail])


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept or [line[: max(room + len(line), 40)] for line in lines[:1]]
