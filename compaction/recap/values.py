"""The recap as a value: sections of items, its text in the prompt, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from compaction.messages import JSON
from compaction.sizes.tokens import TokenCounter


class Status(StrEnum):
    """Whether an item still needs work."""

    OPEN = "open"
    DONE = "done"
    SUPERSEDED = "superseded"


class Mention(NamedTuple):
    """An identifier (see `compaction.identifiers.extract`) and its last mention.

    `last` is the position of the newest message that mentions it; `own` that of the newest assistant
    message that does, or -1. `messages` and `own_count` are the numbers of messages and of assistant messages
    that do. `among` is the number of identifiers in the newest one.
    """

    name: str
    last: int
    own: int = -1
    own_count: int = 0
    messages: int = 1
    among: int = 1


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line of a recap.

    `text` is its subject; a later entity or fact with the same text replaces the earlier one. `notes` list
    the operations on it, `mentions` are the identifiers that belong to it. `handles` retrieve its outputs
    that earlier compactions shortened, newest first. `sources` are the positions of its source messages,
    oldest first.
    """

    text: str
    notes: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    handles: tuple[str, ...] = ()
    status: Status | None = None
    sources: tuple[int, ...] = ()

    def render(self) -> str:
        """Return `- [status] text: note, note`, followed by a line for each group of names.

        Names are separated by spaces, because commas would take additional tokens. A text with line breaks,
        such as the path of a call, becomes one line, so that it cannot add headings or items.
        """
        return self._rendered

    @cached_property
    def _rendered(self) -> str:
        status = f"[{self.status}] " if self.status else ""
        text = self.text if self.text.isprintable() else " ".join(self.text.split())
        line = f"- {status}{text}" + (f": {', '.join(self.notes)}" if self.notes else "")
        if self.handles:
            line += f"\n handles: {' '.join(self.handles)}"
        if not self.mentions:
            return line
        groups: dict[Group, list[str]] = {group: [] for group in _LABELS}
        for mention in self.mentions:
            name = mention[0]  # faster than unpacking: there are hundreds
            groups[group_of(name, mention[2])].append(name)
        named = (f"{_LABELS[group]} {' '.join(names)}" for group, names in groups.items() if names)
        return line + "".join(named)


class Group(StrEnum):
    """The groups of names in an item, in order."""

    USED = "used"  #: used by the assistant
    SEEN = "seen"  #: by the assistant's sources only
    FIGURES = "figures"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {group: f"\n {group}:" for group in Group}
_USED, _SEEN, _FIGURES = Group  # faster to read than attributes of the class


def group_of(name: str, own: int) -> Group:
    """Return the group of a name; `own` as in `Mention`."""
    # Most names begin with an ASCII letter, which is faster to see.
    if not "9" < name[0] < "\x80" and name.replace(".", "").isdecimal():
        return _FIGURES
    return _USED if own >= 0 else _SEEN


_FRAME = (
    "A record, not a request: the latest user message wins. tN = turn N."
    " search_history and expand_clip, if you have them, bring details back."
)
#: The fields of the sections, in order, with their titles.
SECTIONS = {"decisions": "Decisions", "entities": "Entities", "facts": "Facts", "open_items": "Open items"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recap:
    """The recap of the turns `first_turn` to `last_turn`.

    `reserve` are identifiers that did not fit, or that the prompt shows elsewhere. They are not part of the
    text, but are candidates for the next recap. `handles_left_out` counts the handles that did not fit.
    """

    first_turn: int
    last_turn: int
    decisions: tuple[Item, ...] = ()
    entities: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    open_items: tuple[Item, ...] = ()
    reserve: tuple[Mention, ...] = ()
    handles_left_out: int = 0

    def render(self) -> str:
        """Return the text for the prompt, marked as a record, so that models do not follow old requests."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the lines of the text, those of an item as one string."""
        span = f"turns {self.first_turn} to {self.last_turn}"
        lines = [f"[Recap of {span}, no longer shown. {_FRAME}]"]
        for title, items in self.sections().items():
            if items:
                lines.append(f"## {title}")
                lines.extend(item.render() for item in items)
        if self.handles_left_out:
            number = self.handles_left_out
            handles = "handle is" if number == 1 else "handles are"
            lines.append(f"{number} older {handles} not listed.")
        return lines

    def tokens(self, counter: TokenCounter) -> int:
        """Return the tokens of the text. Counts by line, because most lines were counted before."""
        *lines, last = self.lines()
        return sum(counter.count(f"{line}\n") for line in lines) + counter.count(last)

    def sections(self) -> Mapping[str, tuple[Item, ...]]:
        """Return the sections by title, in order."""
        return {title: getattr(self, name) for name, title in SECTIONS.items()}

    def to_json(self) -> dict[str, JSON]:
        """Return a JSON object for `from_json`. Mentions are lists, since there are hundreds."""
        return {
            "first_turn": self.first_turn,
            "last_turn": self.last_turn,
            "reserve": list(map(list, self.reserve)),
            "handles_left_out": self.handles_left_out,
            **{name: list(map(_item_json, getattr(self, name))) for name in SECTIONS},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Recap:
        """Return the recap from the JSON of `to_json`.

        Raises:
            KeyError, TypeError, ValueError: the data is not the JSON of a recap.
        """
        return cls(
            first_turn=data["first_turn"],
            last_turn=data["last_turn"],
            reserve=tuple(map(_mention, data["reserve"])),
            handles_left_out=data["handles_left_out"],
            **{name: tuple(map(_item, data[name])) for name in SECTIONS},
        )


def _item_json(item: Item) -> dict[str, JSON]:
    return {
        "text": item.text,
        "notes": list(item.notes),
        "mentions": list(map(list, item.mentions)),
        "handles": list(item.handles),
        "status": item.status.value if item.status else None,
        "sources": list(item.sources),
    }


def _item(data: Mapping[str, JSON]) -> Item:
    return Item(
        text=data["text"],
        notes=tuple(data["notes"]),
        mentions=tuple(map(_mention, data["mentions"])),
        handles=tuple(data["handles"]),
        status=Status(data["status"]) if data["status"] else None,
        sources=tuple(data["sources"]),
    )


def _mention(data: Sequence[JSON]) -> Mention:
    name, last, own, count, messages, among = data
    return Mention(name, last, own, count, messages, among)
