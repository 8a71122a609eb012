"""The tools of the example agents: read, search and edit files and run commands in one folder.

Commands run on this machine with your permissions. Use a scratch folder and watch the agent; run unattended
agents in a sandbox.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

COMMAND_SECONDS = 60
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_SCHEMAS: Mapping[str, tuple[str, dict[str, Any], list[str]]] = {
    "read_file": (
        "Show a file with line numbers, or `limit` lines of it from line `offset` (from 1).",
        {"path": _TEXT, "offset": _NUMBER, "limit": _NUMBER},
        ["path"],
    ),
    "grep": (
        "Show the lines that match a regular expression, in one file or in all files below a folder.",
        {"pattern": _TEXT, "path": _TEXT},
        ["pattern"],
    ),
    "edit_file": (
        "Replace `old`, which must occur exactly once, with `new`. An empty `old` creates the file.",
        {"path": _TEXT, "old": _TEXT, "new": _TEXT},
        ["path", "old", "new"],
    ),
    "run_command": ("Run a shell command in the project folder.", {"command": _TEXT}, ["command"]),
}


class ToolFailure(Exception):
    """A tool call failed. The message is for the model."""


class Toolbox:
    """The tools, restricted to one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._tools: Mapping[str, Callable[..., str]] = {
            "read_file": self.read_file,
            "grep": self.grep,
            "edit_file": self.edit_file,
            "run_command": self.run_command,
        }

    def definitions(self, format: str) -> list[dict[str, Any]]:
        """Return the tool definitions in the provider's format."""
        definitions = []
        for name, (description, properties, required) in _SCHEMAS.items():
            schema = {"type": "object", "properties": properties, "required": required}
            common = {"name": name, "description": description}
            if format == "anthropic":
                definitions.append({**common, "input_schema": schema})
            else:
                definitions.append({"type": "function", "function": {**common, "parameters": schema}})
        return definitions

    def run(self, name: str, arguments: object) -> tuple[str, bool]:
        """Run a tool. Return its output, and whether it is an error. OpenAI passes arguments as JSON."""
        try:
            values = json.loads(arguments) if isinstance(arguments, str) else arguments
            if name not in self._tools or not isinstance(values, dict):
                raise ToolFailure(f"No tool {name} accepts {values!r:.100}.")
            return self._tools[name](**values), False
        except (ToolFailure, OSError, TypeError, ValueError, re.error) as error:
            return str(error), True

    def read_file(self, path: str, offset: int = 1, limit: int = 2000) -> str:
        lines = self._path(path).read_text().splitlines()
        shown = lines[max(0, offset - 1) :][:limit]
        return "\n".join(f"{number:>5}  {line}" for number, line in enumerate(shown, start=max(1, offset)))

    def grep(self, pattern: str, path: str = ".") -> str:
        regex, root = re.compile(pattern), self._path(path)
        files = [root] if root.is_file() else sorted(root.rglob("*.[a-z]*"))
        found = [
            f"{file.relative_to(self.folder)}:{number}: {line}"
            for file in files
            if file.is_file() and file.suffix != ".pyc"
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1)
            if regex.search(line)
        ]
        return "\n".join(found) or "No matches."

    def edit_file(self, path: str, old: str, new: str) -> str:
        file = self._path(path)
        if not old:
            if file.exists():
                raise ToolFailure(f"{path} already exists. Pass the text to replace as `old`.")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(new)
            return f"Created {path}."
        text = file.read_text()
        if text.count(old) != 1:
            raise ToolFailure(f"`old` occurs {text.count(old)} times in {path}; it must occur exactly once.")
        file.write_text(text.replace(old, new))
        return f"Edited {path}."

    def run_command(self, command: str) -> str:
        # Make `python` the interpreter that runs this program.
        search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        try:
            done = subprocess.run(  # noqa: S602
                command,
                shell=True,
                cwd=self.folder,
                env={**os.environ, "PATH": search, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ToolFailure(f"The command was stopped after {COMMAND_SECONDS} s.") from None
        output = done.stdout.decode(errors="replace").rstrip()
        if done.returncode:
            raise ToolFailure(f"{output}\nexit code {done.returncode}")
        return output or "The command produced no output."

    def _path(self, path: str) -> Path:
        found = (self.folder / path).resolve()
        if not found.is_relative_to(self.folder):
            raise ToolFailure(f"{path} is outside the project.")
        return found


def arguments(description: str, *, variables: Sequence[str]) -> tuple[Path, str]:
    """Return the folder and the task on the command line. Exit with a message if something is missing."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path, help="the agent works, and runs commands, in this folder")
    parser.add_argument("task", help="what the agent should do")
    options = parser.parse_args()
    if missing := [name for name in variables if not os.environ.get(name)]:
        parser.error(f"set {' and '.join(missing)}")
    if not options.folder.is_dir():
        parser.error(f"no such folder: {options.folder}")
    return options.folder, options.task
