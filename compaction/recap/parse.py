"""A recap that a person wrote: from its text to the value, so that the next recap can fold it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compaction.recap.values import Item, Mention, Recap, Status
from compaction.references import references

#: What stands around the recap in the prompt and is not the writer's.
_FRAME = "[Recap of "
_MEMORY = "[Working memory]"

_HEADING = re.compile(r"#+\s*(.+?):?\s*")
_ITEM = re.compile(r"[-*•]\s+(?:\[(open|done|superseded)\]\s+)?(.+)", re.IGNORECASE)

#: A line that goes on with the one above: the names of a file.
_CONTINUED = re.compile(r"\n[ \t]+(?=\w+:)")

_DECISIONS, _ENTITIES, _FACTS, _OPEN = "decisions", "entities", "facts", "open items"


def recap_parse(text: str, *, standing: Recap, position: int) -> Recap:
    """The recap that `text` tells, for the turns of the one that stood there before.

    A line is an item, under its section's title; without a title it is a fact. What a person wrote counts as
    said at `position`, the last message that it stands for: new, so that it is not the first to go when the
    next recap has little room.
    """
    sections: dict[str, list[Item]] = {_DECISIONS: [], _ENTITIES: [], _FACTS: [], _OPEN: []}
    lines = list(_lines(text))
    for section, line in lines:
        sections[section].append(_item(line, section, position))
    names = references("\n".join(line for _, line in lines))
    named = {name: Mention(name=name, last=position, own=position, count=1) for name in names}
    kept = tuple(mention for mention in standing.reserve if mention.name not in named)
    return Recap(
        first_turn=standing.first_turn,
        last_turn=standing.last_turn,
        decisions=tuple(sections[_DECISIONS]),
        entities=tuple(sections[_ENTITIES]),
        facts=tuple(sections[_FACTS]),
        open_items=tuple(sections[_OPEN]),
        reserve=(*named.values(), *kept),
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The writer's lines with the section that each is in."""
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
        # What was done to a file are its notes: by them the next recap knows the file again.
        text, _, told = text.partition(": ")
        notes = (told,)
    return Item(
        text=text,
        notes=notes,
        status=Status(status.lower()) if status else None,
        sources=(position,),
    )
