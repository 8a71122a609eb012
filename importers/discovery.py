"""Find the folders in which the coding agents of a user store their logs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import orjson

#: Where Qwen Code stores its logs and those of sub-agents.
_QWEN_LOGS = ("projects/*/chats", "projects/*/subagents")

#: The variable that moves an agent's folder, its default in the home folder, and the folders of logs in it.
#: Further variables of an agent have no default, because they move only a part of its data.
_AGENTS = (
    ("CODEX_HOME", ".codex", ("sessions", "archived_sessions")),
    ("COPILOT_HOME", ".copilot", ("session-state",)),
    ("XDG_DATA_HOME", ".local/share", ("amp/threads", "opencode", "goose/sessions", "zed/threads")),
    ("", "Library/Application Support", ("Zed/threads",)),
    ("CONTINUE_GLOBAL_DIR", ".continue", ("sessions",)),
    ("KIMI_SHARE_DIR", ".kimi", ("sessions",)),
    ("KIMI_CODE_HOME", ".kimi-code", ("sessions/*/*/agents",)),
    ("PI_CODING_AGENT_DIR", ".pi/agent", ("sessions",)),
    ("PI_CODING_AGENT_SESSION_DIR", "", ()),
    ("GOOSE_PATH_ROOT", "", ("data/sessions",)),
    ("GEMINI_CLI_HOME", "", (".gemini/tmp/*/chats",)),
    ("", ".gemini", ("tmp/*/chats",)),
    ("QWEN_HOME", ".qwen", _QWEN_LOGS),
    ("QWEN_RUNTIME_DIR", "", _QWEN_LOGS),
    ("", ".openhands", ("conversations",)),
    ("CLINE_DIR", ".cline", ("data/sessions",)),
    ("CLINE_DATA_DIR", "", ("sessions",)),
    ("CLINE_SESSION_DATA_DIR", "", ()),
)

#: The folders of settings of VS Code and its variants, and the folders in each with the logs of its chat, of
#: Cline and of Roo Code.
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_EDITOR_LOGS = (
    "workspaceStorage/*/chatSessions",
    "globalStorage/emptyWindowChatSessions",
    "globalStorage/saoudrizwan.claude-dev/tasks",
    "globalStorage/rooveterinaryinc.roo-cline/tasks",
)

#: Crush's list of projects, each of which has a database.
_CRUSH_PROJECTS = "projects.json"


def discovered_folders(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> list[Path]:
    """Return the folders in which the coding agents of this user store their logs."""
    home = home or Path.home()
    folders = [*_claude_folders(environment, home)]
    for variable, default, patterns in _AGENTS:
        if environment.get(variable) or default:
            base = Path(environment.get(variable) or home / default)
            found = (sorted(base.glob(pattern)) for pattern in patterns)
            folders += chain.from_iterable(found) if patterns else [base]
    for user in _editor_folders(environment, home):
        folders += [found for pattern in _EDITOR_LOGS for found in sorted(user.glob(pattern))]
    shared = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    folders += _crush_folders(Path(environment.get("CRUSH_GLOBAL_DATA") or shared / "crush"))
    return [folder for folder in dict.fromkeys(folders) if _is_readable(folder)]


def _claude_folders(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    if configured := environment.get("CLAUDE_CONFIG_DIR"):
        yield Path(configured, "projects")
    else:
        yield from (home / folder / "projects" for folder in (".config/claude", ".claude"))


def _editor_folders(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the folders of settings, on this machine and as a remote server."""
    configured = environment.get("XDG_CONFIG_HOME") or environment.get("APPDATA")
    local = Path(configured) if configured else home / ".config"
    for settings in (local, home / "Library" / "Application Support"):
        yield from (settings / editor / "User" for editor in _EDITORS)
    yield home / ".vscode-server" / "data" / "User"


def _crush_folders(shared: Path) -> list[Path]:
    try:
        projects = orjson.loads((shared / _CRUSH_PROJECTS).read_bytes())["projects"]
        return [Path(project["path"], project["data_dir"]) for project in projects]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _is_readable(folder: Path) -> bool:
    """Return whether the folder exists. A project of Crush can be in a folder of another user."""
    try:
        return folder.is_dir()
    except OSError:
        return False
