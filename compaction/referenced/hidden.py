"""Distinctive identifiers that an edit removed from the prompt.

A model can write `os.path` or `README.md` without having read it in the session, so these are not
distinctive. Paths, addresses, long numbers, ids and longer project-specific names are. At most
`MAX_REFERENCES` are stored per edit: first those that the assistant used, because they recur ten times as
often as those that it only read (docs/benchmarks.md), then those mentioned last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, filterfalse, islice
from typing import Protocol

from compaction.edits import MAX_REFERENCES, Edit
from compaction.identifiers.extract import Kind, argument_text, kind_of, runs
from compaction.identifiers.texts import names_of
from compaction.messages import Message, Part, Text, ToolCall, ToolResult
from compaction.view import View
from compaction.view.components import COMPONENT_OPS

__all__ = ["MAX_REFERENCES", "is_distinctive", "with_references"]

#: Minimum characters of names and ids. Shorter ones are often words of a language or library.
_LEAST_NAME, _LEAST_ID = 11, 7
#: Minimum digits of numbers. Shorter ones are counts, ports and line numbers.
_LEAST_DIGITS = 5

#: File names that are common to many projects.
_EVERYWHERE = re.compile(
    r"(README|CHANGELOG|LICENSE|CLAUDE|AGENTS)\.md|package(-lock)?\.json|(tsconfig|settings|config)\.json"
    r"|pyproject\.toml|setup\.(py|cfg)|requirements\.txt|(conftest|__init__|__main__|main|app|utils)\.py"
    r"|main\.go|go\.(mod|sum)|index\.(js|ts|html)|Cargo\.(toml|lock)|docker-compose\.yml|\.gitignore"
)

#: Common words that look like names, and typical placeholder ids.
_WORDS = frozenset({"PostgreSQL", "JavaScript", "TypeScript", "StackOverflow", "OpenTelemetry"})
_CLICHE = re.compile(r"a1b2c3|abc123|abcdef|123456|12345678|deadbeef|0{6}|x{4}", re.IGNORECASE)

_PLACEHOLDER = re.compile(r"example|localhost|127\.0\.0\.1|0\.0\.0\.0")
_OF_THE_SYSTEM = ("/dev/", "/usr/", "/bin/", "/etc/", "/proc/", "/opt/", "/var/", "/tmp")  # noqa: S108


class Messages(Protocol):
    """Messages by position, which may be parsed when they are read."""

    def __contains__(self, position: object, /) -> bool: ...

    def __getitem__(self, position: int, /) -> Message: ...

    def is_by_assistant(self, position: int, /) -> bool: ...


@lru_cache(maxsize=20_000)
def is_distinctive(name: str) -> bool:
    """Whether a mention of `name` implies knowledge of the content in which it occurred."""
    match kind_of(name):
        case Kind.PATH:
            known = _EVERYWHERE.fullmatch(name) or name.startswith(_OF_THE_SYSTEM)
            return not known and len(name) >= _LEAST_ID
        case Kind.URL | Kind.EMAIL:
            return not _PLACEHOLDER.search(name)
        case Kind.NUMBER if not _CLICHE.search(name):
            digits = name.strip("-").rstrip("0").replace(".", "")
            return len(digits) >= _LEAST_DIGITS
        case Kind.ID:
            return len(name) >= _LEAST_ID and not _CLICHE.search(name)
        case Kind.NAME:
            longest = max(map(len, name.split(".")))
            return longest >= _LEAST_NAME and name not in _WORDS and not _is_library(name)
        case _:
            return False


def with_references(edits: Sequence[Edit], messages: Messages, view: View) -> tuple[Edit, ...]:
    """Return the edits, each with the identifiers that it removed from the prompt.

    Scans every edited text, so do not call it while handling a request. `messages` are those that the edits
    change, by position; only those that are needed are read. `view` is the view after the edits.
    """
    prompt = _Prompt(view)
    return tuple(
        edit if edit.op in COMPONENT_OPS else replace(edit, references=_hidden(edit, messages, prompt))
        for edit in edits
    )


def _hidden(edit: Edit, messages: Messages, prompt: _Prompt) -> tuple[str, ...]:
    touched = [at for at in range(edit.end, edit.position - 1, -1) if at in messages]
    used = filter(messages.is_by_assistant, touched)
    seen = filterfalse(messages.is_by_assistant, touched)
    names = _names(map(messages.__getitem__, chain(used, seen)), edit.part)
    return tuple(islice(filter(prompt.lacks, names), MAX_REFERENCES))


def _names(messages: Iterable[Message], part: int | None) -> Iterator[str]:
    """Yield each identifier of the messages once. The first ones often suffice, so read texts on demand."""
    known: set[str] = set()
    for message in messages:
        for text in _texts(message, part):
            new = [name for name in names_of(text) if name not in known]
            known.update(new)
            yield from new


class _Prompt:
    """The identifiers of a prompt. Caches results, because an eviction shares texts with its edits."""

    def __init__(self, view: View) -> None:
        texts = (text for message in view.prompt_messages for text in _texts(message, None))
        self._runs = set(runs("\n".join(texts)))
        # Searched as text, because `a/b/c.py` also contains `a/b`. No name extends beyond a run.
        self._text = b"\n".join(self._runs)
        self._lacks: dict[str, bool] = {}

    def lacks(self, name: str) -> bool:
        """Whether `name` is distinctive and not in the prompt."""
        known = self._lacks.get(name)
        if known is None:
            known = self._lacks[name] = is_distinctive(name) and not self._shows(name.encode())
        return known

    def _shows(self, name: bytes) -> bool:
        return name in self._runs or name in self._text


def _texts(message: Message, part: int | None) -> Iterator[str]:
    parts: Sequence[Part] = message.parts if part is None else message.parts[part : part + 1]
    for each in parts:
        if isinstance(each, Text | ToolResult):
            yield each.text
        elif isinstance(each, ToolCall):
            yield argument_text(each.arguments)


def _is_library(name: str) -> bool:
    """Whether a name is a module and its member, such as `strings.Contains` or `os.path.join`."""
    first, dot, _ = name.partition(".")
    return bool(dot) and first.islower() and first.isalpha()
