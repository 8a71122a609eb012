"""Determine the action of a tool call from its name and arguments: the file or the command that it uses.

Recognizes the tools of Claude Code, OpenHands, mini-swe-agent, Codex, Gemini CLI and pi, and common names of
other tools. A shell command that only prints a file counts as reading it (see `compaction.shell.reads`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from compaction.edits import Edit, Op
from compaction.identifiers.extract import contains_handle
from compaction.jsontext import loads_object_fast
from compaction.messages import Message, ToolCall, ToolResult
from compaction.shell.reads import changed_folder, file_use, within
from compaction.shell.syntax import MAX_LENGTH
from compaction.shortening import shortened
from compaction.text_cache import once_per_text


class Kind(StrEnum):
    READ = "read"  #: shows a file
    EDIT = "edit"  #: changes a part of a file
    WRITE = "write"  #: creates or replaces a file
    SEARCH = "search"
    COMMAND = "command"
    OTHER = "other"


class Action(NamedTuple):
    """The action of a call. `span` is the requested part of the file, or "" for all of it.

    `shows_file` is set if its output contains a file or lines of files, possibly among other content.
    `label` identifies a call without a file or command: its tool and its short arguments.
    """

    kind: Kind
    path: str = ""
    command: str = ""
    span: str = ""
    shows_file: bool = False
    label: str = ""


_READS = {"read", "read_file", "view", "view_file", "open_file", "cat", "readfile", "get_file_contents"}
_EDITS = {"edit", "multiedit", "edit_file", "replace", "str_replace", "apply_patch", "patch", "notebookedit"}
_WRITES = {"write", "write_file", "create", "create_file", "writefile"}
_SEARCHES = {"grep", "glob", "search", "search_files", "find", "ls", "list_directory", "search_file_content"}
_SEARCHES |= {"list_files", "grep_search", "file_search", "codebase_search", "websearch", "web_search"}
_LINE_SEARCHES = {"grep", "search", "search_files", "search_file_content", "grep_search", "codebase_search"}
_COMMANDS = {"bash", "shell", "exec_command", "execute_bash", "run_shell_command", "local_shell", "terminal"}
_COMMANDS |= {"run_command", "execute_command", "run_terminal_cmd", "exec", "execute_ipython_cell"}
_EDITORS = {"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "editor"}
_EDITOR_KINDS = {"view": Kind.READ, "create": Kind.WRITE}

_BY_NAME = {
    **dict.fromkeys(_READS, Kind.READ),
    **dict.fromkeys(_EDITS, Kind.EDIT),
    **dict.fromkeys(_WRITES, Kind.WRITE),
    **dict.fromkeys(_SEARCHES, Kind.SEARCH),
    **dict.fromkeys(_COMMANDS, Kind.COMMAND),
}

_PATH_FIELDS = ("file_path", "path", "absolute_path", "filename", "file", "notebook_path", "target_file")
_SPAN_FIELDS = ("offset", "limit", "view_range", "start_line", "end_line", "lines", "pages")
_COMMAND_FIELDS = ("command", "cmd", "code", "input")

#: contextapp's tools for agents. Their calls have no label: the working memory is in the prompt anyway, and
#: the other results can be retrieved again.
_OWN = {"update_working_memory", "working_memory", "expand_clip", "search_history"}
_OWN |= {"context_status", "request_compaction"}

#: Maximum number of characters of a label, and of an argument in it.
_MAX_LABEL, _MAX_ARGUMENT = 80, 40

_CD = re.compile(r"^\s*cd\s+(?P<folder>\S+)\s*(?:&&|;)\s*")
_HEREDOC = re.compile(r"^cat\s*(?:<<-?\s*\S+\s*)?>{1,2}\s*(?P<path>\"[^\"\n]+\"|'[^'\n]+'|[^\s|<>&;]+)")
_EXPANDED = re.compile(r"[$*?`{\[]")
#: The same for a file that a command changes, whose name may contain brackets: `app/[id]/page.tsx`.
_EXPANDED_CHANGE = re.compile(r"[$*`]")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (?P<path>.+)$", re.MULTILINE)


def action_of(call: ToolCall) -> Action:
    """Return the action of the call. Never fails."""
    return _action(call.arguments, call.name)


@once_per_text(1 << 12)
def _action(text: str, tool: str) -> Action:
    name = tool.rpartition("__")[2].lower()  # `mcp__server__tool`
    arguments = loads_object_fast(text)
    path = _plain(_first(arguments, _PATH_FIELDS))
    if name in _EDITORS:
        kind = _EDITOR_KINDS.get(str(arguments.get("command")), Kind.EDIT)
        return Action(kind=kind, path=path, span=_span(arguments), shows_file=kind is Kind.READ)
    kind = _BY_NAME.get(name, Kind.OTHER)
    if kind is Kind.COMMAND:
        return _command_action(_command(arguments))
    if kind is Kind.EDIT and not path:
        path = _patched_path(str(arguments.get("input") or arguments.get("patch") or text))
    span = _span(arguments) if kind is Kind.READ else ""
    shows_file = kind is Kind.READ or name in _LINE_SEARCHES
    label = "" if path or name in _OWN else _label(tool, arguments)
    return Action(kind=kind, path=path, span=span, shows_file=shows_file, label=label)


def _label(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a tool and its short arguments as one line, or "" if there are none."""
    values = (value for value in arguments.values() if isinstance(value, str | int | float))
    texts = [str(value) for value in values if not isinstance(value, bool)]
    short = " ".join(text for text in texts if len(text) <= _MAX_ARGUMENT and not contains_handle(text))
    return shortened(" ".join([name, *short.split()]), _MAX_LABEL) if short.strip() else ""


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if value and isinstance(value, str):
            return value
    return ""


