"""The fields of a working memory: eight that every project has, and those that a project adds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.errors import WorkingMemoryError
from compaction.messages import JSON

#: Fields that hold one text, and those that hold a list of items, in the order in which they are shown.
TITLES: Mapping[str, str] = {
    "task": "Task",
    "important_files": "Important files",
    "decisions": "Decisions",
    "open_questions": "Open questions",
    "next": "Next",
    "blockers": "Blockers",
    "recent_edits": "Recent edits",
    "tried": "Tried",
}
SINGLE = frozenset({"task", "next"})

#: Files that can matter at once.
MAX_FILES = 7

#: Fields that a project may add.
MAX_CUSTOM_FIELDS = 12

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomField:
    """A field of a project's own. `single`: one text, else a list; `max_items` bounds the list."""

    name: str
    single: bool = False
    max_items: int | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields that a project added. Raises WorkingMemoryError for names that cannot be."""

    fields: tuple[CustomField, ...] = ()

    def __post_init__(self) -> None:
        seen = set(TITLES)
        if len(self.fields) > MAX_CUSTOM_FIELDS:
            raise WorkingMemoryError("fields", f"at most {MAX_CUSTOM_FIELDS} fields can be added")
        for field in self.fields:
            if not is_custom_name(field.name):
                told = "must begin with a letter and hold at most 40 of a-z, 0-9 and _"
                raise WorkingMemoryError("fields", f"the name {field.name!r} {told}")
            if field.name in seen:
                raise WorkingMemoryError("fields", f"the field {field.name!r} is there already")
            seen.add(field.name)

    @property
    def names(self) -> tuple[str, ...]:
        return (*TITLES, *(field.name for field in self.fields))

    def value(self, name: str, value: JSON) -> Value:
        """What a JSON value means for a field; null empties it. Raises WorkingMemoryError."""
        if name not in self.names:
            raise WorkingMemoryError(name, f"no such field; known: {', '.join(self.names)}")
        custom = next((field for field in self.fields if field.name == name), None)
        single = custom.single if custom else name in SINGLE
        return _text(name, value) if single else _items(name, value, custom)


def is_custom_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in TITLES


def _text(name: str, value: JSON) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WorkingMemoryError(name, "must be a string")
    return value.strip()


def _items(name: str, value: JSON, custom: CustomField | None) -> tuple[str, ...]:
    if value is None:
        return ()
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_list or not all(isinstance(item, str) for item in value):
        raise WorkingMemoryError(name, "must be a list of strings")
    if name == "important_files" and len(value) > MAX_FILES:
        raise WorkingMemoryError(name, f"at most {MAX_FILES} files can be important at once")
    if custom is not None and custom.max_items is not None and len(value) > custom.max_items:
        raise WorkingMemoryError(name, f"at most {custom.max_items} items")
    return tuple(item.strip() for item in value if item.strip())


def title_of(name: str) -> str:
    return TITLES.get(name) or name.replace("_", " ").capitalize()


#: A project that added nothing.
PLAIN = Schema()
