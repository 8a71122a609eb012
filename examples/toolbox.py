"""The tools that the example agents bring along: they read, search, change and run things in one folder.

Commands run on this machine with your rights. That is fine in a scratch folder and with a model that you
watch; an agent on its own belongs in a sandbox.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
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
        "Replace `old`, which must occur exactly once in the file, by `new`. An empty `old` makes a file.",
        {"path": _TEXT, "old": _TEXT, "new": _TEXT},
        ["path", "old", "new"],
    ),
    "run_command": ("Run a shell command in the project's folder.", {"command": _TEXT}, ["command"]),
}


class ToolFailure(Exception):
    """What the tool answers when it cannot do what was asked; the text is for the model."""


class Toolbox:
    """The tools on one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._tools: Mapping[str, Callable[..., str]] = {
            "read_file": self.read_file,
            "grep": self.grep,
            "edit_file": self.edit_file,
            "run_command": self.run_command,
        }

    def definitions(self, format: str) -> list[dict[str, Any]]:
        """The tools as the provider wants them described."""
        described = []
        for name, (description, properties, required) in _SCHEMAS.items():
            schema = {"type": "object", "properties": properties, "required": required}
            told = {"name": name, "description": description}
            if format == "anthropic":
                described.append({**told, "input_schema": schema})
            else:
                described.append({"type": "function", "function": {**told, "parameters": schema}})
        return described

    def run(self, name: str, arguments: object) -> tuple[str, bool]:
        """What the tool answers, and whether that is an error. OpenAI's models give JSON as text."""
        try:
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
            if name not in self._tools or not isinstance(given, dict):
                raise ToolFailure(f"There is no tool {name} that takes {given!r:.100}.")
            return self._tools[name](**given), False
        except (ToolFailure, OSError, TypeError, ValueError, re.error) as error:
            return str(error), True

    def read_file(self, path: str, offset: int = 1, limit: int = 2000) -> str:
        lines = self._path(path).read_text().splitlines()
        shown = lines[max(0, offset - 1) :][:limit]
        return "\n".join(f"{number:>5}  {line}" for number, line in enumerate(shown, start=max(1, offset)))

    def grep(self, pattern: str, path: str = ".") -> str:
        wanted, root = re.compile(pattern), self._path(path)
        files = [root] if root.is_file() else sorted(root.rglob("*.[a-z]*"))
        found = [
            f"{file.relative_to(self.folder)}:{number}: {line}"
            for file in files
            if file.is_file() and file.suffix != ".pyc"
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1)
            if wanted.search(line)
        ]
        return "\n".join(found) or "No line matches."

    def edit_file(self, path: str, old: str, new: str) -> str:
        file = self._path(path)
        if not old:
            if file.exists():
                raise ToolFailure(f"{path} is there already; say what to replace.")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(new)
            return f"Made {path}."
        text = file.read_text()
        if text.count(old) != 1:
            raise ToolFailure(f"`old` occurs {text.count(old)} times in {path}; it must occur once.")
        file.write_text(text.replace(old, new))
        return f"Changed {path}."

    def run_command(self, command: str) -> str:
        # `python` is the one that runs this program.
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
            raise ToolFailure(f"The command took over {COMMAND_SECONDS} s and was ended.") from None
        output = done.stdout.decode(errors="replace").rstrip()
        if done.returncode:
            raise ToolFailure(f"{output}\nexit code {done.returncode}")
        return output or "The command printed nothing."

    def _path(self, path: str) -> Path:
        found = (self.folder / path).resolve()
        if not found.is_relative_to(self.folder):
            raise ToolFailure(f"{path} lies outside of the project.")
        return found