def _plain(path: str) -> str:
    """Return a path without a reference to the current folder, as other calls name it."""
    return path.removeprefix("./") or path


def _span(arguments: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={arguments[name]}" for name in _SPAN_FIELDS if arguments.get(name) is not None)


def _command(arguments: Mapping[str, Any]) -> str:
    for name in _COMMAND_FIELDS:
        value = arguments.get(name)
        if isinstance(value, list):  # Codex: ["bash", "-lc", "the command"]
            words = [str(word) for word in value]
            return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
        if isinstance(value, str):
            return value
    return ""


def _command_action(command: str) -> Action:
    command = command.strip()
    start = command[:MAX_LENGTH]
    use = file_use(start)
    shown = use.shown
    shows_file = shown is not None
    folder = _CD.match(start)
    changed, kind = use.edited, Kind.EDIT
    if found := _HEREDOC.match(start[folder.end() :] if folder else start):
        changed, kind = found["path"].strip("\"'"), Kind.WRITE
        changed = within(changed_folder("", folder["folder"]), changed) if folder else changed
    is_expanded = _EXPANDED_CHANGE.search(changed) is not None
    if path := _patched_path(start) if is_expanded or not changed else changed:
        return Action(kind=kind, path=_plain(path), command=command, shows_file=shows_file)
    if is_expanded or shown is None or not shown.only:
        return Action(kind=Kind.COMMAND, command=command, shows_file=shows_file)
    if shown.is_search:
        return Action(kind=Kind.SEARCH, command=command, shows_file=True)
    path = shown.paths[0] if len(shown.paths) == 1 and not _EXPANDED.search(shown.paths[0]) else ""
    span = "" if shown.is_whole else command
    return Action(kind=Kind.READ, path=_plain(path), command=command, span=span, shows_file=True)


def _patched_path(text: str) -> str:
    found = _PATCHED.search(text) if "*** " in text else None
    return found["path"].strip() if found else ""


def edited_tools(edits: Sequence[Edit], messages: Sequence[Message]) -> list[str]:
    """Return for each edit the tool whose call or output it changed, or "" if it changed neither."""
    places = {(edit.position, edit.part) for edit in edits if edit.op is Op.REPLACE}
    tools: dict[tuple[int, int | None], str] = {}
    names: dict[str, str] = {}  # ids can repeat: the nearest earlier call applies
    for message in messages:
        for index, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                names[part.call_id] = part.name
            if isinstance(part, ToolCall | ToolResult) and (message.position, index) in places:
                tools[message.position, index] = names.get(part.call_id, "")
    return [tools.get((edit.position, edit.part), "") if edit.op is Op.REPLACE else "" for edit in edits]
