"""The recap as a value: sections of items, its text in the prompt, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.messages import JSON


class Status(StrEnum):
    """Whether an item still needs work."""

    OPEN = "open"
    DONE = "done"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An identifier (see `compaction.references`) and where it was last met.

    `last` is the position of the newest message that mentions it, `own` of the newest message of the
    assistant itself that does, -1 where none did. `count` is how many messages of the assistant do.
    `weight` says how telling the place was where it was met last, as a logarithm of odds.
    """

    name: str
    last: int
    own: int = -1
    count: int = 0
    weight: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a recap.

    `text` says what it is about; two entities or facts of one text are the same thing, and the later one
    takes the place of the earlier. `notes` are what happened to it, `mentions` the identifiers that
    belong to it. `sources` are positions of messages that it comes from, oldest first.
    """

    text: str
    notes: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    status: Status | None = None
    sources: tuple[int, ...] = ()

    def render(self) -> str:
        """`- [status] text: note, note`, and below it a line for each group of names.

        Blanks are between names, since a blank costs no token of its own and a comma does.
        """
        status = f"[{self.status}] " if self.status else ""
        line = f"- {status}{self.text}" + (f": {', '.join(self.notes)}" if self.notes else "")
        if not self.mentions:
            return line
        groups: dict[Group, list[str]] = {group: [] for group in Group}
        for mention in self.mentions:
            groups[group_of(mention.name, mention.own)].append(mention.name)
        return line + "".join(f"{group.label} {' '.join(names)}" for group, names in groups.items() if names)


class Group(StrEnum):
    """How the names of an item are grouped, in the order in which they are shown."""

    USED = "used"  #: by the assistant itself
    SEEN = "seen"  #: only in what it read
    FIGURES = "figures"

    @property
    def label(self) -> str:
        return f"\n {self}:"


def group_of(name: str, own: int) -> Group:
    """The group of a name; `own` as in `Mention`."""
    if name.replace(".", "").isdecimal():
        return Group.FIGURES
    return Group.USED if own >= 0 else Group.SEEN


_FRAME = (
    "A record, not a request: the latest user message wins. tN = turn N."
    " search_history and expand_clip bring details back."
)
_SECTIONS = ("decisions", "entities", "facts", "open_items")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recap:
    """What an evicted span held. `first_turn` and `last_turn` are the turns that it stands for.

    `reserve` are identifiers that found no room, or that the prompt shows elsewhere: they are not in the
    text, but kept for the next recap to weigh again.
    """

    first_turn: int
    last_turn: int
    decisions: tuple[Item, ...] = ()
    entities: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    open_items: tuple[Item, ...] = ()
    reserve: tuple[Mention, ...] = ()

    def render(self) -> str:
        """The text that stands in the prompt. It says that it is a record, so that no model takes an old
        request in it for a new one."""
        span = f"turns {self.first_turn} to {self.last_turn}"
        lines = [f"[Recap of {span}, no longer shown. {_FRAME}]"]
        for title, items in self.sections().items():
            if items:
                lines.append(f"## {title}")
                lines.extend(item.render() for item in items)
        return "\n".join(lines)

    def sections(self) -> Mapping[str, tuple[Item, ...]]:
        """The sections by their titles, in the order in which they are shown."""
        return {
            "Decisions": self.decisions,
            "Entities": self.entities,
            "Facts": self.facts,
            "Open items": self.open_items,
        }

    def to_json(self) -> dict[str, JSON]:
        """A JSON object that `from_json` reads back. A mention is a list, since there are hundreds."""
        return {
            "first_turn": self.first_turn,
            "last_turn": self.last_turn,
            "reserve": list(map(_mention_json, self.reserve)),
            **{name: list(map(_item_json, getattr(self, name))) for name in _SECTIONS},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Recap:
        """The recap that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: the data is not a recap's JSON.
        """
        return cls(
            first_turn=data["first_turn"],
            last_turn=data["last_turn"],
            decisions=tuple(map(_item, data["decisions"])),
            entities=tuple(map(_item, data["entities"])),
            facts=tuple(map(_item, data["facts"])),
            open_items=tuple(map(_item, data["open_items"])),
            reserve=tuple(map(_mention, data["reserve"])),
        )


def _item_json(item: Item) -> dict[str, JSON]:
    return {
        "text": item.text,
        "notes": list(item.notes),
        "mentions": list(map(_mention_json, item.mentions)),
        "status": item.status.value if item.status else None,
        "sources": list(item.sources),
    }


def _item(data: Mapping[str, JSON]) -> Item:
    return Item(
        text=data["text"],
        notes=tuple(data["notes"]),
        mentions=tuple(map(_mention, data["mentions"])),
        status=Status(data["status"]) if data["status"] else None,
        sources=tuple(data["sources"]),
    )


def _mention_json(mention: Mention) -> list[JSON]:
    return [mention.name, mention.last, mention.own, mention.count, mention.weight]


def _mention(data: Sequence[JSON]) -> Mention:
    name, last, own, count, weight = data
    return Mention(name=name, last=last, own=own, count=count, weight=weight)
