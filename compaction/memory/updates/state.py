"""The state of automatic updates between turns, of bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TypeVar

from compaction.messages import JSON

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """An observation, such as a failure. `group` is the command that it belongs to."""

    text: str
    turn: int
    position: int
    group: str = ""
    count: int = 1
    weight: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A tool call without a result yet."""

    kind: str
    path: str
    command: str
    diff: str
    turn: int
    position: int
    before: Mapping[str, str] = field(default_factory=dict)  #: values that the edit removes
    after: Mapping[str, str] = field(default_factory=dict)  #: values that it adds


#: Maximum number of entries of each kind. The oldest are dropped first.
LIMITS = {"files": 60, "failing": 60, "errors": 20, "tried": 4, "state": 5, "calls": 64, "dismissed": 60}


@dataclass(slots=True, kw_only=True)
class UpdaterState:
    """The state of automatic updates. `turn` is the next turn to read.

    `finished` is set if the assistant has ended its turn. `settled` are the texts of steps of failed commands
    that have succeeded since, by command. `shown` are the automatic items of the last update; `dismissed` are
    those that another author has removed, which are not added again.
    """

    turn: int = 0
    task: Remembered | None = None
    finished: bool = False
    edit: Remembered | None = None
    files: dict[str, Remembered] = field(default_factory=dict)
    failing: dict[str, Remembered] = field(default_factory=dict)
    errors: dict[str, Remembered] = field(default_factory=dict)
    tried: dict[str, Remembered] = field(default_factory=dict)
    state: dict[str, Remembered] = field(default_factory=dict)
    settled: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[str, PendingCall] = field(default_factory=dict)
    shown: tuple[tuple[str, str], ...] = ()
    dismissed: tuple[tuple[str, str], ...] = ()

    def bound(self) -> None:
        """Drop the oldest entries above the limits."""
        for name, maximum in LIMITS.items():
            entries = getattr(self, name)
            if len(entries) > maximum:
                setattr(self, name, _newest(entries, maximum))

    def to_json(self) -> dict[str, JSON]:
        """Return the state for storage."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> UpdaterState:
        """Return a stored state. Fields that an older version did not store are empty."""
        collections = {
            name: _observed_all(data.get(name)) for name in ("files", "failing", "errors", "tried", "state")
        }
        return cls(
            turn=data.get("turn", 0),
            task=_observed(data.get("task")),
            finished=data.get("finished", False),
            settled=data.get("settled", {}),
            edit=_observed(data.get("edit")),
            calls={key: PendingCall(**value) for key, value in data.get("calls", {}).items()},
            shown=_pairs(data.get("shown", ())),
            dismissed=_pairs(data.get("dismissed", ())),
            **collections,
        )


def _newest(entries: dict[str, T] | tuple[T, ...], maximum: int) -> dict[str, T] | tuple[T, ...]:
    """Return the last `maximum` entries in the order of insertion."""
    if isinstance(entries, tuple):
        return entries[-maximum:]
    return dict(islice(entries.items(), len(entries) - maximum, None))


def _observed(data: JSON) -> Remembered | None:
    return Remembered(**data) if data else None


def _observed_all(data: JSON) -> dict[str, Remembered]:
    return {key: Remembered(**value) for key, value in (data or {}).items()}


def _pairs(data: JSON) -> tuple[tuple[str, str], ...]:
    return tuple((name, item) for name, item in data)
