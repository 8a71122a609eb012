"""The result of a replay: figures per call, and their sums over many sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import reduce
from operator import add
from typing import Any

from compaction.messages import JSON, USAGE_COUNTS, Usage

#: Maximum number of lost references that a result lists; the others are counted.
MAX_LOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A reference that is not in the prompt of `turn`. Last mentioned at `position`, in `seen_turn`.

    `why` is `hidden` if a handle retrieves it, `evicted`, or `over` if the prompt cannot be sent.
    """

    turn: int
    name: str
    position: int
    seen_turn: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Counts of identifiers that the model's answers used and the recorded prompt had mentioned.

    Under the policy, they were in the prompt (`kept`), retrievable by a handle (`recoverable`), or `lost`:
    `kept + recoverable + lost = used`. Of the lost ones, `searched` were looked up with the agent's search,
    and `found` are those for which it returned the message that mentioned them last.
    """

    used: int = 0
    kept: int = 0
    recoverable: int = 0
    lost: int = 0
    searched: int = 0
    found: int = 0

    def __add__(self, other: References) -> References:
        return References(**_sums(self, other))


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Figures per call. `prompts`, `cached` and `outputs` are provider tokens.

    `sizes` are the estimates from which they are derived; `lost` counts lost references.
    """

    turns: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    prompts: tuple[int, ...] = ()
    cached: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One session under one policy and budget.

    `budget` is in estimated tokens of the logged content, like `sizes`. `compacted` are the first turns after
    each compaction, `rebilled` the provider tokens that were re-written to the cache for them. `summaries` is
    the usage of each call of the summarizer model, `failures` counts failed summaries.
    """

    policy: str
    budget: int
    series: Series
    valid: int
    fits: int
    compacted: tuple[int, ...]
    rebilled: int
    references: References
    first_lost: Lost | None
    examples: tuple[Lost, ...]
    summaries: tuple[Usage, ...] = ()
    failures: int = 0

    @property
    def calls(self) -> int:
        return len(self.series.turns)

    def to_json(self) -> dict[str, JSON]:
        return {**asdict(self), "summaries": [call.counts for call in self.summaries]}

    @classmethod
    def from_json(cls, data: Mapping[str, JSON]) -> Result:
        """Return the result from the JSON of `to_json`."""
        series = {name: tuple(values) for name, values in data["series"].items()}
        first = data["first_lost"]
        return cls(
            **{
                **data,
                "series": Series(**series),
                "compacted": tuple(data["compacted"]),
                "references": References(**data["references"]),
                "first_lost": Lost(**first) if first else None,
                "examples": tuple(Lost(**lost) for lost in data["examples"]),
                "summaries": _calls(data["summaries"]),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the sessions of one policy and budget. `losing` counts sessions that lost a reference.

    Costs are in micro-dollars, or None if the model of a session has no price.
    """

    sessions: int = 0
    calls: int = 0
    valid: int = 0
    fits: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    compactions: int = 0
    rebilled: int = 0
    losing: int = 0
    references: References = field(default_factory=References)
    cost: int | None = 0
    cost_uncached: int | None = 0

    @classmethod
    def of(cls, result: Result, *, cost: int | None, cost_uncached: int | None) -> Totals:
        """Return the sums of one session."""
        return cls(
            sessions=1,
            calls=result.calls,
            valid=result.valid,
            fits=result.fits,
            prompt_tokens=sum(result.series.prompts),
            cached_tokens=sum(result.series.cached),
            output_tokens=sum(result.series.outputs),
            compactions=len(result.compacted),
            rebilled=result.rebilled,
            losing=int(result.references.lost > 0),
            references=result.references,
            cost=cost,
            cost_uncached=cost_uncached,
        )

    def __add__(self, other: Totals) -> Totals:
        return Totals(**_sums(self, other))


def totals(parts: Iterable[Totals]) -> Totals:
    """Return the sums of many totals."""
    return reduce(add, parts, Totals())


def _calls(data: Any) -> tuple[Usage, ...]:
    """Return the usage of each call. Older results stored only their sum."""
    calls = [data] if isinstance(data, Mapping) else data
    return tuple(Usage(**{name: call[name] for name in USAGE_COUNTS}) for call in calls)


def _sums(one: References | Totals, other: References | Totals) -> dict[str, Any]:
    """Return the sum of each field."""
    return {f.name: _plus(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)}


def _plus(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other
