"""Find the files of a folder that form one log, for the agents that write several files per session."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

#: A log: the file or folder that it is named after, and its files, in order.
Group = tuple[Path, Sequence[Path]]

#: Name of a file with one model call, as written by LiteLLM clients: "…<model>-<seconds>.<fraction>.json".
_CALL_NAME = re.compile(r"-(\d{10}\.\d+)\.json(?:\.gz|\.zst)?$")

#: One file per event, as OpenHands stores a conversation: "events/0.json" or "events/event-00000-<id>.json".
_EVENT_NAME = re.compile(r"^(?:event-)?(\d+)(?:-[\w-]+)?\.json(?:\.gz|\.zst)?$")

#: The file beside OpenHands' folder of events that contains usage and cost.
_EVENTS_STATE = "base_state.json"

#: The two files of a task of Cline or Roo Code: in the extensions' folders, which contain other files, and in
#: those of newer versions of Cline, which may contain the messages that replace earlier ones.
_TASK_FILES = ("api_conversation_history.json", "ui_messages.json")
_TASK_ENDING, _COMPACTED_ENDING = ".messages.json", ".compaction.json"

#: The folder in which VS Code stores the chat sessions of a workspace, and the file beside it.
_CHATS, _CHATS_WORKSPACE = "chatSessions", "workspace.json"

#: The list of the sessions in the folder of Continue, which contains no messages.
_CONTINUE_LIST = ("sessions", "sessions.json")

#: The log in the folder of a session of Copilot CLI, and the file that identifies the folder.
_COPILOT_LOG, _COPILOT_FACTS = "events.jsonl", "workspace.yaml"

#: The files of a session of Kimi CLI: messages, of which earlier ones are in numbered files, and the others.
_KIMI_LOG = re.compile(r"^context(?:_(\d+))?\.jsonl$")
_KIMI_EVENTS, _KIMI_FACTS = "wire.jsonl", ("state.json", "meta.json")


def grouped(folder: Path, logs: Sequence[Path]) -> Iterator[Group]:
    """Yield the logs in a folder, whose log files are `logs`, sorted."""
    if any(entry.name == _TASK_FILES[0] for entry in logs):
        task = [entry for entry in logs if entry.name in _TASK_FILES]
        yield folder / _TASK_FILES[0], task
        return
    if any(entry.name == _KIMI_EVENTS for entry in logs) and (kimi := _kimi_session(folder, logs)):
        yield kimi
        logs = [entry for entry in logs if entry not in kimi[1]]  # of older versions: those of sub-agents
    if folder.name == _CHATS and (workspace := folder.parent / _CHATS_WORKSPACE).is_file():
        yield from ((entry, [entry, workspace]) for entry in logs)
        return
    series = _series(folder, logs)
    if series:
        state = folder.parent / _EVENTS_STATE
        yield folder, [state, *series] if folder.name == "events" and state.is_file() else series
    tasks = {_facts_of(entry): entry for entry in logs if entry.name.endswith(_TASK_ENDING)}
    facts = {tasks[entry]: entry for entry in logs if entry in tasks}
    others = {*series, *facts.values(), *(file.with_suffix(_COMPACTED_ENDING) for file in tasks)}
    if (folder / "events").is_dir():
        others.add(folder / _EVENTS_STATE)
    if folder.name == _CONTINUE_LIST[0]:
        others.add(folder / _CONTINUE_LIST[1])
    if (folder / _CHATS).is_dir():
        others.add(folder / _CHATS_WORKSPACE)
    for entry in logs:
        if entry not in others:
            yield entry, [entry, facts[entry]] if entry in facts else [entry]


def copilot_log(folder: Path) -> Path | None:
    """Return the log of a session of Copilot CLI if this is its folder."""
    log = folder / _COPILOT_LOG
    return log if (folder / _COPILOT_FACTS).is_file() and log.is_file() else None


def is_opencode_storage(folder: Path) -> bool:
    """Return whether OpenCode stores its sessions in this folder."""
    return folder.name == "storage" and all((folder / name).is_dir() for name in ("session", "message"))


def opencode_sessions(folder: Path) -> Iterator[Group]:
    """Yield the sessions of OpenCode's storage folder: a file each, and one for each message and part.

    Ids of newer sessions sort before those of older ones. Parents precede their sub-agents.
    """
    for session in sorted((folder / "session").rglob("ses_*.json"), reverse=True):
        messages = sorted((folder / "message" / session.stem).glob("msg_*.json"))
        parts = [part for each in messages for part in sorted((folder / "part" / each.stem).glob("*.json"))]
        yield session, [session, *messages, *parts]


def _kimi_session(folder: Path, logs: Sequence[Path]) -> Group | None:
    found = [(match, entry) for entry in logs if (match := _KIMI_LOG.match(entry.name))]
    messages = [entry for _, entry in sorted(found, key=lambda item: int(item[0][1] or sys.maxsize))]
    facts = [entry for entry in logs if entry.name in _KIMI_FACTS]
    return (folder / "context.jsonl", [*messages, folder / _KIMI_EVENTS, *facts]) if messages else None


def _series(folder: Path, logs: Sequence[Path]) -> list[Path]:
    """Return the files of a folder with one model call or one event each, in order."""
    name, number = (_EVENT_NAME, int) if folder.name == "events" else (_CALL_NAME, float)
    found = [(number(match[1]), entry) for entry in logs if (match := name.search(entry.name))]
    return [entry for _, entry in sorted(found)]


def _facts_of(messages: Path) -> Path:
    """Return the file with the facts of a session, which is beside the one with its messages."""
    return messages.with_name(messages.name.removesuffix(_TASK_ENDING) + ".json")
