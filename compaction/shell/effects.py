"""Side effects of shell commands: installs, commits, removals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from compaction.shell.syntax import separators, without_heredocs

_STATE = re.compile(
    r"^(?:sudo\s+)?(?:"
    r"(?:python[\d.]*\s+-m\s+)?pip[\d.]*\s+(?:install|uninstall)\b|uv\s+(?:add|remove|sync|pip\s+install)\b"
    r"|poetry\s+(?:add|remove|install)\b|(?:npm|pnpm|bun)\s+(?:i|install|ci|add|uninstall)\b|yarn\s+(?:add|remove)\b"
    r"|go\s+(?:get|install|mod\s+tidy)\b|cargo\s+(?:add|remove|install)\b|(?:apt|apt-get|brew|conda)\s+install\b"
    r"|git\s+(?:commit|push|pull|merge|rebase|reset|revert|cherry-pick|stash|tag|rm|mv|checkout|switch|restore)\b"
    r"|gh\s+(?:pr|issue|release)\s+(?:create|merge|close|edit)\b"
    r"|(?:docker|docker-compose|podman)\s+(?:compose\s+)?(?:up|down|build|run|rm)\b"
    r"|(?:\S*manage\.py|alembic|rails|npx\s+prisma)\s+(?:migrate|upgrade|downgrade|loaddata|db:migrate)\b"
    r"|rm\s|mv\s|cp\s|ln\s|chmod\s|systemctl\s+(?:start|stop|restart)\b|kill\b|pkill\b"
    r")"
)
_INSPECTS = (
    r"grep|rg|ag|ls|cat|head|tail|find|fd|which|type|diff|cmp|echo|printf|cd|pwd|stat|file|wc|jq|tree|ps|pgrep|man"
    r"|git\s+(?:diff|log|show|status|branch|grep|blame|ls-files|ls-tree|rev-parse|remote|check-ignore)"
    r"|gh\s+\w+\s+(?:view|diff|list|checks|status)"
)
_INSPECTION = re.compile(rf"^(?:sudo\s+)?(?:{_INSPECTS})\b")
_QUIET = re.compile(
    rf"^(?:sudo\s+)?(?:{_INSPECTS}|test|\[|command|env|sleep|true|false|read|curl|wget|timeout)\b"
)
_MAX_INSPECTION = 500
#: Parts of a command that begins like an inspection but changes something: a redirection to a file, a pipe to
#: a program other than a filter, and actions of `find`.
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_FILTERS = rf"{_INSPECTS}|sort|uniq|cut|tr|awk|sed(?!\s+-i)|nl|column|less|more|xxd"
_EFFECT = re.compile(
    r">(?!>|\s*/dev/null|&\d)"
    rf"|(?<!\|)\|(?!\|)(?!\s*(?:xargs\s+(?:-\S+\s+)*)?(?:{_FILTERS})\b)"
    r"|\s-(?:delete|exec(?:dir)?|ok(?:dir)?)\b"
)
_REMOVED = re.compile(r"^(?:sudo\s+)?(?:git\s+)?rm\s+(?P<paths>.+)$")
_MOVED = re.compile(r"^(?:git\s+)?mv\s+(?:-\S+\s+)*(?P<old>\S+)\s+(?P<new>\S+)$")
_ENV = re.compile(r"^(?:[A-Za-z_]\w*=\S*\s+)+")
#: A script in the arguments of a shell, as in `docker exec app bash -c "cd /app && pytest"`.
_SCRIPT = re.compile(
    r"^(?:[^'\"]*[\s/])?(?:ba|da|z)?sh -l?c (?:'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\")",
    re.DOTALL,
)


def segments(command: str) -> Iterator[str]:
    """Yield the simple commands of a command line, without here-documents and leading assignments.

    Those of a script in the arguments of a shell take its place.
    """
    text = without_heredocs(command)
    spans = [(found.start(), found.end()) for found in separators(text)]
    for (_, start), (end, _) in pairwise([(0, 0), *spans, (len(text), len(text))]):
        bare = _ENV.sub("", text[start:end].strip())
        if script := _SCRIPT.match(bare):
            yield from segments(script["single"] or script["double"] or "")
        elif bare:
            yield " ".join(bare.split())


def state_changes(command: str) -> tuple[str, ...]:
    """Return the parts of a command with effects beyond a file's text: installs, commits, moves."""
    return tuple(segment for segment in segments(command) if _STATE.match(segment))


def is_quiet(command: str) -> bool:
    """Return whether a failure of the command is harmless, such as a search without results."""
    return all(_QUIET.match(segment) for segment in segments(command))


def is_inspection(command: str) -> bool:
    """Return whether the command only searches, lists or prints. A long command counts as a script."""
    if len(command) > _MAX_INSPECTION or not all(map(_INSPECTION.match, segments(command))):
        return False
    return _EFFECT.search(_QUOTED.sub("''", command)) is None


def removed_paths(command: str) -> tuple[str, ...]:
    """Return the paths that a command deletes or moves away."""
    parts = segments(command) if "mv" in command else ()
    moved = (found["old"].strip("'\"") for found in map(_MOVED.match, parts) if found)
    return (*deleted_paths(command), *filter(_is_path, moved))


def deleted_paths(command: str) -> tuple[str, ...]:
    """Return the paths that a command deletes."""
    parts = segments(command) if "rm" in command else ()
    found = (match["paths"].split() for match in map(_REMOVED.match, parts) if match)
    words = (word.strip("'\"") for paths in found for word in paths if not word.startswith("-"))
    return tuple(filter(_is_path, words))


def _is_path(word: str) -> bool:
    return len(word) > 2 and "*" not in word
