"""Parse a recap that a user wrote, so that the next recap can include it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compaction.recap.values import Item, Mention, Recap, Status
from compaction.references import references

#: Beginnings of the generated lines around a recap, which are not part of the user's text.
_FRAME = "[Recap of "
_MEMORY = "[Working memory]"

_HEADING = re.compile(r"#+\s*(.+?):?\s*")
_ITEM = re.compile(r"[-*•]\s+(?:\[(open|done|superseded)\]\s+)?(.+)", re.IGNORECASE)

#: Matches a line with the names of a file, which continues the previous line.
_CONTINUED = re.compile(r"\n[ \t]+(?=\w+:)")

_DECISIONS, _ENTITIES, _FACTS, _OPEN = "decisions", "entities", "facts", "open items"


def recap_parse(text: str, *, previous: Recap, position: int) -> Recap:
    """Return the recap in `text`, for the same turns as `previous`, which it replaces.

    Each line is an item of the section whose title precedes it, or a fact without a title. Items count as
    mentioned at `position`, the last message that the recap replaces, so that the next recap ranks them as
    new.
    """
    sections: dict[str, list[Item]] = {_DECISIONS: [], _ENTITIES: [], _FACTS: [], _OPEN: []}
    lines = list(_lines(text))
    for section, line in lines:
        sections[section].append(_item(line, section, position))
    names = references("\n".join(line for _, line in lines))
    named = {name: Mention(name=name, last=position, own=position, own_count=1) for name in names}
    kept = tuple(mention for mention in previous.reserve if mention.name not in named)
    return Recap(
        first_turn=previous.first_turn,
        last_turn=previous.last_turn,
        decisions=tuple(sections[_DECISIONS]),
        entities=tuple(sections[_ENTITIES]),
        facts=tuple(sections[_FACTS]),
        open_items=tuple(sections[_OPEN]),
        reserve=(*named.values(), *kept),
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the user's lines, each with its section."""
    section = _FACTS
    for line in map(str.strip, _CONTINUED.sub("; ", text).splitlines()):
        if line == _MEMORY:
            return
        heading = _HEADING.fullmatch(line)
        title = heading[1].lower() if heading else ""
        if title in (_DECISIONS, _ENTITIES, _FACTS, _OPEN):
            section = title
        elif line and not line.startswith(_FRAME):
            yield section, line


def _item(line: str, section: str, position: int) -> Item:
    found = _ITEM.fullmatch(line)
    status, text = (found[1], found[2]) if found else (None, line)
    text = " ".join(text.split())
    notes: tuple[str, ...] = ()
    if section == _ENTITIES and ": " in text:
        # Notes identify an entity as a file for the next recap.
        text, _, note = text.partition(": ")
        notes = (note,)
    return Item(
        text=text,
        notes=notes,
        status=Status(status.lower()) if status else None,
        sources=(position,),
    )
