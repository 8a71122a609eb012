"""The meter: what a prompt is made of, how full it is, and where its size is heading.

Every figure can be kept up to date by the newest turn alone; nothing here reads a history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from compaction.messages import Message, Role, Text, ToolResult
from compaction.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Tokens of a prompt by component. `recap` is all that we wrote in place of evicted messages."""

    system: int = 0
    tools: int = 0
    memory: int = 0
    recap: int = 0
    user: int = 0
    assistant: int = 0
    tool_outputs: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, field.name) for field in fields(self))

    def __add__(self, other: Composition) -> Composition:
        names = (field.name for field in fields(self))
        return Composition(**{name: getattr(self, name) + getattr(other, name) for name in names})


def compose(messages: Iterable[Message]) -> Composition:
    """Composition of pushed messages; add it to that of the turns before."""
    total = Composition()
    for message in messages:
        total += _of_message(message)
    return total


def measure(view: View) -> Composition:
    """Composition of a shown prompt."""
    made = sum(entry.message.tokens for entry in view.entries if entry.is_generated)
    pushed = compose(entry.message for entry in view.entries if not entry.is_generated)
    parts = view.components
    return pushed + Composition(system=parts.system, tools=parts.tools, memory=parts.memory, recap=made)


def _of_message(message: Message) -> Composition:
    match message.role:
        case Role.SYSTEM:
            return Composition(system=message.tokens)
        case Role.ASSISTANT:
            return Composition(assistant=message.tokens)
        case Role.TOOL:
            return Composition(tool_outputs=message.tokens)
    outputs = sum(len(part.text) for part in message.parts if isinstance(part, ToolResult))
    if not outputs:
        return Composition(user=message.tokens)
    words = sum(len(part.text) for part in message.parts if isinstance(part, Text))
    share = message.tokens * outputs // (outputs + words)
    return Composition(tool_outputs=share, user=message.tokens - share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Real tokens per estimated token of one model, from the usage that agents report.

    The newest reports count most (an exponential mean), as the content of sessions changes. A report far
    off the mark is taken at the bound: it may be of a prompt that we did not see whole.
    """

    ratio: float = 1.0
    reports: int = 0

    def updated(self, *, estimated: int, reported: int) -> Calibration:
        """With one more report. `reported` is the whole prompt, cached parts included."""
        if estimated < _LEAST_ESTIMATE or reported <= 0:
            return self
        seen = min(max(reported / estimated, _RATIO_MIN), _RATIO_MAX)
        weight = max(_WEIGHT, 1 / (self.reports + 1))
        return Calibration(ratio=self.ratio + weight * (seen - self.ratio), reports=self.reports + 1)

    def real(self, estimated: int) -> int:
        """Real tokens for an estimate."""
        return round(estimated * self.ratio)


_WEIGHT = 0.1
_RATIO_MIN, _RATIO_MAX = 0.5, 3.0

#: Below this the overhead of the request itself outweighs the content.
_LEAST_ESTIMATE = 500


def occupancy(tokens: int, budget: int) -> float:
    """Share of the budget that a prompt takes; over 1 where it does not fit."""
    return tokens / budget


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputMean:
    """Running mean of tool output tokens a turn, which a spike is measured against."""

    turns: int = 0
    tokens: int = 0

    def updated(self, tokens: int) -> OutputMean:
        return OutputMean(turns=self.turns + 1, tokens=self.tokens + tokens)

    def is_spike(self, tokens: int, budget: int) -> bool:
        """Whether this turn's outputs pad the context: a large share of the budget and far from usual."""
        if tokens < _SPIKE_SHARE * budget:
            return False
        return self.turns < _SPIKE_TURNS or tokens > _SPIKE_FACTOR * self.tokens / self.turns


_SPIKE_SHARE = 0.15
_SPIKE_FACTOR = 4
_SPIKE_TURNS = 3


class Verdict(StrEnum):
    """Where the size of the prompts is heading."""

    FLAT = "flat"
    GROWING = "growing"
    WALL = "hitting the wall"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """`tokens_per_turn` is the least-squares slope; `turns_left` until the budget, None where never."""

    verdict: Verdict
    tokens_per_turn: float
    turns_left: int | None


#: The slope is taken over the newest prompts, and what is set up in the first turns is left out.
SLOPE_TURNS = 20
_SETTLING_TURNS = 5

_FLAT_SHARE = 0.002
_WALL_SHARE = 0.9
_WALL_TURNS = 10


def slope(sizes: Sequence[int], budget: int) -> Slope:
    """The verdict over prompt sizes, oldest first; the newest `SLOPE_TURNS` are looked at."""
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
