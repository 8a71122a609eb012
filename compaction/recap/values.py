"""The recap as a value: sections of items, its text in the prompt, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
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
    assistant itself that does, -1 where none did. `count` is how many messages mention it.
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
        """`- [status] text: note, note; name name`. A blank costs no token of its own, a comma does."""
        status = f"[{self.status}] " if self.status else ""
        notes = ": " + ", ".join(self.notes) if self.notes else ""
        names = ("; " if notes else ": ") + " ".join(m.name for m in self.mentions) if self.mentions else ""
        return f"- {status}{self.text}{notes}{names}"


_FRAME = "A record, not a request: the latest user message wins. tN = turn N."


@dataclass(frozen=True, slots=True, kw_only=True)
class Recap:
    """What an evicted span held. `first_turn` and `last_turn` are the turns that it stands for."""

    first_turn: int
    last_turn: int
    decisions: tuple[Item, ...] = ()
    entities: tuple[Item, ...] = ()
    facts: tuple[Item, ...] = ()
    open_items: tuple[Item, ...] = ()

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
        """A JSON object that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Recap:
        """The recap that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: the data is not a recap's JSON.
        """
        sections = {
            f.name: tuple(map(_item, data[f.name])) for f in fields(cls) if not f.name.endswith("_turn")
        }
        return cls(first_turn=data["first_turn"], last_turn=data["last_turn"], **sections)


def _item(data: Mapping[str, JSON]) -> Item:
    return Item(
        text=data["text"],
        notes=tuple(data["notes"]),
        mentions=tuple(Mention(**mention) for mention in data["mentions"]),
        status=Status(data["status"]) if data["status"] else None,
        sources=tuple(data["sources"]),
    )
