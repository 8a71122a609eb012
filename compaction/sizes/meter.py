"""The meter: spikes of tool output, and the slope of prompt sizes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise

from compaction.messages import JSON, Message
from compaction.sizes.breakdown import TokenBreakdown, component_of

#: Tool outputs are a spike if they reach this share of the budget and this multiple of the mean per turn. In
#: the first turns, which have no reliable mean yet, only the share applies.
_SPIKE_SHARE = 0.15
_SPIKE_FACTOR = 4
_SPIKE_TURNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike:
    """Tool outputs of one turn that are far larger than usual: their tokens, and the mean of earlier turns.

    `position` is that of the largest output, `tool` the name of its tool, or "" if an earlier turn called it.
    """

    tokens: int
    mean: int
    position: int
    tool: str

    def to_json(self) -> dict[str, JSON]:
        return asdict(self)


def spike_of(
    messages: Sequence[Message], *, context: TokenBreakdown, turns: int, budget: int
) -> Spike | None:
    """Return the spike of a turn with these messages, or None.

    `context` and `turns` count the transcript before it. Takes constant time.
    """
    outputs = [message for message in messages if component_of(message) == "tool_outputs"]
    tokens = sum(message.tokens for message in outputs)
    mean = context.tokens.get("tool_outputs", 0) / turns if turns else 0.0
    if (
        not outputs
        or tokens < _SPIKE_SHARE * budget
        or (turns >= _SPIKE_TURNS and tokens <= _SPIKE_FACTOR * mean)
    ):
        return None
    largest = max(outputs, key=lambda message: message.tokens)
    return Spike(tokens=tokens, mean=round(mean), position=largest.position, tool=_tool_of(largest, messages))


def _tool_of(output: Message, messages: Sequence[Message]) -> str:
    """Return the tool of the longest result in a message."""
    longest = max(output.tool_results, key=lambda result: len(result.text), default=None)
    names = {call.call_id: call.name for message in messages for call in message.tool_calls}
    return names.get(longest.call_id, "") if longest else ""


class Verdict(StrEnum):
    """The trend of prompt sizes."""

    FLAT = "flat"
    GROWING = "growing"
    HELD = "held by compaction"  #: a saw-tooth: it grows, and compactions bring it back down
    WALL = "hitting the wall"  #: nothing holds it below the limit, or compactions hold it less each time


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The growth of the prompt. `tokens_per_turn` is the least-squares slope since the last compaction.

    `turns_left` is the number of turns until the next compaction, or until the limit is reached if none runs
    before or compactions do not keep the prompt below it. None if the prompt does not grow.
    """

    verdict: Verdict
    tokens_per_turn: float
    turns_left: int | None


#: A prompt below this share of the previous one was compacted, even if no compaction is recorded.
FALL = 0.7

#: The slope covers the newest prompts, excluding the first turns, which set up the session.
SLOPE_TURNS = 20
_SETTLING_TURNS = 5

#: A prompt that grows less than both is flat: a share of the limit, and tokens per turn.
_FLAT_SHARE, _FLAT_TOKENS = 0.002, 400
_WALL_SHARE = 0.9
_WALL_TURNS = 10

#: Compactions are ineffective if each lasts at most this many turns, and leaves this share of the limit.
_SHORT_CYCLE, _SHORT_CYCLE_SHARE = 3, 0.25
#: Number of newest compactions whose sizes are extrapolated, and number of compactions to extrapolate.
_CYCLES, _CYCLES_LEFT = 5, 3


def slope(
    sizes: Sequence[int], limit: int, *, compactions: Collection[int] = (), trigger: int | None = None
) -> Slope:
    """Return the trend of prompt sizes, oldest first.

    `compactions` are the indexes of the sizes that directly follow a known compaction. `trigger` is the size
    at which the next compaction runs, if one does before the limit, so that a first rise to it is expected.
    """
    runs = _runs(sizes, compactions)
    rise = _rise(runs)
    last = sizes[-1] if sizes else 0
    is_growing = rise > min(_FLAT_SHARE * limit, _FLAT_TOKENS)
    left = max(0, int((limit - last) / rise)) if is_growing else None
    if last > limit or _is_short_cycle(runs, limit):
        verdict = Verdict.WALL
    elif left is None:
        verdict = Verdict.FLAT
    elif len(runs) > 1:
        verdict = Verdict.WALL if _runs_away(runs, limit) else Verdict.HELD
    else:
        is_near = last >= _WALL_SHARE * limit or left <= _WALL_TURNS
        verdict = Verdict.WALL if is_near and trigger is None else Verdict.GROWING
    if is_growing and trigger is not None and verdict is not Verdict.WALL:
        left = max(0, int((trigger - last) / rise))
    return Slope(verdict=verdict, tokens_per_turn=round(rise, 1), turns_left=left)


def _runs(sizes: Sequence[int], compactions: Collection[int]) -> list[Sequence[int]]:
    """Split sizes at compactions."""
    falls = [i for i in range(1, len(sizes)) if i in compactions or sizes[i] < FALL * sizes[i - 1]]
    return [sizes[start:end] for start, end in pairwise([0, *falls, len(sizes)])]


def _rise(runs: Sequence[Sequence[int]]) -> float:
    """Return the tokens per turn of the newest run, or of the previous one if it is too short."""
    run = max(runs[-2:], key=len) if len(runs[-1]) < 3 else runs[-1]
    is_first = len(runs) == 1 or (len(runs) == 2 and run is runs[0])
    settled = run[_SETTLING_TURNS:] if is_first and len(run) > 2 * _SETTLING_TURNS else run
    return _least_squares(settled[-SLOPE_TURNS:])


def _is_short_cycle(runs: Sequence[Sequence[int]], limit: int) -> bool:
    """Whether the newest three compactions last only a few turns, although the prompt is not small.

    Prompts between them may not grow, for example if each turn is compacted.
    """
    newest = runs[1:][-3:]
    return (
        len(newest) == 3
        and max(map(len, newest)) <= _SHORT_CYCLE
        and newest[-1][0] >= _SHORT_CYCLE_SHARE * limit
    )


def _runs_away(runs: Sequence[Sequence[int]], limit: int) -> bool:
    """Whether each compaction leaves more than the previous one, with little room below the limit."""
    lows = [run[0] for run in runs[1:]][-_CYCLES:]
    rise = _least_squares(lows)
    return len(lows) >= 3 and lows[-1] + _CYCLES_LEFT * rise >= _WALL_SHARE * limit > lows[0]


def _least_squares(values: Sequence[int]) -> float:
    count = len(values)
    if count < 2:
        return 0.0
    middle = (count - 1) / 2
    spread = sum((x - middle) ** 2 for x in range(count))
    return sum((x - middle) * y for x, y in enumerate(values)) / spread
