"""Origins: the author, turn and source message of each item of a working memory."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from compaction.memory.schema import Value
from compaction.memory.values import WorkingMemory
from compaction.messages import JSON


class Author(StrEnum):
    MODEL = "model"
    HARNESS = "harness"
    PERSON = "person"


class Via(StrEnum):
    """How an item was written."""

    PATCH = "patch"  #: the REST API
    TOOL = "tool"  #: the agent's tool
    PAGE = "page"  #: a page of the user interface
    AUTO_UPDATE = "upkeep"  #: observed in tool results
    EXTRACTION = "reading"  #: a model read the transcript
    SHARED = "shared"  #: imported from the project's shared memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of one item.

    `turn` and `position` identify the message from which it was learned. `stale` is the reason why it is no
    longer valid, or "" if it is. `overruled` are findings against it that a user rejected by confirming the
    item.
    """

    author: Author
    via: Via = Via.PATCH
    turn: int = 0
    position: int | None = None
    stale: str = ""
    overruled: tuple[str, ...] = ()

    def judged(self, reason: str) -> Origin:
        """Mark the item stale for `reason`, or valid for "".

        A known finding keeps its turn, and an overruled one does not make the item stale again.
        """
        known = (*self.overruled, finding(self.stale))
        return self if finding(reason) in known else replace(self, stale=reason)

    def confirmed(self) -> Origin:
        """Mark the item valid, and overrule the finding against it."""
        if not self.stale:
            return self
        return replace(self, stale="", overruled=(*self.overruled, finding(self.stale)))


_SINCE = re.compile(r" since turn \d+$")


def finding(reason: str) -> str:
    """Return the reason without its turn."""
    return _SINCE.sub("", reason)


#: The origin of items whose origin was not recorded.
UNKNOWN = Origin(author=Author.HARNESS)

Key = tuple[str, str]  #: field and item


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """A memory with the origin of each of its items.

    `resolved` are the items that the last change resolved; other missing items were removed.
    """

    memory: WorkingMemory = field(default_factory=WorkingMemory)
    origins: Mapping[Key, Origin] = field(default_factory=dict)
    resolved: tuple[Key, ...] = ()

    def origin(self, name: str, item: str) -> Origin:
        """Return the origin of an item."""
        return self.origins.get((name, item), UNKNOWN)

    def written(self, memory: WorkingMemory, origin: Origin, *, resolved: tuple[Key, ...] = ()) -> Notes:
        """Return the notes with a new `memory`. Existing items keep their origin, new ones get `origin`."""
        kept = {key: self.origins.get(key, UNKNOWN) for key in keys(self.memory)}
        return Notes(
            memory=memory,
            origins={key: kept.get(key, origin) for key in keys(memory)},
            resolved=tuple(key for key in resolved if key not in keys(memory)),
        )

    def judged(self, reasons: Mapping[Key, str]) -> Notes:
        """Return the notes with items marked stale for a reason, or valid for ""."""
        origins = {
            key: origin.judged(reasons[key]) if key in reasons else origin
            for key, origin in self.origins.items()
        }
        return replace(self, origins=origins)

    def confirmed(self, items: Collection[Key]) -> Notes:
        """Return the notes with these items marked valid."""
        origins = {
            key: origin.confirmed() if key in items else origin for key, origin in self.origins.items()
        }
        return replace(self, origins=origins)

    @property
    def stale(self) -> Mapping[Key, str]:
        """The stale items with the reason of each."""
        return {key: origin.stale for key, origin in self.origins.items() if origin.stale}

    def render(self, shown: Collection[int] = ()) -> str:
        """Return the text for the prompt, with stale items marked.

        `shown` are messages that the prompt contains unchanged. Automatic items that come from them are
        excluded as duplicates.
        """
        memory = self.memory
        for (name, item), origin in self.origins.items():
            if origin.via is Via.AUTO_UPDATE and origin.position in shown:
                value = memory.value(name)
                memory = memory.with_values({name: without(value, item)}) if value else memory
        return memory.render(self.stale)

    def to_json(self) -> dict[str, JSON]:
        """Return the origins and resolved items; the memory itself is stored separately."""
        items: dict[str, dict[str, JSON]] = {}
        for (name, item), origin in self.origins.items():
            stored = {key: value for key, value in asdict(origin).items() if value not in (None, "", ())}
            items.setdefault(name, {})[item] = stored
        return {"items": items, "resolved": [list(key) for key in self.resolved]}

    @classmethod
    def from_json(cls, memory: WorkingMemory, data: Mapping[str, JSON]) -> Notes:
        """Return the notes from `to_json` and the memory."""
        origins = {
            (name, item): _origin(stored)
            for name, items in data.get("items", {}).items()
            for item, stored in items.items()
        }
        return cls(
            memory=memory,
            origins=origins,
            resolved=tuple((name, item) for name, item in data.get("resolved", ())),
        )


def keys(memory: WorkingMemory) -> tuple[Key, ...]:
    """Return every item of a memory with its field."""
    return tuple((name, item) for name, _ in memory.fields() for item in memory.items(name))


def first_protected_loss(old: Notes, new: WorkingMemory, author: Author) -> Key | None:
    """Return the first item of a user that another author's change would remove, or None."""
    if author is Author.PERSON:
        return None
    kept = set(keys(new))
    return next(
        (key for key, origin in old.origins.items() if origin.author is Author.PERSON and key not in kept),
        None,
    )


def without(value: Value, item: str) -> Value:
    """Return a field's value without one item."""
    return "" if isinstance(value, str) else tuple(other for other in value if other != item)


def _origin(stored: Mapping[str, JSON]) -> Origin:
    return Origin(
        author=Author(stored["author"]),
        via=Via(stored.get("via", Via.PATCH)),
        turn=stored.get("turn", 0),
        position=stored.get("position"),
        stale=stored.get("stale", ""),
        overruled=tuple(stored.get("overruled", ())),
    )
