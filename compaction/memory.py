"""Working memory: the small, structured state of a session that survives every compaction.

It holds what a summary tends to lose: the task, the files that matter, decisions, what was tried and did
not work. It is kept small on purpose; what does not fit belongs in files of the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from compaction.errors import WorkingMemoryError
from compaction.messages import JSON
from compaction.tokens import TokenCounter

#: Tokens that a memory should stay under, and those over which it is refused.
ASKED_TOKENS = 800
MAX_TOKENS = 1_500

#: Files that can matter at once.
MAX_FILES = 7

_TITLES = {
    "task": "Task",
    "important_files": "Important files",
    "decisions": "Decisions",
    "open_questions": "Open questions",
    "next": "Next",
    "blockers": "Blockers",
    "recent_edits": "Recent edits",
    "tried": "Tried",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemory:
    """One revision of the memory. `recent_edits` are diffs, not descriptions: a description of a change
    makes the model write another one. `tried` says what was tried and why it did not work."""

    task: str = ""
    important_files: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    next: str = ""
    blockers: tuple[str, ...] = ()
    recent_edits: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> WorkingMemory:
        """The memory that a JSON object holds. Raises WorkingMemoryError."""
        return cls().patched(data)

    def to_json(self) -> dict[str, JSON]:
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    def patched(self, changes: Mapping[str, JSON]) -> WorkingMemory:
        """The memory with some fields replaced; null clears a field. Raises WorkingMemoryError."""
        values: dict[str, Any] = {name: _value(name, value) for name, value in changes.items()}
        return replace(self, **values)

    def render(self) -> str:
        """The text that stands in the prompt; "" for an empty memory."""
        lines: list[str] = []
        for name, title in _TITLES.items():
            value = getattr(self, name)
            if isinstance(value, str):
                lines += [f"{title}: {value}"] if value else []
            elif value:
                lines += [f"{title}:", *(f"- {item}" for item in value)]
        return "\n".join(["[Working memory]", *lines]) if lines else ""

    def checked(self, counter: TokenCounter) -> int:
        """The tokens that the memory takes. Raises WorkingMemoryError over `MAX_TOKENS`."""
        tokens = counter.count(self.render())
        if tokens > MAX_TOKENS:
            largest = max(_TITLES, key=lambda name: len(str(getattr(self, name))))
            told = f"the memory takes {tokens} tokens, at most {MAX_TOKENS}; {ASKED_TOKENS} are asked for"
            raise WorkingMemoryError(largest, told)
        return tokens


_FIELDS = {field.name: field for field in fields(WorkingMemory)}


def _value(name: str, value: JSON) -> str | tuple[str, ...]:
    if name not in _FIELDS:
        raise WorkingMemoryError(name, f"no such field; known: {', '.join(_FIELDS)}")
    single = isinstance(_FIELDS[name].default, str)
    if value is None:
        return "" if single else ()
    if single:
        if not isinstance(value, str):
            raise WorkingMemoryError(name, "must be a string")
        return value.strip()
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(v, str) for v in value)
    ):
        raise WorkingMemoryError(name, "must be a list of strings")
    if name == "important_files" and len(value) > MAX_FILES:
        raise WorkingMemoryError(name, f"at most {MAX_FILES} files can be important at once")
    return tuple(item.strip() for item in value if item.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one field between two revisions."""

    field: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def diff(old: WorkingMemory, new: WorkingMemory) -> tuple[Change, ...]:
    """The fields that differ, in the order of the fields."""
    found: list[Change] = []
    for name in _TITLES:
        before, after = _items(getattr(old, name)), _items(getattr(new, name))
        if before != after:
            added = tuple(item for item in after if item not in before)
            removed = tuple(item for item in before if item not in after)
            found.append(Change(field=name, added=added, removed=removed))
    return tuple(found)


def _items(value: str | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    return (value,) if value else ()


class Churn(StrEnum):
    """How a memory moves from revision to revision."""

    STEADY = "steady"
    ADDITIVE = "additive"  #: it mostly gains, as it should
    CHURNING = "churning"  #: the same fields are rewritten again and again


#: `next` changes with every turn by its nature.
_EXPECTED_TO_CHANGE = frozenset({"next", "recent_edits"})


def churn(revisions: Sequence[WorkingMemory]) -> tuple[Churn, float]:
    """The verdict over revisions, oldest first, and the share of changes that threw something away."""
    changes = [
        change
        for old, new in pairwise(revisions)
        for change in diff(old, new)
        if change.field not in _EXPECTED_TO_CHANGE
    ]
    if not changes:
        return Churn.STEADY, 0.0
    share = sum(bool(change.removed) for change in changes) / len(changes)
    return (Churn.CHURNING if share > 0.5 and len(changes) >= 3 else Churn.ADDITIVE), round(share, 3)
