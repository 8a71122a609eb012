"""Diffs of file edits, derived from the tool calls that made them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from compaction.jsontext import loads_object_fast
from compaction.messages import ToolCall
from compaction.tools.actions import Action

_OLD, _NEW = ("old_string", "old_str", "oldText"), ("new_string", "new_str", "newText")
_WHOLE = ("content", "file_text", "contents", "text")
_PATCH = ("patch", "input", "diff")

_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?(\w+)")

#: Maximum characters of a diff. The transcript contains all of it.
MAX_CHARACTERS = 2_200
_HEAD_SHARE = 0.6

#: Longer texts are shown as a complete replacement, because a comparison by line takes quadratic time.
_MAX_LINES = 1_500


def edit_diff(call: ToolCall, action: Action) -> str:
    """Return the diff of an edit, with the path in its first line, or "" if the call does not contain it."""
    arguments = loads_object_fast(call.arguments)
    return "\n".join([action.path, *lines]) if (lines := _lines(arguments, action)) else ""


def texts_of(call: ToolCall) -> tuple[str, str]:
    """Return the removed and the added text of an edit, as far as the call contains them."""
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
    """Return the content that a here-document wrote, or the command that changed a file in place."""
    if body := _heredoc(command.splitlines()):
        return ["@@ written by the shell @@", *(f"+{line}" for line in body)]
    return [f"$ {line}" for line in command.splitlines()]


def _heredoc(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of the first here-document that ends. Takes linear time."""
    bare = [line.strip() for line in lines]
    last = {line: number for number, line in enumerate(bare)}
    for number, line in enumerate(lines):
        for end in _HEREDOC.findall(line):
            if last.get(end, 0) > number:
                return lines[number + 1 : bare.index(end, number + 1)]
    return ()


def _pairs(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the old and new text of every replacement in the call."""
    edits = arguments.get("edits")
    candidates = edits if isinstance(edits, list) else [arguments]
    replacements = [edit for edit in candidates if isinstance(edit, Mapping)]
    pairs = [(_first(edit, _OLD), _first(edit, _NEW)) for edit in replacements]
    return [pair for pair in pairs if any(pair)]


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := arguments.get(name), str) and value), "")


def _compared(old: str, new: str) -> list[str]:
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > _MAX_LINES:
        return ["@@ @@", *(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    # The call contains a snippet, so the line numbers of hunks would be wrong and are left out.
    lines = list(unified_diff(before, after, n=2, lineterm=""))[2:]
    return ["@@ @@" if line.startswith("@@") else line for line in lines]


def clipped(diff: str, position: int, characters: int = MAX_CHARACTERS) -> str:
    """Shorten a long diff: drop lines in its middle, and refer to the message that contains all of it."""
    if len(diff) <= characters:
        return diff
    lines = diff.splitlines()
    head = _fitting(lines, int(characters * _HEAD_SHARE))
    tail = _fitting(lines[len(head) :][::-1], characters - sum(map(len, head)) - len(head))[::-1]
    omitted = len(lines) - len(head) - len(tail)
    return "\n".join([*head, f"… {omitted} more lines; the call is in message {position}", *tail])


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept or [line[: max(room + len(line), 40)] for line in lines[:1]]
