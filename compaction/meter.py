"""The meter: spikes of tool output, and the slope of prompt sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from compaction.breakdown import TokenBreakdown, component_of
from compaction.messages import JSON, Message

#: Tool outputs are a spike from this share of the budget, if they are so many times the mean per turn. In the
#: first turns, which have no usual size yet, the share alone decides.
_SPIKE_SHARE = 0.15
_SPIKE_FACTOR = 4
_SPIKE_TURNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike:
    """Tool outputs of one turn that are far larger than usual: their tokens, and the mean per turn before.

    `position` is that of the largest output, `tool` the name of its tool, "" if an earlier turn called it.
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

    `context` and `turns` count the transcript before it. Takes constant time in the length of the session.
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
    WALL = "hitting the wall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """`tokens_per_turn` is the least-squares slope; `turns_left` until the budget is full, None if never."""

    verdict: Verdict
    tokens_per_turn: float
    turns_left: int | None


#: The slope covers the newest prompts, without the first turns, which set up the session.
SLOPE_TURNS = 20
_SETTLING_TURNS = 5

_FLAT_SHARE = 0.002
_WALL_SHARE = 0.9
_WALL_TURNS = 10


def slope(sizes: Sequence[int], budget: int) -> Slope:
    """Return the slope of the newest `SLOPE_TURNS` prompt sizes, oldest first."""
    recent = list(sizes[_SETTLING_TURNS:] if len(sizes) > 2 * _SETTLING_TURNS else sizes)[-SLOPE_TURNS:]
    rise = _least_squares(recent)
    left = None
    if rise > _FLAT_SHARE * budget:
        left = max(0, int((budget - recent[-1]) / rise))
    near = bool(recent) and recent[-1] >= _WALL_SHARE * budget
    if left is not None and (left <= _WALL_TURNS or near):
        verdict = Verdict.WALL
    else:
        verdict = Verdict.FLAT if left is None else Verdict.GROWING
    return Slope(verdict=verdict, tokens_per_turn=round(rise, 1), turns_left=left)


def _least_squares(values: Sequence[int]) -> float:
    count = len(values)
    if count < 2:
        return 0.0
    middle, mean = (count - 1) / 2, sum(values) / count
    spread = sum((x - middle) ** 2 for x in range(count))
    return sum((x - middle) * (y - mean) for x, y in enumerate(values)) / spread
