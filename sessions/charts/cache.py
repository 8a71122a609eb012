"""Cache misses: calls that did not read the unchanged beginning of their prompt from the provider's cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise

from sessions.charts.prompt_sizes import PromptSize

#: Pauses after which the provider's prompt cache has usually expired.
CACHE_LIFE = timedelta(minutes=5)

#: A call misses the cache if it reads less than this share of the tokens that the previous call left there.
_HIT_SHARE = 0.5
#: Minimum tokens of a prompt that providers cache.
_SHORTEST = 1_024


class Cause(StrEnum):
    """The cause of a cache miss. The first one that applies, in this order, is reported."""

    CLIENT = "client compaction"
    COMPACTION = "compaction"
    MODEL = "model changed"
    PREAMBLE = "system prompt or tools changed"
    PAUSE = "pause"
    PREFIX = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A cache miss. `tokens` are the cached tokens that were not read, `pause` the time since the last call.

    `compaction` is the number of the compaction by contextapp between the calls, if any.
    """

    turn: int
    tokens: int
    cause: Cause
    pause: timedelta
    compaction: int | None = None

    @property
    def text(self) -> str:
        """The cause in a few words."""
        match self.cause:
            case Cause.CLIENT:
                return "after a compaction by the client"
            case Cause.COMPACTION:
                return f"after compaction {self.compaction}"
            case Cause.PAUSE:
                return f"after a pause of {_hours(self.pause)}"
            case Cause.PREFIX:
                return "the beginning of the prompt changed, or the cache expired early"
            case _:
                return f"{self.cause}"


def misses(points: Sequence[PromptSize], compactions: Mapping[int, int]) -> list[Miss]:
    """Return the cache misses among the calls, in order.

    `compactions` are the numbers of contextapp's compactions, by the turn before which they ran. Calls
    without usage are skipped. Returns none if no call reports cached tokens, because the provider then does
    not cache or does not report it.
    """
    calls = [point for point in points if point.reported is not None and point.billed]
    if not any(call.cache_read or call.cache_write for call in calls):
        return []
    found = (_miss(before, call, compactions) for before, call in pairwise(calls))
    return [each for each in found if each is not None]


def _miss(before: PromptSize, call: PromptSize, compactions: Mapping[int, int]) -> Miss | None:
    """Return the cache miss of a call, or None if it read what the call before it had left in the cache."""
    left = (before.cache_read + before.cache_write) if before.cache_write else before.reported or 0
    expected = min(left, call.reported or 0)
    if expected < _SHORTEST or call.cache_read >= _HIT_SHARE * expected:
        return None
    pause = call.at - before.at if call.at and before.at else timedelta()
    compaction = next((compactions[n] for n in range(call.turn, before.turn, -1) if n in compactions), None)
    return Miss(
        turn=call.turn,
        tokens=expected - call.cache_read,
        cause=_cause(before, call, pause, compaction),
        pause=pause,
        compaction=compaction,
    )


def _cause(before: PromptSize, call: PromptSize, pause: timedelta, compaction: int | None) -> Cause:
    if call.client_compaction is not None:
        return Cause.CLIENT
    if compaction is not None:
        return Cause.COMPACTION
    if call.model != before.model:
        return Cause.MODEL
    if call.preamble != before.preamble:
        return Cause.PREAMBLE
    return Cause.PAUSE if pause > CACHE_LIFE else Cause.PREFIX


#: Prices relative to uncached input. Providers differ little in these ratios.
_READ, _WRITE, _OUTPUT = 0.1, 1.25, 5


def cost_share(points: Iterable[PromptSize], found: Iterable[Miss]) -> float:
    """Return the part of the calls' cost that these misses caused, from 0 to 1."""
    spent = sum(
        p.uncached + _READ * p.cache_read + _WRITE * p.cache_write + _OUTPUT * p.output for p in points
    )
    return min(1.0, (_WRITE - _READ) * sum(each.tokens for each in found) / spent) if spent else 0.0


def _hours(span: timedelta) -> str:
    """Return hours and minutes: 25 min, 2 h, 1 h 22 min."""
    hours, minutes = divmod(round(span.total_seconds() / 60), 60)
    return " ".join([f"{hours:,} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes or not hours))
