"""Where each item of a working memory comes from: who wrote it, at which turn, from which message."""

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
    """The way by which an item came in."""

    PATCH = "patch"  #: the REST API
    TOOL = "tool"  #: the agent's tool
    PAGE = "page"  #: by hand
    UPKEEP = "upkeep"  #: observed in tool results
    READING = "reading"  #: a model read the transcript
    SHARED = "shared"  #: taken over from the project's shared memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """`turn` and `position` name the turn and the message that an item came from. `stale` says why it no
    longer holds, "" while it does; `overruled` are findings against it that somebody has called wrong."""

    author: Author
    via: Via = Via.PATCH
    turn: int = 0
    position: int | None = None
    stale: str = ""
    overruled: tuple[str, ...] = ()

    def judged(self, reason: str) -> Origin:
        """Stale for the reason, or no longer so for "". A finding that is told already keeps its turn, one
        that was overruled makes nothing stale again."""
        told = (*self.overruled, finding(self.stale))
        return self if finding(reason) in told else replace(self, stale=reason)

    def confirmed(self) -> Origin:
        """The item still holds, whatever made it stale."""
        if not self.stale:
            return self
        return replace(self, stale="", overruled=(*self.overruled, finding(self.stale)))


_SINCE = re.compile(r" since turn \d+$")


def finding(reason: str) -> str:
    """What was found against an item, without when."""
    return _SINCE.sub("", reason)


#: Of an item whose origin was never noted.
UNKNOWN = Origin(author=Author.HARNESS)

Key = tuple[str, str]  #: field and item


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """A memory with the origin of each of its items. `resolved` are the items that the change which led here
    settled; what else is missing was removed."""

    memory: WorkingMemory = field(default_factory=WorkingMemory)
    origins: Mapping[Key, Origin] = field(default_factory=dict)
    resolved: tuple[Key, ...] = ()

    def origin(self, name: str, item: str) -> Origin:
        return self.origins.get((name, item), UNKNOWN)

    def written(self, memory: WorkingMemory, origin: Origin, *, resolved: tuple[Key, ...] = ()) -> Notes:
        """The notes after somebody wrote `memory`: items that stay keep their origin, new ones have
        `origin`."""
        kept = {key: self.origins.get(key, UNKNOWN) for key in keys(self.memory)}
        return Notes(
            memory=memory,
            origins={key: kept.get(key, origin) for key in keys(memory)},
            resolved=tuple(key for key in resolved if key not in keys(memory)),
        )

    def judged(self, reasons: Mapping[Key, str]) -> Notes:
        """The notes with items marked stale for a reason, or no longer so for ""."""
        origins = {
            key: origin.judged(reasons[key]) if key in reasons else origin
            for key, origin in self.origins.items()
        }
        return replace(self, origins=origins)

    def confirmed(self, items: Collection[Key]) -> Notes:
        """The notes with items that somebody says still hold."""
        origins = {
            key: origin.confirmed() if key in items else origin for key, origin in self.origins.items()
        }
        return replace(self, origins=origins)

    @property
    def stale(self) -> Mapping[Key, str]:
        return {key: origin.stale for key, origin in self.origins.items() if origin.stale}

    def render(self, shown: Collection[int] = ()) -> str:
        """The text that stands in the prompt, stale items marked as such. What upkeep saw in a message that
        stands beside it word for word (`shown` are their positions) is left out: it would be told twice."""
        memory = self.memory
        for (name, item), origin in self.origins.items():
            if origin.via is Via.UPKEEP and origin.position in shown:
                value = memory.value(name)
                memory = memory.with_values({name: without(value, item)}) if value else memory
        return memory.render(self.stale)

    def to_json(self) -> dict[str, JSON]:
        """The origins and what was resolved; the memory itself is stored beside them."""
        items: dict[str, dict[str, JSON]] = {}
        for (name, item), origin in self.origins.items():
            told = {key: value for key, value in asdict(origin).items() if value not in (None, "", ())}
            items.setdefault(name, {})[item] = told
        return {"items": items, "resolved": [list(key) for key in self.resolved]}

    @classmethod
    def from_json(cls, memory: WorkingMemory, data: Mapping[str, JSON]) -> Notes:
        origins = {
            (name, item): _origin(told)
            for name, items in data.get("items", {}).items()
            for item, told in items.items()
        }
        return cls(
            memory=memory,
            origins=origins,
            resolved=tuple((name, item) for name, item in data.get("resolved", ())),
        )


def keys(memory: WorkingMemory) -> tuple[Key, ...]:
    """Every item of a memory with its field."""
    return tuple((name, item) for name, _ in memory.fields() for item in memory.items(name))


def lost_to(old: Notes, new: WorkingMemory, author: Author) -> Key | None:
    """The first item that a machine's change would take from a person; None where it takes none."""
    if author is Author.PERSON:
        return None
    kept = set(keys(new))
    return next(
        (key for key, origin in old.origins.items() if origin.author is Author.PERSON and key not in kept),
        None,
    )


def without(value: Value, item: str) -> Value:
    """A field's value without one item."""
    return "" if isinstance(value, str) else tuple(other for other in value if other != item)


def _origin(told: Mapping[str, JSON]) -> Origin:
    return Origin(
        author=Author(told["author"]),
        via=Via(told.get("via", Via.PATCH)),
        turn=told.get("turn", 0),
        position=told.get("position"),
        stale=told.get("stale", ""),
        overruled=tuple(told.get("overruled", ())),
    )
