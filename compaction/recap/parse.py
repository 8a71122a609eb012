"""Parse a recap that a user wrote, so that the next recap can include it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from compaction.identifiers.extract import references
from compaction.recap.handles import handles_of
from compaction.recap.values import SECTIONS, Group, Item, Mention, Recap, Status

#: Beginnings of the generated lines around a recap, which are not part of the user's text.
_FRAME = "[Recap of "
_MEMORY = "[Working memory]"

_HEADING = re.compile(r"#+\s*(.+?):?\s*")
_ITEM = re.compile(r"[-*•]\s+(?:\[(open|done|superseded)\]\s+)?(.+)", re.IGNORECASE)

#: A line that continues an item, such as those with the handles and names of a file.
_CONTINUED = re.compile(r"[ \t]+(\w+): *(.*)")
_COMMAND = re.compile(r"(`.+?`): ((?:ok|failed|ran|started|stopped) t\d+\b.*)")
_HANDLES = "handles"
_LABELS = frozenset({_HANDLES, *map(str, Group)})
_LEFT_OUT = re.compile(r"\d+ older handles? (?:is|are) not listed\b.*")

#: The fields of the sections, by title in lower case.
_FIELDS = {title.lower(): name for name, title in SECTIONS.items()}


@dataclass(slots=True)
class _Line:
    """A line of the user's text, its section, and the handles and names of the lines that continue it."""

    section: str
    text: str
    groups: dict[str, list[str]] = field(default_factory=dict)


def recap_parse(text: str, *, previous: Recap, position: int) -> Recap:
    """Return the recap in `text`, for the same turns as `previous`, which it replaces.

    Each line is an item of the section whose title precedes it, or a fact without a title. Items count as
    mentioned at `position`, the last message that the recap replaces, so that the next recap ranks them as
    new. Lines with the handles and names of an entity keep what `previous` knows about them.
    """
    sections: dict[str, list[Item]] = {name: [] for name in SECTIONS}
    lines = _lines(text)
    known = {mention.name: mention for item in previous.entities for mention in item.mentions}
    handles = {handled.handle for handled in handles_of(previous)}
    for line in lines:
        sections[line.section].append(_item(line, position, known, handles))
    names = references("\n".join(line.text for line in lines))
    named = {name: Mention(name=name, last=position, own=position, own_count=1) for name in names}
    kept = tuple(mention for mention in previous.reserve if mention.name not in named)
    has_left_out = any(map(_LEFT_OUT.fullmatch, text.splitlines()))
    return Recap(
        first_turn=previous.first_turn,
        last_turn=previous.last_turn,
        reserve=(*named.values(), *kept),
        handles_left_out=previous.handles_left_out if has_left_out else 0,
        **{name: tuple(items) for name, items in sections.items()},
    )


def _lines(text: str) -> Sequence[_Line]:
    """Return the user's lines, each with its section."""
    section, found, latest = "facts", list[_Line](), None
    for raw in text.splitlines():
        line = raw.strip()
        if line == _MEMORY:
            break
        if latest and (continued := _CONTINUED.fullmatch(raw)):
            label = continued[1]
            if latest.section == "entities" and label in _LABELS:
                latest.groups.setdefault(label, []).extend(continued[2].split())
            else:
                latest.text += f"; {line}"
            continue
        heading = _HEADING.fullmatch(line)
        if heading and (name := _FIELDS.get(heading[1].lower())):
            section, latest = name, None
        elif line and not line.startswith(_FRAME) and not _LEFT_OUT.fullmatch(line):
            latest = _Line(section, line)
            found.append(latest)
    return found


def _item(line: _Line, position: int, known: Mapping[str, Mention], handles: Collection[str]) -> Item:
    found = _ITEM.fullmatch(line.text)
    status, text = (found[1], found[2]) if found else (None, line.text)
    text = " ".join(text.split())
    notes: tuple[str, ...] = ()
    if line.section == "entities" and ": " in text:
        # Notes identify an entity as a file for the next recap.
        text, _, note = text.partition(": ")
        notes = (note,)
    elif line.section == "facts" and (command := _COMMAND.fullmatch(text)):
        # The next run of the command replaces this one.
        text, notes = command[1], (command[2],)
    written = Mention(name="", last=position, own=position, own_count=1)
    names = dict.fromkeys(name for group in Group for name in line.groups.get(group, ()))
    return Item(
        text=text,
        notes=notes,
        mentions=tuple(known.get(name, written._replace(name=name)) for name in names),
        handles=tuple(handle for handle in line.groups.get(_HANDLES, ()) if handle in handles),
        status=Status(status.lower()) if status else None,
        sources=(position,),
    )
