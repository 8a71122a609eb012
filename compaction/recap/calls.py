"""What a tool call does, in a recap's words: which file it touches and how, or which command it runs."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from compaction.messages import JSON, ToolCall

_PATH_KEYS = ("file_path", "path", "filename", "notebook_path", "absolute_path", "file")
_COMMAND_KEYS = ("command", "cmd", "script")
_VERBS = (
    (("create", "write"), "written"),
    (("edit", "replace", "patch", "insert", "undo"), "edited"),
    (("read", "view", "open", "cat"), "read"),
    (("glob", "grep", "search", "ls", "list"), "searched"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What a call does; the parts that it does not tell are None."""

    path: str | None = None
    verb: str | None = None
    command: str | None = None


def action_of(call: ToolCall) -> Action:
    """What `call` does, by its name and arguments."""
    arguments = _object(call.arguments)
    path = _first(arguments, _PATH_KEYS)
    command = _first(arguments, _COMMAND_KEYS)
    if path is None:
        return Action(command=command)
    named = f"{call.name} {command or ''}".lower()
    verb = next((verb for words, verb in _VERBS if any(word in named for word in words)), "used")
    return Action(path=path, verb=verb)


def _object(arguments: str) -> dict[str, JSON]:
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _first(arguments: dict[str, JSON], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            return " ".join(value)
        if isinstance(value, str) and value:
            return value
    return None
