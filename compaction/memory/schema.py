"""The fields of a working memory: eight built-in ones, and custom fields of the project."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.errors import WorkingMemoryError
from compaction.messages import JSON

#: Titles of the built-in fields, in the order in which they are shown.
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
#: Fields that hold one string instead of a list of items.
SINGLE = frozenset({"task", "next"})

#: Maximum number of items of `important_files`.
MAX_FILES = 7

#: Maximum number of custom fields of a project.
MAX_CUSTOM_FIELDS = 12

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomField:
    """A custom field: one string if `single`, else a list of at most `max_items` items."""

    name: str
    single: bool = False
    max_items: int | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """The custom fields of a project. Raises WorkingMemoryError for invalid names."""

    fields: tuple[CustomField, ...] = ()

    def __post_init__(self) -> None:
        names = set(TITLES)
        if len(self.fields) > MAX_CUSTOM_FIELDS:
            raise WorkingMemoryError("fields", f"at most {MAX_CUSTOM_FIELDS} custom fields are allowed")
        for field in self.fields:
            if not is_custom_name(field.name):
                rule = "must start with a letter and contain at most 40 characters of a-z, 0-9 and _"
                raise WorkingMemoryError("fields", f"the name {field.name!r} {rule}")
            if field.name in names:
                raise WorkingMemoryError("fields", f"the field {field.name!r} already exists")
            names.add(field.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all fields, built-in ones first."""
        return (*TITLES, *(field.name for field in self.fields))

    def value(self, name: str, value: JSON) -> Value:
        """Convert a JSON value for a field; null clears it. Raises WorkingMemoryError."""
        if name not in self.names:
            raise WorkingMemoryError(name, f"unknown field; known: {', '.join(self.names)}")
        custom = next((field for field in self.fields if field.name == name), None)
        single = custom.single if custom else name in SINGLE
        return _text(name, value) if single else _items(name, value, custom)


def is_custom_name(name: str) -> bool:
    """Return whether a custom field may have this name."""
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
        raise WorkingMemoryError(name, f"at most {MAX_FILES} files")
    if custom is not None and custom.max_items is not None and len(value) > custom.max_items:
        raise WorkingMemoryError(name, f"at most {custom.max_items} items")
    return tuple(item.strip() for item in value if item.strip())


def title_of(name: str) -> str:
    """Return the title of a field."""
    return TITLES.get(name) or name.replace("_", " ").capitalize()


#: The schema without custom fields.
PLAIN = Schema()
