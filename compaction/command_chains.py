"""Determine which failed commands a later command settles, because it ran them again and succeeded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction.shortening import shortened

#: Maximum number of characters of a key, and of a command in a recap.
LENGTH = 120

#: The end of a command that only limits or redirects its output.
_LIMITED = re.compile(r" ?(?:\| ?(?:head|tail)(?: \+?[\w=-]+)*|2>&1) ?$")
_MOST_LIMITS = 4
#: The end of a command that only shows a part of its output.
_FILTERED = re.compile(r"(?: 2>&1)? \| ?(?:grep|egrep|rg|head|tail|tee|cat|sed|awk|sort|uniq|wc)\b.*$")
#: Separators after which a command runs although the one before it failed.
_NOT_ONLY_AND = re.compile(r"[;\n]|\|\||(?<!&)&(?!&|\d)")
#: Commands after which the others of the same line run on other files.
_SWITCHES = re.compile(r"cd |git (?:stash|checkout|switch|worktree)\b")
_MOST_PARTS = 8
#: Number of characters at the end of a command to search for a limit.
_MOST_SEARCHED = 160


def subject(command: str) -> str:
    """Return a command as one line, without what limits its output at the end."""
    line = " ".join(command.split())
    for _ in range(_MOST_LIMITS):
        found = _LIMITED.search(line, max(0, len(line) - _MOST_SEARCHED))
        if not found or not found.start():
            break
        line = line[: found.start()]
    return line


def succeeded(command: str) -> list[str]:
    """Return the keys of the commands that succeed if `a && b` does: those of `a`, of `b` and of both."""
    folder, parts = _parts(command)
    parts = [subject(part) for part in parts]
    if any(map(_SWITCHES.match, parts)):
        return []
    chains = [parts[:end] for end in range(2, len(parts) + 1)] if len(parts) <= _MOST_PARTS else [parts]
    keys = (_key(folder, chain) for chain in (*([part] for part in parts), *chains))
    return list(filter(None, keys))


def failure_key(command: str) -> str:
    """Return the key of `succeeded` for a failed command, or "" if it has none.

    What filters the output is not part of the key: a later run shows another part of the same output.
    """
    folder, parts = _parts(command)
    return _key(folder, [subject(_FILTERED.sub("", part)) for part in parts])


def _parts(command: str) -> tuple[str, list[str]]:
    """Split `cd folder && a && b` into its folder and its other commands. Any other list has none."""
    parts = [part.strip() for part in " ".join(command.split()).split("&&")]
    if _NOT_ONLY_AND.search(command):
        return "", []
    folder = parts.pop(0) if len(parts) > 1 and parts[0].startswith("cd ") else ""
    return folder, parts


def _key(folder: str, parts: Sequence[str]) -> str:
    return shortened(" && ".join((folder, *parts) if folder else parts), LENGTH)
