"""The identifiers that an edit took out of the prompt: few, and such that a later mention means something.

Not every identifier tells: a model that writes `os.path` or `README.md` need not have read it here. Kept are
those that nobody writes by chance: paths, addresses, long numbers, ids, and names of some length that stand
for something of this work. At most `MAX_REFERENCES` an edit: first what the assistant itself had used, since
that comes back ten times as often as what it only saw (docs/benchmarks.md), then what was mentioned last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice

from compaction.edits import MAX_REFERENCES, Edit
from compaction.messages import Message, Part, Role, Text, ToolCall, ToolResult
from compaction.references import Kind, argument_text, first_mentions, kind_of, runs
from compaction.view import COMPONENT_OPS, View

__all__ = ["MAX_REFERENCES", "is_distinctive", "with_references"]

#: Shorter names and ids are words of a language or library as often as not.
_LEAST_NAME, _LEAST_ID = 11, 7
#: Shorter figures are counts, ports and line numbers.
_LEAST_DIGITS = 5

#: File names that every project has.
_EVERYWHERE = re.compile(
    r"(README|CHANGELOG|LICENSE|CLAUDE|AGENTS)\.md|package(-lock)?\.json|(tsconfig|settings|config)\.json"
    r"|pyproject\.toml|setup\.(py|cfg)|requirements\.txt|(conftest|__init__|__main__|main|app|utils)\.py"
    r"|main\.go|go\.(mod|sum)|index\.(js|ts|html)|Cargo\.(toml|lock)|docker-compose\.yml|\.gitignore"
)

#: Words of the trade that only look like names, and what people write where any id would do.
_WORDS = frozenset({"PostgreSQL", "JavaScript", "TypeScript", "StackOverflow", "OpenTelemetry"})
_CLICHE = re.compile(r"a1b2c3|abc123|abcdef|123456|12345678|deadbeef|0{6}|x{4}", re.IGNORECASE)

_PLACEHOLDER = re.compile(r"example|localhost|127\.0\.0\.1|0\.0\.0\.0")
_OF_THE_SYSTEM = ("/dev/", "/usr/", "/bin/", "/etc/", "/proc/", "/opt/", "/var/", "/tmp")  # noqa: S108


def is_distinctive(name: str) -> bool:
    """Whether a mention of `name` says that its writer has what it was read from in mind."""
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


def with_references(edits: Sequence[Edit], messages: Sequence[Message], view: View) -> tuple[Edit, ...]:
    """The edits with the identifiers that the prompt no longer shows by each.

    Reads every edited text: call it off the request path. `messages` are those that the edits touch, `view`
    is the view after the edits.
    """
    prompt = _Prompt(view)
    by_position = {message.position: message for message in messages}
    return tuple(
        edit if edit.op in COMPONENT_OPS else replace(edit, references=_hidden(edit, by_position, prompt))
        for edit in edits
    )


def _hidden(edit: Edit, messages: Mapping[int, Message], prompt: _Prompt) -> tuple[str, ...]:
    touched = [messages[at] for at in range(edit.end, edit.position - 1, -1) if at in messages]
    used = [message for message in touched if message.role is Role.ASSISTANT]
    seen = [message for message in touched if message.role is not Role.ASSISTANT]
    names: dict[str, None] = {}
    for message in chain(used, seen):
        for text in _texts(message, edit.part):
            names |= prompt.mentioned(text)
    return tuple(islice(filter(prompt.lacks, names), MAX_REFERENCES))


class _Prompt:
    """What a prompt says, and what was found out about names and texts for the edits before: those of an
    eviction stand in the edits that it covers, too."""

    def __init__(self, view: View) -> None:
        texts = (text for message in view.messages for text in _texts(message, None))
        self._runs = set(runs("\n".join(texts)))
        # Searched as a text: who sees `a/b/c.py` knows `a/b` too. No name reaches over the end of a run.
        self._text = b"\n".join(self._runs)
        self._lacks: dict[str, bool] = {}
        self.mentioned = cache(first_mentions)

    def lacks(self, name: str) -> bool:
        """Whether it tells nothing of `name`, and that means something."""
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
    """`strings.Contains`, `os.path.join`: a module and what it has, as any program writes them."""
    first, dot, _ = name.partition(".")
    return bool(dot) and first.islower() and first.isalpha()
