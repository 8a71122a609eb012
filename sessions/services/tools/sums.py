"""The sums of a batch of messages: by tool and day, by file, and the outputs one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, date
from typing import NamedTuple, Self
from uuid import UUID

import pricing
from compaction.messages import Message, Role, Usage
from compaction.tools.usage import ToolUse
from pricing.tokenizers import token_factor
from sessions.selectors.convert import usage_of
from sessions.selectors.tools.counted_turns import CountedTurn

#: Models without public prices are assumed to have the price ratios of this one.
_TYPICAL_MODEL = "claude-sonnet-4-5"

#: The lengths of the columns.
MAX_PATH, _MAX_SPAN, _MAX_TOOL = 400, 200, 200


class ClaimedScan(NamedTuple):
    """A claimed session: the state of counting its tools (see `ToolScan`), and what it depends on."""

    session_id: UUID
    attempts: int
    position: int
    context: Mapping[str, int]
    charged_turn: int
    project_id: UUID
    format: str | None
    model: str
    forked_at: int | None


@dataclass(slots=True)
class ToolSums:
    """The sums of one tool on one day. Costs are in micro-dollars."""

    calls: int = 0
    call_tokens: int = 0
    outputs: int = 0
    output_tokens: int = 0
    errors: int = 0
    repeats: int = 0
    repeat_tokens: int = 0
    cost_microusd: int = 0
    largest_tokens: int = 0
    largest_position: int = 0

    def add(self, use: ToolUse, *, is_repeat: bool) -> None:
        if not use.is_output:
            self.calls += 1
            self.call_tokens += use.tokens
            return
        self.outputs += 1
        self.output_tokens += use.tokens
        self.errors += use.is_error
        self.repeats += is_repeat
        self.repeat_tokens += use.tokens * is_repeat
        if use.tokens > self.largest_tokens:
            self.largest_tokens, self.largest_position = use.tokens, use.position


@dataclass(slots=True)
class FileSums:
    reads: int = 0
    tokens: int = 0
    last_position: int = 0


@dataclass(slots=True)
class Sums:
    """The sums of a batch, with the state after it (see `ToolScan`)."""

    context: dict[str, int]
    charged_turn: int
    tools: defaultdict[tuple[date, str], ToolSums] = field(default_factory=lambda: defaultdict(ToolSums))
    files: defaultdict[tuple[str, str], FileSums] = field(default_factory=lambda: defaultdict(FileSums))
    outputs: list[ToolUse] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        scan: ClaimedScan,
        messages: Sequence[Message],
        uses: Sequence[ToolUse],
        turns: Mapping[int, CountedTurn],
        seen: Set[tuple[str, str]],
    ) -> Self:
        """Sum up the messages. A fork counts only its own messages, but the others are in its context."""
        sums = cls(context=dict(scan.context), charged_turn=scan.charged_turn)
        by_position: defaultdict[int, list[ToolUse]] = defaultdict(list)
        for use in uses:
            by_position[use.position].append(replace(use, tool=use.tool[:_MAX_TOOL]))
        begin, known = scan.forked_at or 0, set(seen)
        for message in messages:
            turn = turns[message.turn]
            if turn.is_compacted and message.position == turn.first_position:
                sums.context.clear()
            if message.role is Role.ASSISTANT and sums.charged_turn < turn.number:
                sums._charge(turn, scan.model)
            for use in by_position[message.position]:
                sums._add(use, turn, known, is_counted=message.position >= begin)
        return sums

    def _add(self, use: ToolUse, turn: CountedTurn, known: set[tuple[str, str]], *, is_counted: bool) -> None:
        if use.is_output:
            self.context[use.tool] = self.context.get(use.tool, 0) + use.tokens
        if not is_counted:
            return
        file = (use.path[:MAX_PATH], use.span[:_MAX_SPAN])
        self.tools[_day(turn), use.tool].add(use, is_repeat=bool(use.path) and file in known)
        if use.is_output:
            self.outputs.append(use)
        if use.path:
            known.add(file)
            read = self.files[file]
            read.reads += 1
            read.tokens += use.tokens
            read.last_position = use.position

    def _charge(self, turn: CountedTurn, model: str) -> None:
        """Divide the input cost of a turn's call among the tools whose outputs it read.

        `model` is that of the session. The prompt may be larger than its components: some logs do not contain
        the system prompt and the tool definitions.
        """
        self.charged_turn = turn.number
        components, usage, total = turn.components, usage_of(turn), sum(self.context.values())
        size: float = sum(components.values())
        if usage is None or not turn.cost_microusd or not turn.is_billed or not size or not total:
            return
        model = turn.model or model
        size = max(size, usage.prompt_tokens / (turn.calibration_factor or token_factor(model)))
        spent = turn.cost_microusd * _input_share(model, usage)
        spent *= components.get("tool_outputs", 0) / size
        for tool, tokens in self.context.items():
            self.tools[_day(turn), tool].cost_microusd += round(spent * tokens / total)


def _day(turn: CountedTurn) -> date:
    return turn.at.astimezone(UTC).date()


def _input_share(model: str, usage: Usage) -> float:
    """Return the share of a call's cost that its input causes, from 0 to 1."""
    for name in (model, _TYPICAL_MODEL):
        whole = pricing.price(name, usage).microusd
        read = pricing.price(name, replace(usage, output_tokens=0)).microusd
        if whole and read is not None:
            return read / whole
    return 1.0
