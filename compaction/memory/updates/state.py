"""What upkeep remembers of a session between turns: small, and never more than bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TypeVar

from compaction.messages import JSON

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Something that was observed. `text` is what it says, `group` the command that it belongs to."""

    text: str
    turn: int
    position: int
    group: str = ""
    count: int = 1
    weight: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call whose result has not come yet."""

    kind: str
    path: str
    command: str
    diff: str
    turn: int
    position: int
    before: Mapping[str, str] = field(default_factory=dict)  #: values that the edit takes out
    after: Mapping[str, str] = field(default_factory=dict)  #: values that it puts in


#: How many of each are kept; the oldest go first.
LIMITS = {"files": 60, "failing": 60, "errors": 20, "tried": 4, "state": 5, "calls": 64, "dismissed": 60}


@dataclass(slots=True, kw_only=True)
class UpdaterState:
    """`turn` is the next one to read. `shown` are the items that upkeep put into the memory last, `dismissed`
    those that somebody has taken out since: they are not put in again."""

    turn: int = 0
    task: Remembered | None = None
    edit: Remembered | None = None
    files: dict[str, Remembered] = field(default_factory=dict)
    failing: dict[str, Remembered] = field(default_factory=dict)
    errors: dict[str, Remembered] = field(default_factory=dict)
    tried: dict[str, Remembered] = field(default_factory=dict)
    state: dict[str, Remembered] = field(default_factory=dict)
    calls: dict[str, Pending] = field(default_factory=dict)
    shown: tuple[tuple[str, str], ...] = ()
    dismissed: tuple[tuple[str, str], ...] = ()

    def bound(self) -> None:
        """Lets the oldest go where there are too many."""
        for name, most in LIMITS.items():
            held = getattr(self, name)
            if len(held) > most:
                setattr(self, name, _newest(held, most))

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> UpdaterState:
        """The watch that was stored. What an older version did not keep is empty."""
        kept = {name: _seen_all(data.get(name)) for name in ("files", "failing", "errors", "tried", "state")}
        return cls(
            turn=data.get("turn", 0),
            task=_seen(data.get("task")),
            edit=_seen(data.get("edit")),
            calls={key: Pending(**value) for key, value in data.get("calls", {}).items()},
            shown=_pairs(data.get("shown", ())),
            dismissed=_pairs(data.get("dismissed", ())),
            **kept,
        )


def _newest(held: dict[str, T] | tuple[T, ...], most: int) -> dict[str, T] | tuple[T, ...]:
    """The last `most` in order of insertion, which is order of time."""
    if isinstance(held, tuple):
        return held[-most:]
    return dict(islice(held.items(), len(held) - most, None))


def _seen(data: JSON) -> Remembered | None:
    return Remembered(**data) if data else None


def _seen_all(data: JSON) -> dict[str, Remembered]:
    return {key: Remembered(**value) for key, value in (data or {}).items()}


def _pairs(data: JSON) -> tuple[tuple[str, str], ...]:
    return tuple((name, item) for name, item in data)
